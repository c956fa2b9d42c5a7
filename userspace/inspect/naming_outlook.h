// How well a process can be profiled: which sources can name its frames, and one word for it. Pure.
#ifndef CLRSAMPLER_INSPECT_NAMING_OUTLOOK_H_
#define CLRSAMPLER_INSPECT_NAMING_OUTLOOK_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "inspect/process_facts.h"

namespace clrsampler {

enum class NamingWord : uint8_t {
  kFull,     // all managed code
  kGood,     // all managed code but for some that is replaced while it is read
  kPartial,  // either the compiled or the precompiled code
  kPoor,     // no managed code
};
absl::string_view NamingWordText(NamingWord word);  // "full"

struct NamingOutlook {
  // Some of "memory", "jitdump", "perf-map", "r2r", "elf", in the order in which they are asked; empty: none.
  std::vector<std::string> sources;
  NamingWord word = NamingWord::kPoor;
  std::string reason;  // why it is no more than that; empty for kFull
};

NamingOutlook OutlookOf(const ProcessFacts& facts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_NAMING_OUTLOOK_H_
