#include "serve/service.h"

#include <malloc.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/endpoints.h"
#include "export/http_server.h"
#include "export/metrics.h"
#include "export/page_assets.h"
#include "export/push_counts.h"
#include "export/pusher.h"
#include "export/recent_windows.h"
#include "os/clock.h"
#include "os/http_poster.h"
#include "os/service_notify.h"
#include "serve/window_writer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// Windows stay in memory for late clients: for this time, but not fewer than this number of windows.
constexpr uint64_t kRecentNs = 60'000'000'000;
constexpr uint64_t kLeastRecentWindows = 8;
// A process that was killed holds its history until the kernel has taken it apart.
constexpr uint64_t kHistoryPatienceNs = 5'000'000'000;
constexpr uint64_t kStandstillNs = 60 * kSecondNs;  // as WatchdogSec= of the unit

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// The folder of a file. A new one can be read by us only: its files name the methods of all users' programs.
absl::Status MakeFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return absl::OkStatus();
  const std::string folder = path.substr(0, slash);
  if (mkdir(folder.c_str(), 0750) == 0 || errno == EEXIST) return absl::OkStatus();
  return WithHint(ErrnoError(errno, absl::StrCat("the folder of the history, ", folder)),
                  "make it, give another file with --history, or none with --no-history");
}

