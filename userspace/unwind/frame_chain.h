// A stack of code addresses, and the way to one by the frame-pointer chain alone.
//
// The chain skips the callers of frameless functions (common in optimised .NET code on x86-64): stack_unwinder.h does
// better where there is unwind data.
#ifndef CLRSAMPLER_UNWIND_FRAME_CHAIN_H_
#define CLRSAMPLER_UNWIND_FRAME_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "unwind/raw_stack.h"

namespace clrsampler {

enum class StackEnd : uint8_t {
  kComplete,   // reached the outermost frame, or the sample has no user stack by nature (kernel threads)
  kTruncated,  // longer than the limit of frames or words
  kBroken,     // the chain ended early: data in the frame pointer, or memory that could not be read
};

// How a frame was found: what led from the frame below to this one.
enum class FrameOrigin : uint8_t {
  kSampled,     // the leaf: the registers
  kChain,       // the frame pointer, in code that has no unwind data
  kUnwindInfo,  // the unwind data of a managed method
  kTable,       // the call frame information of a native image
  kStub,        // code without a frame, by rule: the return address is on top of the stack
  kFallback,    // the frame pointer, where unwind data could not be followed
};
constexpr int kFrameOrigins = 6;

// The doubt between a frame and its caller.
enum class FrameDoubt : uint8_t {
  kNone,
  kCallerMayBeMissing,  // not enough was known to step out of the frame: functions in between may not be shown
  kContradiction,       // the stack pointer and the frame pointer disagree on where the frame lies
};

// The text that people read at that place: "[caller may be missing]". Empty: nothing is wrong.
absl::string_view MarkText(FrameDoubt doubt);

struct UserFrame {
  uint64_t address = 0;  // as sampled or returned to
  // Inside the calling instruction: a return address may already belong to the next function.
  uint64_t lookup_address = 0;
  FrameOrigin origin = FrameOrigin::kSampled;
  FrameDoubt doubt = FrameDoubt::kNone;
  // The stack pointer of the frame, when it was left for the one below it: its part of the stack lies from there up to
  // that of its caller. 0: not known, as by frame pointers alone.
  uint64_t sp = 0;
  bool sp_exact = true;  // false: it is too low by an amount that is not known (UnwindRegisters)

  // Where on a stack a frame lies does not tell stacks apart.
  friend bool operator==(const UserFrame& a, const UserFrame& b) {
    return a.address == b.address && a.lookup_address == b.lookup_address && a.origin == b.origin && a.doubt == b.doubt;
  }
};

struct UserStack {
  std::vector<UserFrame> frames;  // leaf first
  StackEnd end = StackEnd::kComplete;

  friend bool operator==(const UserStack&, const UserStack&) = default;
};

struct StackPart {
  uint64_t begin = 0, end = 0;
};

// The part of the stack that holds the frame; nullopt: not known. Where frame records of arm64 lead to the frames, it
// may hold words of the frames next to it, too. A record says only where its frame begins. The frame ends below the
// record of its caller.
std::optional<StackPart> StackPartOf(const UserStack& stack, size_t frame);

// Pointer-authentication bits of arm64 return addresses are above it; user addresses have at most 48 bits on both
// architectures unless a program asks mmap for more, which no runtime that we know does.
constexpr uint64_t kUserAddressMask = 0x0000'ffff'ffff'ffff;

// The end of a stack by BPF's reason to stop, where nothing more is known.
StackEnd EndOfStop(uint16_t stop);

// `stack` is any parsed record; `out` is reused between calls.
void WalkFrameChain(const RawStack& stack, UserStack& out);

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_FRAME_CHAIN_H_
