// The frames of JIT-compiled code whose name is not known, each with its reason: the one place for their words.
#ifndef CLRSAMPLER_CLR_UNNAMED_JIT_FRAMES_H_
#define CLRSAMPLER_CLR_UNNAMED_JIT_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

enum class UnnamedReason : uint8_t {
  kNoMap,
  kNoMapDotnet,
  kNotInMap,
  kAmbiguous,
  kJitdumpDead,
  kNameLost,
  kMapIsLate,
};

// Main loop only. The table outlives it.
class UnnamedJitFrames {
 public:
  explicit UnnamedJitFrames(FrameTable& frames) : frames_(frames) {}

  FrameId For(UnnamedReason reason) {
    main_loop_.Check();
    const auto at = static_cast<size_t>(reason);
    std::optional<FrameId>& id = ids_[at];
    if (!id) id = frames_.InternOwn(Frame{FrameKind::kJit, NameSource::kNone, std::string(kTexts[at]), "", ""});
    return *id;
  }

 private:
  static constexpr auto kTexts = std::to_array<absl::string_view>({
      "[jit: no map]",
      "[jit: no map; start the target with DOTNET_PerfMapEnabled=3]",
      "[jit: not in the map]",
      "[jit: code replaced while read]",
      "[jit: jitdump of .NET 10.0.0-10.0.12 is broken; use DOTNET_PerfMapEnabled=1 or 3]",
      "[jit: name lost, the file was rewritten]",
      "[jit: the map is written in blocks, and this one is missing]",
  });

  FrameTable& frames_;
  std::array<std::optional<FrameId>, kTexts.size()> ids_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_UNNAMED_JIT_FRAMES_H_
