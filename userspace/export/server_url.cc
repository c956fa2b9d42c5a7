#include "export/server_url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace clrsampler {

bool ServerUrl::has_port(absl::string_view port) const { return absl::EndsWith(authority, absl::StrCat(":", port)); }

absl::StatusOr<ServerUrl> ParseServerUrl(absl::string_view text) {
  const size_t colon = text.find("://");
  if (colon == absl::string_view::npos || colon == 0)
    return absl::InvalidArgumentError("it does not begin with a scheme");
  const absl::string_view rest = text.substr(colon + 3);
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.empty() || authority.front() == ':') return absl::InvalidArgumentError("there is no host");
  if (absl::StrContains(authority, '@')) {
    return absl::InvalidArgumentError("a user does not belong into it, since every process can read it");
  }
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("it has spaces or control characters");
    }
    if (c == '?' || c == '#') return absl::InvalidArgumentError("it has a query");
  }
  absl::string_view path = rest.substr(authority.size());
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  return ServerUrl{std::string(text.substr(0, colon)), std::string(authority), std::string(path)};
}

}  // namespace clrsampler
