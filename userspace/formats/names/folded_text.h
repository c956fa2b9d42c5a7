// Any text -> one frame of a folded stack line ("root;frame;frame count"), safe for every reader of that format.
//
// The rules, each with the reader that needs it, are in docs/frame-names.md. Pure and total; apply it once, when a
// name is stored, not for each sample.
#ifndef CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_
#define CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// The marks that flamegraph.pl and inferno colour and strip.
enum class FrameSuffix {
  kNone,
  kKernel,   // "_[k]"
  kManaged,  // "_[j]": code of the JIT compiler or ready-to-run
  kInlined,  // "_[i]"
};

// Upper bound of a result's size in bytes, suffix included. A longer text is cut and ends in U+2026.
inline constexpr size_t kMaxFoldedFrameBytes = 1024;

// Never empty. With kNone and without a line the function is idempotent. A line stands behind the name and before the
// mark, ":57_[j]"; 0: none.
std::string FoldedFrame(absl::string_view text, FrameSuffix suffix, uint32_t line = 0);

struct FoldedLine {
  absl::string_view name;
  uint32_t line = 0;  // 0: the text ends in none, and is all name
};
// The other way round, of a text without its mark. A number as FoldedFrame writes it behind the last colon of a name
// that is not empty counts as a line.
FoldedLine SplitFoldedLine(absl::string_view text);

// A root frame: the name of a process or thread, in which spaces become '_'.
std::string FoldedComm(absl::string_view comm);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_
