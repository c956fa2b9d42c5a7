#include "runtime_events/allocation_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime_events/waiting_stack.h"

namespace clrsampler {
namespace {

// The kernel's sums begin anew where a process was pushed out of its map.
uint64_t Grown(uint64_t& last, uint64_t now, uint64_t at_least) {
  if (now < last && last - now < last / 2) return 0;  // events of two CPUs have crossed
  const uint64_t grown = now < last ? at_least : now - last;
  last = now;
  return grown;
}

}  // namespace

std::map<std::string, uint64_t> AllocationWatchCounters::ByName() const {
  return {{"records", records},
          {"without_stack", without_stack},
          {"types_seen", types_seen},
          {"types_not_seen", types_not_seen},
          {"types_not_named", types_not_named},
          {"bytes", bytes}};
}

AllocationWatch::Since AllocationWatch::Note(ProcessKey key, const wire_allocation& event) {
  main_loop_.Check();
  ProcessState& state = states_[key];
  return {std::max<uint64_t>(Grown(state.last_hits, event.total_hits, 1), 1),
          Grown(state.last_bytes, event.total_bytes, event.weight == 0 ? 0 : event.bytes)};
}

AllocationEvent AllocationWatch::Arrived(const Process& process, const wire_allocation& event, Since since,
                                         MonotonicTime types_since) {
  main_loop_.Check();
  AllocationEvent arrived{event, since.bytes, since.hits, std::nullopt};
  if (event.type_before != 0 && types_since.ns <= event.time_before) {
    ++counters_.types_seen;
    arrived.type_before = callbacks_.type_frame(process, event.type_before);
    if (!arrived.type_before) ++counters_.types_not_named;
  }
  return arrived;
}

void AllocationWatch::Handle(ProcessKey key, const AllocationEvent& allocation) {
  main_loop_.Check();
  const wire_allocation& event = allocation.event;
  ProcessState& state = states_[key];
  state.seen_bytes += allocation.bytes_since;
  state.seen_hits += allocation.hits_since;
  counters_.bytes += allocation.bytes_since;
  const auto before = state.waiting.find(event.tid);
  if (before != state.waiting.end()) {
    if (before->second.time.ns == event.time_before) before->second.type = allocation.type_before;
    GiveThread(key, state, before);
  }
  if (event.weight == 0) return;
  ++counters_.records;
  if (waiting_ == kMostWaiting) MakeRoom();
  Waiting waiting;
  waiting.time = {event.header.time_ns};
  waiting.bytes = static_cast<uint64_t>(static_cast<double>(event.bytes) * event.weight / WIRE_ALLOCATION_ONE);
  state.waiting[event.tid] = std::move(waiting);
  ++waiting_;
}

void AllocationWatch::HandleStack(ProcessKey key, const wire_cpu_sample& sample, std::span<const FrameId> frames) {
  main_loop_.Check();
  Waiting* const waiting = WaitingFor(states_, key, sample);
  if (waiting == nullptr) return;
  // The runtime's own functions say nothing that the type does not.
  size_t end = frames.size();
  while (end > 0 && !IsManaged(frames_.at(frames[end - 1]))) --end;
  waiting->frames.assign(frames.begin(), end == 0 ? frames.end() : frames.begin() + static_cast<std::ptrdiff_t>(end));
}

void AllocationWatch::EndThread(ProcessKey key, uint32_t tid) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  const auto thread = found->second.waiting.find(tid);
  if (thread != found->second.waiting.end()) GiveThread(key, found->second, thread);
}

void AllocationWatch::GiveThread(ProcessKey key, ProcessState& state, std::map<uint32_t, Waiting>::iterator thread) {
  Give(key, state, thread->first, thread->second);
  state.waiting.erase(thread);
  --waiting_;
}

void AllocationWatch::Give(ProcessKey key, ProcessState& state, uint32_t tid, Waiting& waiting) {
  if (waiting.frames.empty()) {
    ++counters_.without_stack;
    waiting.frames.push_back(MarkFrame("[stack not taken]"));
  }
  if (!waiting.type) ++counters_.types_not_seen;
  waiting.frames.push_back(waiting.type ? *waiting.type : MarkFrame("[type not seen]"));
  state.given_bytes += waiting.bytes;
  callbacks_.on_allocation({key, waiting.frames, waiting.time, tid, waiting.bytes});
}

FrameId AllocationWatch::MarkFrame(const char* text) {
  return frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, text, "", ""});
}

void AllocationWatch::GiveWaiting(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  while (!found->second.waiting.empty()) GiveThread(key, found->second, found->second.waiting.begin());
}

void AllocationWatch::MakeRoom() {
  // The newest of equals, so that a replay takes the same one.
  const auto most = std::ranges::max_element(
      states_, {}, [](const auto& state) { return std::pair(state.second.waiting.size(), state.first.incarnation); });
  if (most != states_.end()) GiveWaiting(most->first);
}

void AllocationWatch::End(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  waiting_ -= found->second.waiting.size();
  states_.erase(found);
}

void AllocationWatch::GiveWithoutStack(ProcessKey key, MonotonicTime time, uint64_t bytes) {
  main_loop_.Check();
  const std::array frames = {MarkFrame("[stack not taken]"), MarkFrame("[type not seen]")};
  callbacks_.on_allocation({key, frames, time, 0, bytes});
}

std::optional<AllocationWatch::Stretch> AllocationWatch::TakeStretch(ProcessKey key, bool ends) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return Stretch();
  ProcessState& state = found->second;
  const bool has_stacks = state.given_bytes > 0;
  if (!has_stacks && state.seen_bytes > 0 && !ends) return std::nullopt;
  double waiting_bytes = 0;
  for (const auto& [tid, waiting] : state.waiting) waiting_bytes += static_cast<double>(waiting.bytes);
  Stretch stretch{state.seen_hits, state.seen_bytes, 1, has_stacks};
  if (has_stacks) {
    const auto given = static_cast<double>(state.given_bytes), seen = static_cast<double>(state.seen_bytes);
    stretch.factor = seen / (given + waiting_bytes);
    if (waiting_bytes > 0) stretch.bytes = std::min(state.seen_bytes, static_cast<uint64_t>(given * stretch.factor));
  }
  state.seen_bytes -= stretch.bytes;
  state.seen_hits = state.given_bytes = 0;
  return stretch;
}

std::vector<ProcessKey> AllocationWatch::processes() const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) keys.push_back(key);
  return keys;
}

}  // namespace clrsampler
