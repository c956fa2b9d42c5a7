// Decides whether a request may see profiles: they name the methods of all users' programs.
//
//   a Unix socket      whoever the file system lets connect
//   TCP                /metrics, /-/ready and /-/healthy are everybody's; the rest takes a token: `Authorization:
//   Bearer TOKEN`, the
//                      password of Basic (whatever the user name), or the cookie that the address /?token=TOKEN sets
//
// The cookie is no token: it is made of the token and of who we are, so that it is good for this server only. Browsers
// send it to other ports of the host as well. Pure. Sources: RFC 6750 (Bearer), RFC 7617 (Basic), RFC 6265bis
// (cookies).
#ifndef CLRSAMPLER_EXPORT_ACCESS_H_
#define CLRSAMPLER_EXPORT_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "export/http_message.h"
#include "export/query.h"

namespace clrsampler {

inline constexpr size_t kMinTokenBytes = 16, kMaxTokenBytes = 512, kMaxTokens = 16;

// One token on each line of a file, so that an old one and its successor hold at the same time; empty lines and those
// that begin with # are left out. InvalidArgument: none, too many, too short, or not of the letters of RFC 6750.
absl::StatusOr<std::vector<std::string>> ParseTokens(absl::string_view text);

// Takes as long for one that is wrong in the first letter as for one that is wrong in the last.
bool SameSecret(absl::string_view given, absl::string_view expected);

// The value of the cookie `name`, as often as it is given. `cookies` is the field of a request.
std::vector<absl::string_view> CookieValues(absl::string_view cookies, absl::string_view name);

struct AccessPolicy {
  bool anonymous = false;           // profiles are everybody's over TCP, too
  std::vector<std::string> tokens;  // none: over TCP nobody gets profiles
  std::string host;                 // the cookie is good on this host only
};

class Access {
 public:
  explicit Access(AccessPolicy policy) : policy_(std::move(policy)) {}

  // The answer that refuses the request or that sets the cookie; nullopt: it may be answered. `target` is the
  // request's.
  std::optional<HttpAnswer> Check(const HttpRequest& request, const RequestTarget& target) const;

 private:
  std::optional<HttpAnswer> LogIn(const HttpRequest& request, const RequestTarget& target) const;
  bool KnowsToken(absl::string_view given) const;
  bool KnowsCookie(const HttpRequest& request) const;
  std::string CookieOf(const HttpRequest& request, absl::string_view token) const;

  const AccessPolicy policy_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_ACCESS_H_
