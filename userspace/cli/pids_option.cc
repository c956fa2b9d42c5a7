#include "cli/pids_option.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::vector<uint32_t>> ParsePids(const std::vector<std::string>& values) {
  std::vector<uint32_t> pids;
  for (const std::string& value : values) {
    for (absl::string_view part : absl::StrSplit(value, ',')) {
      uint32_t pid = 0;
      if (!absl::SimpleAtoi(part, &pid) || pid == 0 || pid > (1u << 22)) {
        return WithHint(absl::InvalidArgumentError(absl::StrCat("--pid ", part, " is not a process id")),
                        "give numbers, separated by commas: --pid 4711,4712");
      }
      pids.push_back(pid);
    }
  }
  return pids;
}

}  // namespace clrsampler
