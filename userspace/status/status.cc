#include "status/status.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {
constexpr char kHintUrl[] = "clrsampler/hint";
}  // namespace

absl::Status WithHint(absl::Status status, absl::string_view hint) {
  if (!status.ok() && !status.GetPayload(kHintUrl).has_value()) status.SetPayload(kHintUrl, absl::Cord(hint));
  return status;
}

std::string HintOf(const absl::Status& status) {
  const auto hint = status.GetPayload(kHintUrl);
  return hint.has_value() ? std::string(*hint) : std::string();
}

absl::Status ErrnoError(int error_number, absl::string_view what) {
  return absl::Status(absl::ErrnoToStatusCode(error_number), absl::StrCat(what, ": ", std::strerror(error_number)));
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) { annotated.SetPayload(url, value); });
  return annotated;
}

}  // namespace clrsampler
