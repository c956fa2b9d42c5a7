// The CPU sampler: loads the BPF programs, attaches them to a clock on each CPU and hands over what they send.
//
// Records are struct wire_cpu_sample of include/clrsampler/wire.h. All of it runs on the main loop.
#ifndef CLRSAMPLER_CAPTURE_SAMPLER_H_
#define CLRSAMPLER_CAPTURE_SAMPLER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capture/capture_control.h"
#include "capture/cpu_pulse.h"
#include "capture/feature_report.h"
#include "capture/perf_events.h"
#include "capture/ring_reader.h"
#include "capture/sampling_period.h"
#include "capture/transient_code_map.h"
#include "capture/wait_tracer.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "os/unique_fd.h"

struct bpf_link;
struct bpf_program;
struct clrsampler_bpf;  // the skeleton

namespace clrsampler {

struct SamplerOptions {
  int frequency_hz = 99;               // samples per second and CPU: one each SamplingPeriodNs
  uint64_t ring_bytes = 0;             // of the samples; rounded up to a power of two; 0: DefaultRingBytes
  uint64_t hook_ring_bytes = 4 << 20;  // of what hooks report; the same; without hooks there is none
  bool filter_processes = false;       // only those given to Track
  bool follow_children = false;        // with the filter: a child of a tracked process counts at once
  pid_t only_process = 0;              // the one that will be tracked; where the kernel can, no other runs into hooks
  uint32_t max_frames = 512;           // at most WIRE_MAX_USER_FRAMES
  uint32_t gap_words = 1024;           // at most WIRE_MAX_GAP_WORDS
  uint32_t tail_words = 32;
  uint32_t broken_tail_words = 512;
  uint32_t word_limit = 4096;
  uint32_t tracked_limit = 8192;  // entries of the filter
  // Inode of the pid namespace whose numbers are meant (0: the initial one). Default: our own.
  std::optional<uint32_t> pid_namespace_inode;
  // AttachHook will be called for hooks of these kinds.
  bool suspension_hooks = false;  // all but those of the JIT
  bool resumed_hook = true;       // WIRE_HOOK_RESTARTED is one of them
  bool jit_hooks = false;
  bool jit_stacks = false;  // with jit_hooks: each WIRE_COMPILED is followed by its WIRE_COMPILED_STACK
  bool allocation_hooks = false;
  bool exception_hooks = false;
  bool thread_creations = false;  // who makes threads is told: struct wire_thread
  bool async_objects = false;     // samples bring along awaiters, of processes that SetAsyncLayout names
  bool waits = false;             // where threads wait is told: struct wire_wait
  uint64_t min_wait_ns = 0;       // WaitTracerOptions, as the next three
  bool waker_stacks = true;
  uint32_t wait_thinning = 1;
  bool wait_looks = false;
  // Threads are kept in a table by number, as on kernels that can't store with a task: TaskStorageIsSafe.
  bool wait_table = false;
  uint32_t wait_table_threads = 16'384;  // beyond these some begin anew
  // Each CPU sends at most 400 stacks of allocations a second, divided by this.
  uint32_t allocation_thinning = 1;
  // The hits of hooks of one process that are sent on average, and at once. A stack counts as eight of them, and none
  // is sent while less than half is left. The rest is counted (wire_counters::hook_rate_limited), and the next hit that
  // is sent says how many there were. 0: no limit.
  uint32_t hook_hits_a_second = 0;
  uint32_t hook_hits_at_once = 0;
};

// Two seconds of samples of 4 KiB (the 99th percentile of a JSON workload) from each CPU, 1 to 64 MiB, a power of two.
uint64_t DefaultRingBytes(int cpus, int frequency_hz);

class Sampler {
 public:
  // Loads the programs. Anything that is missing becomes one sentence and a hint: privileges, BTF, an old kernel,
  // lockdown, memory.
  static absl::StatusOr<std::unique_ptr<Sampler>> Create(const SamplerOptions& options, const FeatureReport& features);
  ~Sampler();

  // Starts the clock on each online CPU. Track first: what runs meanwhile is not sampled.
  absl::Status Start();
  // To be called some times a second with OnlineCpus(): attaches CPUs that came online, lets go of those that went,
  // and starts again what had stopped on CPUs that went and came in between. `busy_ns`: see CpuPulse.
  absl::Status AttachNewCpus(std::span<const int> online, CpuPulse::BusyNs busy_ns);
  // The CPUs that the last call found to have stopped.
  const std::vector<int>& silent_cpus() const { return silent_; }
  // From now on; CPUs that come online later too. Takes effect within one period of the old rate.
  absl::Status SetFrequency(int frequency_hz);
  // No sample is taken after this returns; what was sent can still be drained. Idempotent.
  void StopSampling();
  bool sampling() const { return started_; }

  // Thread group ids in our pid namespace. Tracking twice is fine, as is untracking what is not there.
  absl::Status Track(pid_t tgid);  // RESOURCE_EXHAUSTED: the filter is full
  void Untrack(pid_t tgid);

