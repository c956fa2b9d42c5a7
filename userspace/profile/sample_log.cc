#include "profile/sample_log.h"

#include <utility>

namespace clrsampler {

void SampleLog::Add(const Thread& thread, MonotonicTime time, StackId stack, SampleState state, uint64_t weight,
                    const TraceLink& link) {
  main_loop_.Check();
  const auto [found, added] = thread_ids_.try_emplace(thread, static_cast<uint32_t>(threads_.size()));
  if (added) threads_.push_back(thread);
  if (stacks_.size() >= max_timed_) {
    ++untimed_;
    untimed_links_ += link.valid() ? 1 : 0;
    counted_[{found->second, stack, state}] += weight;
    return;
  }
  if (weight != 1 && weights_.empty()) weights_.assign(stacks_.size(), 1);
  if (weight != 1 || !weights_.empty()) weights_.push_back(weight);
  const uint32_t number = links_.Number(link);
  if (number != 0 && row_links_.empty()) row_links_.assign(stacks_.size(), 0);
  if (number != 0 || !row_links_.empty()) row_links_.push_back(number);
  times_.push_back(time.ns);
  row_threads_.push_back(found->second);
  stacks_.push_back(stack);
  states_.push_back(state);
}

void SampleLog::ReplaceStacks(std::span<const StackId> replacements) {
  main_loop_.Check();
  for (StackId& stack : stacks_) stack = replacements[stack];
  for (const auto& [key, weight] : std::exchange(counted_, {})) {
    const auto& [thread, stack, state] = key;
    counted_[{thread, replacements[stack], state}] += weight;
  }
}

}  // namespace clrsampler
