// Sends one request with a body to a server, by libcurl, which is opened at run time.
#ifndef CLRSAMPLER_OS_HTTP_POSTER_H_
#define CLRSAMPLER_OS_HTTP_POSTER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

struct PostOutcome {
  unsigned status = 0;  // of HTTP; 0: there was no answer
  std::string error;    // in words, where there was none
  std::string answer;   // the first bytes of it
  bool cut = false;     // it is longer, and was not read to its end
  // Fields and trailers that PosterOptions ask for, by their names in lower case.
  std::map<std::string, std::string> fields;
  std::chrono::seconds retry_after{0};  // that the server asks for, 10 minutes at most; 0: it says nothing
};

// One thread at a time, but for Cancel.
class HttpPoster {
 public:
  virtual ~HttpPoster() = default;
  virtual PostOutcome Post(const std::string& url, const std::vector<std::string>& headers, absl::string_view body) = 0;
  // From any thread: the request under way ends within a second or so without an answer, later ones at once.
  virtual void Cancel() = 0;
};

enum class HttpForm : uint8_t {
  kAny,         // what libcurl and the server agree on
  kHttp2Plain,  // HTTP/2 from the first byte
  kHttp2Tls,    // HTTP/2, if the server takes it in the TLS handshake
};

struct PosterOptions {
  HttpForm form = HttpForm::kAny;
  std::string ca_file;       // certificates of authorities in PEM; empty: those of the system
  std::string unix_socket;   // connects to it, whatever the URL's host is; empty: to that host
  std::string field_prefix;  // which fields of an answer are kept: those that begin so; empty: none
  long connect_seconds = 5;
  long transfer_seconds = 20;
  size_t answer_bytes = size_t{64} << 10;  // a longer answer is not read to its end
};

// Certificates are verified, redirects not followed: an answer that leads elsewhere is one. Unavailable: no libcurl, or
// one without HTTP/2 where that is asked for, or this is a static program.
absl::StatusOr<std::unique_ptr<HttpPoster>> MakeCurlPoster(const PosterOptions& options);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_HTTP_POSTER_H_
