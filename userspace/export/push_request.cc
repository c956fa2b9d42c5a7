#include "export/push_request.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "export/query.h"
#include "export/server_url.h"
#include "formats/names/utf8.h"
#include "output/pprof.h"
#include "profile/model_copier.h"
#include "profile/window_owners.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kOther[] = "other";
constexpr size_t kMaxWordBytes = 100;
// Without it, values of CPU time would be taken for counts of samples at 100 Hz.
constexpr absl::string_view kCpuTypes =
    R"({"cpu":{"units":"nanoseconds","display-name":"cpu","aggregation":"sum","cumulative":false,"sampled":true}})";
constexpr absl::string_view kAllocationTypes =
    R"({"alloc_space":{"units":"bytes","display-name":"alloc_space","aggregation":"sum","cumulative":false}})";
constexpr absl::string_view kWaitTypes =
    R"({"off_cpu":{"units":"nanoseconds","display-name":"off_cpu","aggregation":"sum","cumulative":false}})";

absl::string_view TypesOf(ProfileView view) {
  return view == ProfileView::kAllocations ? kAllocationTypes : view == ProfileView::kOffCpu ? kWaitTypes : kCpuTypes;
}

// A word of a name or label. It can't contain the characters that separate words in "name{key=value,...}".
std::string Word(absl::string_view text) {
  std::string word = WellFormedUtf8(text.substr(0, kMaxWordBytes));
  for (char& c : word) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || absl::StrContains("{}=,\"", c)) c = '_';
  }
  return word.empty() ? "unknown" : word;
}

std::string NameOf(const std::string& service, const std::map<std::string, std::string>& labels) {
  std::string name = absl::StrCat(Word(service), "{");
  absl::string_view separator = "";
  for (const auto& [key, value] : labels) {
    absl::StrAppend(&name, separator, Word(key), "=", Word(value));
    separator = ",";
  }
  absl::StrAppend(&name, "}");
  return name;
}

std::string NameOf(const WindowProcess& process, PushBy by, std::map<std::string, std::string> labels) {
  if (by == PushBy::kProcess) {
    labels["comm"] = process.comm;
    labels["pid"] = absl::StrCat(process.pid);
  }
  process.labels.ForEach([&](absl::string_view key, const std::string& value) {
    // A label that was given by an option stays.
    if (key != LabelName(LabelKey::kServiceName)) labels.emplace(absl::StrReplaceAll(key, {{".", "_"}}), value);
  });
  if (!process.labels.service().empty()) return NameOf(process.labels.service(), labels);
  return NameOf(process.container.empty() ? process.comm : process.container, labels);
}

