// Any recording of stacks: words, code and unwind data of any kind. Properties: the walk asks no more often than there
// are words and frames. Frames after the sampled one lie in mapped code, and no stack is longer than the limit. A stack
// that is called complete ends without a doubt. The same question has the same answer.
//
// Damage that would make an input unreadable is mended, so that inputs reach the walk. The front of a cut recording
// counts, and the counts in a sample are made to fit what follows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unwind/stack_recording.h"
#include "unwind/stack_unwinder.h"

namespace {

using namespace clrsampler;

constexpr uint32_t kMaxFrames = 512;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

class CountingCode : public CodeFinder {
 public:
  explicit CountingCode(const StackRecording& recording) : code_(recording) {}
  const CodeAt& At(uint64_t address) override {
    ++count;
    return code_.At(address);
  }
  size_t count = 0;

 private:
  RecordedCode code_;
};

// Counts that fit; false: not even a header.
bool Mend(std::vector<uint64_t>& record) {
  constexpr size_t kHeader = sizeof(wire_cpu_sample) / sizeof(uint64_t);
  if (record.size() < kHeader) return false;
  wire_cpu_sample sample;
  std::memcpy(&sample, record.data(), sizeof sample);
  sample.kernel_frames = 0;
  sample.snapshots = 0;
  sample.flags &= ~uint32_t{WIRE_SAMPLE_FOLLOWERS};
  size_t at = kHeader;
  uint16_t frames = 0;
  const auto gap = [&](size_t i) { return record[i] >> WIRE_GAP_SHIFT & WIRE_GAP_MASK; };
  while (frames < sample.user_frames && at < record.size() && record.size() - at >= gap(at) + 3) {
    at += gap(at) + 3;
    ++frames;
  }
  if (at < record.size() && record.size() - at - 1 < gap(at)) record.resize(at);  // a tail that is cut
  sample.user_frames = frames;
  sample.user_words = static_cast<uint32_t>(record.size() - kHeader);
  std::memcpy(record.data(), &sample, sizeof sample);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  StackRecording recording = StackRecording::ParseFront({reinterpret_cast<const std::byte*>(data), size});
  CountingCode code(recording);
  StackUnwinder unwinder({.max_frames = kMaxFrames});
  UserStack stack, again;
  for (RecordedStack& recorded : recording.stacks) {
    if (!Mend(recorded.record)) continue;
    const auto raw = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(recorded.record)));
    Require(raw.ok());
    code.count = 0;
    unwinder.Walk(*raw, code, stack);
    // Each step is led on by a word above those that led here; where there is no code the chain is asked once more. The
    // code of the sampled function's callers, and of those that signals interrupted, is asked for before.
    constexpr size_t kAskedBefore = 2 * 17;
    Require(code.count <= 2 * kMaxFrames + 2 * recorded.record.size() + kAskedBefore);
    Require(stack.frames.size() <= kMaxFrames);
    for (size_t i = 0; i < stack.frames.size(); ++i) {
      const UserFrame& frame = stack.frames[i];
      Require((frame.origin == FrameOrigin::kSampled) == (i == 0));
      Require(frame.lookup_address == frame.address || frame.lookup_address == frame.address - 1);
      if (i > 0) Require(code.At(frame.lookup_address).mapped);
    }
    if (stack.end == StackEnd::kComplete && !stack.frames.empty()) {
      Require(stack.frames.back().doubt == FrameDoubt::kNone);
    }
    unwinder.Walk(*raw, code, again);
    Require(stack == again);
  }
  // A recording that was read whole is written and read again as it is.
  if (StackRecording::Parse({reinterpret_cast<const std::byte*>(data), size}).ok()) {
    const std::string text = recording.Serialize();
    const auto copy = StackRecording::Parse(std::as_bytes(std::span(text)));
    Require(copy.ok() && copy->Serialize() == text);
  }
  return 0;
}
