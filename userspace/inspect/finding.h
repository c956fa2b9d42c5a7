// One line of `clrsampler doctor`.
#ifndef CLRSAMPLER_INSPECT_FINDING_H_
#define CLRSAMPLER_INSPECT_FINDING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class FindingLevel : uint8_t {
  kPass,
  kWarn,  // profiling works, and something of it is missing or at risk
  kFail,  // profiling will not work, or will show nothing of use
};
inline absl::string_view FindingLevelText(FindingLevel level) {
  if (level == FindingLevel::kPass) return "pass";
  return level == FindingLevel::kWarn ? "warn" : "fail";
}

struct Finding {
  FindingLevel level = FindingLevel::kPass;
  std::string check;  // a fixed word for --json: "capabilities"
  std::string what;   // what was found, one line
  std::string fix;    // what to do, one line; empty where nothing is to be done
};

using Findings = std::vector<Finding>;

inline bool AnyFails(const Findings& findings) {
  for (const Finding& finding : findings) {
    if (finding.level == FindingLevel::kFail) return true;
  }
  return false;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_FINDING_H_
