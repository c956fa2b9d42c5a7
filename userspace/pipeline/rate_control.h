// How often a continuous run samples: at its full rate, or less while the buffer to the agent overflows, samples wait
// too long for their names, or the agent costs more than it may. Pure.
//
// Each step halves the rate, down to one sample a second, and takes effect at once. Back up goes slowly, one step after
// kCalmNs without trouble, so that a host at its limit does not swing. Samples carry the time that they stand for, so
// sums stay right.
#ifndef CLRSAMPLER_PIPELINE_RATE_CONTROL_H_
#define CLRSAMPLER_PIPELINE_RATE_CONTROL_H_

#include <cstdint>
#include <deque>

#include "os/clock.h"

namespace clrsampler {

struct RateLimits {
  uint32_t frequency_hz = 19;
  double cpus = 0;            // CPU time of sampling and naming per time; 0: no limit
  uint64_t memory_bytes = 0;  // of the whole agent; 0: no limit
};

struct RateInputs {
  MonotonicTime now;
  double ring_fill = 0;       // of the buffer, its fullest since the last time: 0 to 1
  uint64_t lost = 0;          // samples for which it had no room, so far
  double queue_fill = 0;      // of the room for samples that wait for their turn: 0 to 1
  uint64_t not_queued = 0;    // samples for which there was no room, so far
  uint64_t self_cpu_ns = 0;   // of the sampling thread, so far
  uint64_t memory_bytes = 0;  // of the agent, without pages of files
};

// Why the rate was lowered last.
enum class ShedReason : uint8_t { kNone, kRing, kBacklog, kCpu, kMemory };

class RateControl {
 public:
  static constexpr uint64_t kStepNs = 2'000'000'000;   // between two steps down: the first one must have shown
  static constexpr uint64_t kCalmNs = 30'000'000'000;  // before a step up
  static constexpr uint64_t kCpuNs = 5'000'000'000;    // over which CPU time is measured
  static constexpr double kFullRing = 0.5;
  // Where every sample waits for two seconds, 128 busy CPUs at 19 Hz come near it.
  static constexpr double kFullQueue = 0.5;

  explicit RateControl(const RateLimits& limits) : limits_(limits), frequency_hz_(limits.frequency_hz) {}

  // About once a second. The rate from now on.
  uint32_t Next(const RateInputs& inputs);

  ShedReason reason() const { return reason_; }
  // The agent has taken too much memory for a minute, at the lowest rate.
  bool helpless() const { return helpless_; }

 private:
  struct Reading {
    MonotonicTime time;
    uint64_t cpu_ns;
  };
  // `calm_enough_to_rise`: asks what would be too much at twice the rate.
  ShedReason Trouble(const RateInputs& inputs, double cpu_share, bool calm_enough_to_rise) const;
  double CpuShare(const RateInputs& inputs);
  bool TooMuchMemory(const RateInputs& inputs) const;

  static constexpr uint64_t kHelplessNs = 60'000'000'000;

  const RateLimits limits_;
  uint32_t frequency_hz_;
  ShedReason reason_ = ShedReason::kNone;
  uint64_t last_lost_ = 0, last_not_queued_ = 0;
  std::deque<Reading> cpu_;
  MonotonicTime last_step_;
  MonotonicTime last_trouble_;
  MonotonicTime over_memory_since_ = MonotonicTime::Max();
  bool helpless_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_RATE_CONTROL_H_
