// A run's capture on this machine: the sampler's rings and the side band's, read together.
#ifndef CLRSAMPLER_CAPTURE_LIVE_CAPTURE_H_
#define CLRSAMPLER_CAPTURE_LIVE_CAPTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "capture/capture.h"
#include "capture/sampler.h"
#include "capture/side_band.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only.
class LiveCapture : public Capture {
 public:
  // Loads the programs and follows processes; nothing is sampled yet. Errors: Sampler::Create's, SideBand::Start's.
  static absl::StatusOr<std::unique_ptr<LiveCapture>> Create(const SamplerOptions& options,
                                                             const FeatureReport& features);

  void Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) override;
  double fill() const override;
  wire_counters counters() const override { return sampler_->counters(); }
  bool ended() const override { return false; }

  absl::Status Start() override { return sampler_->Start(); }
  void StopSampling() override { sampler_->StopSampling(); }
  bool sampling() const override { return sampler_->sampling(); }
  FollowedCpus FollowCpus(CpuPulse::BusyNs busy_ns) override;
  absl::Status SetFrequency(int frequency_hz) override { return sampler_->SetFrequency(frequency_hz); }
  absl::Status Track(pid_t tgid) override { return sampler_->Track(tgid); }
  void Untrack(pid_t tgid) override { sampler_->Untrack(tgid); }
  absl::Status SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout) override {
    return sampler_->SetAsyncLayout(tgid, layout);
  }
  void ForgetAsyncLayout(pid_t tgid) override { sampler_->ForgetAsyncLayout(tgid); }
  absl::Status SetThreadVariable(pid_t tgid, const wire_thread_variable& variable) override {
    return sampler_->SetThreadVariable(tgid, variable);
  }
  void ForgetThreadVariable(pid_t tgid) override { sampler_->ForgetThreadVariable(tgid); }
  absl::Status SetTransientCode(pid_t tgid, const wire_transient_code& code,
                                std::span<const wire_transient_heap> heaps) override {
    return sampler_->SetTransientCode(tgid, code, heaps);
  }
  void ForgetTransientCode(pid_t tgid) override { sampler_->ForgetTransientCode(tgid); }
  absl::StatusOr<UniqueFd> AttachHook(const HookPlace& place, const std::string& path) override {
    return sampler_->AttachHook(place, path);
  }
  std::vector<HitsOfOthers> HookHitsOfOthers() const override { return sampler_->HookHitsOfOthers(); }
  uint32_t HookHitsMissed(pid_t tgid) const override { return sampler_->HookHitsMissed(tgid); }
  void ReadAllocationSum(pid_t tgid) override { sampler_->ReadAllocationSum(tgid); }
  void ReadOpenWaits(const OpenWaitQuery& query) override { sampler_->ReadOpenWaits(query); }
  uint64_t map_bytes() const override { return sampler_->bpf_map_bytes(); }
  std::vector<int> wake_fds() const override {
    return {sampler_->ring_fd(), sampler_->hook_ring_fd(), side_band_.poll_fd()};
  }

 private:
  explicit LiveCapture(std::unique_ptr<Sampler> sampler) : sampler_(std::move(sampler)) {}

  std::unique_ptr<Sampler> sampler_;
  SideBand side_band_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_LIVE_CAPTURE_H_
