// /proc/PID/stat and /proc/PID/task/TID/stat (fs/proc/array.c, do_task_stat; proc(5)).
#ifndef CLRSAMPLER_FORMATS_PROC_STAT_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_STAT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr size_t kMaxStatBytes = 4096;  // its 52 numbers and a name of 16 bytes

struct StatText {
  uint32_t pid = 0;
  std::string comm;  // any bytes but NUL: blanks and parentheses too
  char state = '?';
  uint32_t parent_pid = 0;
  // Clock ticks, sysconf(_SC_CLK_TCK) a second. In /proc/PID/stat they are those of the whole thread group.
  uint64_t user_ticks = 0;
  uint64_t system_ticks = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since boot; with the pid it tells one process from the next with the same pid
  // Where the first stack begins, at another address after each exec; 0: not known, as to those who may not trace the
  // process.
  uint64_t start_stack = 0;
};

absl::StatusOr<StatText> ParseStat(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_STAT_TEXT_H_
