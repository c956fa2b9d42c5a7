#include "formats/proc/cpu_list_text.h"

#include <optional>

#include "formats/proc/fields.h"

namespace clrsampler {

absl::StatusOr<std::vector<uint32_t>> ParseCpuList(absl::string_view text) {
  const absl::Status damaged = absl::DataLossError("not a list of CPUs");
  std::vector<uint32_t> cpus;
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  while (!text.empty()) {
    if (!cpus.empty() && !TakeChar(text, ',')) return damaged;
    const std::optional<uint32_t> first = TakeDecimal32(text);
    if (!first) return damaged;
    std::optional<uint32_t> last = first;
    if (TakeChar(text, '-')) last = TakeDecimal32(text);
    if (!last || *last < *first || *last >= kMaxCpus) return damaged;
    if (!cpus.empty() && *first <= cpus.back()) return damaged;
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace clrsampler
