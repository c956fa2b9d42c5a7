// The requests of a run to the kernel: sampling on and off, whose samples are taken, probes.
#ifndef CLRSAMPLER_CAPTURE_CAPTURE_CONTROL_H_
#define CLRSAMPLER_CAPTURE_CAPTURE_CONTROL_H_

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capture/cpu_pulse.h"
#include "capture/hook_form.h"
#include "capture/open_waits.h"
#include "clrsampler/wire.h"
#include "clrsampler/wire_runtime_async.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Hits so far of processes that are not followed, or that our pid namespace does not show, and that run into the same
// probes.
struct HitsOfOthers {
  wire_hook_other who;
  uint64_t hits;
};

struct FollowedCpus {
  absl::Status status;         // not OK: one that came can't be sampled
  std::vector<int> restarted;  // had stopped though they are online
};

// Main loop only.
class CaptureControl {
 public:
  virtual ~CaptureControl() = default;

  // Starts the clock on each online CPU. Track first: what runs meanwhile is not sampled.
  virtual absl::Status Start() = 0;
  // No sample is taken after this returns; what was sent can still be drained. Idempotent.
  virtual void StopSampling() = 0;
  virtual bool sampling() const = 0;
  // To be called some times a second: follows CPUs that come, go or had stopped.
  virtual FollowedCpus FollowCpus(CpuPulse::BusyNs busy_ns) = 0;
  // From now on; CPUs that come online later too. Takes effect within one period of the old rate.
  virtual absl::Status SetFrequency(int frequency_hz) = 0;

  // Thread group ids in our pid namespace. Tracking twice is fine, as is untracking what is not there.
  virtual absl::Status Track(pid_t tgid) = 0;  // RESOURCE_EXHAUSTED: the filter is full
  virtual void Untrack(pid_t tgid) = 0;

  // Where the process keeps code that its runtime may free: samples that meet it carry snapshots (wire.h), and JIT
  // hooks name dynamic methods. RESOURCE_EXHAUSTED: not all of it can be watched.
  virtual absl::Status SetTransientCode(pid_t tgid, const wire_transient_code& code,
                                        std::span<const wire_transient_heap> heaps) = 0;
  virtual void ForgetTransientCode(pid_t tgid) = 0;

  // From now on samples of the process bring along the awaiters of what runs. RESOURCE_EXHAUSTED: too many processes.
  virtual absl::Status SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout) = 0;
  virtual void ForgetAsyncLayout(pid_t tgid) = 0;

  // From now on samples of the process bring along the ids that its threads publish. RESOURCE_EXHAUSTED: too many
  // processes.
  virtual absl::Status SetThreadVariable(pid_t tgid, const wire_thread_variable& variable) = 0;
  virtual void ForgetThreadVariable(pid_t tgid) = 0;

  // Has calls of a function in a runtime's image reported, from all processes that map the image and are followed. The
  // hook decides whether at its entry or at its return. Until the descriptor is closed; see OpenUprobe for the rest.
  virtual absl::StatusOr<UniqueFd> AttachHook(const HookPlace& place, const std::string& path) = 0;
  virtual std::vector<HitsOfOthers> HookHitsOfOthers() const = 0;
  // Hits of a followed process that were not sent so far: what the next one says as wire_runtime_event::missed.
  virtual uint32_t HookHitsMissed(pid_t tgid) const = 0;

  // The bytes that the process has allocated since it last told of them come with the next Drain.
  virtual void ReadAllocationSum(pid_t tgid) = 0;

  // The states of threads as of a moment just past come with the next Drain, if waits are told.
  virtual void ReadOpenWaits(const OpenWaitQuery& query) = 0;

  // Kernel memory of all maps, as the kernel accounts for it.
  virtual uint64_t map_bytes() const = 0;
  // Descriptors that become readable when a ring is a quarter full; for epoll with EPOLLET.
  virtual std::vector<int> wake_fds() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_CAPTURE_CONTROL_H_
