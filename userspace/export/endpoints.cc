#include "export/endpoints.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "export/api_json.h"
#include "export/metrics.h"
#include "export/page_assets.h"
#include "export/profile_answer.h"
#include "export/recent_history.h"
#include "formats/profile/gzip.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMostProcesses = 1000;
constexpr size_t kTimelinePauses = 200;
constexpr uint64_t kMostListed = 10'000;
constexpr size_t kWorthCompressing = 1024;
constexpr uint64_t kMetricsKeptNs = 500'000'000;  // another scrape gets the same answer as well
constexpr absl::string_view kJson = "application/json";
constexpr absl::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr absl::string_view kRecordings = "/api/recordings";
constexpr absl::string_view kPprofIndex =
    "Profiles of this host, as Go services offer theirs:\n"
    "\n"
    "  /debug/pprof/profile?seconds=30                 CPU time of all processes in the next seconds (1 to 300)\n"
    "  /debug/pprof/profile?seconds=30&pid=4711        of one process\n"
    "  /debug/pprof/profile?seconds=30&container=shop  of the processes of a container\n"
    "  /debug/pprof/allocs?seconds=30                  bytes that .NET programs allocate in that time\n"
    "  /debug/pprof/off-cpu?seconds=30                 time that threads wait, by what for (serve --waits)\n"
    "\n"
    "  go tool pprof -http : 'http://127.0.0.1:9404/debug/pprof/profile?seconds=30'\n"
    "\n"
    "A profile of the past: /api/profile?from=-10m&to=-5m&format=pprof\n";

uint64_t SystemNow() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

EndpointParts WithDefaults(EndpointParts parts) {
  if (!parts.now_unix_ns) parts.now_unix_ns = &SystemNow;
  if (!parts.process_exists) parts.process_exists = &IsInProc;
  return parts;
}

// The word under which requests to a path are counted. It is one of a few, whatever clients ask for.
std::string RouteOf(const std::string& path) {
  for (const absl::string_view route :
       {"/", "/metrics", "/-/ready", "/-/healthy", "/api/status", "/api/timeline", "/api/lanes", "/api/profile",
        "/api/diff", "/api/pauses", "/api/jit", "/api/health", "/api/processes", "/api/recordings",
        "/debug/pprof/profile", "/debug/pprof/allocs", "/debug/pprof/off-cpu"}) {
    if (path == route) return std::string(route);
  }
  if (path == "/debug/pprof" || path == "/debug/pprof/") return "/debug/pprof";
  if (absl::StartsWith(path, "/assets/")) return "/assets";
  if (absl::StartsWith(path, absl::StrCat(kRecordings, "/"))) return "/api/recordings/ID";
  return "none";
}

