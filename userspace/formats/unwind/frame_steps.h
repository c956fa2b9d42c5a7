// Unwind data of managed code in the terms of Call Frame Information (DWARF 5, 6.4): where the caller's registers are.
//
// A function's steps say what changes at which of its bytes; before the first one its frame is as a call leaves it.
// They hold for the prologue and the body, and say nothing of epilogues. Pure; what they
// are made of is hostile.
#ifndef CLRSAMPLER_FORMATS_UNWIND_FRAME_STEPS_H_
#define CLRSAMPLER_FORMATS_UNWIND_FRAME_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/unwind/unwind_info.h"

namespace clrsampler {

inline constexpr int64_t kMaxFrameBytes = 1 << 30;  // more is no frame

enum class FrameRule : uint8_t {
  kCfa,           // the caller's sp is `reg` + `value` from here on
  kSaved,         // the caller's `reg` lies at `value` from its sp
  kReturnSigned,  // the return address is signed from here on; arm64 only
};

struct FrameStep {
  uint32_t offset = 0;  // bytes of the function that are done
  FrameRule rule = FrameRule::kCfa;
  uint8_t reg = 0;  // DWARF number
  int32_t value = 0;

  friend bool operator==(const FrameStep&, const FrameStep&) = default;
};

// Offsets ascend. DataLoss: the codes are in no order, or a frame has more than 1 GiB.
absl::StatusOr<std::vector<FrameStep>> FrameStepsOf(const UnwindInfo& info);

// The steps of UNWIND_INFO in bytes. Where it is chained, the RUNTIME_FUNCTION behind it and what that leads to follow
// in `bytes`. `code` is the function's own from its first byte on. Where its prologue ends by setting the frame pointer
// to the place where that is saved, the caller's sp is told by it. The reason: readers that come from a frame without
// unwind data know the frame pointer, and may not know sp.
absl::StatusOr<std::vector<FrameStep>> FrameStepsOfX64(std::span<const std::byte> bytes,
                                                       std::span<const std::byte> code = {});

// The steps of an .xdata record. `code` is the function's own from its first byte on, of which the first instructions
// are of use: they tell whether the frame begins with one that was there before. DataLoss: as above, and registers that
// are saved outside of the frame.
absl::StatusOr<std::vector<FrameStep>> FrameStepsOfArm64(std::span<const std::byte> unwind,
                                                         std::span<const std::byte> code);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_UNWIND_FRAME_STEPS_H_
