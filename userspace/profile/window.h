// The events on a host in one stretch of time, some seconds: the continuous mode keeps, shows and exports them.
//
// Windows of a run follow each other without a gap: a sample is in the window of its own time, pauses and compilations
// in that of their end, each in exactly one. A wait is in each window with the part that fell into it. A window stands
// for itself: nothing in it refers to another window or to a live object.
//
// A value: built on the main loop, then shared between threads as std::shared_ptr<const Window>.
#ifndef CLRSAMPLER_PROFILE_WINDOW_H_
#define CLRSAMPLER_PROFILE_WINDOW_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"
#include "formats/profile/profile_model.h"
#include "profile/account.h"
#include "profile/suspension_tracker.h"
#include "profile/wait_times.h"

namespace clrsampler {

// The work of a CPU at the moment of a sample; each sample is one of these.
enum class CpuShare : uint8_t {
  kManaged,  // its leaf is managed code
  kNative,   // its leaf is native code
  kKernel,   // its leaf is in the kernel
  kGc,       // anything, while the thread collected or stopped the others for it
  kJit,      // anything, while the thread compiled
};
inline constexpr int kCpuShareCount = 5;
absl::string_view CpuShareText(CpuShare share);  // "managed", ...

// The unit of a window's weights: nanoseconds, of allocations bytes.
inline WeightUnit WindowUnitOf(ProfileView view) {
  return view == ProfileView::kAllocations ? WeightUnit::kBytes : WeightUnit::kNanoseconds;
}

// The counts of a process in a time.
struct ProcessCounts {
  bool exited = false;  // in this time: no later one has it

  uint64_t samples = 0;
  std::array<uint64_t, kCpuShareCount> cpu_ns{};  // what the samples stand for, by CpuShare
  FrameCounts managed, native, kernel;            // frames of the samples, with and without a name
  uint64_t stacks_complete = 0, stacks_cut = 0;   // to the root, and not

  bool hooked = false;  // its pauses and compilations are seen
  uint64_t pauses = 0, pause_ns = 0, suspend_ns = 0;
  std::array<uint64_t, 3> collections{};  // that ended, by generation; background ones among them
  uint64_t background_collections = 0;
  uint64_t compilations = 0, compile_ns = 0;  // alone, without others that were compiled for their sake meanwhile
  uint64_t allocated_bytes = 0;               // seen, counted or estimated (docs/allocations.md)
  WaitTimes waits;                            // all 0 where nobody asked for waits
};

// One that was sampled, or of which a pause, compilation, allocation or wait was seen.
struct WindowProcess : ProcessCounts {
  uint32_t pid = 0;
  // Tells with the pid which process this is, whichever agent recorded it: its start, CLOCK_BOOTTIME, in whole ticks of
  // 10 ms. After a boot of the machine only those that begin with it (init, threads of the kernel) may have the same
  // ones again.
  uint64_t started_boot_ns = 0;
  std::string comm;
  std::string runtime;    // "10.0.12"; empty: no .NET runtime was seen
  std::string container;  // name, or runtime and short id, or systemd service; empty: none of these
  std::string container_id;
  std::string pod_uid;
  ProcessLabels labels;         // what it says of itself
  std::optional<uint32_t> uid;  // real; nullopt: not known

  uint64_t total_cpu_ns() const;
};

struct WindowPause {
  uint32_t process = 0;  // index in Window::processes
  uint64_t requested_unix_ns = 0;
  uint64_t suspend_ns = 0;  // until all threads stood still
  uint64_t pause_ns = 0;    // from the request until they were let go
  std::string kind;         // PauseKindText
  std::string reason;       // SuspendReasonText
  std::string gc_reason;    // GcReasonText; empty: none is known
  std::optional<uint32_t> generation;
  std::optional<uint64_t> gc_index;
  bool induced = false;
  uint32_t tid = 0;  // who asked
  std::string thread_name;
  std::vector<Culprit> culprits;  // most delay first
};

// All compilations of one method in one tier.
struct WindowMethod {
  uint32_t process = 0;  // index in Window::processes
  std::string method;
  std::string tier;
  uint64_t count = 0;
  uint64_t total_ns = 0;  // alone, as WindowProcess::compile_ns
  uint64_t longest_ns = 0;
  uint64_t bytes = 0;  // of code
};

struct Window {
  // The end follows the wall clock by at most so much.
  static constexpr uint64_t kMaxSlewNs = 5'000'000;
  // The last one of a run may be shorter.
  static constexpr uint64_t kShortestNs = 1'000'000'000;

  uint64_t number = 0;  // 1, 2, ... of a run
  uint64_t begin_unix_ns =
      0;                     // that of the first window, and the monotonic clock since: no window overlaps another one,
  uint64_t end_unix_ns = 0;  // but for `clock_jump_ns`
  int64_t clock_jump_ns = 0;  // the wall clock was set by so much (by more than a second) since the window before
  uint32_t frequency_hz = 0;  // samples a second and CPU at its end
  std::vector<uint32_t> frequencies_hz;  // all that it had, in order; more than one where load was shed

  // Weights are of WindowUnitOf. Times are nanoseconds since the window's beginning. meta.start_unix_ns and
  // meta.duration_ns are those of the window, meta.whole_host is true.
  ProfileModel cpu;            // of CPU time; with time, thread and state
  ProfileModel suspend_delay;  // of delay between a request to stop and the stop
  ProfileModel jit;            // of compiling
  ProfileModel allocations;    // of memory; innermost frames are types
  ProfileModel waits;          // of time off the CPU; behind the functions a mark of the kind, and who ended the wait

  std::vector<WindowProcess> processes;
  std::vector<WindowPause> pauses;    // in the order of their requests, at most kMaxPauses: then the longest
  std::vector<WindowMethod> methods;  // most time first, at most kMaxMethods
  uint64_t pauses_left_out = 0;       // they count in `processes`
  uint64_t methods_left_out = 0;

  // The account of this window: its counts are differences. Its `processes` are empty.
  Account account;
  uint64_t rss_bytes = 0;  // of the agent, at its end

  static constexpr size_t kMaxPauses = 20'000;
  static constexpr size_t kMaxMethods = 20'000;
  static constexpr size_t kMaxLinks = 65'536;  // beyond these, samples have none
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WINDOW_H_
