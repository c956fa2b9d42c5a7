// The kernel's CPU lists ("0-3,8") and what changed between two of them.
#ifndef CLRSAMPLER_CAPTURE_CPU_LIST_H_
#define CLRSAMPLER_CAPTURE_CPU_LIST_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The numbers of a list as in /sys/devices/system/cpu/online (Documentation/admin-guide/cputopology.rst), ascending and
// without repetition. Pure. Numbers from 8192 on are refused: no kernel of today is built for more CPUs.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// Reads `root`/sys/devices/system/cpu/online; tests pass a folder of their own as root.
absl::StatusOr<std::vector<int>> OnlineCpus(const std::string& root = "/");

// 1 + the largest number in `root`/sys/devices/system/cpu/possible: the length of an array indexed by CPU.
absl::StatusOr<int> PossibleCpuLimit(const std::string& root = "/");

struct CpuChanges {
  std::vector<int> arrived;  // online, but not attached
  std::vector<int> gone;     // attached, but no longer online
};
// Both lists ascending.
CpuChanges CompareCpus(std::span<const int> attached, std::span<const int> online);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CPU_LIST_H_