bool AcceptsGzip(absl::string_view accept_encoding) {
  for (absl::string_view one : absl::StrSplit(accept_encoding, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(one, absl::MaxSplits(';', 1));
    const absl::string_view quality = absl::StripAsciiWhitespace(parts.second);
    if (absl::StripAsciiWhitespace(parts.first) != "gzip") continue;
    return quality != "q=0" && !absl::StartsWith(quality, "q=0.000") && quality != "q=0.0" && quality != "q=0.00";
  }
  return false;
}

std::shared_ptr<const std::string> Packed(const std::string& body) {
  std::string packed;
  const GzipStream::Sink sink = [&](absl::string_view piece) {
    packed.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  GzipStream stream(sink);
  if (!stream.Write(body).ok() || !stream.Finish().ok()) return nullptr;
  return std::make_shared<const std::string>(std::move(packed));
}

// `packed`: the same body compressed, where it is kept. Otherwise it is compressed now.
void Compress(const HttpRequest& request, HttpAnswer& answer, std::shared_ptr<const std::string> packed = nullptr) {
  const bool text = absl::StartsWith(answer.content_type, "text/") ||
                    absl::StartsWith(answer.content_type, "application/json") ||
                    absl::StartsWith(answer.content_type, "image/svg");
  if (!text) return;
  answer.headers.emplace_back("Vary", "Accept-Encoding");
  if (answer.body->size() < kWorthCompressing || !AcceptsGzip(request.accept_encoding)) return;
  if (packed == nullptr) packed = Packed(*answer.body);
  if (packed == nullptr) return;
  answer.body = std::move(packed);
  answer.headers.emplace_back("Content-Encoding", "gzip");
}

template <typename Value, typename ToJson>
absl::StatusOr<HttpAnswer> JsonAnswer(const absl::StatusOr<Value>& value, const ToJson& to_json) {
  if (!value.ok()) return value.status();
  return TextAnswer(kJson, to_json(*value));
}

bool Narrowed(const HistorySelection& selection) {
  return selection.pid || selection.comm || selection.container || selection.thread;
}

// An empty answer about the whole host means an idle host. About a named process it usually is a mistake.
absl::Status CheckNotEmpty(const ProfileModel& model, const HistorySelection& selection) {
  if (model.samples.size() > 0 || !Narrowed(selection)) return absl::OkStatus();
  return WithHint(absl::NotFoundError("nothing that fits was sampled in that time"),
                  "/api/processes lists what was, and /api/status since when it is known");
}

ProfileView ViewOf(QueryReader& reader) {
  return *ProfileViewOf(reader.Word("view", {"cpu", "jit", "pause", "suspend-delay", "alloc", "off-cpu"}));
}

ProfileForm FormOf(QueryReader& reader) {
  ProfileForm form;
  form.format = reader.Word(
      "format", {"pprof", "folded", "json", "speedscope", "html", "svg", "page", "order", "callchain", "mip"});
  // In other formats the parameter would claim something untrue.
  if (form.format == "order" || form.format == "callchain" || form.format == "mip") {
    form.module = reader.Text("module").value_or("");
  }
  return form;
}

}  // namespace

Endpoints::Endpoints(EndpointParts parts)
    : parts_(WithDefaults(std::move(parts))),
      access_(parts_.access),
      recent_(parts_.history == nullptr ? MakeRecentHistory(*parts_.windows) : nullptr),
      history_(parts_.history == nullptr ? *recent_ : *parts_.history),
      workers_(parts_.queries),
      live_(*parts_.windows, parts_.want_cut) {}

Endpoints::~Endpoints() { history_.EndQuestions(); }

void Endpoints::Handle(const HttpRequest& request, HttpReply reply) {
  const absl::StatusOr<RequestTarget> target = ParseTarget(request.target);
  if (!target.ok()) return reply(ErrorAnswer(target.status()));
  const std::string route = RouteOf(target->path);
  // All answers leave through here.
  const auto send = [route, reply = std::move(reply)](HttpAnswer answer) {
    answer.endpoint = route;
    reply(std::move(answer));
  };
  if (std::optional<HttpAnswer> refusal = Refuse(request, target->path, parts_.hosts)) return send(*std::move(refusal));
  if (std::optional<HttpAnswer> answer = access_.Check(request, *target)) return send(*std::move(answer));

  const uint64_t now = parts_.now_unix_ns();
  if (route == "none") {
    return send(ErrorAnswer(404, "there is nothing at this address", "the page is at /, the API in docs/http-api.md"));
  }
  if (route == "/metrics") return send(Metrics(request, *target));
  if (route == "/-/ready") return send(Ready(*target));
  if (route == "/-/healthy") return send(Healthy(*target));
  if (route == "/" || route == "/assets") return send(Asset(request, target->path));
  if (route == "/debug/pprof/profile") return LiveProfile(request, *target, ProfileView::kCpu, now, send);
  if (route == "/debug/pprof/allocs") return LiveProfile(request, *target, ProfileView::kAllocations, now, send);
  if (route == "/debug/pprof/off-cpu") return LiveProfile(request, *target, ProfileView::kOffCpu, now, send);
  if (route == "/debug/pprof") {
    const absl::Status known = QueryReader(*target, now).Finish();
    return send(known.ok() ? TextAnswer("text/plain; charset=utf-8", std::string(kPprofIndex)) : ErrorAnswer(known));
  }
  absl::StatusOr<Job> job = MakeJob(*target, route, now);
  if (!job.ok()) return send(ErrorAnswer(job.status()));
  workers_.Submit(
      request.client,
      [request, job = *std::move(job)] {
        absl::StatusOr<HttpAnswer> made = job();
        HttpAnswer answer = made.ok() ? *std::move(made) : ErrorAnswer(made.status());
        Compress(request, answer);
        return answer;
      },
      send);
}

absl::StatusOr<Endpoints::Job> Endpoints::MakeJob(const RequestTarget& target, const std::string& route,
                                                  uint64_t now_unix_ns) {
  QueryReader reader(target, now_unix_ns);
  if (route == "/api/profile") return ProfileJob(reader);
  if (route == "/api/diff") return DiffJob(reader);
  if (route == "/api/timeline") return TimelineJob(reader);
  if (route == "/api/lanes") return LanesJob(reader);
  if (route == "/api/processes") return ProcessesJob(reader);
  if (route == "/api/recordings/ID") {
    return RecordingJob(reader, target.path.substr(kRecordings.size() + 1));
  }
  if (route == "/api/pauses" || route == "/api/jit") {
    const HistorySelection selection = reader.Selection();
    const size_t limit = reader.Number("limit", 200, 1, kMostListed);
    RETURN_IF_ERROR(reader.Finish());
    if (route == "/api/pauses") {
      return Job([this, selection, limit] { return JsonAnswer(history_.Pauses(selection, limit), &PausesJson); });
    }
    return Job([this, selection, limit] { return JsonAnswer(history_.Methods(selection, limit), &MethodsJson); });
  }
  if (route == "/api/health") {
    uint64_t from = 0, to = 0;
    reader.Range("", false, from, to);
    RETURN_IF_ERROR(reader.Finish());
    return Job([this, from, to] { return JsonAnswer(history_.Health(from, to), &HealthJson); });
  }
  RETURN_IF_ERROR(reader.Finish());
  if (route == "/api/status") return Job([this, now_unix_ns] { return Status(now_unix_ns); });
  return Job([this]() -> absl::StatusOr<HttpAnswer> {
    return TextAnswer(kJson, RecordingsJson(parts_.recordings == nullptr ? std::vector<FlightRecording>()
                                                                         : parts_.recordings->List()));
  });
}

absl::StatusOr<Endpoints::Job> Endpoints::ProfileJob(QueryReader& reader) {
  const HistorySelection selection = reader.Selection();
  const ProfileView view = ViewOf(reader);
  const ProfileForm form = FormOf(reader);
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, selection, view, form]() -> absl::StatusOr<HttpAnswer> {
    ASSIGN_OR_RETURN(const ProfileModel model, history_.Profile(selection, view));
    RETURN_IF_ERROR(CheckNotEmpty(model, selection));
    return ProfileAnswer(model, form);
  });
}

