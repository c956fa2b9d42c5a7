// A window -> the requests that bring its profiles to Pyroscope's /ingest. There is one of CPU time for each service,
// one of allocations for each that allocates, and one of waits for each that waits, where they are recorded.
//
//   POST BASE/ingest?name=SERVICE{labels}&from=UNIX&until=UNIX&format=pprof&spyName=clrsampler
//   multipart/form-data: profile (pprof, gzip), sample_type_config (what its values are)
//
// Pure. Source: grafana/pyroscope, "Server HTTP API", and pkg/og/convert/pprof (names of the parts).
#ifndef CLRSAMPLER_EXPORT_PUSH_REQUEST_H_
#define CLRSAMPLER_EXPORT_PUSH_REQUEST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "profile/window.h"

namespace clrsampler {

enum class PushBy : uint8_t {
  kService,  // container, or the name of the process where it is in none
  kProcess,  // the same, with pid and comm as labels
};

struct PushRequest {
  std::string name;  // "shop-web{comm=Shop,host=web-3,pid=4711}"
  ProfileView view = ProfileView::kCpu;
  uint64_t from_unix_ns = 0, until_unix_ns = 0;
  std::string profile;  // pprof
};

// "https://profiles.example:4040/path" without a slash at its end. InvalidArgument: no http or https, no host, a user
// in it (credentials belong into a header), a query.
absl::StatusOr<std::string> ParsePushUrl(absl::string_view text);

// At most `most` services, those with most CPU time; the rest are one more, "other", so that the CPU time of the host
// stays whole. Errors of the writer.
absl::StatusOr<std::vector<PushRequest>> PushRequestsOf(const Window& window, PushBy by, size_t most,
                                                        const std::map<std::string, std::string>& labels);

std::string PushUrl(const std::string& base, const PushRequest& request);
struct PushBody {
  std::string content_type;
  std::string bytes;
};
PushBody MakePushBody(const std::string& profile, ProfileView view);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_PUSH_REQUEST_H_
