#include "cli/size_option.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<uint64_t> ParseSizeBytes(absl::string_view option, const std::string& text, uint64_t min_bytes,
                                        uint64_t max_bytes, absl::string_view hint) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t value = 0;
  const std::string unit = absl::AsciiStrToLower(text.substr(digits));
  uint64_t factor = 0;
  if (unit.empty() || unit == "b") factor = 1;
  if (unit == "k" || unit == "kib" || unit == "kb") factor = 1 << 10;
  if (unit == "m" || unit == "mib" || unit == "mb") factor = 1 << 20;
  if (unit == "g" || unit == "gib" || unit == "gb") factor = 1 << 30;
  if (factor == 0 || !absl::SimpleAtoi(text.substr(0, digits), &value) || value == 0 || value > max_bytes / factor ||
      value * factor < min_bytes) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat(option, " ", text, " is not a size that works")), hint);
  }
  return value * factor;
}

}  // namespace clrsampler
