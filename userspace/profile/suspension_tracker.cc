#include "profile/suspension_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace clrsampler {
namespace {

// SUSPEND_REASON, src/coreclr/vm/threadsuspend.h.
constexpr uint32_t kForGc = 1, kForGcPreparation = 6;
// A thread lets the others go in less than a millisecond of its CPU time. If it takes longer than this, the event of
// its end is lost.
constexpr uint64_t kMaxResumeNs = kSecondNs;
constexpr absl::string_view kReasons[] = {"other",    "gc",       "appdomain-shutdown", "rejit",
                                          "shutdown", "debugger", "gc-preparation",     "debugger-sweep",
                                          "profiler"};

// gc_reason, src/coreclr/gc/gc.h. Empty: it has no such collection in .NET 8 to 10.
constexpr absl::string_view kGcReasons[] = {"alloc-soh",          "induced",
                                            "low-memory",         "empty",
                                            "alloc-loh",          "out-of-space-soh",
                                            "out-of-space-loh",   "induced-noforce",
                                            "gcstress",           "low-memory-blocking",
                                            "induced-compacting", "low-memory-host",
                                            "pm-full-gc",         "low-memory-host-blocking",
                                            "bgc-tuning-soh",     "bgc-tuning-loh",
                                            "bgc-stepping",       "induced-aggressive"};

// GC.Collect in its modes.
bool IsInduced(uint32_t reason) { return reason == 1 || reason == 7 || reason == 10 || reason == 17; }

// The names that the runtime gives its threads. They are equal in 8, 9 and 10, and in all collectors. The kernel keeps
// 15 bytes. In programs of NativeAOT they have no names of their own.
bool IsBackgroundGcThread(absl::string_view comm) { return comm == ".NET BGC"; }
bool IsServerGcThread(absl::string_view comm) { return absl::StartsWith(comm, ".NET Server GC"); }

}  // namespace

absl::string_view PauseKindText(PauseKind kind) {
  switch (kind) {
    case PauseKind::kBlockingGc:
      return "blocking";
    case PauseKind::kBackgroundGcInitial:
      return "background-initial";
    case PauseKind::kBackgroundGcFinal:
      return "background-final";
    case PauseKind::kHeapCountChange:
      return "heap-count-change";
    case PauseKind::kNoGc:
      return "no-gc";
    case PauseKind::kOther:
      return "other";
  }
  return "";
}

absl::string_view SuspendReasonText(uint32_t reason) {
  return reason < std::size(kReasons) ? kReasons[reason] : "other";
}

absl::string_view GcReasonText(std::optional<uint32_t> reason) {
  if (!reason) return "";
  return *reason < std::size(kGcReasons) ? kGcReasons[*reason] : "other";
}

std::map<uint32_t, Pause>::const_iterator SuspensionTracker::FirstAsked() const {
  return std::min_element(asked_.begin(), asked_.end(),
                          [](const auto& a, const auto& b) { return a.second.requested < b.second.requested; });
}

const Pause* SuspensionTracker::Suspending() const {
  if (current_ || asked_.empty()) return nullptr;
  return &FirstAsked()->second;
}

std::optional<MonotonicTime> SuspensionTracker::PausedSince(MonotonicTime time) const {
  if (current_) return current_->requested;
  std::optional<MonotonicTime> since;
  for (const auto& [tid, pause] : resuming_) {
    if (time.ns <= pause.resume_begun.ns + kMaxResumeNs) since = std::max(since, std::optional(pause.requested));
  }
  return since;
}

// All threads stand still for the thread that asked.
void SuspensionTracker::Stop(std::map<uint32_t, Pause>::const_iterator asked, MonotonicTime time) {
  joined_ = true;
  if (current_) ++counters_.unexpected;  // two that both stopped the world: the end of the first was lost
  current_ = asked->second;
  current_->stopped = time;
  current_->free_since = last_resume_;
  asked_.erase(asked);
  gc_started_ = gc_ended_ = false;
}

void SuspensionTracker::CountUnexpected() { ++(joined_ ? counters_.unexpected : counters_.cut); }

void SuspensionTracker::Add(const RuntimeEvent& event, OnPause on_pause, OnGc on_gc) {
  if (!sees_suspended_ && !current_) StopWithoutReturn(event);
  switch (event.kind) {
    case RuntimeEventKind::kSuspend:
      return AddSuspend(event);
    case RuntimeEventKind::kSuspended:
      return AddSuspended(event);
    case RuntimeEventKind::kGcStart:
      return AddGcStart(event);
    case RuntimeEventKind::kGcEnd:
      return AddGcEnd(event, on_gc);
    case RuntimeEventKind::kRestart:
      return AddRestart(event, on_pause);
    case RuntimeEventKind::kRestarted:
      return AddRestarted(event, on_pause);
  }
}

// If no event reports that all stand still, the first event of a pause does.
void SuspensionTracker::StopWithoutReturn(const RuntimeEvent& event) {
  // With a server collector, the threads that collect are not the one that asked.
  if (event.kind == RuntimeEventKind::kGcStart) {
    if (const auto first = FirstAsked(); first != asked_.end()) Stop(first, event.time);
  } else if (event.kind == RuntimeEventKind::kRestart) {
    if (const auto asked = asked_.find(event.tid); asked != asked_.end()) Stop(asked, event.time);
  }
}

void SuspensionTracker::AddSuspend(const RuntimeEvent& event) {
  if (std::max({asked_.size(), resuming_.size(), aborting_.size()}) >= kMaxWaiting) {
    counters_.cut += asked_.size() + resuming_.size();
    asked_.clear();
    resuming_.clear();
    aborting_.clear();
  }
  Pause pause;
  pause.requested = event.time;
  pause.tid = event.tid;
  pause.comm = event.comm;
  pause.reason = static_cast<uint32_t>(event.arguments[0]);
  // A call that never returned: the thread ended, or an event was lost.
  if (!asked_.insert_or_assign(event.tid, std::move(pause)).second) ++counters_.unexpected;
}

