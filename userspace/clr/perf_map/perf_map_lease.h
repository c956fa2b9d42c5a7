// Switches perf maps on in running .NET 8+ processes, over their diagnostics sockets, and off again whatever happens.
//
// "Everything that we switched on we switch off and delete." Before the request is sent, a lease lies on disk
// (lease_store.h) and a guard process watches us (lease_repair.h). So SIGKILL at any moment leaves nothing behind that
// is not repaired, within moments by the guard, or by the next run. A map that the target's user or another tool has is
// never touched (perf_map_target.h), and neither is a runtime that is still starting. A process loses a map that grows
// beyond a size or is on for longer than a time. One limit can't be lifted: the protocol has no owner, so if another
// tool switches the same map on while ours is, our Disable ends both.
//
// How to drive it: Start once; Poll at each iteration of the loop; Finish when the last name has been read. Each
// process goes through
//   starting -> asking (ProcessInfo2) -> disabling -> enabling -> on -> ending -> settled
// by steps that never wait for a target: Poll spends at most kPollBudgetNs in poll(2), which saves an iteration per
// step where a runtime answers at once. Main loop only.
#ifndef CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_H_
#define CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clr/perf_map/lease_repair.h"
#include "clr/perf_map/lease_store.h"
#include "os/clock.h"
#include "process/file_broker.h"
#include "process/process.h"
#include "process/process_table.h"
#include "status/notices.h"
#include "status/thread_checker.h"

namespace clrsampler {

inline constexpr uint64_t kDefaultPerfMapTimeNs = 3'600'000'000'000;

struct PerfMapLeaseOptions {
  bool everywhere = false;           // --enable-perf-map: in every .NET process of the run; else in none
  uint64_t cap_bytes = 64ull << 20;  // some 500,000 methods; the largest services have a tenth of it
  uint64_t cap_ns = kDefaultPerfMapTimeNs;
  std::string directory = kDefaultLeaseDirectory;
  std::string proc_root = "/proc";
  std::string guard_program = "/proc/self/exe";  // empty: no guard (tests)
  // Started before, by a program that can start none any more; else one is started when it is needed.
  std::shared_ptr<LeaseGuard> guard = nullptr;
};

struct PerfMapLeaseCounters {
  uint64_t enabled = 0;
  uint64_t theirs = 0;    // left alone: somebody else has a map there
  uint64_t refused = 0;   // left alone or given up, with a notice
  uint64_t ended = 0;     // switched off, files removed
  uint64_t over_cap = 0;  // of these, before the end of the run: they grew too large or were on for too long
  uint64_t left = 0;      // could not be ended; the guard or the next run goes on
  uint64_t repaired = 0;  // of earlier runs

  std::map<std::string, uint64_t> ByName() const;  // for the account
};

class PerfMapLeases {
 public:
  // Borrows all but the options. `broker`: as TargetFiles', for processes of earlier runs.
  PerfMapLeases(PerfMapLeaseOptions options, const Clock& clock, Notices& notices, FileBroker* broker = nullptr);
  ~PerfMapLeases();  // Finish

  // Repairs what killed runs left. An error when `everywhere` is asked for and leases can't be kept.
  absl::Status Start();

  // This process shall have a perf map, as soon as its runtime is up. Does nothing without `everywhere`: nothing is
  // written into a process unasked. Cheap, and repeated calls do nothing.
  void Wanted(const Process& process);

  // A step for each process, and a look for new ones.
  void Poll(ProcessTable& table, MonotonicTime now);
  void Step(MonotonicTime now);

  // Ends all leases. Waits for the runtimes, altogether at most kFinishNs; what does not end in time is left to the
  // guard.
  void Finish();

  // Whether a map that we switched on is being written, or will be in a moment: samples may wait for it.
  bool IsOn(ProcessKey key) const;
  bool IsComing(ProcessKey key) const;
  const PerfMapLeaseCounters& counters() const { return counters_; }

  static constexpr uint64_t kPollBudgetNs = 2'000'000;
  static constexpr uint64_t kFinishNs = 3'000'000'000;

 private:
  struct ProcessState;
  enum class Stage : uint8_t;

  bool StepProcess(ProcessState& state, MonotonicTime now);
  bool StepStarting(ProcessState& state, MonotonicTime now);
  bool StepAsking(ProcessState& state, MonotonicTime now);
  bool StepDisabling(ProcessState& state, MonotonicTime now);
  bool StepEnabling(ProcessState& state, MonotonicTime now);
  bool StepOn(ProcessState& state, MonotonicTime now);
  bool StepEnding(ProcessState& state, MonotonicTime now);
  absl::Status StartGuard();
  absl::Status Acquire(ProcessState& state);
  absl::Status Send(ProcessState& state, std::string request, uint64_t patience_ns, MonotonicTime now);
  bool WaitForReplies(uint64_t ns);
  bool IsAlive(const ProcessState& state) const;
  void BeginEnding(ProcessState& state);
  void RemoveAll(ProcessState& state);
  bool Settle(ProcessState& state);
  bool Refuse(ProcessState& state, absl::string_view reason, absl::string_view hint = "");
  bool Later(ProcessState& state, MonotonicTime now);

  PerfMapLeaseOptions options_;
  const Clock& clock_;
  Notices& notices_;
  FileBroker* const broker_;
  std::optional<LeaseStore> store_;
  std::shared_ptr<LeaseGuard> guard_;
  absl::flat_hash_map<ProcessKey, std::unique_ptr<ProcessState>> states_;
  absl::flat_hash_map<ProcessKey, uint64_t> looked_at_;  // mappings' generation, of processes without compiled code
  PerfMapLeaseCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_LEASE_H_
