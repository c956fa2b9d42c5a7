#include "formats/proc/syscall_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace clrsampler {

std::optional<uint64_t> StackPointerOfBlocked(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(absl::StripAsciiWhitespace(text), ' ');
  uint64_t sp = 0;
  if (words.size() < 3 || words.size() > 9 || !absl::SimpleHexAtoi(words[words.size() - 2], &sp)) return std::nullopt;
  return sp;
}

}  // namespace clrsampler
