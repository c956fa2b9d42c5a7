#include "profile/jit_start.h"

#include <algorithm>

namespace clrsampler {
namespace {

// The runtime's work between the two takes microseconds. A longer gap is a thread that lost its CPU there, or was
// sampled.
constexpr uint64_t kUsualGapNs = 5'000'000;
constexpr uint64_t kMaxGapNs = 10'000'000'000;
constexpr size_t kMaxLate = 4;

constexpr uint64_t kMaxCompilationNs = 600'000'000'000;

}  // namespace

void JitStart::Compare(Words words, MonotonicTime began) {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    const uint64_t below = words[2 * i], word = words[2 * i + 1];
    // The word above it is the time at which the compilation before ended. If this word is that one, the true one is
    // below it and later.
    if (below > word && below <= began.ns && began.ns - below < kMaxGapNs) place.wrong = true;
    if (place.wrong || word > began.ns || began.ns - word >= kMaxGapNs) {
      place.fits = place.late = 0;
      if (proven_ == i) {
        place.wrong = true;
        proven_ = kNone;
      }
      continue;
    }
    const uint64_t gap = began.ns - word;
    if (gap > kUsualGapNs && ++place.late > kMaxLate) place.fits = place.late = 0;
    if (proven_ != kNone || place.wrong) continue;
    place.gaps[place.fits++] = static_cast<uint32_t>(std::min(gap, kUsualGapNs));
    if (place.fits < kEnough) continue;
    std::array<uint32_t, kEnough> sorted = place.gaps;
    std::ranges::nth_element(sorted, sorted.begin() + kEnough / 2);
    gap_ns_ = sorted[kEnough / 2];
    proven_ = i;
    place.fits = place.late = 0;
  }
}

std::optional<MonotonicTime> JitStart::Of(Words words, MonotonicTime done) const {
  if (proven_ == kNone) return std::nullopt;
  const uint64_t word = words[2 * proven_ + 1];
  if (word > done.ns || done.ns - word > kMaxCompilationNs) return std::nullopt;
  return MonotonicTime{std::min(word + gap_ns_, done.ns)};
}

}  // namespace clrsampler
