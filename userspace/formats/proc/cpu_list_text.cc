#include "formats/proc/cpu_list_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace clrsampler {

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

}  // namespace clrsampler
