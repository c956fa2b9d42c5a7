#include "symbols/native_lines/compiler_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace clrsampler {

bool SaysNotOptimised(absl::string_view producer) {
  // Assembly has no statements. Code of GIMPLE was optimised when it was linked, by options that stand elsewhere.
  if (!absl::StartsWith(producer, "GNU ") || absl::StartsWith(producer, "GNU AS") ||
      absl::StartsWith(producer, "GNU GIMPLE")) {
    return false;
  }
  bool records_options = false, optimised = false;
  for (const absl::string_view word : absl::StrSplit(producer, ' ')) {
    records_options |= absl::StartsWith(word, "-m");              // which gcc adds by itself
    if (absl::StartsWith(word, "-O")) optimised = word != "-O0";  // the last one counts
  }
  return records_options && !optimised;
}

}  // namespace clrsampler