absl::StatusOr<Endpoints::Job> Endpoints::DiffJob(QueryReader& reader) {
  const HistorySelection after = reader.Selection();
  HistorySelection before = after;
  reader.Range("base_", true, before.from_unix_ns, before.to_unix_ns);
  const ProfileView view = ViewOf(reader);
  const DiffBasis basis = reader.Word("by", {"share", "cpu-time"}) == "share" ? DiffBasis::kShare : DiffBasis::kCpuTime;
  const std::string format = reader.Word("format", {"page", "html", "text", "difffolded"});
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, before, after, view, basis, format]() -> absl::StatusOr<HttpAnswer> {
    ASSIGN_OR_RETURN(const ProfileModel old_model, history_.Profile(before, view));
    ASSIGN_OR_RETURN(const ProfileModel new_model, history_.Profile(after, view));
    RETURN_IF_ERROR(Annotate(CheckNotEmpty(old_model, before), "base"));
    RETURN_IF_ERROR(CheckNotEmpty(new_model, after));
    // A profile of an idle host is empty. A comparison with nothing says nothing.
    if (old_model.samples.size() == 0 || new_model.samples.size() == 0) {
      return WithHint(absl::NotFoundError("one of the two times that are compared has no samples"),
                      "/api/timeline says when something was sampled");
    }
    return DiffAnswer(old_model, new_model, basis, format);
  });
}

