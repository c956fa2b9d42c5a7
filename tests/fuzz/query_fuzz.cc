// Any bytes as the target of a request: what is accepted is decoded text without control characters, reads back the
// same when it is encoded again, and gives a selection that makes sense.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "export/http_guard.h"
#include "export/listen_address.h"
#include "export/query.h"

namespace {

using clrsampler::RequestTarget;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

std::string Encoded(const RequestTarget& target) {
  std::string text = "/";
  absl::StrAppend(&text, clrsampler::PercentEncode(target.path.substr(1)), "?");
  for (const clrsampler::QueryParameter& parameter : target.parameters) {
    absl::StrAppend(&text, clrsampler::PercentEncode(parameter.name), "=", clrsampler::PercentEncode(parameter.value),
                    "&");
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kNow = 1'790'000'000'000'000'000;
  if (const auto time = clrsampler::ParseQueryTime(text, kNow); time.ok()) Require(*time <= INT64_MAX);
  if (const auto address = clrsampler::ParseListenAddress(text); address.ok()) {
    Require(address->is_unix() ? address->path.front() == '/' : !address->address.empty());
  }
  clrsampler::HttpRequest request;
  request.host = std::string(text);
  // Only an address or one of our names passes, whatever is around it.
  if (!clrsampler::Refuse(request, "/", {})) {
    Require(text.find_first_of("@/?#\\ ") == absl::string_view::npos);
  }

  const absl::StatusOr<RequestTarget> target = clrsampler::ParseTarget(text);
  if (!target.ok()) return 0;
  Require(target->path.front() == '/' && target->parameters.size() <= clrsampler::kMaxQueryParameters);
  for (const char c : target->path) Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  const std::string encoded = Encoded(*target);
  if (encoded.size() <= clrsampler::kMaxTargetBytes) {
    const absl::StatusOr<RequestTarget> again = clrsampler::ParseTarget(encoded);
    Require(again.ok() && again->path == target->path);
    size_t kept = 0;
    for (const clrsampler::QueryParameter& parameter : target->parameters) {
      Require(again->parameters[kept].name == parameter.name && again->parameters[kept].value == parameter.value);
      ++kept;
    }
  }
  clrsampler::QueryReader reader(*target, kNow);
  const clrsampler::HistorySelection selection = reader.Selection();
  (void)reader.Number("limit", 200, 1, 10'000);
  (void)reader.Word("view", {"cpu", "jit"});
  if (!reader.Finish().ok()) return 0;
  Require(selection.from_unix_ns < selection.to_unix_ns);
  Require(!selection.pid || *selection.pid > 0);
  for (const auto& name : {selection.comm, selection.container, selection.thread}) Require(!name || !name->empty());
  return 0;
}
