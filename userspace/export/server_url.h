// The address of a server that profiles are sent to, as an operator writes it.
#ifndef CLRSAMPLER_EXPORT_SERVER_URL_H_
#define CLRSAMPLER_EXPORT_SERVER_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

struct ServerUrl {
  std::string scheme;     // "https"
  std::string authority;  // "profiles.example:4040"
  std::string path;       // "/path", without a slash at its end; may be empty

  std::string text() const { return scheme + "://" + authority + path; }
  bool has_port(absl::string_view port) const;
};

// InvalidArgument with the reason alone: no "SCHEME://", no host, a user in it (credentials belong into a header), a
// query, characters that no address has.
absl::StatusOr<ServerUrl> ParseServerUrl(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_SERVER_URL_H_