absl::StatusOr<Endpoints::Job> Endpoints::TimelineJob(QueryReader& reader) {
  const HistorySelection selection = reader.Selection();
  const TimelineBy by =
      reader.Word("by", {"process", "container"}) == "process" ? TimelineBy::kProcess : TimelineBy::kContainer;
  const size_t points = reader.Number("points", 120, 1, 2000);
  const size_t series = reader.Number("series", 12, 1, 200);
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, selection, by, points, series]() -> absl::StatusOr<HttpAnswer> {
    const auto timeline = history_.Timeline(selection, by, points, series);
    if (!timeline.ok()) return timeline.status();
    ASSIGN_OR_RETURN(HistoryPauses pauses, history_.Pauses(selection, kTimelinePauses));
    return TextAnswer(kJson, TimelineJson(*timeline, std::move(pauses)));
  });
}

absl::StatusOr<Endpoints::Job> Endpoints::LanesJob(QueryReader& reader) {
  const HistorySelection selection = reader.Selection();
  LaneQuestion question;
  question.method = reader.Text("method").value_or("");
  question.max_steps = reader.Number("points", 360, 1, 10'000);
  question.max_threads = reader.Number("threads", 12, 1, 100);
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, selection, question] { return JsonAnswer(history_.Lanes(selection, question), &LanesJson); });
}

absl::StatusOr<Endpoints::Job> Endpoints::ProcessesJob(QueryReader& reader) {
  const HistorySelection selection = reader.Selection();
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, selection]() -> absl::StatusOr<HttpAnswer> {
    const auto timeline = history_.Timeline(selection, TimelineBy::kProcess, 1, kMostProcesses);
    if (!timeline.ok()) return timeline.status();
    KnownProcesses known;
    for (const SharedWindow& window : parts_.windows->All()) {
      for (const WindowProcess& process : window->processes) {
        if (!process.runtime.empty()) known[{process.pid, process.comm}] = {process.runtime, process.labels};
      }
    }
    return TextAnswer(kJson, ProcessesJson(*timeline, known));
  });
}

absl::StatusOr<Endpoints::Job> Endpoints::RecordingJob(QueryReader& reader, const std::string& id) {
  const ProfileForm form = FormOf(reader);
  RETURN_IF_ERROR(reader.Finish());
  return Job([this, id, form]() -> absl::StatusOr<HttpAnswer> {
    // A name that a client sends is compared with the names that there are. It never becomes a path.
    const std::vector<FlightRecording> list =
        parts_.recordings == nullptr ? std::vector<FlightRecording>() : parts_.recordings->List();
    const auto found = std::find_if(list.begin(), list.end(), [&](const FlightRecording& one) { return one.id == id; });
    if (found == list.end()) {
      return WithHint(absl::NotFoundError("there is no such recording"), "/api/recordings lists them");
    }
    ASSIGN_OR_RETURN(const ProfileModel model, parts_.recordings->Open(found->id));
    return ProfileAnswer(model, form);
  });
}

absl::StatusOr<HttpAnswer> Endpoints::Status(uint64_t now_unix_ns) {
  ASSIGN_OR_RETURN(const HistorySpan span, history_.Span());
  const SharedWindow newest = parts_.windows->Newest();
  ApiStatus status;
  status.version = parts_.version;
  status.host = parts_.host;
  status.cpus = parts_.cpus;
  status.started_unix_ns = parts_.started_unix_ns;
  status.now_unix_ns = now_unix_ns;
  status.window_ns = parts_.window_ns;
  if (parts_.history != nullptr) status.store_max_bytes = parts_.store_max_bytes;
  status.span = span;
  status.newest = newest.get();
  status.frequency_hz = newest != nullptr ? newest->frequency_hz : parts_.frequency_hz;
  return TextAnswer(kJson, StatusJson(status));
}

