// From a raw stack to code addresses, by the frame-pointer chain alone.
//
// The chain skips the callers of frameless functions (common in optimised .NET code on x86-64); replaying the methods'
// own unwind data over the shipped words closes that gap and takes the place of this step for code it has data for.
#ifndef CLRSAMPLER_UNWIND_FRAME_CHAIN_H_
#define CLRSAMPLER_UNWIND_FRAME_CHAIN_H_

#include <cstdint>
#include <vector>

#include "unwind/raw_stack.h"

namespace clrsampler {

enum class StackEnd : uint8_t {
  kComplete,   // reached the outermost frame, or the sample has no user stack by nature (kernel threads)
  kTruncated,  // longer than the limit of frames or words
  kBroken,     // the chain ended early: data in the frame pointer, or memory that could not be read
};

struct UserFrame {
  uint64_t address = 0;  // as sampled or returned to
  uint64_t lookup_address =
      0;  // inside the calling instruction: a return address may already belong to the next function
};

struct UserStack {
  std::vector<UserFrame> frames;  // leaf first
  StackEnd end = StackEnd::kComplete;
};

// `stack` is any parsed record; `frames` is reused between calls.
void WalkFrameChain(const RawStack& stack, UserStack& out);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_FRAME_CHAIN_H_
