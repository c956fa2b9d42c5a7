// The CPU lines of /proc/stat (fs/proc/stat.c; proc(5)): where the time of the machine went.
#ifndef CLRSAMPLER_FORMATS_PROC_PROC_STAT_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_PROC_STAT_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Clock ticks, sysconf(_SC_CLK_TCK) a second. A column that an old kernel does not have is 0.
struct CpuTicks {
  uint64_t user = 0;  // guest time included
  uint64_t nice = 0;
  uint64_t system = 0;
  uint64_t idle = 0;
  uint64_t io_wait = 0;
  uint64_t irq = 0;
  uint64_t soft_irq = 0;
  uint64_t steal = 0;

  // Tasks ran. Interrupts are no task's: on an idle CPU they leave nothing that could be sampled.
  uint64_t busy() const { return user + nice + system; }
  friend bool operator==(const CpuTicks&, const CpuTicks&) = default;
};

struct CpuTicksOf {
  uint32_t cpu = 0;
  CpuTicks ticks;
};

struct ProcStat {
  CpuTicks total;
  std::vector<CpuTicksOf> cpus;  // those online, in the order of the file
};

absl::StatusOr<ProcStat> ParseProcStat(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_PROC_STAT_TEXT_H_
