#include "export/push_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "export/query.h"
#include "formats/names/utf8.h"
#include "output/pprof.h"
#include "profile/model_copier.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kOther[] = "other";
constexpr size_t kMaxWordBytes = 100;
// Without it, values of CPU time would be taken for counts of samples at 100 Hz.
constexpr absl::string_view kSampleTypes =
    R"({"cpu":{"units":"nanoseconds","display-name":"cpu","aggregation":"sum","cumulative":false,"sampled":true}})";

// A word of a name or label: what separates them in "name{key=value,...}" can't be in one.
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
  return NameOf(process.container.empty() ? process.comm : process.container, labels);
}

// These samples of the window as pprof.
absl::StatusOr<std::string> Encode(const Window& window, const std::vector<size_t>& rows) {
  ProfileModelBuilder builder;
  builder.meta() = window.cpu.meta;
  builder.meta().start_unix_ns = window.begin_unix_ns;
  builder.meta().duration_ns = window.end_unix_ns - window.begin_unix_ns;
  ModelCopier copier(window.cpu, builder);
  for (const size_t row : rows) {
    ModelSample sample = window.cpu.samples.at(row);
    sample.thread = copier.Thread(sample.thread);
    sample.stack = copier.Stack(sample.stack);
    builder.Add(sample);
  }
  const absl::StatusOr<ProfileModel> model = std::move(builder).Build();
  if (!model.ok()) return model.status();
  std::string bytes;
  RETURN_IF_ERROR(PprofWriter().Write(*model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> ParsePushUrl(absl::string_view text) {
  const auto wrong = [&](absl::string_view why) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("can't push to ", text, ": ", why)),
                    "https://pyroscope.example:4040, the address of a Pyroscope or Alloy that receives profiles");
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "https://") && !absl::ConsumePrefix(&rest, "http://")) {
    return wrong("it does not begin with http:// or https://");
  }
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.empty() || authority.front() == ':') return wrong("there is no host");
  if (absl::StrContains(authority, '@'))
    return wrong("a user does not belong into it, since every process can read it");
  for (const char c : rest) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) return wrong("it has spaces or control characters");
    if (c == '?' || c == '#') return wrong("it has a query");
  }
  while (absl::ConsumeSuffix(&text, "/")) {
  }
  return std::string(text);
}

absl::StatusOr<std::vector<PushRequest>> PushRequestsOf(const Window& window, PushBy by, size_t most,
                                                        const std::map<std::string, std::string>& labels) {
  absl::flat_hash_map<std::string, uint64_t> cpu_ns;
  absl::flat_hash_map<uint32_t, std::string> name_of_pid;
  for (const WindowProcess& process : window.processes) {
    const std::string name = NameOf(process, by, labels);
    cpu_ns[name] += process.total_cpu_ns();
    name_of_pid[process.pid] = name;
  }
  std::vector<std::pair<uint64_t, std::string>> ranked;
  for (const auto& [name, ns] : cpu_ns) ranked.emplace_back(std::numeric_limits<uint64_t>::max() - ns, name);
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > most) ranked.resize(most);
  const std::string other = NameOf(kOther, labels);

  std::vector<const std::string*> names;  // of threads
  for (const ModelThread& thread : window.cpu.threads) {
    const auto found = name_of_pid.find(thread.pid);
    const bool own = found != name_of_pid.end() && std::any_of(ranked.begin(), ranked.end(), [&](const auto& one) {
                       return one.second == found->second;
                     });
    names.push_back(own ? &found->second : &other);
  }
  std::map<std::string, std::vector<size_t>> rows;
  for (size_t row = 0; row < window.cpu.samples.size(); ++row)
    rows[*names[window.cpu.samples.thread[row]]].push_back(row);

  // One after the other: the tables of a copy are as large as those of the window.
  std::vector<PushRequest> requests;
  for (const auto& [name, own_rows] : rows) {
    absl::StatusOr<std::string> profile = Encode(window, own_rows);
    if (!profile.ok()) return profile.status();
    requests.push_back({name, window.begin_unix_ns, window.end_unix_ns, *std::move(profile)});
  }
  return requests;
}

std::string PushUrl(const std::string& base, const PushRequest& request) {
  // The end of a window is the beginning of the next one; whole seconds may make them overlap by a part of one.
  const uint64_t from = request.from_unix_ns / 1'000'000'000;
  const uint64_t until = std::max(request.until_unix_ns / 1'000'000'000, from + 1);
  return absl::StrCat(base, "/ingest?name=", PercentEncode(request.name), "&from=", from, "&until=", until,
                      "&format=pprof&spyName=clrsampler");
}

PushBody MakePushBody(const std::string& profile) {
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
                            part("sample_type_config", "config.json", "application/json", kSampleTypes), "--", boundary,
                            "--\r\n");
  return body;
}

}  // namespace clrsampler
