// Any text -> one frame of a folded stack line ("root;frame;frame count"), safe for every reader of that format.
//
// The rules, each with the reader that needs it, are in docs/frame-names.md. Pure and total; apply it once, when a
// name is stored, not for each sample.
#ifndef CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_
#define CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_

#include <cstddef>
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

// Never empty. With kNone the function is idempotent.
std::string FoldedFrame(absl::string_view text, FrameSuffix suffix);

// A root frame: the name of a process or thread, in which spaces become '_'.
std::string FoldedComm(absl::string_view comm);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NAMES_FOLDED_TEXT_H_
