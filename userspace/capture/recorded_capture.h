// A run's capture on a tape. In a run that is saved, everything that the live one hands over is written down on its
// way. A tape that plays hands it over again, and asks nothing of this machine's kernel.
#ifndef CLRSAMPLER_CAPTURE_RECORDED_CAPTURE_H_
#define CLRSAMPLER_CAPTURE_RECORDED_CAPTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture.h"
#include "os/tape.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. Each Drain is an iteration of the tape.
class RecordedCapture : public Capture {
 public:
  // Whether an event of a process is part of the run; the others are not on the tape.
  using Concerns = std::function<bool(const SideBandEvent&)>;

  // `live` is nullptr where the tape plays. Borrows the tape.
  RecordedCapture(std::unique_ptr<Capture> live, Tape& tape, Concerns concerns)
      : live_(std::move(live)), tape_(tape), concerns_(std::move(concerns)) {}

  void Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) override;
  double fill() const override;
  wire_counters counters() const override;
  bool ended() const override { return tape_.ended(); }

  absl::Status Start() override;
  void StopSampling() override;
  bool sampling() const override { return sampling_; }
  FollowedCpus FollowCpus(CpuPulse::BusyNs busy_ns) override;
  absl::Status SetFrequency(int frequency_hz) override;
  absl::Status Track(pid_t tgid) override;
  void Untrack(pid_t tgid) override;
  absl::Status SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout) override;
  void ForgetAsyncLayout(pid_t tgid) override;
  absl::Status SetThreadVariable(pid_t tgid, const wire_thread_variable& variable) override;
  void ForgetThreadVariable(pid_t tgid) override;
  absl::Status SetTransientCode(pid_t tgid, const wire_transient_code& code,
                                std::span<const wire_transient_heap> heaps) override;
  void ForgetTransientCode(pid_t tgid) override;
  absl::StatusOr<UniqueFd> AttachHook(const HookPlace& place, const std::string& path) override;
  std::vector<HitsOfOthers> HookHitsOfOthers() const override;
  uint32_t HookHitsMissed(pid_t tgid) const override;
  void ReadAllocationSum(pid_t tgid) override {
    if (live_ != nullptr) live_->ReadAllocationSum(tgid);
  }
  void ReadOpenWaits(const OpenWaitQuery& query) override {
    if (live_ != nullptr) live_->ReadOpenWaits(query);
  }
  uint64_t map_bytes() const override;
  std::vector<int> wake_fds() const override { return live_ ? live_->wake_fds() : std::vector<int>(); }

 private:
  std::unique_ptr<Capture> live_;
  Tape& tape_;
  const Concerns concerns_;
  bool sampling_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_RECORDED_CAPTURE_H_
