// How often a test with random input repeats. Under sanitizers a round takes eight to thirty times as long. There it is
// every eighth round: faults of memory are looked for, and the release build looks for wrong answers in all of them.
#ifndef CLRSAMPLER_TESTS_UNIT_ROUNDS_H_
#define CLRSAMPLER_TESTS_UNIT_ROUNDS_H_

#include <algorithm>

namespace clrsampler {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLRSAMPLER_ADDRESS_SANITIZER  // clang's way of saying it
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CLRSAMPLER_ADDRESS_SANITIZER
#endif

constexpr int Rounds(int whole) {
#if defined(CLRSAMPLER_ADDRESS_SANITIZER)
  return std::max(whole / 8, 1);
#else
  return whole;
#endif
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_ROUNDS_H_
