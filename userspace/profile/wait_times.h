// How long threads ran and waited, by what for.
#ifndef CLRSAMPLER_PROFILE_WAIT_TIMES_H_
#define CLRSAMPLER_PROFILE_WAIT_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "absl/strings/string_view.h"
#include "profile/wait_kind.h"

namespace clrsampler {

// The times of all threads together, nanoseconds. Running and waiting come to the threads' lives.
struct WaitTimes {
  uint64_t running_ns = 0;
  uint64_t short_ns = 0;   // waits below the threshold, of whatever kind
  uint64_t untold_ns = 0;  // longer ones for which no wait that was told stands
  std::array<uint64_t, kWaitKindCount> by_kind{};

  uint64_t waited_ns() const { return std::accumulate(by_kind.begin(), by_kind.end(), short_ns + untold_ns); }
  uint64_t of(WaitKind kind) const { return by_kind[static_cast<size_t>(kind)]; }

  friend bool operator==(const WaitTimes&, const WaitTimes&) = default;
};

// The waits that may be somebody's trouble, also where nothing runs.
inline uint64_t WaitedForThreadsNs(const WaitTimes& waits) {
  return waits.of(WaitKind::kMonitor) + waits.of(WaitKind::kLock) + waits.of(WaitKind::kTaskWait) +
         waits.of(WaitKind::kSemaphore) + waits.of(WaitKind::kEvent);
}

inline void AddTimes(WaitTimes& sum, const WaitTimes& more) {
  sum.running_ns += more.running_ns;
  sum.short_ns += more.short_ns;
  sum.untold_ns += more.untold_ns;
  for (size_t i = 0; i < sum.by_kind.size(); ++i) sum.by_kind[i] += more.by_kind[i];
}

inline constexpr absl::string_view kRunningState = "running";

// Calls visit(text, reference to the nanoseconds) for each state; the texts are those of series and of the API.
template <typename Times, typename Visit>
void VisitWaitStates(Times& times, Visit visit) {
  visit(kRunningState, times.running_ns);
  for (int kind = 0; kind < kWaitKindCount; ++kind) {
    visit(WaitKindText(static_cast<WaitKind>(kind)), times.by_kind[static_cast<size_t>(kind)]);
  }
  visit(absl::string_view("short"), times.short_ns);
  visit(absl::string_view("not told"), times.untold_ns);
}
inline constexpr size_t kWaitStateCount = kWaitKindCount + 3;

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WAIT_TIMES_H_
