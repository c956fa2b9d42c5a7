// Sends one request with a body to a server, by libcurl, which is opened at run time.
#ifndef CLRSAMPLER_EXPORT_HTTP_POSTER_H_
#define CLRSAMPLER_EXPORT_HTTP_POSTER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

struct PostOutcome {
  unsigned status = 0;                  // of HTTP; 0: there was no answer
  std::string error;                    // in words, where there was none
  std::string answer;                   // the first bytes of it
  std::chrono::seconds retry_after{0};  // that the server asks for; 0: it says nothing
};

// One thread at a time, but for Cancel.
class HttpPoster {
 public:
  virtual ~HttpPoster() = default;
  virtual PostOutcome Post(const std::string& url, const std::vector<std::string>& headers, absl::string_view body) = 0;
  // From any thread: the request under way ends within a second or so without an answer, later ones at once.
  virtual void Cancel() = 0;
};

struct PosterLimits {
  long connect_seconds = 5;
  long transfer_seconds = 20;
};

// Certificates are verified, redirects not followed: an answer that leads elsewhere is one. `ca_file`: certificates of
// authorities in PEM; empty: those of the system. Unavailable: no libcurl.
absl::StatusOr<std::unique_ptr<HttpPoster>> MakeCurlPoster(const PosterLimits& limits, const std::string& ca_file);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_HTTP_POSTER_H_
