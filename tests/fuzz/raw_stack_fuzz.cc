// Any sample record. Properties: all that a record gives lies inside of it, and true return addresses put into it
// change neither its frames' number nor its soundness.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "unwind/raw_stack.h"

namespace {

using namespace clrsampler;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

size_t CheckFrames(const RawStack& stack) {
  const std::byte* begin = stack.bytes().data();
  const std::byte* end = begin + stack.bytes().size();
  const auto check = [&](auto words) {
    const auto bytes = std::as_bytes(words);
    Require(bytes.empty() || (bytes.data() >= begin && bytes.data() + bytes.size() <= end));
  };
  check(stack.kernel_addresses());
  check(stack.snapshots());
  check(stack.replaced_returns());
  size_t frames = 0;
  check(stack.ForEachFrame([&](const RawStack::Frame& frame) {
    check(frame.gap);
    ++frames;
  }));
  Require(frames == stack.sample().user_frames);
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> words(size / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
  const auto stack = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(words)));
  const size_t frames = stack.ok() ? CheckFrames(*stack) : 0;
  for (const bool in_trampoline : {false, true}) {
    std::vector<uint64_t> restored = words;
    RestoreReturnAddresses(restored, in_trampoline, [](uint64_t address) { return address % 3 != 0; });
    if (!stack.ok()) {
      Require(restored == words);
      continue;
    }
    Require(restored.size() <= words.size());
    const auto again = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(restored)));
    Require(again.ok() && CheckFrames(*again) == frames);
  }
  std::vector<uint64_t> linked = words;
  RestoreLinkRegisters(linked, [](uint64_t address) { return address % 3 == 0; });
  Require(linked.size() == words.size() && (stack.ok() || linked == words));
  if (stack.ok()) {
    const auto again = RawStack::Parse(std::as_bytes(std::span<const uint64_t>(linked)));
    Require(again.ok() && CheckFrames(*again) == frames);
  }
  return 0;
}
