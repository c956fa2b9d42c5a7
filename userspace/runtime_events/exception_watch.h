// Tells which exceptions .NET processes throw, where and of which types. It puts the events of the runtime's probes
// together with their stacks (include/clrsampler/wire.h).
//
// Each exception that is seen counts once. One that a handler throws again (`throw;`) is no new one, and is counted
// beside them. The process's factor tells of exceptions that could not be sent, and of those that were thrown while
// probes were detached.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_EXCEPTION_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_EXCEPTION_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

struct ExceptionWatchCounters {
  uint64_t thrown = 0;  // and seen
  uint64_t rethrown = 0;
  uint64_t not_sent = 0;  // of either: hits that the kernel counted only
  uint64_t without_stack = 0;
  uint64_t types_not_seen = 0;   // of `thrown`
  uint64_t types_not_named = 0;  // of either: seen, but the runtime's memory has no such type

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// An event between its arrival and its turn.
struct ExceptionEvent {
  wire_exception event{};
  uint64_t not_sent = 0;  // of the process since the event before
  std::optional<FrameId> type;
};

// One exception with the stack of the method that threw it.
struct ObservedException {
  ProcessKey process;
  std::span<const FrameId> frames;  // outermost first; the last one is the exception's type
  MonotonicTime time;
  uint32_t tid = 0;
};

// Main loop only. Borrows what it is given.
class ExceptionWatch {
 public:
  struct Callbacks {
    std::function<void(const ObservedException&)> on_exception;
    // The frame of a type, by MethodTable; nullopt: there is none.
    std::function<std::optional<FrameId>(const Process&, uint64_t method_table)> type_frame;
  };
  ExceptionWatch(Callbacks callbacks, FrameTable& frames) : callbacks_(std::move(callbacks)), frames_(frames) {}

  // An event that counts has left the ring; its turn (Handle) comes later.
  ExceptionEvent Arrived(const Process& process, const wire_exception& event, uint64_t not_sent);

  // Both in the order of their times. `frames` is outermost first.
  void Handle(ProcessKey key, const ExceptionEvent& exception);
  void HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames);

  // Behind the last event of a process: so many more were only counted.
  void NoteNotSent(ProcessKey key, uint64_t count);

  // Whether an exception of it was handled.
  bool Knows(ProcessKey key) const { return states_.contains(key); }
  // Gives away what still waits for its stack.
  void GiveWaiting(ProcessKey key);
  // Its program is over, and all that waited is given away.
  void End(ProcessKey key) { states_.erase(key); }

  // The factor by which all exceptions of a process must be multiplied so that they come to what was thrown while
  // probes were there.
  double FactorOf(ProcessKey key) const;
  // The exceptions of the process: that were seen, and that were sent or not.
  uint64_t ThrownOf(ProcessKey key) const;
  uint64_t HitsOf(ProcessKey key) const;
  // By type, those of the process that were thrown again.
  absl::flat_hash_map<FrameId, uint64_t> RethrownOf(ProcessKey key) const;
  std::vector<ProcessKey> processes() const;
  const ExceptionWatchCounters& counters() const { return counters_; }

 private:
  struct Waiting {
    MonotonicTime time;
    FrameId type = 0;
  };
  struct ProcessState {
    uint64_t thrown = 0, not_sent = 0;
    absl::flat_hash_map<FrameId, uint64_t> rethrown;
    std::map<uint32_t, Waiting> waiting;  // for its stack, by thread
  };

  // `frames`: without the type; empty: its stack was not taken.
  void Give(ProcessKey key, uint32_t tid, const Waiting& waiting, std::span<const FrameId> frames);
  FrameId MarkFrame(const char* text);
  bool IsOfRuntime(FrameId frame) const;

  Callbacks callbacks_;
  FrameTable& frames_;
  absl::flat_hash_map<ProcessKey, ProcessState> states_;
  std::vector<FrameId> stack_;
  ExceptionWatchCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_EXCEPTION_WATCH_H_
