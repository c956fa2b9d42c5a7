#include "runtime_events/thread_creation_watch.h"

#include "absl/strings/match.h"
#include "runtime_events/waiting_stack.h"

namespace clrsampler {
namespace {

bool IsOwnMethod(const Frame& frame) {
  return IsManaged(frame) && frame.named() && !absl::StartsWith(frame.text, "System.Threading.");
}

}  // namespace

void ThreadCreationWatch::Handle(ProcessKey key, const wire_thread& thread) {
  main_loop_.Check();
  ProcessState& state = states_[key];
  if (const auto before = state.waiting.find(thread.tid); before != state.waiting.end()) {
    Give(thread.tid, before->second, {});
    state.waiting.erase(before);
  }
  const Waiting waiting{{thread.header.time_ns}, thread.created_tid};
  if (thread.has_stack == 0) return Give(thread.tid, waiting, {});
  state.waiting.emplace(thread.tid, waiting);
}

void ThreadCreationWatch::HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  const Waiting* const waiting = WaitingFor(states_, key, sample);
  if (waiting == nullptr) return;
  Give(sample.tid, *waiting, frames);
  states_.find(key)->second.waiting.erase(sample.tid);
}

void ThreadCreationWatch::Give(uint32_t creator, const Waiting& waiting, std::span<const FrameId> frames) {
  ThreadCreation creation{.time = waiting.time, .creator = creator, .created = waiting.created};
  for (const FrameId id : frames) {
    const Frame& frame = frames_.at(id);
    creation.stack.push_back(frame.text);
    if (IsOwnMethod(frame)) creation.method = frame.text;
  }
  receiver_(creation);
}

void ThreadCreationWatch::Reach(MonotonicTime time) {
  main_loop_.Check();
  absl::erase_if(states_, [&](auto& of_process) {
    auto& waiting = of_process.second.waiting;
    absl::erase_if(waiting, [&](const auto& one) {
      const bool is_late = one.second.time < time;
      if (is_late) Give(one.first, one.second, {});
      return is_late;
    });
    return waiting.empty();
  });
}

}  // namespace clrsampler
