#include "pipeline/window_waits.h"

#include <algorithm>
#include <utility>

namespace clrsampler {
namespace {

constexpr uint64_t kNsInUs = 1000;

}  // namespace

uint64_t WindowWaits::PartNs(const ObservedWait& wait, MonotonicTime begin) {
  return std::min(wait.wait_ns, wait.ended.ns - std::min(wait.ended.ns, begin.ns));
}

void WindowWaits::Add(StackId stack, const ObservedWait& wait, MonotonicTime begin) {
  main_loop_.Check();
  ObservedWait part = wait;
  part.wait_ns = PartNs(wait, begin);
  if (part.wait_ns == 0) return;
  OfProcess& process = processes_[wait.process];
  process.kinds[stack] = wait.kind;
  process.sums.Add(stack, part, /*keep=*/true);  // as many as the host's budget lets come
}

WaitTimes WindowWaits::Take(ProcessKey process, const WaitWatch::Threads& threads,
                            const std::function<void(const Weighed&)>& give) {
  main_loop_.Check();
  const OfProcess waits = std::move(processes_[process]);
  processes_.erase(process);
  WaitTimes times;
  const WaitSums::Rest rest = waits.sums.Give(threads, [&](const WaitSums::Entry& entry) {
    if (entry.microseconds == 0) return;
    const uint64_t ns = entry.microseconds * kNsInUs;
    times.by_kind[static_cast<size_t>(waits.kinds.at(entry.stack))] += ns;
    give({entry.stack, entry.tid, entry.comm, ns});
  });
  for (const auto& [tid, thread] : threads) times.running_ns += thread.cpu_ns;
  times.short_ns = rest.short_us * kNsInUs;
  times.untold_ns = rest.untold_us * kNsInUs;
  return times;
}

}  // namespace clrsampler
