// Any bytes as the fields of a request. Without a token it gets no further than /metrics, /-/ready and /-/healthy,
// whatever else is said. A cookie is found as often as it is there.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "export/access.h"
#include "export/http_guard.h"
#include "export/http_head.h"
#include "export/query.h"

namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr absl::string_view kToken = "0123456789abcdef-of-the-fuzzer";

}  // namespace

// The first line is the target, each further one a field.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::vector<clrsampler::HttpField> fields;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> field = absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    fields.push_back({field.first, field.second});
  }
  clrsampler::HttpRequest request;
  request.method = "GET";
  request.target = std::string(lines[0]);
  request.port = 9404;
  if (clrsampler::ReadHead(fields, request)) return 0;
  for (const absl::string_view value : clrsampler::CookieValues(request.cookie, "clrsampler-9404")) {
    Require(absl::StrContains(request.cookie, value) && !absl::StrContains(value, ';'));
  }
  const auto target = clrsampler::ParseTarget(request.target);
  if (!target.ok()) return 0;
  (void)clrsampler::Refuse(request, target->path, {});
  const bool open = target->path == "/metrics" || target->path == "/-/ready" || target->path == "/-/healthy";
  const clrsampler::Access none({}), some({.tokens = {std::string(kToken)}, .host = "host"});
  Require(none.Check(request, *target).has_value() != open);
  // Only the whole token lets in; in Basic it has another form, which nothing makes by chance.
  if (!open && !some.Check(request, *target)) {
    Require(absl::StrContains(request.authorization, kToken) || absl::StrContains(request.authorization, "asic"));
  }
  const auto tokens = clrsampler::ParseTokens(text);
  if (tokens.ok()) {
    for (const std::string& token : *tokens) Require(token.size() >= clrsampler::kMinTokenBytes);
  }
  return 0;
}
