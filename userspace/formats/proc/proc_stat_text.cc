#include "formats/proc/proc_stat_text.h"

#include <array>
#include <optional>

#include "absl/strings/match.h"
#include "formats/proc/fields.h"

namespace clrsampler {
namespace {

std::optional<CpuTicks> TakeTicks(absl::string_view text) {
  std::array<uint64_t, 8> columns{};
  size_t used = 0;
  for (; used < columns.size(); ++used) {
    TakeBlanks(text);
    const std::optional<uint64_t> value = TakeDecimal(text);
    if (!value) break;
    columns[used] = *value;
  }
  if (used < 4) return std::nullopt;  // up to idle they were always there
  return CpuTicks{columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6], columns[7]};
}

}  // namespace

absl::StatusOr<ProcStat> ParseProcStat(absl::string_view text) {
  ProcStat stat;
  bool has_total = false;
  while (absl::StartsWith(text, "cpu")) {  // they stand first
    absl::string_view line = TakeLine(text);
    line.remove_prefix(3);
    if (line.empty()) break;
    const bool is_total = line.front() == ' ';
    std::optional<uint32_t> cpu = 0;
    if (!is_total) cpu = TakeDecimal32(line);
    const std::optional<CpuTicks> ticks = TakeTicks(line);
    if (!cpu || !ticks) return absl::DataLossError("damaged cpu line in /proc/stat");
    if (is_total) {
      stat.total = *ticks;
      has_total = true;
    } else {
      stat.cpus.push_back({*cpu, *ticks});
    }
  }
  if (!has_total) return absl::DataLossError("no cpu line in /proc/stat");
  return stat;
}

}  // namespace clrsampler
