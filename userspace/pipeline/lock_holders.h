// Tells which lock each thread of a process waits for and which thread holds it, and which threads wait for each other.
//
// The process runs meanwhile. A reading of a thread counts only if the kernel had that thread off all CPUs from before
// the reading to behind it, with the stack pointer that its frames were taken at. A circle counts only if that holds
// for all its threads at once, and if none of them gives up after some time.
#ifndef CLRSAMPLER_PIPELINE_LOCK_HOLDERS_H_
#define CLRSAMPLER_PIPELINE_LOCK_HOLDERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clr/memory/monitor_reader.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct HeldLock {
  LockWait wait;
  uint32_t holder_tid = 0;  // as LockWait's owner, in our pid namespace; 0: nobody, or a thread that is not there
};

// Main loop only. Borrows the runtime.
class LockHolders {
 public:
  // `proc_root` is "/proc" outside tests.
  LockHolders(std::string proc_root, uint32_t pid, RuntimeMemory& runtime);

  // A thread whose stack was taken.
  void Add(uint32_t tid, uint64_t stack_pointer, const WaitFrames& frames);
  // A thread that may hold locks, though its stack could not be taken. Its number in its own namespace, if it is there.
  std::optional<uint32_t> AddHolder(uint32_t tid);
  // Reads what the threads with stacks wait for.
  void Read();

  // Why `waits` may lack some; empty: it lacks none.
  std::string Trouble() const;

  const std::map<uint32_t, HeldLock>& waits() const { return waits_; }  // by tid
  // As WaitCycles (profile/wait_cycles.h) has them.
  const std::vector<std::vector<uint32_t>>& deadlocks() const { return deadlocks_; }

 private:
  struct Thread {
    uint32_t namespace_tid = 0;
    uint64_t stack_pointer = 0;
    WaitFrames frames;
  };
  // How often a thread that stands where its stack was taken has left a CPU; nullopt: it runs, or stands elsewhere.
  // A thread that ran between two looks has left a CPU in between. So the number is read first before, and last after.
  enum class Look : uint8_t { kBefore, kAfter };
  std::optional<uint64_t> SwitchesOfStanding(uint32_t tid, const Thread& thread, Look look) const;
  std::optional<HeldLock> ReadOne(const Thread& thread);
  bool IsTold(uint32_t tid, const Thread& thread, bool is_last);
  bool Holds(const std::vector<uint32_t>& cycle);

  const std::string proc_root_;
  const uint32_t pid_;
  MonitorReader reader_;
  std::map<uint32_t, Thread> threads_;         // by tid
  std::map<uint32_t, uint32_t> by_namespace_;  // tid of ours by that of the process
  std::map<uint32_t, HeldLock> waits_;
  std::vector<std::vector<uint32_t>> deadlocks_;
  absl::Status listed_;
  size_t restless_ = 0;  // threads that seemed to wait and were never told
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LOCK_HOLDERS_H_
