// Sums that stay at the largest value instead of starting again: so a sum does not depend on the order of its parts.
#ifndef CLRSAMPLER_FORMATS_MIP_SATURATING_H_
#define CLRSAMPLER_FORMATS_MIP_SATURATING_H_

#include <limits>
#include <type_traits>

namespace clrsampler {

template <typename T>
T SaturatingSum(T a, T b) {
  static_assert(std::is_unsigned_v<T>);
  return b > std::numeric_limits<T>::max() - a ? std::numeric_limits<T>::max() : static_cast<T>(a + b);
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_SATURATING_H_
