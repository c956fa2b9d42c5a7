// The programs on the scheduler's tracepoints that tell where threads wait (bpf/wait_tracer.bpf.c,
// bpf/open_waits.bpf.c): what they are loaded with, and attaching them.
#ifndef CLRSAMPLER_CAPTURE_WAIT_TRACER_H_
#define CLRSAMPLER_CAPTURE_WAIT_TRACER_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "capture/open_waits.h"
#include "capture/perf_events.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "status/thread_checker.h"

struct bpf_link;
struct clrsampler_bpf;  // the skeleton

namespace clrsampler {

struct WaitTracerOptions {
  bool wanted = false;
  uint64_t min_wait_ns = 0;    // shorter parts of waits only add to their thread's sums
  bool waker_stacks = true;    // else wakers are named without their stacks
  uint32_t thinning = 1;       // each CPU tells at most 500 parts of waits a second, divided by this
  bool looks = false;          // Look is called again and again, and Stop does not look
  pid_t only_process = 0;      // in the initial pid namespace; 0: as the sampler filters
  bool task_storage = false;   // see below
  uint32_t table_threads = 0;  // that have room in the table which is used without it
};

// Whether what is known of a thread may be stored with its task. Storing allocates memory while the scheduler's locks
// are held: since Linux 6.4 the kernel has an allocator for that, and before it could wait for itself. Reads the
// kernel's types, 20 ms.
bool TaskStorageIsSafe();

// Main loop only.
class WaitTracer {
 public:
  // Between open and load of the skeleton, which outlives this.
  WaitTracer(clrsampler_bpf& skeleton, const WaitTracerOptions& options, uint32_t possible_cpus);
  ~WaitTracer();

  // After load. Threads that are there by then have waited or run since `now`.
  absl::Status Start(MonotonicTime now, std::span<const int> online);
  // CPUs that came: their waits have stacks from then on.
  absl::Status AttachNewCpus(std::span<const int> online, std::span<const int> stopped);
  // Reads the states of all threads, as of a moment just past.
  void ReadOpenWaits(const OpenWaitQuery& query);
  // Threads that are waiting by now are looked at, each with its stack; nothing is told of later ones.
  void Stop();
  // The threads that looks have found, once: records as in the ring of hooks.
  std::vector<std::vector<uint64_t>> TakeOpenWaits() { return std::exchange(open_waits_, {}); }

 private:
  class Page;
  struct LinkDeleter {
    void operator()(bpf_link* link) const;
  };

  int OpenAlarm(int cpu);
  std::vector<wire_open_wait> ReadThreads() const;
  void KeepOpenWaits(MonotonicTime as_of);
  void Keep(const wire_open_wait& open, std::vector<uint64_t> stack);

  clrsampler_bpf& skeleton_;
  const bool wanted_;
  const bool looks_;
  std::vector<std::unique_ptr<bpf_link, LinkDeleter>> links_;
  std::unique_ptr<bpf_link, LinkDeleter> threads_;  // of the iterator
  std::vector<std::vector<uint64_t>> open_waits_;
  SeenStacks seen_;
  std::map<int, std::unique_ptr<Page>> pages_;  // by CPU
  CpuEvents alarms_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_WAIT_TRACER_H_
