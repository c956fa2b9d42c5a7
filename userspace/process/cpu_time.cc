#include "process/cpu_time.h"

#include <time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "formats/proc/proc_stat_text.h"
#include "os/file_io.h"
#include "os/tape_answer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMaxCpus = 1 << 16;
constexpr size_t kMaxHostStatBytes = 1 << 20;  // /proc/stat has a number for each interrupt line

uint64_t TicksToNs(uint64_t ticks) {
  static const uint64_t ns_per_tick = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * ns_per_tick;
}

}  // namespace

std::optional<uint64_t> ProcessCpuNs(uint32_t pid) {
  clockid_t clock = 0;
  timespec time{};
  if (clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

absl::StatusOr<HostCpuTime> ReadHostCpuTime(const std::string& proc_root, Tape* tape) {
  const absl::StatusOr<std::string> text = Taped(
      tape, [&] { return ReadWholeFile(absl::StrCat(proc_root, "/stat"), kMaxHostStatBytes); }, "host stat");
  if (!text.ok()) return text.status();
  ASSIGN_OR_RETURN(const ProcStat stat, ParseProcStat(*text));
  HostCpuTime time;
  time.busy_ns = TicksToNs(stat.total.busy());
  time.stolen_ns = TicksToNs(stat.total.steal);
  for (const CpuTicksOf& one : stat.cpus) {
    if (one.cpu >= kMaxCpus) continue;
    if (one.cpu >= time.cpu_busy_ns.size()) time.cpu_busy_ns.resize(one.cpu + 1);
    time.cpu_busy_ns[one.cpu] = TicksToNs(one.ticks.busy());
  }
  return time;
}

}  // namespace clrsampler