// These samples of a window's profile as pprof.
absl::StatusOr<std::string> Encode(const Window& window, const ProfileModel& profile, const std::vector<size_t>& rows) {
  ProfileModelBuilder builder;
  builder.meta() = profile.meta;
  builder.meta().start_unix_ns = window.begin_unix_ns;
  builder.meta().duration_ns = window.end_unix_ns - window.begin_unix_ns;
  ModelCopier copier(profile, builder);
  for (const size_t row : rows) {
    ModelSample sample = profile.samples.at(row);
    sample.link = 0;  // equal stacks are added up
    sample.thread = copier.Thread(sample.thread);
    sample.stack = copier.Stack(sample.stack);
    builder.Add(sample);
  }
  ASSIGN_OR_RETURN(const ProfileModel model, std::move(builder).Build());
  std::string bytes;
  RETURN_IF_ERROR(PprofWriter().Write(model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return bytes;
}

// The name under which each thread of a window is pushed: that of its process.
class Services {
 public:
  // The window and the labels are borrowed.
  Services(const Window& window, PushBy by, size_t most, const std::map<std::string, std::string>& labels)
      : by_(by), labels_(labels), owners_(window), other_(NameOf(kOther, labels)) {
    absl::flat_hash_map<std::string, uint64_t> cpu_ns;
    for (const WindowProcess& process : window.processes) {
      const std::string name = NameOf(process, by, labels);
      cpu_ns[name] += process.total_cpu_ns();
      names_.push_back(name);
    }
    std::vector<std::pair<uint64_t, std::string>> ranked;
    for (const auto& [name, ns] : cpu_ns) ranked.emplace_back(std::numeric_limits<uint64_t>::max() - ns, name);
    std::sort(ranked.begin(), ranked.end());
    if (ranked.size() > most) ranked.resize(most);
    for (auto& [rank, name] : ranked) own_.insert(std::move(name));
  }

  std::string Of(const ProfileModel& model, const ModelThread& thread) const {
    const std::optional<size_t> owner = owners_.Of(model, thread);
    const std::string name = owner ? names_[*owner] : NameOf(AsProcess(model, thread), by_, labels_);
    return own_.contains(name) ? name : other_;
  }

 private:
  const PushBy by_;
  const std::map<std::string, std::string>& labels_;
  const WindowOwners owners_;
  const std::string other_;
  std::vector<std::string> names_;  // of each of the window's processes
  absl::flat_hash_set<std::string> own_;
};

// These are made one after the other: the tables of a copy are as large as those of the window.
absl::Status AddRequests(const Window& window, const ProfileModel& profile, const Services& services,
                         std::vector<PushRequest>& requests) {
  std::map<std::string, std::vector<size_t>> rows;
  std::vector<std::vector<size_t>*> of_thread;
  for (const ModelThread& thread : profile.threads) of_thread.push_back(&rows[services.Of(profile, thread)]);
  for (size_t row = 0; row < profile.samples.size(); ++row) of_thread[profile.samples.thread[row]]->push_back(row);
  for (const auto& [name, own_rows] : rows) {
    if (own_rows.empty()) continue;
    ASSIGN_OR_RETURN(std::string bytes, Encode(window, profile, own_rows));
    requests.push_back({name, profile.meta.view, window.begin_unix_ns, window.end_unix_ns, std::move(bytes)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ParsePushUrl(absl::string_view text) {
  const auto wrong = [&](absl::string_view why) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("can't push to ", text, ": ", why)),
                    "https://pyroscope.example:4040, the address of a Pyroscope or Alloy that receives profiles");
  };
  const absl::StatusOr<ServerUrl> url = ParseServerUrl(text);
  if (!url.ok()) return wrong(url.status().message());
  if (url->scheme != "https" && url->scheme != "http") return wrong("it does not begin with http:// or https://");
  return url->text();
}

absl::StatusOr<std::vector<PushRequest>> PushRequestsOf(const Window& window, PushBy by, size_t most,
                                                        const std::map<std::string, std::string>& labels) {
  const Services services(window, by, most, labels);
  std::vector<PushRequest> requests;
  RETURN_IF_ERROR(AddRequests(window, window.cpu, services, requests));
  RETURN_IF_ERROR(AddRequests(window, window.allocations, services, requests));
  RETURN_IF_ERROR(AddRequests(window, window.waits, services, requests));
  return requests;
}

std::string PushUrl(const std::string& base, const PushRequest& request) {
  // The end of a window is the beginning of the next one. Whole seconds may make them overlap by a part of one.
  const uint64_t from = request.from_unix_ns / 1'000'000'000;
  const uint64_t until = std::max(request.until_unix_ns / 1'000'000'000, from + 1);
  return absl::StrCat(base, "/ingest?name=", PercentEncode(request.name), "&from=", from, "&until=", until,
                      "&format=pprof&spyName=clrsampler");
}

PushBody MakePushBody(const std::string& profile, ProfileView view) {
  std::string boundary;
  size_t salt = profile.size();
  do {
    salt = absl::HashOf(profile, salt);
    boundary = absl::StrFormat("clrsampler-%016x", salt);
  } while (absl::StrContains(profile, boundary));
  const auto part = [&](absl::string_view name, absl::string_view file, absl::string_view type,
                        absl::string_view bytes) {
    return absl::StrCat("--", boundary, "\r\nContent-Disposition: form-data; name=\"", name, "\"; filename=\"", file,
                        "\"\r\nContent-Type: ", type, "\r\n\r\n", bytes, "\r\n");
  };
  PushBody body;
  body.content_type = absl::StrCat("multipart/form-data; boundary=", boundary);
  body.bytes = absl::StrCat(part("profile", "profile.pprof", "application/octet-stream", profile),
                            part("sample_type_config", "config.json", "application/json", TypesOf(view)), "--",
                            boundary, "--\r\n");
  return body;
}

}  // namespace clrsampler