// Signals wait until the recorder's loop reads them.
bool MustEnd() {
  sigset_t pending;
  return sigpending(&pending) == 0 && (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

absl::StatusOr<std::unique_ptr<History>> OpenHistory(const ServeOptions& options) {
  RETURN_IF_ERROR(MakeFolderOf(options.history_path));
  const uint64_t give_up_ns = NowNs(CLOCK_MONOTONIC) + kHistoryPatienceNs;
  for (bool said = false;;) {
    absl::StatusOr<std::unique_ptr<History>> history =
        History::Open(options.history_path, options.history, options.log);
    if (!absl::IsAborted(history.status()) || NowNs(CLOCK_MONOTONIC) >= give_up_ns || MustEnd()) return history;
    if (!std::exchange(said, true)) {
      options.log(absl::StrCat("note: ", history.status().message(), "; waiting for it, 5 s at most"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

class Service {
 public:
  explicit Service(const ServeOptions& options)
      : options_(options), windows_(std::max(kLeastRecentWindows, kRecentNs / options.window_ns), kRecentNs) {}
  // The windows end first, then the threads that wait for them. See the members' order.
  ~Service() { windows_.Close(); }

  absl::Status Start();
  absl::StatusOr<ServeEnd> Run();

 private:
  absl::Status StartServers();
  absl::Status StartServer(const ListenAddress& address);
  void TellAddress(const ListenAddress& address) const;
  absl::Status StartPyroscope();
  absl::Status StartOtlp();
  absl::Status StartPushing(std::unique_ptr<PushProtocol> protocol, const PosterOptions& poster_options,
                            PushObserver observer);
  absl::StatusOr<std::unique_ptr<Recorder>> MakeRecorder();
  void TakeWindow(Window window);
  void NotifyManager(absl::string_view state) const;
  void Progress(bool watchdog);

  const ServeOptions& options_;
  const uint64_t started_unix_ns_ = NowNs(CLOCK_REALTIME);
  RecentWindows windows_;
  WindowCuts cuts_;
  uint64_t next_number_ = 1;
  uint32_t frequency_hz_ = 0;
  std::atomic<bool> sampling_ = false;
  std::atomic<uint64_t> progressed_ns_ = NowNs(CLOCK_MONOTONIC);  // when the loop that samples last said so
  mutable bool telling_failed_ = false;                           // said once
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<History> history_;
  std::unique_ptr<FlightRecorder> flights_;
  std::unique_ptr<WindowWriter> writer_;  // from here on, each part before the parts that use it
  std::vector<std::unique_ptr<Pusher>> pushers_;
  std::unique_ptr<Endpoints> endpoints_;
  std::vector<std::unique_ptr<HttpServer>> servers_;
};

absl::Status Service::Start() {
  metrics_ = Metrics::Make(
      {.version = options_.version, .max_processes = options_.max_processes, .started_unix_ns = started_unix_ns_});
  for (const Trigger& trigger : options_.flights.triggers) metrics_->ExpectRecordings(KindOfTrigger(trigger.text));
  if (!options_.history_path.empty()) {
    ASSIGN_OR_RETURN(history_, OpenHistory(options_));
  }
  if (!options_.flights.triggers.empty()) {
    RETURN_IF_ERROR(MakeFolderOf(options_.flights.directory));
  }
  // Without triggers, the recordings of earlier runs are still shown.
  absl::StatusOr<std::unique_ptr<FlightRecorder>> flights = FlightRecorder::OpenFolder(options_.flights);
  if (flights.ok()) {
    flights_ = *std::move(flights);
  } else if (!options_.flights.triggers.empty()) {
    return flights.status();
  }
  writer_ = std::make_unique<WindowWriter>(WindowWriterParts{&windows_, metrics_.get(), flights_.get(), history_.get(),
                                                             options_.history_path, options_.textfile_directory,
                                                             options_.log});
  if (!options_.push.url.empty()) RETURN_IF_ERROR(StartPyroscope());
  if (!options_.otlp.endpoint.url.empty()) RETURN_IF_ERROR(StartOtlp());
  return options_.listen.empty() ? absl::OkStatus() : StartServers();
}

absl::Status Service::StartPyroscope() {
  PyroscopeOptions options = options_.push;
  options.labels["host"] = HostName();
  return StartPushing(MakePyroscopeProtocol(options), {}, PyroscopeCounts(*metrics_));
}

absl::Status Service::StartOtlp() {
  OtlpOptions options = options_.otlp;
  options.host = HostName();
  return StartPushing(MakeOtlpProtocol(options), OtlpPosterOptions(options), OtlpCounts(*metrics_));
}

absl::Status Service::StartPushing(std::unique_ptr<PushProtocol> protocol, const PosterOptions& poster_options,
                                   PushObserver observer) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpPoster> poster, MakeCurlPoster(poster_options));
  observer.said = options_.log;
  pushers_.push_back(
      Pusher::Start(PushOptions(), std::move(protocol), std::move(poster), windows_, std::move(observer)));
  return absl::OkStatus();
}

absl::Status Service::StartServers() {
  EndpointParts parts;
  parts.version = options_.version;
  parts.host = HostName();
  parts.cpus = std::thread::hardware_concurrency();
  parts.started_unix_ns = started_unix_ns_;
  parts.window_ns = options_.window_ns;
  parts.frequency_hz = options_.record.frequency_hz;
  parts.hosts.names = options_.host_names;
  for (const ListenAddress& address : options_.listen) {
    if (address.is_any_address()) parts.hosts.any_address = true;
    if (!address.is_unix()) parts.hosts.names.push_back(address.host());
  }
  parts.access = options_.access;
  parts.access.host = parts.host;
  parts.history = history_.get();
  parts.store_max_bytes = options_.history.max_bytes;
  parts.windows = &windows_;
  parts.recordings = flights_.get();
  parts.metrics = [this] { return metrics_->Text(/*own_process=*/true); };
  parts.asset = [](absl::string_view path) -> std::optional<PageAsset> {
    const PageFile* file = FindPageFile(path);
    if (file == nullptr) return std::nullopt;
    return PageAsset{file->content_type, file->bytes};
  };
  parts.ready = [this] { return sampling_.load(); };
  parts.healthy = [this] { return NowNs(CLOCK_MONOTONIC) - progressed_ns_.load() < kStandstillNs; };
  parts.want_cut = [this](uint64_t unix_ns) { cuts_.Ask(unix_ns); };
  endpoints_ = std::make_unique<Endpoints>(std::move(parts));
  for (const ListenAddress& address : options_.listen) RETURN_IF_ERROR(StartServer(address));
  return absl::OkStatus();
}

absl::Status Service::StartServer(const ListenAddress& address) {
  HttpServerOptions server_options;
  server_options.listen = address;
  if (!address.is_unix()) server_options.tls = options_.tls;
  server_options.cpu.share /= static_cast<double>(options_.listen.size());
  HttpServerObserver observer;
  observer.answered = [this](const std::string& endpoint, unsigned status, double) {
    metrics_->CountRequest(endpoint, status);
  };
  observer.connection_ended = [this](absl::string_view end) { metrics_->CountConnectionEnd(end); };
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      server_options,
      [this](const HttpRequest& request, HttpReply reply) { endpoints_->Handle(request, std::move(reply)); },
      std::move(observer));
  if (!server.ok()) return server.status();
  servers_.push_back(*std::move(server));
  TellAddress(servers_.back()->address());
  return absl::OkStatus();
}

void Service::TellAddress(const ListenAddress& address) const {
  if (address.is_unix()) return options_.log(absl::StrCat("listening on unix:", address.path));
  const std::string scheme = options_.tls ? "https://" : "http://";
  options_.log(absl::StrCat("listening on ", scheme, address.host(), ":", address.port, "/"));
  const AccessPolicy& access = options_.access;
  if (options_.show_link && !access.tokens.empty()) {
    const std::string host = address.is_any_address() ? "localhost" : address.host();
    options_.log(absl::StrCat("open ", scheme, host, ":", address.port, "/?token=", access.tokens.front()));
  } else if (access.anonymous) {
    options_.log("note: everybody who reaches this address sees the profiles of this host");
  } else if (access.tokens.empty()) {
    options_.log("note: this address gives /metrics, /-/ready and /-/healthy only: profiles over TCP take a token");
    options_.log(
        "  hint: --token-file FILE, or --listen unix:/run/clrsampler/http.sock, or --allow-anonymous-profiles");
  }
  if (!options_.tls && !address.is_loopback() && !access.anonymous && !access.tokens.empty()) {
    options_.log("note: without --tls-cert and --tls-key everybody on the way to this address reads the token");
  }
}

absl::StatusOr<std::unique_ptr<Recorder>> Service::MakeRecorder() {
  RecordOptions record = options_.record;
  WindowOptions windows;
  windows.lengths.length_ns = options_.window_ns;
  windows.lengths.cuts = &cuts_;
  windows.limits = options_.limits;
  windows.limits.frequency_hz = record.frequency_hz;
  windows.allocations = options_.allocations;
  windows.waits = options_.waits;
  if (!options_.selection.empty()) {
    windows.selects = [this](const Process& process) { return Selects(options_.selection, process); };
  }
  windows.on_window = [this](Window window) { TakeWindow(std::move(window)); };
  windows.begins_anew = true;
  record.windows = std::move(windows);
  return Recorder::Create(record);
}

void Service::TakeWindow(Window window) {
  window.number = next_number_++;
  frequency_hz_ = window.frequency_hz;
  for (const Notice& notice : window.account.notices) {
    options_.log(absl::StrCat("note: ", notice.message));
    if (!notice.hint.empty()) options_.log(absl::StrCat("  hint: ", notice.hint));
  }
  if (window.clock_jump_ns != 0) {
    options_.log(absl::StrCat("note: the clock was set by ", window.clock_jump_ns / 1'000'000,
                              " ms; the history has a ", window.clock_jump_ns > 0 ? "gap" : "stretch twice", " there"));
  }
  windows_.Add(std::make_shared<const Window>(std::move(window)));
}

void Service::NotifyManager(absl::string_view state) const {
  const absl::Status told = NotifyServiceManager(state);
  if (!told.ok() && !std::exchange(telling_failed_, true)) {
    options_.log(absl::StrCat("note: the service manager was not told: ", told.message()));
  }
}

// The loop that samples goes on: told to all that watch over it.
void Service::Progress(bool watchdog) {
  progressed_ns_ = NowNs(CLOCK_MONOTONIC);
  if (watchdog) NotifyManager("WATCHDOG=1");
}

absl::StatusOr<ServeEnd> Service::Run() {
  const bool watchdog = WatchdogNs().has_value();
  bool ready = false;
  while (true) {
    ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder, MakeRecorder());
    Progress(watchdog);
    if (!std::exchange(ready, true)) {
      options_.log(absl::StrCat("sampling this host at ", options_.record.frequency_hz, " Hz; Ctrl-C ends"));
      sampling_ = true;
      NotifyManager("READY=1");
      if (options_.on_ready) options_.on_ready();
    }
    // The recorder calls this about once a second. A loop that hangs does not feed the watchdog.
    RETURN_IF_ERROR(recorder->Run([&](const RecordProgress& progress) {
      Progress(watchdog);
      if (static_cast<uint64_t>(progress.seconds) % 10 == 0) {
        NotifyManager(absl::StrCat("STATUS=", frequency_hz_ > 0 ? frequency_hz_ : options_.record.frequency_hz, " Hz, ",
                                   next_number_ - 1, " windows"));
      }
    }));
    const int signal = recorder->stop_signal();
    const FreshStart reason = recorder->wants_fresh_start();
    if (signal == 0 && reason != FreshStart::kNone) {
      options_.log(absl::StrCat("note: ", TextOf(reason).message));
      options_.log(absl::StrCat("  hint: ", TextOf(reason).hint));
      recorder.reset();
      malloc_trim(0);  // what was freed stays with the process otherwise
      continue;
    }
    // A push or a question that is under way may take some seconds more.
    constexpr absl::string_view kPatience = "\nEXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1";
    const bool reload = signal == SIGHUP && options_.reload_on_hangup;
    NotifyManager(reload ? absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", SystemClock().Now().ns / 1000, kPatience)
                         : absl::StrCat("STOPPING=1", kPatience));
    return reload ? ServeEnd::kReload : ServeEnd::kStopped;
  }
}

}  // namespace

absl::StatusOr<ServeEnd> Serve(const ServeOptions& options) {
  Service service(options);
  RETURN_IF_ERROR(service.Start());
  return service.Run();
}

}  // namespace clrsampler
