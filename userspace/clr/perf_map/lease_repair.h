// Undoes what a killed run left switched on, and the guard process that does so at once.
//
// The guard is this program, run again as `clrsampler lease-guard` when the first perf map is about to be switched on.
// A forked copy of the agent would hold its memory and descriptors for the whole run, and could do little between fork
// and exec. It waits for the end of a pipe, which comes when the agent ends, in whatever way; a parent-death signal
// would come for the thread that forked, too, and be lost by setuid. After an orderly end there is nothing to do. A
// guard that is killed as well leaves the work to the next run.
#ifndef CLRSAMPLER_CLR_PERF_MAP_LEASE_REPAIR_H_
#define CLRSAMPLER_CLR_PERF_MAP_LEASE_REPAIR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/perf_map/lease_store.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/file_broker.h"

namespace clrsampler {

struct RepairResult {
  uint64_t repaired = 0;
  std::vector<std::string>
      left;  // a sentence for each lease that is still there, and will be tried again by the next run
};

// Takes each lease whose owner is dead: Disable, if the process still lives and did not switch a map on itself; then
// the files; then the record. Blocks, at most `patience_ns` for each of them. `broker`: as TargetFiles'.
RepairResult RepairDeadLeases(LeaseStore& store, absl::string_view proc_root, const Clock& clock, uint64_t patience_ns,
                              FileBroker* broker = nullptr);

// The write end of the guard's pipe: keep it for as long as leases may be held. One process for the whole run.
class LeaseGuard {
 public:
  // Starts `program` as a guard of this process's leases in `directory`.
  static absl::StatusOr<LeaseGuard> Start(const std::string& program, const std::string& directory);

  // Ok once it is watching; Unavailable until then; another error when it will never be.
  absl::Status Ready();

  LeaseGuard(LeaseGuard&&) = default;
  LeaseGuard& operator=(LeaseGuard&&) = delete;
  // Lets it go, and waits a moment for it when there is nothing for it to do.
  ~LeaseGuard();

 private:
  LeaseGuard(UniqueFd pipe, UniqueFd ready, int pid) : pipe_(std::move(pipe)), ready_(std::move(ready)), pid_(pid) {}
  UniqueFd pipe_;
  UniqueFd ready_;  // its first byte says that it watches
  int pid_;
  bool watching_ = false;
};

inline constexpr char kLeaseGuardVerb[] = "lease-guard";

// The guard itself, with its pipe as standard input: `clrsampler lease-guard DIRECTORY AGENT-PID AGENT-START-TICKS`.
// Returns the exit status.
int RunLeaseGuard(int argc, char** argv);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_LEASE_REPAIR_H_
