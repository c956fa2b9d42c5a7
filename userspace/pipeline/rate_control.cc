#include "pipeline/rate_control.h"

#include <algorithm>

namespace clrsampler {

double RateControl::CpuShare(const RateInputs& inputs) {
  cpu_.push_back({inputs.now, inputs.self_cpu_ns});
  while (cpu_.size() > 2 && inputs.now.ns - cpu_[1].time.ns >= kCpuNs) cpu_.pop_front();
  const uint64_t elapsed_ns = inputs.now.ns - cpu_.front().time.ns;
  // One expensive second, as when a large binary is read, is no reason.
  if (elapsed_ns < kCpuNs) return 0;
  return static_cast<double>(inputs.self_cpu_ns - cpu_.front().cpu_ns) / static_cast<double>(elapsed_ns);
}

ShedReason RateControl::Trouble(const RateInputs& inputs, double cpu_share, bool calm_enough_to_rise) const {
  const double factor = calm_enough_to_rise ? 0.5 : 1;
  if (inputs.ring_fill > kFullRing * factor || inputs.lost > last_lost_) return ShedReason::kRing;
  if (inputs.queue_fill > kFullQueue * factor || inputs.not_queued > last_not_queued_) return ShedReason::kBacklog;
  // Half of the cost does not depend on the rate. A cost of 100 % at twice the rate is some 60 % now.
  if (limits_.cpus > 0 && cpu_share > limits_.cpus * (calm_enough_to_rise ? 0.6 : 1)) return ShedReason::kCpu;
  if (TooMuchMemory(inputs)) return ShedReason::kMemory;
  return ShedReason::kNone;
}

// This is near the limit. It is the same to go down and up: memory depends little on the rate.
bool RateControl::TooMuchMemory(const RateInputs& inputs) const {
  return limits_.memory_bytes > 0 && inputs.memory_bytes > limits_.memory_bytes / 10 * 9;
}

uint32_t RateControl::Next(const RateInputs& inputs) {
  if (last_trouble_.ns == 0) last_trouble_ = inputs.now;
  const double cpu_share = CpuShare(inputs);
  const ShedReason trouble = Trouble(inputs, cpu_share, false);
  const ShedReason doubt = trouble != ShedReason::kNone ? trouble : Trouble(inputs, cpu_share, true);
  last_lost_ = inputs.lost;
  last_not_queued_ = inputs.not_queued;
  if (doubt != ShedReason::kNone) last_trouble_ = inputs.now;
  if (TooMuchMemory(inputs) && frequency_hz_ == 1) {
    over_memory_since_ = std::min(over_memory_since_, inputs.now);
    helpless_ = inputs.now.ns - over_memory_since_.ns >= kHelplessNs;
  } else {
    over_memory_since_ = MonotonicTime::Max();
    helpless_ = false;
  }
  if (trouble != ShedReason::kNone) {
    reason_ = trouble;
    if (frequency_hz_ > 1 && inputs.now.ns - last_step_.ns >= kStepNs) {
      frequency_hz_ = std::max(1u, frequency_hz_ / 2);
      last_step_ = inputs.now;
      cpu_.clear();  // the figures from before say nothing about the new rate
      cpu_.push_back({inputs.now, inputs.self_cpu_ns});
    }
  } else if (frequency_hz_ < limits_.frequency_hz && inputs.now.ns - last_trouble_.ns >= kCalmNs) {
    frequency_hz_ = std::min(limits_.frequency_hz, frequency_hz_ * 2);
    last_trouble_ = last_step_ = inputs.now;
    if (frequency_hz_ == limits_.frequency_hz) reason_ = ShedReason::kNone;
    cpu_.clear();
    cpu_.push_back({inputs.now, inputs.self_cpu_ns});
  }
  return frequency_hz_;
}

}  // namespace clrsampler
