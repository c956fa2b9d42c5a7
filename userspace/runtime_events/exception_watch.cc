#include "runtime_events/exception_watch.h"

#include "formats/profile/profile_model.h"
#include "runtime_events/counted_event.h"
#include "runtime_events/waiting_stack.h"

namespace clrsampler {

std::map<std::string, uint64_t> ExceptionWatchCounters::ByName() const {
  return {{"thrown", thrown},
          {"rethrown", rethrown},
          {"not_sent", not_sent},
          {"without_stack", without_stack},
          {"types_not_seen", types_not_seen},
          {"types_not_named", types_not_named}};
}

ExceptionEvent ExceptionWatch::Arrived(const Process& process, const wire_exception& event, uint64_t not_sent) {
  main_loop_.Check();
  ExceptionEvent arrived{event, not_sent, std::nullopt};
  if (event.type == 0) return arrived;
  arrived.type = callbacks_.type_frame(process, event.type);
  if (!arrived.type) ++counters_.types_not_named;
  return arrived;
}

void ExceptionWatch::Handle(ProcessKey key, const ExceptionEvent& exception) {
  main_loop_.Check();
  const wire_exception& event = exception.event;
  ProcessState& state = states_[key];
  state.not_sent += exception.not_sent;
  counters_.not_sent += exception.not_sent;
  const FrameId type = exception.type ? *exception.type : MarkFrame("[type not seen]");
  if ((event.flags & WIRE_EXCEPTION_RETHROWN) != 0) {
    ++counters_.rethrown;
    ++state.rethrown[type];
    return;
  }
  ++counters_.thrown;
  ++state.thrown;
  if (!exception.type) ++counters_.types_not_seen;
  const auto before = state.waiting.find(event.tid);
  if (before != state.waiting.end()) {
    Give(key, event.tid, before->second, {});
    state.waiting.erase(before);
  }
  const Waiting waiting{{event.header.time_ns}, type};
  if ((event.flags & WIRE_EXCEPTION_HAS_STACK) == 0) return Give(key, event.tid, waiting, {});
  state.waiting.emplace(event.tid, waiting);
}

void ExceptionWatch::NoteNotSent(ProcessKey key, uint64_t count) {
  main_loop_.Check();
  counters_.not_sent += count;
  const auto found = states_.find(key);
  if (found != states_.end()) found->second.not_sent += count;
}

// Native code of the runtime, and managed code of it that looks for handlers. Both are below the method that threw.
bool ExceptionWatch::IsOfRuntime(FrameId frame) const {
  const Frame& known = frames_.at(frame);
  return !IsManaged(known) || IsEventMachinery(ProfileView::kExceptions, known);
}

void ExceptionWatch::HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  const Waiting* const waiting = WaitingFor(states_, key, sample);
  if (waiting == nullptr) return;
  size_t end = frames.size();
  while (end > 0 && IsOfRuntime(frames[end - 1])) --end;
  Give(key, sample.tid, *waiting, end == 0 ? frames : frames.first(end));
  states_.find(key)->second.waiting.erase(sample.tid);
}

void ExceptionWatch::Give(ProcessKey key, uint32_t tid, const Waiting& waiting, std::span<const FrameId> frames) {
  stack_.assign(frames.begin(), frames.end());
  if (stack_.empty()) {
    ++counters_.without_stack;
    stack_.push_back(MarkFrame("[stack not taken]"));
  }
  stack_.push_back(waiting.type);
  callbacks_.on_exception({key, stack_, waiting.time, tid});
}

FrameId ExceptionWatch::MarkFrame(const char* text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, text, "", ""});
}

void ExceptionWatch::GiveWaiting(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  for (const auto& [tid, waiting] : found->second.waiting) Give(key, tid, waiting, {});
  found->second.waiting.clear();
}

double ExceptionWatch::FactorOf(ProcessKey key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return 1;
  // Exceptions that were not sent are thrown and thrown again in the same parts as those that were.
  uint64_t sent = found->second.thrown;
  for (const auto& [type, count] : found->second.rethrown) sent += count;
  return sent == 0 ? 1 : static_cast<double>(sent + found->second.not_sent) / static_cast<double>(sent);
}

uint64_t ExceptionWatch::ThrownOf(ProcessKey key) const {
  const auto found = states_.find(key);
  return found == states_.end() ? 0 : found->second.thrown;
}

uint64_t ExceptionWatch::HitsOf(ProcessKey key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return 0;
  uint64_t hits = found->second.thrown + found->second.not_sent;
  for (const auto& [type, count] : found->second.rethrown) hits += count;
  return hits;
}

absl::flat_hash_map<FrameId, uint64_t> ExceptionWatch::RethrownOf(ProcessKey key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return {};
  return found->second.rethrown;
}

std::vector<ProcessKey> ExceptionWatch::processes() const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) keys.push_back(key);
  return keys;
}

}  // namespace clrsampler
