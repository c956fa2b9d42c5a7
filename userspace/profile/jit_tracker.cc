#include "profile/jit_tracker.h"

#include <algorithm>
#include <utility>

namespace clrsampler {

void JitTracker::Begin(uint32_t tid, MonotonicTime time, uint64_t method_info, uint64_t method,
                       uint64_t stack_pointer) {
  if (threads_.size() >= kMaxThreads && !threads_.contains(tid)) {
    for (const auto& [id, thread] : threads_) counters_.unfinished += thread.open.size();
    threads_.clear();
  }
  std::vector<Open>& calls = threads_[tid].open;
  // Calls that this one can't lie in are over: their frames are gone.
  while (!calls.empty() && (calls.back().stack_pointer <= stack_pointer || calls.size() >= kMaxNested)) {
    ++counters_.unfinished;
    calls.pop_back();
  }
  calls.push_back({time, method_info, method, stack_pointer});
}

std::optional<MonotonicTime> JitTracker::BeginningOf(uint32_t tid, uint64_t method_info, uint64_t method) const {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end()) return std::nullopt;
  for (const Open& call : thread->second.open) {
    if (call.method_info == method_info && call.method == method) return call.began;
  }
  return std::nullopt;
}

std::optional<Compilation> JitTracker::End(uint64_t method_info, Compilation done, std::optional<MonotonicTime> start) {
  std::optional<MonotonicTime> began = BeginningOf(done.tid, method_info, done.method);
  const bool seen = began.has_value();
  if (!seen) began = start;
  if (!began) {
    ++counters_.cut;
    return std::nullopt;
  }
  if (threads_.size() >= kMaxThreads && !threads_.contains(done.tid)) {
    for (const auto& [id, thread] : threads_) counters_.unfinished += thread.open.size();
    threads_.clear();
  }
  Thread& thread = threads_[done.tid];
  std::vector<Open>& calls = thread.open;
  const auto begun = [&](const Open& call) { return call.method_info == method_info && call.method == done.method; };
  // Calls that began later, or lie deeper on the stack, are over.
  while (!calls.empty() && (seen ? !begun(calls.back()) : calls.back().method_info <= method_info)) {
    ++counters_.unfinished;
    calls.pop_back();
  }
  if (seen) calls.pop_back();
  done.began = std::min(*began, done.done);
  std::vector<Ended>& ended = thread.ended;
  while (!ended.empty() && ended.back().began >= done.began) {
    done.inner_ns += ended.back().duration_ns;
    ended.pop_back();
  }
  done.inner_ns = std::min(done.inner_ns, done.duration_ns());
  if (calls.empty() && !start) {
    threads_.erase(done.tid);  // no other can be around it
  } else {
    ended.push_back({done.began, done.duration_ns()});
    if (ended.size() > kMaxNested) {
      ended[1] = {ended[0].began, ended[0].duration_ns + ended[1].duration_ns};
      ended.erase(ended.begin());
    }
  }
  ++counters_.compilations;
  if (!seen) ++counters_.by_stack;
  if (done.result != 0) ++counters_.refused;
  return done;
}

void JitTracker::Cut() {
  for (const auto& [tid, thread] : threads_) counters_.cut += thread.open.size();
  threads_.clear();
}

void JitTracker::Finish() {
  for (const auto& [tid, thread] : threads_) counters_.unfinished += thread.open.size();
  threads_.clear();
}

}  // namespace clrsampler
