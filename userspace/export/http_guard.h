// Decides whether a page may ask: keeps pages of other origins, which run in a browser on this host, away from the
// profiles.
//
// A service on the loopback address can be reached by every page that the browser there shows. Such a page can't lie
// about where it comes from:
//   DNS rebinding        a name of the attacker's that resolves to 127.0.0.1: `Host` has that name, and only names that
//                        are known are answered. Addresses are always known where we listen on all of them: no name
//                        was resolved.
//   fetch, XMLHttpRequest  `Origin` is the page's
//   <script>, <img>, frames, links   `Sec-Fetch-Site` is cross-site, or same-site for another port of this host. Only
//                        going to the page itself is allowed: whoever follows a link sees it in the address bar.
// Pure. Sources: Fetch standard (Origin), W3C Fetch Metadata (Sec-Fetch-*), RFC 9110 7.4 (421).
#ifndef CLRSAMPLER_EXPORT_HTTP_GUARD_H_
#define CLRSAMPLER_EXPORT_HTTP_GUARD_H_

#include <optional>
#include <string>
#include <vector>

#include "export/http_message.h"

namespace clrsampler {

struct HostPolicy {
  std::vector<std::string> names;  // besides localhost, 127.0.0.1 and [::1]; without ports, addresses of IPv6 in []
  bool any_address = false;        // we listen on all addresses: any one may stand in `Host`
};

// The answer that refuses the request, or nullopt. `path` is the decoded path of its target.
std::optional<HttpAnswer> Refuse(const HttpRequest& request, const std::string& path, const HostPolicy& policy);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_HTTP_GUARD_H_