  // Where the process keeps code that its runtime may free: samples that meet it carry snapshots (wire.h), and JIT
  // hooks name dynamic methods. RESOURCE_EXHAUSTED: not all of it can be watched.
  absl::Status SetTransientCode(pid_t tgid, const wire_transient_code& code,
                                std::span<const wire_transient_heap> heaps) {
    return transient_code_->Set(static_cast<uint32_t>(tgid), code, heaps);
  }
  void ForgetTransientCode(pid_t tgid) { transient_code_->Remove(static_cast<uint32_t>(tgid)); }

  // CaptureControl's.
  absl::Status SetThreadVariable(pid_t tgid, const wire_thread_variable& variable);
  void ForgetThreadVariable(pid_t tgid);
  absl::Status SetAsyncLayout(pid_t tgid, const wire_async_layouts& layout);
  void ForgetAsyncLayout(pid_t tgid);

  // Has calls of a function in a runtime's image reported, from all processes that map the
  // image and are followed; others run into the probe, too, unless it is bound to `only_process`. `hook` decides
  // whether at its entry or at its return. Until the descriptor is closed; see OpenUprobe for the rest.
  absl::StatusOr<UniqueFd> AttachHook(const HookPlace& place, const std::string& path);

  // CaptureControl's; one system call each.
  void ReadAllocationSum(pid_t tgid);
  std::vector<HitsOfOthers> HookHitsOfOthers() const;
  uint32_t HookHitsMissed(pid_t tgid) const;

  // Wake a sleeper when a quarter of the ring is full; for epoll with EPOLLET. Asked without it, the kernel calls the
  // descriptor readable while any record waits. A reader should also come by once in a while.
  int ring_fd() const;
  int hook_ring_fd() const;
  // The states of threads as of a moment just past come with the next Drain. Without waits: nothing.
  void ReadOpenWaits(const OpenWaitQuery& query) { waits_->ReadOpenWaits(query); }
  // Hands over the records that were there when it was called: samples and what hooks have reported, merged by time. A
  // hook's report from before a sample was taken comes with it, if not earlier.
  void Drain(RecordFunction on_record);
  // The bytes of samples that wait.
  size_t waiting_bytes() const { return ring_.waiting(); }

  // The fates of all hits so far, summed over CPUs. One system call; should it fail, the last answer.
  wire_counters counters() const;
  // Kernel memory of all maps, as the kernel accounts for it.
  uint64_t bpf_map_bytes() const;
  uint64_t ring_bytes() const { return ring_bytes_; }
  std::vector<int> cpus() const { return events_->cpus(); }

 private:
  struct SkeletonDeleter {
    void operator()(clrsampler_bpf* skeleton) const;
  };
  struct LinkDeleter {
    void operator()(bpf_link* link) const;
  };

  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  absl::Status Load(const FeatureReport& features, bool task_storage);
  absl::Status Configure(const FeatureReport& features, bool task_storage);
  absl::Status SizeRings(int possible_cpus, bool hook_ring);
  void SizeMaps(uint32_t slots, bool stacks_of_hooks, bool hooks, uint32_t pid_namespace);
  void SetConstants(const FeatureReport& features, uint32_t slots, uint32_t pid_namespace);
  void SelectPrograms(const FeatureReport& features, uint32_t pid_namespace);
  int OpenAndAttach(int cpu) const;
  absl::Status AttachThreadCreations();
  std::vector<wire_counters> CountersByCpu() const;  // empty: the kernel did not say
  uint64_t period_ns() const { return SamplingPeriodNs(static_cast<uint32_t>(options_.frequency_hz)); }
  bpf_program* HookProgram(wire_hook hook, HookForm form) const;
  bpf_program* AllocationProgram(wire_hook hook, HookForm form) const;
  bpf_program* ExceptionProgram(HookForm form) const;

  SamplerOptions options_;
  std::unique_ptr<clrsampler_bpf, SkeletonDeleter> skeleton_;
  bpf_program* program_ = nullptr;  // the one of the two samplers that was loaded
  uint64_t ring_bytes_ = 0;
  uint64_t hook_ring_bytes_ = 0;
  RingReader ring_;
  RingReader hook_ring_;
  std::vector<wire_allocation> sums_told_;  // that come with the next Drain
  std::optional<TransientCodeMap> transient_code_;
  std::unique_ptr<CpuEvents> events_;
  std::optional<WaitTracer> waits_;
  std::unique_ptr<bpf_link, LinkDeleter> thread_creations_;
  CpuPulse pulse_;
  SystemClock clock_;
  std::vector<int> silent_;
  bool started_ = false;
  bool has_cookies_ = false;  // probes can be told apart
  mutable wire_counters last_counters_{};
};

// Kernels before 5.11 charge maps to RLIMIT_MEMLOCK, later ones to the cgroup. Without CAP_SYS_RESOURCE the hard limit
// is all that can be had; whether it suffices the kernel says when a map is made. Create calls it; a program that gives
// up capabilities before that calls it first.
void RaiseLockedMemoryLimit();

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_SAMPLER_H_
