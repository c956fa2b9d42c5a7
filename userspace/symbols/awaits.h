// How the frame of a method reads that awaits what stands below it (docs/async.md).
#ifndef CLRSAMPLER_SYMBOLS_AWAITS_H_
#define CLRSAMPLER_SYMBOLS_AWAITS_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "symbols/frame.h"

namespace clrsampler {

// Behind the method's name, in every style of names.
inline constexpr absl::string_view kAwaits = " [awaits]";

// Whether no code of the frame runs: its method is suspended.
inline bool IsAwaiter(const Frame& frame) { return absl::EndsWith(frame.text, kAwaits); }

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_AWAITS_H_
