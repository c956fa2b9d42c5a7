// The event that a stack belongs to: the sampler ships both, and the stack comes later.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_WAITING_STACK_H_
#define CLRSAMPLER_RUNTIME_EVENTS_WAITING_STACK_H_

#include "clrsampler/wire.h"
#include "process/process_key.h"

namespace clrsampler {

// `states`: by process, each with a map `waiting` from thread ids to events that have a `time`. nullptr: no event waits
// for this stack.
template <typename States>
auto WaitingFor(States& states, ProcessKey key, const wire_cpu_sample& sample)
    -> decltype(&states.begin()->second.waiting.begin()->second) {
  const auto state = states.find(key);
  if (state == states.end()) return nullptr;
  const auto waiting = state->second.waiting.find(sample.tid);
  if (waiting == state->second.waiting.end() || waiting->second.time.ns != sample.header.time_ns) return nullptr;
  return &waiting->second;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_WAITING_STACK_H_
