#include "profile/runtime_activity.h"

#include <algorithm>
#include <iterator>

namespace clrsampler {
namespace {

// As Linux shows them, cut to 15 bytes: the same in .NET 8, 9 and 10.
constexpr absl::string_view kServerThread = ".NET Server GC";
constexpr absl::string_view kBackgroundThread = ".NET BGC";

constexpr uint64_t kReasonPreparation = 6;  // SUSPEND_FOR_GC_PREP

}  // namespace

RuntimeActivity::Period& RuntimeActivity::Open(RuntimeRoleKind kind, uint32_t tid, MonotonicTime time) {
  Close(kind, tid, time);
  if (periods_.size() >= kMaxPeriods) periods_.pop_front();
  Period period;
  period.begin = time;
  period.tid = tid;
  period.role.kind = kind;
  return periods_.emplace_back(period);
}

void RuntimeActivity::Close(RuntimeRoleKind kind, uint32_t tid, MonotonicTime time) {
  for (auto period = periods_.rbegin(); period != periods_.rend(); ++period) {
    if (period->role.kind != kind || period->end != MonotonicTime::Max() || (tid != 0 && period->tid != tid)) continue;
    period->end = time;
    return;
  }
}

bool RuntimeActivity::IsInBackground(uint32_t tid, absl::string_view comm) const {
  return comm == kBackgroundThread || (background_tid_ != 0 && tid == background_tid_);
}

void RuntimeActivity::Requested(const RuntimeEvent& event) {
  std::erase_if(unanswered_, [&](const Request& one) { return one.tid == event.tid; });
  if (unanswered_.size() >= kMaxRequests) unanswered_.erase(unanswered_.begin());
  unanswered_.push_back({event.tid, event.time});
}

void RuntimeActivity::Answer(const RuntimeEvent& event) {
  auto request = std::ranges::find(unanswered_, event.tid, &Request::tid);
  // A server's threads ask and begin in any order.
  if (request == unanswered_.end() && unanswered_.size() == 1) request = unanswered_.begin();
  if (request == unanswered_.end()) return;
  Open(RuntimeRoleKind::kSuspending, request->tid, request->time).end = event.time;
  stopper_ = request->tid;
  stopped_ = event.time;
  unanswered_.erase(request);
}

void RuntimeActivity::Add(const RuntimeEvent& event, bool sees_returns) {
  main_loop_.Check();
  switch (event.kind) {
    case RuntimeEventKind::kSuspend:
      if (sees_returns) {
        Open(RuntimeRoleKind::kSuspending, event.tid, event.time);
      } else {
        Requested(event);
      }
      for_background_ = event.arguments[0] == kReasonPreparation && IsInBackground(event.tid, event.comm);
      return;
    case RuntimeEventKind::kSuspended:
      Close(RuntimeRoleKind::kSuspending, event.tid, event.time);
      stopper_ = event.tid;
      stopped_ = event.time;
      if (for_background_) Open(RuntimeRoleKind::kInBackground, event.tid, event.time);
      return;
    case RuntimeEventKind::kGcStart:
      if (!sees_returns) Answer(event);
      if (stopper_ != 0) {
        RuntimeRole& role = Open(RuntimeRoleKind::kCollecting, stopper_, stopped_).role;
        role.generation = static_cast<uint32_t>(event.arguments[0]);
        role.blocking = role.generation < 2;  // only the oldest is collected in the background
      }
      return;
    case RuntimeEventKind::kGcEnd:
      if (event.arguments[3] != 0) {
        background_tid_ = event.tid;
        return Close(RuntimeRoleKind::kInBackground, 0, event.time);
      }
      for (auto period = periods_.rbegin(); period != periods_.rend(); ++period) {
        if (period->role.kind != RuntimeRoleKind::kCollecting || period->end != MonotonicTime::Max()) continue;
        // A background collection may collect a younger generation first, in the same pause. Others may end as one of
        // an older generation than they began.
        if (period->role.generation != 2 || event.arguments[1] >= 2) {
          period->role.generation = static_cast<uint32_t>(event.arguments[1]);
          period->role.blocking = true;
        }
        return;
      }
      return;
    case RuntimeEventKind::kRestart:
      std::erase_if(unanswered_, [&](const Request& one) { return one.tid == event.tid; });
      for (auto period = periods_.rbegin(); period != periods_.rend(); ++period) {
        if (period->role.kind != RuntimeRoleKind::kCollecting || period->end != MonotonicTime::Max()) continue;
        period->end = event.time;
        if (period->role.blocking) break;
        // It has begun here, and goes on while the program runs. Its threads are known by their name.
        period->role.kind = RuntimeRoleKind::kInBackground;
        Open(RuntimeRoleKind::kInBackground, 0, event.time);
        break;
      }
      if (for_background_) Close(RuntimeRoleKind::kInBackground, event.tid, event.time);
      for_background_ = false;
      stopper_ = 0;
      return;
    case RuntimeEventKind::kRestarted:
      return;
  }
}

void RuntimeActivity::CompilationBegan(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method) {
  main_loop_.Check();
  if (under_way_.size() >= kMaxPeriods) under_way_.pop_front();
  under_way_.push_back({time, tid, method_info, method});
}

void RuntimeActivity::CompilationEnded(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method,
                                       uint64_t number, std::optional<MonotonicTime> start) {
  main_loop_.Check();
  const auto began = std::find_if(under_way_.rbegin(), under_way_.rend(), [&](const Beginning& beginning) {
    return beginning.tid == tid && beginning.method_info == method_info && beginning.method == method;
  });
  if (began != under_way_.rend()) {
    start = began->time;
    // An exception has ended the calls inside it, at the latest now.
    const auto it = std::prev(began.base());
    under_way_.erase(std::remove_if(it, under_way_.end(), [&](const Beginning& one) { return one.tid == tid; }),
                     under_way_.end());
  }
  if (!start) return;  // its beginning was lost
  if (compilations_.size() >= kMaxPeriods) compilations_.pop_front();
  compilations_.push_back({*start, time, tid, number});
}

std::optional<RuntimeRole> RuntimeActivity::At(uint32_t tid, absl::string_view comm, MonotonicTime time) const {
  std::optional<RuntimeRole> role;
  MonotonicTime since = MonotonicTime::Min();
  for (const CompilationPeriod& period : compilations_) {
    if (period.tid != tid || time < period.begin || time >= period.end) continue;
    if (period.begin < since) continue;  // it comes behind those inside it, since it ends after them
    since = period.begin;
    role.emplace();
    role->kind = RuntimeRoleKind::kCompiling;
    role->compilation = period.number;
  }
  for (const Period& period : periods_) {
    if (time < period.begin || time >= period.end || period.begin < since) continue;
    const bool collects = period.role.kind == RuntimeRoleKind::kCollecting && comm == kServerThread;
    const bool in_background = period.role.kind == RuntimeRoleKind::kInBackground && IsInBackground(tid, comm);
    if (period.tid == tid || collects || in_background) role = period.role;
  }
  return role;
}

void RuntimeActivity::CutPauses() {
  main_loop_.Check();
  unanswered_.clear();
  std::erase_if(periods_, [](const Period& period) { return period.end == MonotonicTime::Max(); });
  stopper_ = 0;
  for_background_ = false;
}

bool RuntimeActivity::IsInPauseSince(MonotonicTime time) const {
  return (stopper_ != 0 && stopped_ <= time) ||
         std::ranges::any_of(unanswered_, [&](const Request& one) { return one.time <= time; }) ||
         std::ranges::any_of(periods_,
                             [&](const Period& one) { return one.end == MonotonicTime::Max() && one.begin <= time; });
}

void RuntimeActivity::CutCompilations() { under_way_.clear(); }

void RuntimeActivity::DropBefore(MonotonicTime time) {
  main_loop_.Check();
  std::erase_if(periods_, [&](const Period& period) { return period.end <= time; });
  std::erase_if(compilations_, [&](const CompilationPeriod& period) { return period.end <= time; });
  std::erase_if(under_way_,
                [&](const Beginning& beginning) { return beginning.time.ns + kMaxCompilationNs <= time.ns; });
}

}  // namespace clrsampler
