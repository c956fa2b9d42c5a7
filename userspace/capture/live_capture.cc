#include "capture/live_capture.h"

#include <utility>

#include "capture/cpu_list.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<std::unique_ptr<LiveCapture>> LiveCapture::Create(const SamplerOptions& options,
                                                                 const FeatureReport& features) {
  ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, Sampler::Create(options, features));
  std::unique_ptr<LiveCapture> capture(new LiveCapture(std::move(sampler)));
  RETURN_IF_ERROR(capture->side_band_.Start());
  return capture;
}

void LiveCapture::Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) {
  main_loop_.Check();
  side_band_.Drain(MonotonicTime::Max(), on_event);
  sampler_->Drain(on_record);
}

double LiveCapture::fill() const {
  return static_cast<double>(sampler_->waiting_bytes()) / static_cast<double>(sampler_->ring_bytes());
}

FollowedCpus LiveCapture::FollowCpus(CpuPulse::BusyNs busy_ns) {
  main_loop_.Check();
  FollowedCpus followed;
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  followed.status = online.status();
  if (!online.ok()) return followed;
  followed.status.Update(sampler_->AttachNewCpus(*online, busy_ns));
  followed.status.Update(side_band_.AttachNewCpus(*online, sampler_->silent_cpus()));
  followed.restarted = sampler_->silent_cpus();
  return followed;
}

}  // namespace clrsampler
