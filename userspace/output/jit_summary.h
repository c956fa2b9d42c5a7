// Compilations in words: a line each, and at the end what they cost by tier and which methods cost most.
#ifndef CLRSAMPLER_OUTPUT_JIT_SUMMARY_H_
#define CLRSAMPLER_OUTPUT_JIT_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "os/clock.h"
#include "output/durations.h"
#include "profile/jit_tracker.h"

namespace clrsampler {

// "     0.000  OptimizedTier1   1.2 ms   314 bytes  Shop.Order.Total  for Shop.Cart.Sum  on 4711 .NET Tiered Com"; the
// time is in seconds since `begin`.
std::string CompilationLine(const NamedCompilation& named, MonotonicTime begin);

// Memory grows with the methods that were compiled, some 200 bytes each, up to kMaxMethods.
class JitSummary {
 public:
  static constexpr size_t kMaxMethods = 100'000;

  void Add(const NamedCompilation& named);
  MonotonicTime first() const { return first_; }
  // Several lines. Times are those of a method alone, without others that were compiled for its sake meanwhile.
  std::string Text(double seconds) const;

 private:
  struct Tier {
    DurationHistogram time;
    uint64_t bytes = 0;
    uint64_t il_stubs = 0;
  };
  struct Method {
    std::map<std::string, uint32_t> tiers;
    uint64_t total_ns = 0, longest_ns = 0, bytes = 0;
    std::string caller;  // that of the longest
  };
  MonotonicTime first_ = MonotonicTime::Max();
  std::map<std::string, Tier> tiers_;
  absl::flat_hash_map<std::string, Method> methods_;
  uint64_t total_ns_ = 0, count_ = 0;
  uint64_t beyond_ = 0;  // compilations of methods that there was no room for
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_JIT_SUMMARY_H_
