// The work of a thread of a .NET process for the runtime at a given time: collected garbage, waited for threads to
// stop, compiled a method. The runtime's own code has no symbols; the hooks know what it is at. Pure.
//
// Events come in as they arrive, questions about a moment come later (the sample has waited meanwhile), so that what
// became of a collection or a compilation is mostly known by then. Nothing is said that is not certain:
//  - a blocking collection is that of the thread that stopped the others, and of the server collector's threads, for as
//    long as these stand still;
//  - a background collection is that of the threads which the runtime names so, and of the one that has ended such a
//    collection before, from its DiagGCStart to its DiagGCEnd;
//  - a compilation is one only when it has ended: those that an exception ends are never told of.
#ifndef CLRSAMPLER_PROFILE_RUNTIME_ACTIVITY_H_
#define CLRSAMPLER_PROFILE_RUNTIME_ACTIVITY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "profile/suspension_tracker.h"
#include "status/thread_checker.h"

namespace clrsampler {

enum class RuntimeRoleKind : uint8_t {
  kSuspending,    // asks the other threads to stop, and waits for them
  kCollecting,    // collects a generation
  kInBackground,  // the same while the program runs, or in the pauses that this takes
  kCompiling,
};

struct RuntimeRole {
  RuntimeRoleKind kind = RuntimeRoleKind::kSuspending;
  uint32_t generation = 0;   // kCollecting
  bool blocking = false;     // kCollecting: it has ended in the pause in which it began
  uint64_t compilation = 0;  // kCompiling: the number that CompilationEnded was given
};

// One process. Main loop only.
class RuntimeActivity {
 public:
  // Adds events from kSuspend to kGcEnd, as they arrive. Where no return is seen (kSuspended), threads stand still from
  // the beginning of the collection at the latest; a pause without one is nothing that is known.
  void Add(const RuntimeEvent& event, bool sees_returns = true);
  // `method_info` and `method` (wire_compiled) are the same at both ends.
  void CompilationBegan(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method);
  // `number` is the caller's, and not 0. `start` is what counts where the beginning was not seen.
  void CompilationEnded(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method, uint64_t number,
                        std::optional<MonotonicTime> start = std::nullopt);

  // The innermost of what the thread did; nullopt: nothing that is known of. `comm` is the thread's name.
  std::optional<RuntimeRole> At(uint32_t tid, absl::string_view comm, MonotonicTime time) const;

  // Events are missing here: of what is under way, nothing is known any more.
  void CutPauses();
  void CutCompilations();
  void Cut() {
    CutPauses();
    CutCompilations();
  }
  // Whether anything of pauses that began by that time is under way, as far as is known.
  bool IsInPauseSince(MonotonicTime time) const;
  // No question about an earlier time will come.
  void DropBefore(MonotonicTime time);
  bool empty() const { return periods_.empty() && compilations_.empty() && under_way_.empty(); }

  // The most periods of each kind, whatever a hostile process does: each question looks at all. 100 ms of 40,000
  // compilations a second.
  static constexpr size_t kMaxPeriods = 4096;
  // Threads that ask at one time; a hostile process can't make it more.
  static constexpr size_t kMaxRequests = 64;
  // How much is kept: at most kMaxPeriods of three kinds, and kMaxRequests.
  size_t held() const { return periods_.size() + under_way_.size() + compilations_.size() + unanswered_.size(); }

 private:
  // An end that has not come by then will not: the longest that a sample waits.
  static constexpr uint64_t kMaxCompilationNs = 2'000'000'000;

  // A period of one thread, or of all that the runtime has for the purpose.
  struct Period {
    MonotonicTime begin;
    MonotonicTime end = MonotonicTime::Max();  // Max: it has not ended
    uint32_t tid = 0;
    RuntimeRole role;
  };
  struct Beginning {
    MonotonicTime time;
    uint32_t tid = 0;
    uint64_t method_info = 0;
    uint64_t method = 0;
  };
  struct CompilationPeriod {
    MonotonicTime begin;
    MonotonicTime end;
    uint32_t tid = 0;
    uint64_t number = 0;
  };

  struct Request {
    uint32_t tid = 0;
    MonotonicTime time;
  };

  void Requested(const RuntimeEvent& event);
  // The request of the collection that begins with this event, which is answered now.
  void Answer(const RuntimeEvent& event);
  // Ends an earlier one of that kind and thread whose end was lost.
  Period& Open(RuntimeRoleKind kind, uint32_t tid, MonotonicTime time);
  void Close(RuntimeRoleKind kind, uint32_t tid, MonotonicTime time);
  // The thread collects in the background when something does.
  bool IsInBackground(uint32_t tid, absl::string_view comm) const;

  std::deque<Period> periods_;                  // in the order of their beginnings
  std::deque<Beginning> under_way_;             // of compilations, in their order
  std::deque<CompilationPeriod> compilations_;  // that have ended, in the order of their ends
  std::vector<Request> unanswered_;             // where no return is seen, one a thread
  uint32_t stopper_ = 0;                        // the thread that has stopped the others; 0: they run
  MonotonicTime stopped_;                       // since then
  uint32_t background_tid_ = 0;  // it has ended a background collection; 0: none has. For runtimes that name no threads
  bool for_background_ = false;  // it did so for a background collection that is under way
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_RUNTIME_ACTIVITY_H_
