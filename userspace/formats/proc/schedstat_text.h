// /proc/PID/task/TID/schedstat (fs/proc/base.c, proc_pid_schedstat): what the scheduler notes of a thread.
#ifndef CLRSAMPLER_FORMATS_PROC_SCHEDSTAT_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_SCHEDSTAT_TEXT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "formats/proc/fields.h"

namespace clrsampler {

// "1203873 90912 17": nanoseconds on CPUs and in queues, and how often it has got a CPU, which is the result. 0 where
// the text is another one, as on a kernel that takes no notes.
inline uint64_t ArrivalsOf(absl::string_view text) {
  for (int skipped = 0; skipped < 2; ++skipped) {
    if (!TakeDecimal(text) || !TakeChar(text, ' ')) return 0;
  }
  return TakeDecimal(text).value_or(0);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_SCHEDSTAT_TEXT_H_
