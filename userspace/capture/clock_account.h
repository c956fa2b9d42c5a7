// How often the sampling clock ran, and how often it should have. The two differ where a CPU gets no time to run its
// timers: a hypervisor held it, or the whole machine stood still. What was not sampled then shows nowhere else, for the
// scheduler counts a part of that time as used.
#ifndef CLRSAMPLER_CAPTURE_CLOCK_ACCOUNT_H_
#define CLRSAMPLER_CAPTURE_CLOCK_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <span>

namespace clrsampler {

// Pure.
class ClockAccount {
 public:
  struct Cpu {
    double due = 0;  // runs: of each stretch, its time divided by the period
    uint64_t ran = 0;
  };

  // To be called whenever clocks are started, stopped or set to another rate, and as often as anybody reads the
  // account. `now_ns`: CLOCK_MONOTONIC. `running`: CPUs whose clock has been on since the last call, or is as of now.
  // `hits`: of each CPU so far, by number. `period_ns`: since the last call.
  void Update(uint64_t now_ns, std::span<const int> running, std::span<const uint64_t> hits, uint64_t period_ns);

  // By CPU number; never shrinks.
  const std::map<int, Cpu>& cpus() const { return cpus_; }
  uint64_t due() const;
  uint64_t ran() const;

 private:
  struct Mark {
    uint64_t ns = 0;
    uint64_t hits = 0;
  };
  std::map<int, Mark> last_;  // of those whose clock was on
  std::map<int, Cpu> cpus_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CLOCK_ACCOUNT_H_
