// The reports of a .NET process's hooks, put together to pauses: which thread asked for one, how long it took to stop
// the threads, what the pause was for, and when they ran again. Pure: events in, pauses out.
//
// One thread at a time stops and resumes the others; more may have asked and wait for it. Between the two calls:
//
//   reason GC, DiagGCStart, DiagGCEnd             a blocking collection
//   reason GC, DiagGCStart, nothing               a background collection begins; its DiagGCEnd comes outside any pause
//   reason GC, DiagGCStart(2), DiagGCEnd(0 or 1)  the same, and a younger generation is collected first, in the same
//   pause preparation, on a background GC's thread      its second, final pause preparation, on a server GC's thread
//   the number of heaps is changed: no collection reason GC, nothing                            no collection: refused,
//   or it was not needed any more anything else                                 what the reason says
//
// Measured on .NET 8.0.30 to 10.0.14 over 2,038 pauses. DiagGCStart may come on another thread than the one that asked,
// so events belong together by process. An event that fits into none of this is counted, never guessed. Source:
// dotnet/runtime src/coreclr/vm/threadsuspend.h (SUSPEND_REASON), threadsuspend.cpp, src/coreclr/gc/gc.cpp.
#ifndef CLRSAMPLER_PROFILE_SUSPENSION_TRACKER_H_
#define CLRSAMPLER_PROFILE_SUSPENSION_TRACKER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"

namespace clrsampler {

enum class RuntimeEventKind : uint8_t {
  kSuspend,    // arguments[0]: reason
  kSuspended,  // the call returns
  kRestart,    // arguments[0]: a collection is finished, [1]: the suspension had succeeded
  kRestarted,  // the call returns
  kGcStart,    // [0]: generation, [1]: induced
  kGcEnd,      // [0]: index, [1]: generation, [2]: reason, [3]: in the background
};

struct RuntimeEvent {
  MonotonicTime time;
  uint32_t tid = 0;
  std::string comm;  // of the thread
  RuntimeEventKind kind = RuntimeEventKind::kSuspend;
  std::array<uint64_t, 4> arguments{};
};

enum class PauseKind : uint8_t {
  kBlockingGc,
  kBackgroundGcInitial,
  kBackgroundGcFinal,
  kHeapCountChange,
  kNoGc,   // asked for by a collection that then did not take place
  kOther,  // `reason` says what for; "gc" where it is not known whether there was a collection, and which
};
absl::string_view PauseKindText(PauseKind kind);                 // "blocking", "background-initial", ...
absl::string_view SuspendReasonText(uint32_t reason);            // "gc", "gc-preparation", "rejit", ...; "other"
absl::string_view GcReasonText(std::optional<uint32_t> reason);  // "alloc-soh", "induced", ...; "" where none is known

// A collection that has come to its end, in a pause or in the background.
struct GcDone {
  MonotonicTime time;
  uint64_t index = 0;
  uint32_t generation = 0;
  uint32_t reason = 0;
  bool background = false;
};

struct Pause {
  MonotonicTime requested;
  MonotonicTime stopped;  // all threads stand still
  MonotonicTime resume_begun;
  MonotonicTime free_since;  // since when no earlier pause kept this one waiting; may lie before `requested`
  std::optional<MonotonicTime> resumed;  // nullopt: that event was lost, or none was to come
  uint32_t tid = 0;                      // who asked
  std::string comm;
  uint32_t reason = 0;   // SUSPEND_REASON
  uint32_t aborted = 0;  // tries that were given up before, the threads resumed
  PauseKind kind = PauseKind::kOther;
  std::optional<uint32_t> generation;  // of the collection, as far as the pause tells
  std::optional<uint32_t> gc_reason;
  std::optional<uint64_t> gc_index;
  // By GC.Collect. Why a background collection is made is told at its end; at its beginning, only if it is forced.
  bool induced = false;
  std::optional<GcDone> younger;  // kBackgroundGcInitial: what was collected before, in this pause

