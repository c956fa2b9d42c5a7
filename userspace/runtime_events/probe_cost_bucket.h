// A token bucket of CPU time: what hooks of one kind may cost one process. It refills with a share of a CPU. A process
// that has emptied it goes without these hooks until it is full again. So hooks see stretches of some tenths of a
// second and more, with whole collections and compilations, and not every fifth hit. Pure.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_BUCKET_H_
#define CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_BUCKET_H_

#include <algorithm>
#include <cstdint>

#include "os/clock.h"

namespace clrsampler {

class ProbeCostBucket {
 public:
  // So many seconds' worth may be used up at once: 6 ms of 0.15 %, some 1,700 hits.
  static constexpr uint64_t kSecondsAtOnce = 4;
  // A program that starts may do so eight times, once in its life: 13,000 hits, of 6,500 methods that it compiles.
  static constexpr int kTimesAtStart = 8;
  // Hits go on for a moment after the last one that is paid for, until the probes are gone: 0.1 s, or 0.5 s before
  // Linux 6.6. That is owed, up to what so many seconds bring: they are detached for 20 s at most.
  static constexpr uint64_t kSecondsOwed = 16;

  // `share`: of one CPU, 0.0015 for 0.15 %. `starts`: the process begins now.
  ProbeCostBucket(double share, bool starts, uint64_t seconds_at_once = kSecondsAtOnce)
      : share_(share),
        at_once_ns_(static_cast<int64_t>(share * static_cast<double>(seconds_at_once) * 1e9)),
        most_owed_ns_(static_cast<int64_t>(share * static_cast<double>(kSecondsOwed) * 1e9)),
        left_ns_(at_once_ns_ * (starts ? kTimesAtStart : 1)) {}

  // Until `time` hits took the process `cost_ns`.
  void Spend(MonotonicTime time, uint64_t cost_ns) {
    Fill(time);
    left_ns_ = std::max(left_ns_ - static_cast<int64_t>(std::min<uint64_t>(cost_ns, 1'000'000'000)), -most_owed_ns_);
    exhausted_ |= left_ns_ <= 0;
  }

  // From the moment on at which nothing is left until all of it is.
  bool Exhausted(MonotonicTime now) {
    Fill(now);
    if (left_ns_ >= at_once_ns_) exhausted_ = false;
    return exhausted_;
  }

 private:
  void Fill(MonotonicTime now) {
    if (filled_ == MonotonicTime::Min()) filled_ = now;
    if (now <= filled_) return;  // events of two CPUs
    const double gained_ns = share_ * static_cast<double>(now.ns - filled_.ns) + rest_ns_;
    const double whole_ns = std::min<double>(gained_ns, static_cast<double>(at_once_ns_ + most_owed_ns_));
    const auto gained = static_cast<int64_t>(whole_ns);
    rest_ns_ = whole_ns - static_cast<double>(gained);
    if (left_ns_ < at_once_ns_) left_ns_ = std::min(left_ns_ + gained, at_once_ns_);
    filled_ = now;
  }

  double share_;
  int64_t at_once_ns_;
  int64_t most_owed_ns_;
  int64_t left_ns_;
  double rest_ns_ = 0;  // less than one, of many small gains
  MonotonicTime filled_ = MonotonicTime::Min();
  bool exhausted_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_PROBE_COST_BUCKET_H_