void Endpoints::LiveProfile(const HttpRequest& request, const RequestTarget& target, ProfileView view,
                            uint64_t now_unix_ns, const HttpReply& reply) {
  QueryReader reader(target, now_unix_ns);
  HistorySelection selection;
  selection.from_unix_ns = now_unix_ns;
  selection.to_unix_ns = now_unix_ns + reader.Number("seconds", 30, 1, 300) * 1'000'000'000;
  if (const auto pid = reader.OptionalNumber("pid", 1, INT32_MAX)) selection.pid = static_cast<uint32_t>(*pid);
  selection.container = reader.Text("container");
  absl::Status status = reader.Finish();
  if (status.ok() && selection.pid && !parts_.process_exists(*selection.pid)) {
    status = WithHint(absl::NotFoundError(absl::StrCat("there is no process ", *selection.pid)),
                      "/api/processes lists those that run");
  }
  if (!status.ok()) return reply(ErrorAnswer(status));
  if (std::optional<HttpAnswer> refusal = workers_.Admit(request.client)) return reply(*std::move(refusal));
  status = live_.Begin(
      selection, view, now_unix_ns,
      [this, client = request.client](absl::FunctionRef<void()> work) { workers_.Charge(client, work); },
      [this, reply, client = request.client](const absl::StatusOr<ProfileModel>& model) {
        reply(workers_.RunHere(client, [&] {
          absl::StatusOr<HttpAnswer> answer = model.ok() ? ProfileAnswer(*model, {.format = "pprof"}) : model.status();
          return answer.ok() ? *std::move(answer) : ErrorAnswer(answer.status());
        }));
      });
  if (!status.ok()) reply(ErrorAnswer(status));
}

HttpAnswer Endpoints::Metrics(const HttpRequest& request, const RequestTarget& target) {
  const uint64_t now = parts_.now_unix_ns();
  const absl::Status known = QueryReader(target, now).Finish();
  if (!known.ok()) return ErrorAnswer(known);
  if (!parts_.metrics) return ErrorAnswer(404, "metrics are switched off", "");
  const std::lock_guard lock(metrics_mutex_);
  if (metrics_ == nullptr || now < metrics_at_ns_ || now - metrics_at_ns_ > kMetricsKeptNs) {
    metrics_ = std::make_shared<const std::string>(parts_.metrics());
    packed_metrics_ = nullptr;
    metrics_at_ns_ = now;
  }
  if (packed_metrics_ == nullptr && AcceptsGzip(request.accept_encoding)) packed_metrics_ = Packed(*metrics_);
  HttpAnswer answer = TextAnswer(kMetricsType, "");
  answer.body = metrics_;
  Compress(request, answer, packed_metrics_);
  return answer;
}

HttpAnswer Endpoints::Ready(const RequestTarget& target) const {
  const absl::Status known = QueryReader(target, 0).Finish();
  if (!known.ok()) return ErrorAnswer(known);
  const bool ready = parts_.ready ? parts_.ready() : parts_.windows->Newest() != nullptr;
  return ready ? TextAnswer("text/plain; charset=utf-8", "ready\n")
               : ErrorAnswer(503, "sampling has not begun", "its log says what it waits for");
}

HttpAnswer Endpoints::Healthy(const RequestTarget& target) const {
  const absl::Status known = QueryReader(target, 0).Finish();
  if (!known.ok()) return ErrorAnswer(known);
  return !parts_.healthy || parts_.healthy()
             ? TextAnswer("text/plain; charset=utf-8", "healthy\n")
             : ErrorAnswer(503, "sampling stands still", "whatever watches over this process should start it anew");
}

// Parameters are not looked at. The page keeps its view in those of its own address.
HttpAnswer Endpoints::Asset(const HttpRequest& request, const std::string& path) const {
  const std::optional<PageAsset> asset = parts_.asset ? parts_.asset(path) : std::nullopt;
  if (!asset) return ErrorAnswer(404, "there is nothing at this address", "");
  HttpAnswer answer = TextAnswer(asset->content_type, "");
  {
    const std::lock_guard lock(assets_mutex_);
    KeptAsset& kept = assets_[path];
    if (kept.plain == nullptr) {
      kept.plain = std::make_shared<const std::string>(asset->bytes);
      kept.packed = Packed(*kept.plain);
    }
    answer.body = kept.plain;
    Compress(request, answer, kept.packed);
  }
  answer.headers.emplace_back("Content-Security-Policy", PageSecurityPolicy());
  answer.headers.emplace_back("Cache-Control", "no-cache");
  return answer;
}

}  // namespace clrsampler