  uint64_t suspend_ns() const { return stopped.ns - requested.ns; }
  // The part of that for which threads ran that should have stopped. The rest is an earlier pause, nobody's delay.
  uint64_t delay_ns() const { return stopped.ns - std::min(stopped, std::max(requested, free_since)).ns; }
  uint64_t pause_ns() const { return resume_begun.ns - requested.ns; }
};

// A method that was still running when threads were asked to stop, and its part of the time that this took.
struct Culprit {
  std::string method;
  uint32_t tid = 0;
  uint64_t delay_ns = 0;
  uint32_t samples = 0;
};

struct SuspensionCounters {
  uint64_t pauses = 0;
  uint64_t aborted = 0;                   // tries
  uint64_t cut = 0;                       // under way when watching began or ended, or when the process did
  uint64_t unexpected = 0;                // events that nothing fits to
  uint64_t without_gc_end = 0;            // a blocking collection of whose end we were not told
  std::array<uint64_t, 3> collections{};  // by generation
  uint64_t background = 0;                // of these
};

// One process. Events in the order of their times.
class SuspensionTracker {
 public:
  using OnPause = absl::FunctionRef<void(const Pause&)>;
  using OnGc = absl::FunctionRef<void(const GcDone&)>;

  // `sees_resumed`: kRestarted events will come. Without them a pause is complete when its threads are let go.
  explicit SuspensionTracker(bool sees_resumed) : sees_resumed_(sees_resumed) {}

  // Neither kSuspended nor kRestarted will come: a pause then begins with the first that its thread does in it, a
  // collection or the end, and is complete when its threads are let go. So a request's length is an upper bound.
  void WithoutReturns() {
    sees_suspended_ = false;
    sees_resumed_ = false;
  }

  // Calls one of the two for what is complete with this event.
  void Add(const RuntimeEvent& event, OnPause on_pause, OnGc on_gc);
  // The process has ended, or events are missing here: gives out a pause that lacks nothing but its last event, and
  // counts what is cut.
  void Finish(OnPause on_pause);

  // Whether a suspension is under way at this moment: threads are asked to stop, and not all have. nullptr: none.
  const Pause* Suspending() const;
  // The pause in which all threads stand still; nullptr: none.
  const Pause* Stopped() const { return current_ ? &*current_ : nullptr; }
  // When the pause was asked for in which threads stand still at this time, or are let go. nullopt: there is none.
  std::optional<MonotonicTime> PausedSince(MonotonicTime time) const;

  const SuspensionCounters& counters() const { return counters_; }

 private:
  static constexpr size_t kMaxWaiting = 1024;  // threads that ask; a hostile process can't make it more

  void AddSuspend(const RuntimeEvent& event);
  void AddSuspended(const RuntimeEvent& event);
  void AddGcStart(const RuntimeEvent& event);
  void AddGcEnd(const RuntimeEvent& event, OnGc on_gc);
  void AddRestart(const RuntimeEvent& event, OnPause on_pause);
  void AddRestarted(const RuntimeEvent& event, OnPause on_pause);

  // The thread whose request is the oldest: the others wait for it. end(): no thread asks.
  std::map<uint32_t, Pause>::const_iterator FirstAsked() const;
  void Stop(std::map<uint32_t, Pause>::const_iterator asked, MonotonicTime time);
  void StopWithoutReturn(const RuntimeEvent& event);
  bool EndOfCurrent(const GcDone& done);
  void Classify(Pause& pause, const RuntimeEvent& restart);
  void Close(Pause pause, OnPause on_pause);
  void CountUnexpected();

  bool sees_resumed_;
  bool sees_suspended_ = true;
  std::map<uint32_t, Pause> asked_;  // by thread: SuspendEE is called and has not returned
  std::optional<Pause> current_;     // all stand still
  MonotonicTime last_resume_;        // when the last pause began to end
  bool gc_started_ = false, gc_ended_ = false;
  bool collections_seen_ = false;  // any: else they may be hidden from us, and what is not seen may have happened
  absl::flat_hash_map<uint32_t, Pause> resuming_;  // by thread: RestartEE is called and has not returned
  absl::flat_hash_set<uint32_t> aborting_;         // by thread: the same, of a try that is given up
  bool in_background_ = false;                     // a background collection has begun and not ended
  bool joined_ = false;  // a whole SuspendEE was seen: what came before may belong to one that was not
  SuspensionCounters counters_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_SUSPENSION_TRACKER_H_
