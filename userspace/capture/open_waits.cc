#include "capture/open_waits.h"

#include <algorithm>

namespace clrsampler {
namespace {

// The fields are the kernel's 64 bits, another type than ours on some machines.
void TakeOff(__u64& from, __u64& total, uint64_t& left) {
  const uint64_t part = std::min<uint64_t>(from, left);
  from -= part;
  total -= std::min<uint64_t>(total, part);
  left -= part;
}

}  // namespace

bool TakeBack(wire_open_wait& open, MonotonicTime time) {
  wire_wait& wait = open.wait;
  if (wait.seen_ns >= time.ns) return false;
  uint64_t left = wait.header.time_ns - std::min<uint64_t>(time.ns, wait.header.time_ns);
  wait.header.time_ns = time.ns;
  const uint64_t blocked = wait.blocked_ns, runnable = wait.runnable_ns;
  // Parts that were short when they were looked at count with their wait, once that has ended.
  if (blocked != 0 && wait.blocked_weight == 0) wait.total_short_ns -= std::min<uint64_t>(wait.total_short_ns, blocked);
  if (runnable != 0 && wait.runnable_weight == 0) {
    wait.total_short_ns -= std::min<uint64_t>(wait.total_short_ns, runnable);
  }
  if (wait.woken_ns > time.ns) {
    // Nobody had ended it by then.
    wait.woken_ns = 0;
    wait.waker_tgid = wait.waker_tid = 0;
    wait.waker_comm[0] = 0;
    wait.flags &= ~uint32_t{WIRE_WAIT_HAS_WAKER_STACK | WIRE_WAIT_WAKER_OUTSIDE};
  }
  TakeOff(wait.runnable_ns, wait.total_runnable_ns, left);
  TakeOff(wait.blocked_ns, wait.total_blocked_ns, left);
  const uint64_t ran = std::min<uint64_t>(wait.total_cpu_ns, left);
  wait.total_cpu_ns -= ran;
  left -= ran;
  // It has waited for the rest, in short waits that have ended since.
  for (__u64* total : {&wait.total_blocked_ns, &wait.total_runnable_ns}) {
    const uint64_t part = std::min<uint64_t>(*total, left);
    *total -= part;
    left -= part;
    wait.total_short_ns -= std::min<uint64_t>(wait.total_short_ns, part);
  }
  if (wait.runnable_ns == 0) wait.runnable_weight = 0;
  if (wait.blocked_ns == 0) wait.blocked_weight = 0;
  return true;
}

bool EndAt(wire_open_wait& open, MonotonicTime time) {
  if (!TakeBack(open, time)) return false;
  wire_wait& wait = open.wait;
  if (wait.blocked_weight == 0) wait.total_short_ns += wait.blocked_ns;
  if (wait.runnable_weight == 0) wait.total_short_ns += wait.runnable_ns;
  return true;
}

std::vector<size_t> SeenStacks::Choose(std::span<wire_open_wait> threads, size_t most) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < threads.size(); ++i) {
    wire_wait& wait = threads[i].wait;
    const auto seen = seen_.find(wait.tid);
    if (wait.blocked_weight == 0 && wait.runnable_weight == 0) continue;
    if (threads[i].ip == 0) continue;  // it has no stack of its own
    if (seen != seen_.end() && seen->second.process_start_ns == wait.process_start_ns &&
        seen->second.switches == threads[i].switches) {
      wait.flags |= kWaitUnmoved;
      seen->second.met = true;
    } else {
      chosen.push_back(i);
    }
  }
  const auto length = [&](size_t i) { return threads[i].wait.blocked_ns + threads[i].wait.runnable_ns; };
  std::stable_sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return length(a) > length(b); });
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

void SeenStacks::Take(const wire_open_wait& open) {
  seen_[open.wait.tid] = {open.wait.process_start_ns, open.switches, true};
}

void SeenStacks::EndLook() {
  absl::erase_if(seen_, [](const auto& entry) { return !entry.second.met; });
  for (auto& [tid, seen] : seen_) seen.met = false;
}

}  // namespace clrsampler
