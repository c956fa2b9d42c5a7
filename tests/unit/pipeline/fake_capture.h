// A capture for tests of what reads it.
#ifndef CLRSAMPLER_TESTS_UNIT_PIPELINE_FAKE_CAPTURE_H_
#define CLRSAMPLER_TESTS_UNIT_PIPELINE_FAKE_CAPTURE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture.h"

namespace clrsampler::test_support {

// A kernel that sends what a test gives it.
class FakeCapture : public Capture {
 public:
  std::vector<SideBandEvent> events;
  std::vector<std::string> records;
  double fill_now = 0;
  wire_counters counted{};
  uint32_t hits_missed = 0;

  void Drain(absl::FunctionRef<void(const SideBandEvent&)> on_event, RecordFunction on_record) override {
    for (const SideBandEvent& event : std::exchange(events, {})) on_event(event);
    for (const std::string& record : std::exchange(records, {})) on_record(std::as_bytes(std::span(record)));
  }
  double fill() const override { return fill_now; }
  wire_counters counters() const override { return counted; }
  bool ended() const override { return false; }
  absl::Status Start() override { return absl::OkStatus(); }
  void StopSampling() override {}
  bool sampling() const override { return true; }
  FollowedCpus FollowCpus(CpuPulse::BusyNs) override { return {}; }
  absl::Status SetFrequency(int) override { return absl::OkStatus(); }
  absl::Status Track(pid_t tgid) override {
    tracked.push_back(tgid);
    return absl::OkStatus();
  }
  void Untrack(pid_t) override {}
  absl::Status SetTransientCode(pid_t, const wire_transient_code&, std::span<const wire_transient_heap>) override {
    return absl::OkStatus();
  }
  void ForgetTransientCode(pid_t) override {}
  absl::Status SetThreadVariable(pid_t, const wire_thread_variable&) override { return absl::OkStatus(); }
  void ForgetThreadVariable(pid_t) override {}
  absl::Status SetAsyncLayout(pid_t, const wire_async_layouts&) override { return absl::OkStatus(); }
  void ForgetAsyncLayout(pid_t) override {}
  absl::StatusOr<UniqueFd> AttachHook(const HookPlace&, const std::string&) override {
    return absl::UnimplementedError("no probes");
  }
  std::vector<HitsOfOthers> HookHitsOfOthers() const override { return {}; }
  uint32_t HookHitsMissed(pid_t) const override { return hits_missed; }
  void ReadAllocationSum(pid_t) override {}
  void ReadOpenWaits(const OpenWaitQuery&) override {}
  uint64_t map_bytes() const override { return 0; }
  std::vector<int> wake_fds() const override { return {}; }

  std::vector<pid_t> tracked;
};

}  // namespace clrsampler::test_support

#endif  // CLRSAMPLER_TESTS_UNIT_PIPELINE_FAKE_CAPTURE_H_
