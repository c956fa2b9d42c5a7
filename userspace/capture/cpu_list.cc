#include "capture/cpu_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kCpuLimit = 8192;  // the largest NR_CPUS of any architecture
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

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return cpus;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    const bool range = part.size() != ends.first.size();
    if (!absl::SimpleAtoi(ends.first, &first) || (range && !absl::SimpleAtoi(ends.second, &last))) {
      return absl::DataLossError(absl::StrCat("not a list of CPUs: \"", text, "\""));
    }
    if (!range) last = first;
    if (first < 0 || last < first || last >= kCpuLimit) {
      return absl::DataLossError(absl::StrCat("impossible CPU numbers \"", part, "\""));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    // Overlapping ranges could make the list longer than there are CPUs.
    if (cpus.size() > 2 * kCpuLimit) return absl::DataLossError("a list of CPUs with overlapping ranges");
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

absl::StatusOr<std::vector<int>> OnlineCpus(const std::string& root) { return ReadCpuList(root, "online"); }

absl::StatusOr<int> PossibleCpuLimit(const std::string& root) {
  ASSIGN_OR_RETURN(std::vector<int> cpus, ReadCpuList(root, "possible"));
  return cpus.back() + 1;
}

CpuChanges CompareCpus(std::span<const int> attached, std::span<const int> online) {
  CpuChanges changes;
  std::set_difference(online.begin(), online.end(), attached.begin(), attached.end(),
                      std::back_inserter(changes.arrived));
  std::set_difference(attached.begin(), attached.end(), online.begin(), online.end(), std::back_inserter(changes.gone));
  return changes;
}

}  // namespace clrsampler
