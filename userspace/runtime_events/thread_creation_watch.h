// Tells who makes threads: puts the kernel's event together with the stack of the thread that made the new one
// (include/clrsampler/wire.h).
//
// Each creation is told once. Where its stack was not taken, or was lost, it is told without one.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_THREAD_CREATION_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_THREAD_CREATION_WATCH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/process_key.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

struct ThreadCreation {
  MonotonicTime time;
  uint32_t creator = 0, created = 0;  // tids
  std::vector<std::string> stack;     // frames of the creator, outermost first; empty: it was not taken
  // The innermost managed method on it that is not of System.Threading; empty: the runtime or native code made it.
  std::string method;
};

// Main loop only. Borrows what it is given.
class ThreadCreationWatch {
 public:
  using Receiver = std::function<void(const ThreadCreation&)>;
  ThreadCreationWatch(Receiver receiver, const FrameTable& frames) : receiver_(std::move(receiver)), frames_(frames) {}

  // Both in the order of their times. `frames` is outermost first.
  void Handle(ProcessKey key, const wire_thread& thread);
  void HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames);
  // All up to this time has been handled: stacks that are still missing will not come.
  void Reach(MonotonicTime time);

 private:
  struct Waiting {
    MonotonicTime time;
    uint32_t created = 0;
  };
  struct ProcessState {
    absl::flat_hash_map<uint32_t, Waiting> waiting;  // for its stack, by the thread that makes one
  };

  void Give(uint32_t creator, const Waiting& waiting, std::span<const FrameId> frames);

  Receiver receiver_;
  const FrameTable& frames_;
  absl::flat_hash_map<ProcessKey, ProcessState> states_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_THREAD_CREATION_WATCH_H_
