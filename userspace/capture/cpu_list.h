// The CPUs of this host, and what changed between two lists of them.
#ifndef CLRSAMPLER_CAPTURE_CPU_LIST_H_
#define CLRSAMPLER_CAPTURE_CPU_LIST_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

// Reads `root`/sys/devices/system/cpu/online; tests pass a folder of their own as root.
absl::StatusOr<std::vector<int>> OnlineCpus(const std::string& root = "/");

// The CPUs that this host may have. The kernel keeps a value for each in a map by CPU, in this order.
absl::StatusOr<std::vector<int>> PossibleCpus(const std::string& root = "/");
// 1 + the largest number in `root`/sys/devices/system/cpu/possible: the length of an array indexed by CPU.
absl::StatusOr<int> PossibleCpuLimit(const std::string& root = "/");

// `values`: of the possible CPUs, in their order. Gives them by number, with zeros for numbers that no CPU has.
std::vector<uint64_t> ByCpuNumber(std::span<const uint64_t> values, std::span<const int> possible);

struct CpuChanges {
  std::vector<int> arrived;  // online, but not attached
  std::vector<int> gone;     // attached, but no longer online
};
// Both lists ascending.
CpuChanges CompareCpus(std::span<const int> attached, std::span<const int> online);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CPU_LIST_H_
