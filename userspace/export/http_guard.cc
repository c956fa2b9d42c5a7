#include "export/http_guard.h"

#include <arpa/inet.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// "[::1]:9404" -> "[::1]", "LocalHost:9404" -> "localhost"; nullopt: not a host and perhaps a port.
std::optional<std::string> HostName(absl::string_view host) {
  const size_t bracket = host.find(']');
  if (absl::StartsWith(host, "[") && bracket == absl::string_view::npos) return std::nullopt;
  const size_t colon = host.find(':', bracket == absl::string_view::npos ? 0 : bracket);
  const absl::string_view port = colon == absl::string_view::npos ? "" : host.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != absl::string_view::npos) return std::nullopt;
  return absl::AsciiStrToLower(host.substr(0, colon));
}

bool IsAddress(const std::string& name) {
  unsigned char bytes[sizeof(in6_addr)];
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    return inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), bytes) == 1;
  }
  return inet_pton(AF_INET, name.c_str(), bytes) == 1;
}

bool Known(const std::string& name, const HostPolicy& policy) {
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return true;
  for (const std::string& known : policy.names) {
    if (absl::EqualsIgnoreCase(name, known)) return true;
  }
  return policy.any_address && IsAddress(name);
}

}  // namespace

std::optional<HttpAnswer> Refuse(const HttpRequest& request, const std::string& path, const HostPolicy& policy) {
  if (!request.local_socket) {
    const std::optional<std::string> name = HostName(request.host);
    if (!name || name->empty()) {
      return ErrorAnswer(400, "the request does not say which host it is meant for", "send a Host header");
    }
    if (!Known(*name, policy)) {
      return ErrorAnswer(421, absl::StrCat("requests for the host ", *name, " are not answered"),
                         "ask for localhost, or start clrsampler serve with --allow-host NAME");
    }
  }
  constexpr absl::string_view kHint = "profiles are not given to pages of other origins; use curl, or open the page";
  if (!request.origin.empty() &&
      !absl::EqualsIgnoreCase(request.origin, absl::StrCat(request.tls ? "https://" : "http://", request.host))) {
    return ErrorAnswer(403, "the request comes from a page of another origin", kHint);
  }
  const bool foreign =
      !request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none";
  const bool goes_there = request.fetch_mode == "navigate" && request.fetch_dest == "document" && path == "/";
  if (foreign && !goes_there) return ErrorAnswer(403, "the request was made by a page of another site", kHint);
  return std::nullopt;
}

}  // namespace clrsampler
