#include "capture/cpu_list.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "formats/proc/cpu_list_text.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxListBytes = 64 * 1024;

absl::StatusOr<std::vector<int>> ReadCpuList(const std::string& root, absl::string_view name) {
  const std::string path = absl::StrCat(root == "/" ? "" : root, "/sys/devices/system/cpu/", name);
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path, kMaxListBytes));
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(text);
  if (!cpus.ok()) return Annotate(cpus.status(), path);
  if (cpus->empty()) return absl::DataLossError(absl::StrCat(path, " lists no CPU"));
  return cpus;
}

}  // namespace

absl::StatusOr<std::vector<int>> OnlineCpus(const std::string& root) { return ReadCpuList(root, "online"); }

absl::StatusOr<std::vector<int>> PossibleCpus(const std::string& root) { return ReadCpuList(root, "possible"); }

absl::StatusOr<int> PossibleCpuLimit(const std::string& root) {
  ASSIGN_OR_RETURN(std::vector<int> cpus, PossibleCpus(root));
  return cpus.back() + 1;
}

std::vector<uint64_t> ByCpuNumber(std::span<const uint64_t> values, std::span<const int> possible) {
  std::vector<uint64_t> by_number;
  for (size_t i = 0; i < std::min(values.size(), possible.size()); ++i) {
    const auto number = static_cast<size_t>(possible[i]);
    if (number >= by_number.size()) by_number.resize(number + 1);
    by_number[number] = values[i];
  }
  return by_number;
}

CpuChanges CompareCpus(std::span<const int> attached, std::span<const int> online) {
  CpuChanges changes;
  std::set_difference(online.begin(), online.end(), attached.begin(), attached.end(),
                      std::back_inserter(changes.arrived));
  std::set_difference(attached.begin(), attached.end(), online.begin(), online.end(), std::back_inserter(changes.gone));
  return changes;
}

}  // namespace clrsampler
