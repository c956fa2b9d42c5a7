#include "cli/duration_option.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<uint64_t> ParseDurationNs(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--duration ", text, " is not a time")),
                    "write it as 30s, 500ms, 2m or 1h30m");
  }
  if (duration <= absl::ZeroDuration() || duration > absl::Hours(24 * 365)) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--duration ", text, " is out of range")),
                    "give a time between 1ms and a year");
  }
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

}  // namespace clrsampler
