// One attempt to follow pointers in a process that runs meanwhile: after the first thing that is not right, every read
// gives zeros and the attempt has failed, with the reason. So the code that follows pointers reads as plainly as the
// runtime's own, and can't go on with a value that was never there.
#ifndef CLRSAMPLER_CLR_MEMORY_MEMORY_PROBE_H_
#define CLRSAMPLER_CLR_MEMORY_MEMORY_PROBE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "process/target_memory.h"

namespace clrsampler {

enum class ProbeFailure : uint8_t {
  kNone,
  kUnreadable,     // not mapped any more, or never was
  kChanged,        // it was another one after reading than before
  kContradiction,  // what was read does not fit together
  kUnsupported,    // a kind of thing that this reader does not know
};
constexpr size_t kProbeFailures = 5;

class MemoryProbe {
 public:
  // Reads at most `reads` times and `bytes` in all; a circle of pointers ends there.
  explicit MemoryProbe(MemoryReader& memory, int reads = 512, size_t bytes = 1 << 20)
      : memory_(memory), reads_left_(reads), bytes_left_(bytes) {}

  bool ok() const { return failure_ == ProbeFailure::kNone; }
  ProbeFailure failure() const { return failure_; }
  const char* detail() const { return detail_; }  // a literal

  // The first failure stays. False, so that a check can be written as `if (bad) return probe.Fail(...)`.
  bool Fail(ProbeFailure failure, const char* detail) {
    if (ok()) {
      failure_ = failure;
      detail_ = detail;
    }
    return false;
  }
  bool Require(bool holds, const char* detail) { return holds || Fail(ProbeFailure::kContradiction, detail); }

  // Zeros after a failure.
  bool Read(uint64_t address, std::span<std::byte> into);

  template <typename T>
  T Value(uint64_t address) {
    static_assert(std::is_integral_v<T>);
    T value = 0;
    Read(address, std::as_writable_bytes(std::span(&value, 1)));
    return ok() ? value : T{0};
  }
  uint64_t Pointer(uint64_t address) { return Value<uint64_t>(address); }

  // 0 where nothing can be read, which is no failure.
  uint64_t PointerIfReadable(uint64_t address);

  template <size_t N>
  std::array<std::byte, N> Block(uint64_t address) {
    std::array<std::byte, N> block{};
    Read(address, block);
    return block;
  }

  // A text that ends with a NUL within `max_bytes`; never reads across a page that may not be there.
  std::string Text(uint64_t address, size_t max_bytes);

 private:
  MemoryReader& memory_;
  int reads_left_;
  size_t bytes_left_;
  ProbeFailure failure_ = ProbeFailure::kNone;
  const char* detail_ = "";
};

// A field of a block that was read as a whole; precondition: it lies inside.
template <typename T, size_t N>
T FieldOf(const std::array<std::byte, N>& block, uint32_t offset) {
  T value = 0;
  if (offset + sizeof value <= N) std::memcpy(&value, block.data() + offset, sizeof value);
  return value;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_MEMORY_PROBE_H_
