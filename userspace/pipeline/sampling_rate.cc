#include "pipeline/sampling_rate.h"

#include "absl/strings/str_cat.h"
#include "capture/sampling_period.h"

namespace clrsampler {
namespace {

absl::string_view Sentence(ShedReason reason) {
  switch (reason) {
    case ShedReason::kRing:
      return "samples come faster than they can be read";
    case ShedReason::kBacklog:
      return "samples come faster than they can be given names";
    case ShedReason::kCpu:
      return "the agent is near its --cpu-limit";
    case ShedReason::kMemory:
      return "the agent is near its --memory-limit";
    case ShedReason::kNone:
      break;
  }
  return "";
}

}  // namespace

std::optional<uint32_t> SamplingRate::Wanted(const RateInputs& inputs) {
  main_loop_.Check();
  const uint32_t wanted = control_.Next(inputs);
  if (wanted == hz()) return std::nullopt;
  return wanted;
}

std::string SamplingRate::Reason(uint32_t wanted) const {
  if (wanted > hz()) return absl::StrCat("sampling at ", wanted, " Hz again");
  return absl::StrCat("sampling at ", wanted, " Hz instead of ", hz(), ": ", Sentence(control_.reason()),
                      "; more such steps are only counted");
}

void SamplingRate::Changed(MonotonicTime now, uint32_t hz) {
  main_loop_.Check();
  rates_.push_back({now, hz});
  of_window_.push_back(hz);
}

uint64_t SamplingRate::PeriodAt(MonotonicTime time) const {
  auto rate = rates_.rbegin();
  while (rate->since > time && rate + 1 != rates_.rend()) ++rate;
  return SamplingPeriodNs(rate->hz);
}

void SamplingRate::DropBefore(MonotonicTime time) {
  main_loop_.Check();
  while (rates_.size() > 1 && rates_[1].since <= time) rates_.pop_front();
}

}  // namespace clrsampler
