#include "cli/duration_option.h"

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::StatusOr<absl::Duration> Parse(absl::string_view option, const std::string& text, absl::Duration min,
                                     absl::string_view range) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " ", text, " is not a time")),
                    "write it as 30s, 500ms, 2m or 1h30m");
  }
  if (duration < min || duration > absl::Hours(24 * 365)) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " ", text, " is out of range")),
                    absl::StrCat("give a time between ", range));
  }
  return duration;
}

}  // namespace

void DeclareDuration(CLI::App& app, std::optional<std::string>& text) {
  app.add_option("--duration,-d", text, "stop after this time, like 30s or 2m; without it on Ctrl-C")
      ->type_name("TIME");
}

absl::StatusOr<uint64_t> ParseDurationNs(absl::string_view option, const std::string& text) {
  ASSIGN_OR_RETURN(const absl::Duration duration, Parse(option, text, absl::Nanoseconds(1), "1ms and a year"));
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

absl::StatusOr<uint64_t> ParseOffsetNs(absl::string_view option, const std::string& text) {
  ASSIGN_OR_RETURN(const absl::Duration offset, Parse(option, text, absl::ZeroDuration(), "0s and a year"));
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(offset));
}

}  // namespace clrsampler
