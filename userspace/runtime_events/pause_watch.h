// Tells which thread stopped the world of a .NET process, for how long, and which ones delayed it. It puts the events
// of hooks together to pauses (profile/suspension_tracker.h), and blames the threads that were still running between
// the request and the stop.
//
// Blame: the samples of other threads that fall into that time share the delay; each part goes to the method nearest to
// the leaf, managed where there is one. Threads without a managed frame, like those of the compiler, seldom have to be
// waited for: they are blamed only where no other was seen. A delay without a sample in it is nobody's: at 999 Hz those
// are shorter than a few milliseconds.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_PAUSE_WATCH_H_
#define CLRSAMPLER_RUNTIME_EVENTS_PAUSE_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "clrsampler/wire.h"
#include "process/process.h"
#include "profile/suspension_tracker.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// The delay of one sample in the time between request and stop.
struct BlamedStack {
  std::vector<FrameId> frames;  // outermost first
  uint64_t delay_ns = 0;
  uint32_t tid = 0;
};

struct ObservedPause {
  ProcessKey process;
  Pause pause;
  std::vector<Culprit> culprits;  // most delay first
  std::vector<BlamedStack> stacks;
};

// The phase that a thread that runs was a part of.
enum class PausePhase : uint8_t {
  kNone,
  kStopping,  // somebody has asked for a pause, and not all threads stand
  kStopped,   // they do; what runs is the runtime, or threads outside of it
};

struct PauseWatchCounters {
  uint64_t events = 0;
  SuspensionCounters suspensions;  // of all processes

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

// Main loop only. Borrows what it is given.
class PauseWatch {
 public:
  using OnCollection = std::function<void(ProcessKey, const GcDone&)>;
  // `on_collection` is told of each collection that has come to its end; may be empty.
  // `sees_resumed`: as SuspensionTracker.
  PauseWatch(std::function<void(const ObservedPause&)> on_pause, OnCollection on_collection, bool sees_resumed,
             const FrameTable& frames);
  ~PauseWatch();

  // An event of a process has left the ring; its turn (Handle) comes later.
  void Arrived(const wire_runtime_event& event);
  // Events of it are missing here.
  void MissedBeforeArrival(ProcessKey key) {
    asking_.erase(key.tgid);
    unended_.erase(key.tgid);
  }
  // Whether a sample that leaves the ring now may fall between a request and its stop.
  bool MayBeBlamed(uint32_t tgid) const { return asking_.contains(tgid); }
  // Whether all of a pause has arrived but for its end. True at most once for each event that arrives.
  bool LacksOnlyItsEnd(uint32_t tgid) const { return unended_.contains(tgid); }

  // Both in the order of their times.
  // `sees_returns`: kSuspended and kRestarted events come.
  void Handle(const Process& process, const RuntimeEvent& event, bool sees_returns = true);
  // `written` is the stack as the profile has it, with roles and marks; given back in ObservedPause.
  void Sampled(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames,
               std::span<const FrameId> written);
  // As of the events that were handled so far.
  PausePhase PhaseOf(ProcessKey key) const;
  // As SuspensionTracker's.
  std::optional<MonotonicTime> PausedSince(ProcessKey key, MonotonicTime time) const;
  // Those with a pause under way that was asked for by that time.
  std::vector<ProcessKey> PausedProcesses(MonotonicTime time) const;

  // Events are missing here: what is under way is none that can be told.
  void Cut(ProcessKey key);
  // Its program is over. A pause that is under way is given away.
  void End(ProcessKey key);
  void Finish();

  PauseWatchCounters counters() const;

 private:
  struct ProcessState;

  ProcessState& TargetOf(ProcessKey key);
  void Report(ProcessState& state, const Pause& pause);
  // nullopt: there is no managed one.
  std::optional<std::string> ManagedMethodOf(std::span<const FrameId> frames) const;

  const std::function<void(const ObservedPause&)> on_pause_;
  const bool sees_resumed_;
  const OnCollection on_collection_;
  const FrameTable& frames_;
  absl::flat_hash_map<ProcessKey, std::unique_ptr<ProcessState>> states_;
  absl::flat_hash_map<uint32_t, uint32_t> asking_;  // by tgid: threads in SuspendEE
  absl::flat_hash_set<uint32_t> sees_returns_;      // tgids that were told to be suspended
  absl::flat_hash_set<uint32_t> unended_;           // tgids with a pause whose end has not arrived
  PauseWatchCounters counters_;                     // suspensions: of processes that have ended
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_PAUSE_WATCH_H_
