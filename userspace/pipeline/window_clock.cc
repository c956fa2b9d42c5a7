#include "pipeline/window_clock.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace clrsampler {

void WindowClock::Begin(MonotonicTime now, uint64_t now_unix_ns) {
  main_loop_.Check();
  begin_ = now;
  begin_unix_ns_ = now_unix_ns;
}

MonotonicTime WindowClock::End() const {
  uint64_t length_ns = lengths_.length_ns;
  if (lengths_.cuts != nullptr) {
    // A cut that is asked for too early in the window comes after its shortest length.
    const std::optional<uint64_t> wish = lengths_.cuts->NextAfter(begin_unix_ns_);
    if (wish) length_ns = std::clamp(*wish - begin_unix_ns_, lengths_.shortest_ns, lengths_.length_ns);
  }
  return {begin_.ns + length_ns};
}

WindowTimes WindowClock::Close(MonotonicTime end, uint64_t unix_ns_of_end) {
  main_loop_.Check();
  WindowTimes times;
  times.number = ++number_;
  times.begin_unix_ns = begin_unix_ns_;
  times.length_ns = end.ns - begin_.ns;
  times.clock_jump_ns = jump_ns_;

  const uint64_t end_unix_ns = begin_unix_ns_ + times.length_ns;
  const auto off_ns = static_cast<int64_t>(unix_ns_of_end - end_unix_ns);
  const bool jumped = std::abs(off_ns) > kJumpNs;
  if (jumped && lengths_.cuts != nullptr) lengths_.cuts->Clear();  // they were of the other clock
  constexpr int64_t kSlewNs{Window::kMaxSlewNs};
  // No window ends before it begins, however short it is.
  const auto back_ns = static_cast<int64_t>(std::min(times.length_ns, Window::kMaxSlewNs));
  const int64_t slew_ns = jumped ? 0 : std::clamp(off_ns, -back_ns, kSlewNs);
  times.end_unix_ns = end_unix_ns + static_cast<uint64_t>(slew_ns);
  jump_ns_ = jumped ? off_ns : 0;
  begin_unix_ns_ = jumped ? unix_ns_of_end : times.end_unix_ns;
  begin_ = end;
  return times;
}

}  // namespace clrsampler
