// Parts of numbers.
#ifndef CLRSAMPLER_STORE_PROPORTION_H_
#define CLRSAMPLER_STORE_PROPORTION_H_

#include <cstdint>

namespace clrsampler {

// value * part / whole, rounded down, however large the factors are; all of `value` where the whole is 0.
inline uint64_t Proportion(uint64_t value, uint64_t part, uint64_t whole) {
  if (whole == 0) return value;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(value) * part / whole);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_PROPORTION_H_
