#include "export/http_head.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {

std::optional<HttpAnswer> ReadHead(std::span<const HttpField> fields, HttpRequest& request) {
  std::string length, transfer_encoding;
  const struct {
    absl::string_view name;
    std::string* value;
  } known[] = {
      {"Host", &request.host},
      {"Content-Length", &length},
      {"Transfer-Encoding", &transfer_encoding},
      {"Authorization", &request.authorization},
      {"Cookie", &request.cookie},
      {"Origin", &request.origin},
      {"Accept-Encoding", &request.accept_encoding},
      {"Sec-Fetch-Site", &request.fetch_site},
      {"Sec-Fetch-Mode", &request.fetch_mode},
      {"Sec-Fetch-Dest", &request.fetch_dest},
  };
  bool given[std::size(known)] = {};
  for (const HttpField& field : fields) {
    for (size_t i = 0; i < std::size(known); ++i) {
      if (!absl::EqualsIgnoreCase(field.name, known[i].name)) continue;
      if (given[i]) {
        return ErrorAnswer(400, absl::StrCat("the request has two fields ", known[i].name), "send one");
      }
      given[i] = true;
      *known[i].value = std::string(field.value);
    }
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return ErrorAnswer(405, "only GET and HEAD are answered", "nothing can be changed by HTTP");
  }
  if ((!length.empty() && length != "0") || !transfer_encoding.empty()) {
    return ErrorAnswer(413, "requests have no body here", "put parameters into the address");
  }
  return std::nullopt;
}

}  // namespace clrsampler
