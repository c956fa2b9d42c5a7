#include "formats/proc/stat_text.h"

#include <array>
#include <optional>

#include "formats/proc/fields.h"

namespace clrsampler {

absl::StatusOr<StatText> ParseStat(absl::string_view text) {
  const absl::Status damaged = absl::DataLossError("not a stat line of a process");
  StatText stat;
  const std::optional<uint32_t> pid = TakeDecimal32(text);
  // The name may hold parentheses itself: it ends at the last one, since only numbers and the state follow.
  const size_t close = text.rfind(')');
  if (!pid || !TakeChar(text, ' ') || !TakeChar(text, '(') || close == absl::string_view::npos || close < 2)
    return damaged;
  stat.pid = *pid;
  stat.comm = std::string(text.substr(0, close - 2));
  text.remove_prefix(close - 1);  // two characters were taken since `close` was found; the parenthesis goes too
  if (!TakeChar(text, ' ') || text.empty()) return damaged;
  stat.state = text.front();
  text.remove_prefix(1);

  constexpr size_t kFirst = 4, kNeeded = 22, kLast = 28;  // field numbers as in proc(5)
  std::array<uint64_t, kLast + 1> fields{};
  for (size_t field = kFirst; field <= kLast; ++field) {
    const bool follows = TakeChar(text, ' ');
    const bool negative = TakeChar(text, '-');  // tpgid, priority and nice may be; none of them is used here
    const std::optional<uint64_t> value = follows ? TakeDecimal(text) : std::nullopt;
    if (!value && field > kNeeded) break;
    if (!value) return damaged;
    fields[field] = negative ? 0 : *value;
  }
  stat.parent_pid = static_cast<uint32_t>(fields[4]);
  stat.user_ticks = fields[14];
  stat.system_ticks = fields[15];
  stat.threads = fields[20];
  stat.start_ticks = fields[22];
  stat.start_stack = fields[28];
  return stat;
}

}  // namespace clrsampler
