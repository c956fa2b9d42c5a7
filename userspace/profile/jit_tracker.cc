#include "profile/jit_tracker.h"

#include <algorithm>
#include <utility>

namespace clrsampler {

void JitTracker::Begin(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method,
                       uint64_t stack_pointer) {
  if (open_.size() >= kMaxThreads && !open_.contains(tid)) {
    for (const auto& [thread, calls] : open_) counters_.unfinished += calls.size();
    open_.clear();
  }
  std::vector<Open>& calls = open_[tid];
  // Calls that this one can't lie in are over: their frames are gone.
  while (!calls.empty() && (calls.back().stack_pointer <= stack_pointer || calls.size() >= kMaxNested)) {
    ++counters_.unfinished;
    calls.pop_back();
  }
  calls.push_back({time, method_info, method, stack_pointer, 0});
}

std::optional<Compilation> JitTracker::End(uint64_t method_info, Compilation done) {
  const auto thread = open_.find(done.tid);
  const auto begun = [&](const Open& call) { return call.method_info == method_info && call.method == done.method; };
  if (thread == open_.end() || std::none_of(thread->second.begin(), thread->second.end(), begun)) {
    ++counters_.cut;
    return std::nullopt;
  }
  std::vector<Open>& calls = thread->second;
  while (!begun(calls.back())) {
    ++counters_.unfinished;
    calls.pop_back();
  }
  done.began = std::min(calls.back().began, done.done);
  done.inner_ns = std::min(calls.back().inner_ns, done.duration_ns());
  calls.pop_back();
  if (calls.empty()) {
    open_.erase(thread);
  } else {
    calls.back().inner_ns += done.duration_ns();
  }
  ++counters_.compilations;
  if (done.result != 0) ++counters_.refused;
  return done;
}

void JitTracker::Finish() {
  for (const auto& [tid, calls] : open_) counters_.unfinished += calls.size();
  open_.clear();
}

}  // namespace clrsampler