void SuspensionTracker::AddSuspended(const RuntimeEvent& event) {
  const auto asked = asked_.find(event.tid);
  if (asked == asked_.end()) return CountUnexpected();
  Stop(asked, event.time);
}

void SuspensionTracker::AddGcStart(const RuntimeEvent& event) {
  collections_seen_ = true;
  if (!current_ || gc_started_) return CountUnexpected();
  gc_started_ = true;
  current_->generation = static_cast<uint32_t>(event.arguments[0]);
  current_->induced = event.arguments[1] != 0;
}

void SuspensionTracker::AddGcEnd(const RuntimeEvent& event, OnGc on_gc) {
  collections_seen_ = true;
  const GcDone done{event.time, event.arguments[0], static_cast<uint32_t>(event.arguments[1]),
                    static_cast<uint32_t>(event.arguments[2]), event.arguments[3] != 0};
  if (done.background) {
    ++counters_.background;
    in_background_ = false;
  } else if (!EndOfCurrent(done)) {
    return CountUnexpected();
  }
  if (done.generation < counters_.collections.size()) ++counters_.collections[done.generation];
  on_gc(done);
}

// The end of a background collection comes while threads run, or in a pause that is not its own. Any other end belongs
// to the pause of this moment. False: it fits none.
bool SuspensionTracker::EndOfCurrent(const GcDone& done) {
  if (!current_ || gc_ended_ || current_->younger) return false;
  if (gc_started_ && current_->generation == 2 && done.generation < 2) {
    // A generation becomes no lower one: this is another collection, in front of the background one that is meant.
    current_->younger = done;
    return true;
  }
  gc_ended_ = true;
  current_->generation = done.generation;  // it may have become a higher one since it began
  current_->gc_reason = done.reason;
  current_->gc_index = done.index;
  // DiagGCStart calls only plain GC.Collect induced. A collection that compacts, or finds that it is not worth while,
  // is not called so.
  current_->induced |= IsInduced(done.reason);
  return true;
}

void SuspensionTracker::AddRestart(const RuntimeEvent& event, OnPause on_pause) {
  if (const auto asked = asked_.find(event.tid); asked != asked_.end()) {
    // SuspendEE calls this itself: it lets the threads go and tries again.
    if (event.arguments[1] != 0) return CountUnexpected();
    ++asked->second.aborted;
    ++counters_.aborted;
    if (sees_resumed_) aborting_.insert(event.tid);
    return;
  }
  if (!current_ || current_->tid != event.tid) {
    // The pause was under way when watching began. Another thread had to wait for it until this moment.
    if (!current_ && event.arguments[1] != 0) last_resume_ = event.time;
    return CountUnexpected();
  }
  current_->resume_begun = last_resume_ = event.time;
  Classify(*current_, event);
  Pause done = *std::exchange(current_, std::nullopt);
  if (!sees_resumed_) return Close(std::move(done), on_pause);
  // No event reported that this pause was resumed: that event was lost.
  if (!resuming_.insert_or_assign(event.tid, std::move(done)).second) ++counters_.cut;
}

// The purpose of a pause, as its threads are let go.
void SuspensionTracker::Classify(Pause& pause, const RuntimeEvent& restart) {
  if (pause.reason == kForGc) {
    const bool begins_background = gc_started_ && !gc_ended_;
    pause.kind = gc_ended_           ? PauseKind::kBlockingGc
                 : begins_background ? PauseKind::kBackgroundGcInitial
                 : collections_seen_ ? PauseKind::kNoGc
                                     : PauseKind::kOther;
    // Only generation 2 is collected in the background.
    if (begins_background && pause.generation != 2) {
      ++counters_.without_gc_end;
      pause.kind = PauseKind::kBlockingGc;
    }
    in_background_ |= pause.kind == PauseKind::kBackgroundGcInitial;
    return;
  }
  if (pause.reason != kForGcPreparation) return;
  // The name of its thread is missing. The collection goes on, which a change of the heaps' number does not say.
  const bool goes_on = in_background_ && restart.arguments[0] == 0 && !gc_started_ && !IsServerGcThread(pause.comm);
  if (IsBackgroundGcThread(pause.comm) || goes_on) {
    pause.kind = PauseKind::kBackgroundGcFinal;
    pause.generation = 2;
  } else if (IsServerGcThread(pause.comm) && !gc_started_) {
    pause.kind = PauseKind::kHeapCountChange;
  }
}

void SuspensionTracker::AddRestarted(const RuntimeEvent& event, OnPause on_pause) {
  if (aborting_.erase(event.tid) > 0) return;
  const auto resuming = resuming_.find(event.tid);
  if (resuming == resuming_.end()) return CountUnexpected();
  Pause pause = std::move(resuming->second);
  resuming_.erase(resuming);
  pause.resumed = event.time;
  Close(std::move(pause), on_pause);
}

void SuspensionTracker::Finish(OnPause on_pause) {
  for (auto& [tid, pause] : resuming_) Close(std::move(pause), on_pause);
  counters_.cut += asked_.size() + (current_ ? 1 : 0);
  resuming_.clear();
  asked_.clear();
  aborting_.clear();
  current_.reset();
  joined_ = in_background_ = false;
}

void SuspensionTracker::Close(Pause pause, OnPause on_pause) {
  ++counters_.pauses;
  on_pause(pause);
}

}  // namespace clrsampler
