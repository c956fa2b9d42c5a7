#include "runtime_events/pause_watch.h"

#include <algorithm>
#include <map>
#include <utility>

namespace clrsampler {
namespace {

// The most blamed threads of one window, some 300 bytes each. A pause that takes longer to come than half a minute at
// 1,000 Hz loses blame, and no memory.
constexpr size_t kMaxBlamed = 1 << 15;
// The most threads whose pause is not over: one, and some whose end was lost.
constexpr size_t kMaxUnreported = 64;

void AddTo(SuspensionCounters& sum, const SuspensionCounters& one) {
  sum.pauses += one.pauses;
  sum.aborted += one.aborted;
  sum.cut += one.cut;
  sum.unexpected += one.unexpected;
  sum.without_gc_end += one.without_gc_end;
  sum.background += one.background;
  for (size_t i = 0; i < sum.collections.size(); ++i) sum.collections[i] += one.collections[i];
}

}  // namespace

struct PauseWatch::ProcessState {
  explicit ProcessState(bool sees_resumed) : tracker(sees_resumed) {}

  ProcessKey key;
  SuspensionTracker tracker;
  struct Blamed {
    uint32_t tid;
    bool managed;
    std::string method;
    std::vector<FrameId> stack;
  };
  std::vector<Blamed> window;                             // between the request and the stop of the pause at hand
  absl::flat_hash_map<uint32_t, std::vector<Blamed>> of;  // by the thread that asked, until its pause is complete
};

PauseWatch::PauseWatch(std::function<void(const ObservedPause&)> on_pause, OnCollection on_collection,
                       bool sees_resumed, const FrameTable& frames)
    : on_pause_(std::move(on_pause)),
      sees_resumed_(sees_resumed),
      on_collection_(std::move(on_collection)),
      frames_(frames) {}

PauseWatch::~PauseWatch() = default;

PauseWatch::ProcessState& PauseWatch::TargetOf(ProcessKey key) {
  std::unique_ptr<ProcessState>& state = states_[key];
  if (state == nullptr) {
    state = std::make_unique<ProcessState>(sees_resumed_);
    state->key = key;
  }
  return *state;
}

void PauseWatch::Arrived(const wire_runtime_event& event) {
  main_loop_.Check();
  if (event.hook == WIRE_HOOK_SUSPEND || event.hook == WIRE_HOOK_SUSPENDED) unended_.insert(event.tgid);
  if (event.hook == WIRE_HOOK_RESTART) unended_.erase(event.tgid);
  if (event.hook == WIRE_HOOK_SUSPEND) {
    ++asking_[event.tgid];
  } else if (event.hook == WIRE_HOOK_SUSPENDED) {
    sees_returns_.insert(event.tgid);
    const auto asking = asking_.find(event.tgid);
    if (asking != asking_.end() && --asking->second == 0) asking_.erase(asking);
  } else if (event.hook == WIRE_HOOK_RESTART && !sees_returns_.contains(event.tgid)) {
    asking_.erase(event.tgid);
  }
}

void PauseWatch::Handle(const Process& process, const RuntimeEvent& said, bool sees_returns) {
  main_loop_.Check();
  ++counters_.events;
  ProcessState& state = TargetOf(process.key);
  if (!sees_returns) state.tracker.WithoutReturns();
  // The rest of a request that came to nothing is nobody's delay.
  if (said.kind == RuntimeEventKind::kSuspend && state.tracker.Suspending() == nullptr) state.window.clear();
  const bool stops = said.kind == RuntimeEventKind::kSuspended ||
                     (!sees_returns && state.tracker.Suspending() != nullptr &&
                      (said.kind == RuntimeEventKind::kGcStart || said.kind == RuntimeEventKind::kRestart));
  if (stops && !state.window.empty()) {
    if (state.of.size() >= kMaxUnreported) state.of.clear();
    state.of[said.tid] = std::exchange(state.window, {});
  }
  state.tracker.Add(
      said, [&](const Pause& pause) { Report(state, pause); },
      [&](const GcDone& done) {
        if (on_collection_) on_collection_(state.key, done);
      });
}

void PauseWatch::Sampled(const Process& process, const wire_cpu_sample& sample, std::span<const FrameId> frames,
                         std::span<const FrameId> written) {
  main_loop_.Check();
  const auto found = states_.find(process.key);
  if (found == states_.end()) return;
  ProcessState& state = *found->second;
  const Pause* suspending = state.tracker.Suspending();
  // The thread that asks waits, or spins. Its work is no reason to wait.
  if (suspending == nullptr || sample.tid == suspending->tid || state.window.size() >= kMaxBlamed) return;
  std::optional<std::string> managed = ManagedMethodOf(frames);
  const bool is_managed = managed.has_value();
  const std::string leaf = frames.empty() ? "[no stack]" : frames_.at(frames.back()).text;
  state.window.push_back({sample.tid, is_managed, is_managed ? *std::move(managed) : leaf,
                          std::vector<FrameId>(written.begin(), written.end())});
}

PausePhase PauseWatch::PhaseOf(ProcessKey key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return PausePhase::kNone;
  if (found->second->tracker.Stopped() != nullptr) return PausePhase::kStopped;
  return found->second->tracker.Suspending() != nullptr ? PausePhase::kStopping : PausePhase::kNone;
}

std::optional<MonotonicTime> PauseWatch::PausedSince(ProcessKey key, MonotonicTime time) const {
  const auto found = states_.find(key);
  return found == states_.end() ? std::nullopt : found->second->tracker.PausedSince(time);
}

std::vector<ProcessKey> PauseWatch::PausedProcesses(MonotonicTime time) const {
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) {
    const SuspensionTracker& tracker = state->tracker;
    const Pause* const pause = tracker.Stopped() != nullptr ? tracker.Stopped() : tracker.Suspending();
    if (pause != nullptr && pause->requested <= time) keys.push_back(key);
  }
  return keys;
}

