// The library whose symbols are somewhere else: its functions but `spin` are in .symtab only.
#include <time.h>

#include <cstdint>

namespace {

constexpr int kRounds = 20'000;

__attribute__((noinline)) uint64_t StirSlowly(uint64_t value) {
  for (int i = 0; i < kRounds; ++i) value = value * 6364136223846793005u + static_cast<uint64_t>(i);
  return value;
}

__attribute__((noinline)) uint64_t StirTwice(uint64_t value) {
  value = StirSlowly(value);
  return StirSlowly(value) + 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) uint64_t spin(double seconds) {
  timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  uint64_t value = 1;
  do {
    for (int i = 0; i < 100; ++i) value = StirTwice(value);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (static_cast<double>(now.tv_sec - start.tv_sec) + static_cast<double>(now.tv_nsec - start.tv_nsec) / 1e9 <
           seconds);
  return value;
}
