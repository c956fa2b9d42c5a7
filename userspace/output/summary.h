// The account of a run in words, for standard error.
#ifndef CLRSAMPLER_OUTPUT_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "profile/account.h"
#include "profile/method_weights.h"

namespace clrsampler {

// The first thing that a profile's reader wants to know.
struct HottestMethods {
  std::vector<MethodWeight> methods;  // most self weight first; the first few are shown
  uint64_t total = 0;                 // weight of the profile
  uint64_t nameless_runtime = 0;      // of it: functions of a .NET runtime without a name
  // The text for a profile that counts no samples: stands instead of them, of frames and methods.
  std::string instead;
  std::string more;  // "clrsampler convert cpu.json cpu.html": how to see more; empty: nothing is said
};

// At most a dozen lines, each ending in a newline, plus the notices.
std::string SummaryText(const Account& account, const HottestMethods& hottest = {});

// Names of files and processes come from targets: nothing in them may reach the terminal as a control sequence or as a
// line of ours. Control characters are those below 0x20, 0x7f, and U+0080 to U+009F as UTF-8.
std::string PrintableText(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_SUMMARY_H_