std::optional<std::string> PauseWatch::ManagedMethodOf(std::span<const FrameId> frames) const {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame& text = frames_.at(*frame);
    if ((text.kind == FrameKind::kJit || text.kind == FrameKind::kR2r) && text.source != NameSource::kNone) {
      return text.text;
    }
  }
  return std::nullopt;
}

void PauseWatch::Report(ProcessState& state, const Pause& pause) {
  ObservedPause observed{state.key, pause, {}, {}};
  if (const auto blamed = state.of.find(pause.tid); blamed != state.of.end()) {
    if (std::any_of(blamed->second.begin(), blamed->second.end(), [](const auto& one) { return one.managed; })) {
      std::erase_if(blamed->second, [](const auto& one) { return !one.managed; });
    }
    std::map<std::pair<std::string, uint32_t>, uint32_t> shares;
    const uint64_t samples = blamed->second.size();
    for (ProcessState::Blamed& one : blamed->second) {
      observed.stacks.push_back({std::move(one.stack), pause.delay_ns() / samples, one.tid});
      ++shares[{std::move(one.method), one.tid}];
    }
    for (const auto& [who, count] : shares) {
      observed.culprits.push_back({who.first, who.second, pause.delay_ns() * count / samples, count});
    }
    std::stable_sort(observed.culprits.begin(), observed.culprits.end(),
                     [](const Culprit& a, const Culprit& b) { return a.delay_ns > b.delay_ns; });
    state.of.erase(blamed);
  }
  if (on_pause_) on_pause_(observed);
}

void PauseWatch::Cut(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  ProcessState& state = *found->second;
  state.tracker.Finish([&](const Pause& pause) { Report(state, pause); });
  state.window.clear();
  state.of.clear();
}

void PauseWatch::End(ProcessKey key) {
  main_loop_.Check();
  const auto found = states_.find(key);
  if (found == states_.end()) return;
  ProcessState& state = *found->second;
  state.tracker.Finish([&](const Pause& pause) { Report(state, pause); });
  AddTo(counters_.suspensions, state.tracker.counters());
  asking_.erase(key.tgid);
  sees_returns_.erase(key.tgid);
  unended_.erase(key.tgid);
  states_.erase(found);
}

void PauseWatch::Finish() {
  main_loop_.Check();
  std::vector<ProcessKey> keys;
  for (const auto& [key, state] : states_) keys.push_back(key);
  for (const ProcessKey key : keys) End(key);
}

std::map<std::string, uint64_t> PauseWatchCounters::ByName() const {
  return {{"events", events},
          {"pauses", suspensions.pauses},
          {"aborted", suspensions.aborted},
          {"cut", suspensions.cut},
          {"unexpected", suspensions.unexpected},
          {"without_gc_end", suspensions.without_gc_end},
          {"gen0", suspensions.collections[0]},
          {"gen1", suspensions.collections[1]},
          {"gen2", suspensions.collections[2]},
          {"background", suspensions.background}};
}

PauseWatchCounters PauseWatch::counters() const {
  PauseWatchCounters sum = counters_;
  for (const auto& [key, state] : states_) AddTo(sum.suspensions, state->tracker.counters());
  return sum;
}

}  // namespace clrsampler
