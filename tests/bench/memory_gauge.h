// How much memory a piece of a benchmark takes at most.
#ifndef CLRSAMPLER_BENCH_MEMORY_GAUGE_H_
#define CLRSAMPLER_BENCH_MEMORY_GAUGE_H_

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace clrsampler {

// The most memory that the process takes from the construction on, beyond what it has then.
class MemoryGauge {
 public:
  MemoryGauge() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5\n";  // resets the peak
    before_kib_ = Kib("VmRSS:");
  }
  double peak_mib() const { return static_cast<double>(Kib("VmHWM:") - before_kib_) / 1024; }

 private:
  static int64_t Kib(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      int64_t kib = 0;
      if (word == key && status >> kib) return kib;
    }
    return 0;
  }
  int64_t before_kib_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_BENCH_MEMORY_GAUGE_H_
