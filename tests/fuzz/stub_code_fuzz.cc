// Any bytes as memory around an address: is a stub there? Properties: a stub holds the address that was asked for, lies
// in what was given, and is the same one from its first byte.
#include <cstddef>
#include <cstdint>
#include <span>

#include "clr/memory/stub_code.h"

namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

constexpr uint64_t kBegin = 0x7f00'0000'1000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  const auto memory = std::as_bytes(std::span(data, size));
  for (const ElfMachine machine : {ElfMachine::kX64, ElfMachine::kArm64}) {
    for (size_t at = 0; at < size && at < 1024; at += 5) {
      const auto linked = LinkedStubAround(machine, kBegin + at, memory, kBegin);
      Require(!linked.has_value() || (linked->range.contains(kBegin + at) && linked->range.begin >= kBegin &&
                                      linked->range.end <= kBegin + size && !linked->kind.empty()));
      const auto found = StubCodeAround(machine, kBegin + at, memory, kBegin);
      if (!found.has_value()) continue;
      Require(found->range.contains(kBegin + at));
      Require(found->range.begin >= kBegin && found->range.end <= kBegin + size);
      Require(found->range.end - found->range.begin <= kMaxStubBytes && !found->kind.empty());
      const auto again = StubCodeAround(machine, found->range.begin, memory, kBegin);
      Require(again.has_value() && again->range.begin == found->range.begin && again->kind == found->kind);
    }
  }
  return 0;
}
