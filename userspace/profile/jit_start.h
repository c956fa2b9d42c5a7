// When a compilation began, from the stack of its thread: so that a program that compiles without end needs one probe
// for each compilation and not two.
//
// The runtime itself measures how long it compiles (System.Runtime.JitInfo.GetCompilationTime): before it calls
// compileMethod it leaves the time, CLOCK_MONOTONIC in nanoseconds, on the stack (UnsafeJitFunction,
// src/coreclr/vm/jitinterface.cpp of .NET 8 to 10). The distance to CORINFO_METHOD_INFO, which lies on the same stack,
// depends on the build. Known places (clrsampler/wire.h) are tried, and one is believed after it has agreed with what a
// probe at the beginning saw. Measured on 8.0.30, 9.0.19 and 10.0.14: 1,370 of 1,372 compilations, 2 to 7 us before the
// call; the two were cut off by the trace's beginning. Pure.
#ifndef CLRSAMPLER_PROFILE_JIT_START_H_
#define CLRSAMPLER_PROFILE_JIT_START_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "clrsampler/wire.h"
#include "os/clock.h"

namespace clrsampler {

// The place in one build of the runtime.
class JitStart {
 public:
  using Words = std::span<const __u64, WIRE_START_WORDS>;

  // A compilation whose call a probe has seen.
  void Compare(Words words, MonotonicTime began);
  bool proven() const { return proven_ != kNone; }
  // About when compileMethod was called; nullopt: not proven, or no time that can be.
  std::optional<MonotonicTime> Of(Words words, MonotonicTime done) const;

 private:
  static constexpr size_t kNone = WIRE_START_PLACES;
  static constexpr size_t kEnough = 64;

  struct Place {
    std::array<uint32_t, kEnough> gaps{};  // from the word to the call, ns
    size_t fits = 0;                       // in a row
    size_t late = 0;                       // of these: the thread had to wait in between
    bool wrong = false;                    // for good
  };

  std::array<Place, WIRE_START_PLACES> places_;
  size_t proven_ = kNone;
  uint64_t gap_ns_ = 0;  // the median
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_JIT_START_H_
