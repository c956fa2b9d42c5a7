// For which part of a process its probes were there, so that what they have counted can be told for the whole. Pure.
//
// The measure is CPU time: a program that idles does nothing that a probe could count, and probes are detached while it
// is busy. By time on the clock, what it idles would seem to be what it does.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "os/clock.h"

namespace clrsampler {

class HookCoverage {
 public:
  // From now on: whether the probes are there. `cpu_ns`: what the process has used so far; nullopt: it has ended.
  void Note(bool complete, MonotonicTime now, std::optional<uint64_t> cpu_ns) {
    if (begun_ && now >= last_) {
      const uint64_t passed = now.ns - last_.ns;
      const uint64_t used = cpu_ns && *cpu_ns > last_cpu_ns_ ? *cpu_ns - last_cpu_ns_ : 0;
      wall_ns_ += passed;
      cpu_ns_ += used;
      if (complete_) {
        complete_wall_ns_ += passed;
        complete_cpu_ns_ += used;
      }
    }
    begun_ = true;
    complete_ = complete;
    last_ = std::max(last_, now);
    if (cpu_ns) last_cpu_ns_ = *cpu_ns;
  }
  void Note(MonotonicTime now, std::optional<uint64_t> cpu_ns) { Note(complete_, now, cpu_ns); }

  // Counts anew from the last Note on. Where the probes were never there it does not: what the process did meanwhile
  // is for those to tell that come next.
  void Restart() {
    if (complete_wall_ns_ == 0) return;
    wall_ns_ = complete_wall_ns_ = cpu_ns_ = complete_cpu_ns_ = 0;
  }

  bool begun() const { return begun_; }
  bool complete() const { return complete_; }
  // The share of all that was watched.
  double share() const {
    return cpu_ns_ > 0 && complete_cpu_ns_ > 0 ? Ratio(complete_cpu_ns_, cpu_ns_) : Ratio(complete_wall_ns_, wall_ns_);
  }

  // Counts that were made while the probes were there are to be multiplied with this. The probes themselves have used
  // `probes_ns` of the CPU time, which the program would not have had without them: of an exception that takes 1.3 us
  // they are four fifths.
  double Factor(uint64_t probes_ns) const {
    if (complete_cpu_ns_ == 0) return 1 / share();
    const uint64_t own_cpu_ns = complete_cpu_ns_ - std::min(probes_ns, complete_cpu_ns_ / 8 * 7);
    const uint64_t rest_cpu_ns = cpu_ns_ - complete_cpu_ns_;
    return 1 + static_cast<double>(rest_cpu_ns) / static_cast<double>(own_cpu_ns);
  }

 private:
  static double Ratio(uint64_t part, uint64_t whole) {
    return whole == 0 || part == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
  }

  bool begun_ = false, complete_ = false;
  MonotonicTime last_ = MonotonicTime::Min();
  uint64_t last_cpu_ns_ = 0;
  uint64_t wall_ns_ = 0, complete_wall_ns_ = 0;
  uint64_t cpu_ns_ = 0, complete_cpu_ns_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_COVERAGE_H_
