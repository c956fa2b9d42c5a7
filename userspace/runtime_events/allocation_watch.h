// Tells what a .NET process allocates, where and of which types. It puts the events of the collector's probes together
// with their stacks, and with the types of the objects, which are known one event later (include/clrsampler/wire.h).
//
// Bytes are exact where every hit is seen: the collector says how many there were since it last told. Allocations while
// probes were detached (hook_coverage.h) and hits without a stack of their own are told by those with one. Both have
// one factor for each process and stretch of time: a whole run, or a window.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_ALLOCATION_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_ALLOCATION_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

struct AllocationWatchCounters {
  uint64_t records = 0;
  uint64_t without_stack = 0;
  uint64_t types_seen = 0;
  uint64_t types_not_seen = 0;
  uint64_t types_not_named = 0;  // seen, but the runtime's memory has no such type
  uint64_t bytes = 0;            // that were seen

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// An event between its arrival and its turn.
struct AllocationEvent {
  wire_allocation event{};
  uint64_t bytes_since = 0;  // the process's event before
  uint64_t hits_since = 0;
  std::optional<FrameId> type_before;  // of the record at event.time_before
};

// One stack with what was allocated there.
struct ObservedAllocation {
  ProcessKey process;
  std::span<const FrameId> frames;  // outermost first; the last one is the object's type
  MonotonicTime time;
  uint32_t tid = 0;
  uint64_t bytes = 0;  // that it stands for, before the process's factor
};

// Main loop only. Borrows what it is given.
class AllocationWatch {
 public:
  struct Callbacks {
    std::function<void(const ObservedAllocation&)> on_allocation;
    // The frame of a type, by MethodTable; nullopt: there is none.
    std::function<std::optional<FrameId>(const Process&, uint64_t method_table)> type_frame;
  };
  AllocationWatch(Callbacks callbacks, FrameTable& frames) : callbacks_(std::move(callbacks)), frames_(frames) {}

  // An event has left the ring, what the process has had since the one before. To be called for each, before it is
  // known whether it counts.
  struct Since {
    uint64_t hits = 0;
    uint64_t bytes = 0;
  };
  Since Note(ProcessKey key, const wire_allocation& event);
  // It counts; its turn (Handle) comes later. `types_since`: no object from before has a type.
  AllocationEvent Arrived(const Process& process, const wire_allocation& event, Since since, MonotonicTime types_since);

  // Both in the order of their times. `frames` is outermost first.
  void Handle(ProcessKey key, const AllocationEvent& allocation);
  void HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames);

  // In its turn: the thread has ended. Nothing will tell the type of its last object.
  void EndThread(ProcessKey key, uint32_t tid);
  // Gives away what still waits for its type.
  void GiveWaiting(ProcessKey key);
  // Gives bytes that no stack stands for.
  void GiveWithoutStack(ProcessKey key, MonotonicTime time, uint64_t bytes);
  // Its program is over, and all that waited is given away.
  void End(ProcessKey key);

  // So many records wait at most, of all processes. The kernel remembers the last objects of as many threads
  // (allocations_pending of bpf/shared_maps.bpf.h).
  static constexpr size_t kMostWaiting = 8192;

  // The sums of a process since the last call.
  struct Stretch {
    uint64_t hits = 0;   // of events that count
    uint64_t bytes = 0;  // of these, without the share of records that still wait for their type
    double factor = 1;   // what all its stacks must be multiplied with so that they come to `bytes`
    bool has_stacks = false;
  };
  // nullopt: no stack was given for what was allocated. It stays for the next call, unless the process `ends`.
  std::optional<Stretch> TakeStretch(ProcessKey key, bool ends = false);
  bool Knows(ProcessKey key) const { return states_.contains(key); }
  // Those that events have come from.
  std::vector<ProcessKey> processes() const;
  const AllocationWatchCounters& counters() const { return counters_; }

 private:
  // A record that waits for its stack, and for the type of its object.
  struct Waiting {
    MonotonicTime time;
    uint64_t bytes = 0;  // that it stands for
    std::optional<FrameId> type;
    std::vector<FrameId> frames;
    bool type_known = false;  // or it is known that it is not to be had
  };
  struct ProcessState {
    uint64_t last_bytes = 0, last_hits = 0;  // of the kernel's sums
    // Sums of the stretch at hand:
    uint64_t seen_hits = 0;
    uint64_t seen_bytes = 0;   // of events that count, with what was summed up between them
    uint64_t given_bytes = 0;  // of stacks

    std::map<uint32_t, Waiting> waiting;  // by thread
  };

  void GiveThread(ProcessKey key, ProcessState& state, std::map<uint32_t, Waiting>::iterator thread);
  void Give(ProcessKey key, ProcessState& state, uint32_t tid, Waiting& waiting);
  // All that wait of the process that most wait of.
  void MakeRoom();
  FrameId MarkFrame(const char* text);

  Callbacks callbacks_;
  FrameTable& frames_;
  absl::flat_hash_map<ProcessKey, ProcessState> states_;
  size_t waiting_ = 0;  // records, of all processes
  AllocationWatchCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_ALLOCATION_WATCH_H_
