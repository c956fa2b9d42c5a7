#include "process/cpu_time.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "formats/proc/proc_stat_text.h"
#include "formats/proc/stat_text.h"
#include "os/file_io.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMaxCpus = 1 << 16;
constexpr size_t kMaxStatBytes = 1 << 20;  // /proc/stat has a number for each interrupt line

uint64_t TicksToNs(uint64_t ticks) {
  static const uint64_t ns_per_tick = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * ns_per_tick;
}

absl::StatusOr<ProcStat> ReadHostStat(const std::string& proc_root) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(proc_root, "/stat"), kMaxStatBytes);
  if (!text.ok()) return text.status();
  return ParseProcStat(*text);
}

}  // namespace

absl::StatusOr<uint64_t> ReadProcessCpuNs(const std::string& proc_root, uint32_t pid) {
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(proc_root, "/", pid, "/stat"), kMaxStatBytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<StatText> stat = ParseStat(*text);
  if (!stat.ok()) return stat.status();
  return TicksToNs(stat->user_ticks + stat->system_ticks);
}

absl::StatusOr<uint64_t> ReadHostBusyNs(const std::string& proc_root) {
  const absl::StatusOr<ProcStat> stat = ReadHostStat(proc_root);
  if (!stat.ok()) return stat.status();
  return TicksToNs(stat->total.busy());
}

absl::StatusOr<std::vector<uint64_t>> ReadCpusBusyNs(const std::string& proc_root) {
  const absl::StatusOr<ProcStat> stat = ReadHostStat(proc_root);
  if (!stat.ok()) return stat.status();
  std::vector<uint64_t> busy_ns;
  for (const CpuTicksOf& one : stat->cpus) {
    if (one.cpu >= kMaxCpus) continue;
    if (one.cpu >= busy_ns.size()) busy_ns.resize(one.cpu + 1);
    busy_ns[one.cpu] = TicksToNs(one.ticks.busy());
  }
  return busy_ns;
}

absl::StatusOr<uint64_t> ReadHostStolenNs(const std::string& proc_root) {
  const absl::StatusOr<ProcStat> stat = ReadHostStat(proc_root);
  if (!stat.ok()) return stat.status();
  return TicksToNs(stat->total.steal);
}

}  // namespace clrsampler
