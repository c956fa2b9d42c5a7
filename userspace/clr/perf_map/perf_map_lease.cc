#include "clr/perf_map/perf_map_lease.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/perf_map/perf_map_lease_state.h"
#include "os/clock.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kExpectNs = 2'000 * kMillisecondNs;  // for so long a runtime that starts is worth waiting for
constexpr uint64_t kRepairNs = 2'000 * kMillisecondNs;

}  // namespace

PerfMapLeases::PerfMapLeases(PerfMapLeaseOptions options, const Clock& clock, Notices& notices, FileBroker* broker)
    : options_(std::move(options)), clock_(clock), notices_(notices), broker_(broker) {}

PerfMapLeases::~PerfMapLeases() { Finish(); }

std::map<std::string, uint64_t> PerfMapLeaseCounters::ByName() const {
  return {{"enabled", enabled}, {"ended", ended},       {"left", left},    {"over_cap", over_cap},
          {"refused", refused}, {"repaired", repaired}, {"theirs", theirs}};
}

absl::Status PerfMapLeases::Start() {
  main_loop_.Check();
  absl::StatusOr<LeaseStore> store = LeaseStore::Open(options_.directory, options_.everywhere);
  if (!store.ok()) {
    if (!options_.everywhere) return absl::OkStatus();  // no directory, so no leases of earlier runs
    return WithHint(Annotate(store.status(), "perf maps can't be switched on safely"),
                    "run as root; what was switched on must be on record to be switched off again");
  }
  store_.emplace(*std::move(store));
  if (options_.everywhere) RETURN_IF_ERROR(StartGuard());
  const RepairResult repair = RepairDeadLeases(*store_, options_.proc_root, clock_, kRepairNs, broker_);
  counters_.repaired += repair.repaired;
  if (repair.repaired > 0) {
    notices_.Add(
        "perf_map_repaired", "",
        absl::StrCat(repair.repaired, " perf maps that a killed run had left on were switched off and removed"));
  }
  for (const std::string& left : repair.left)
    notices_.Add("perf_map_left", left, left, "it is tried again by the next run");
  return absl::OkStatus();
}

void PerfMapLeases::Wanted(const Process& process) {
  main_loop_.Check();
  if (!options_.everywhere || process.namespace_pid == 0 || process.exited != MonotonicTime::Max()) return;
  const auto found = states_.find(process.key);
  if (found != states_.end()) {
    ProcessState& known = *found->second;
    if (known.exec_count == process.exec_count) return;
    // It is another program now. The old one took everything with it that was switched on, except its file.
    if (known.lease.has_value()) return BeginEnding(known);
    states_.erase(found);
  }
  const std::optional<uint64_t> ticks = StartTicksOfLiving(options_.proc_root, process.key.tgid);
  if (!ticks.has_value()) return;
  auto state = std::make_unique<ProcessState>(process.key, TargetFiles(process.files, process.key.tgid));
  state->exec_count = process.exec_count;
  state->id = {process.key.tgid, process.namespace_pid, *ticks};
  state->who = absl::StrCat("process ", process.key.tgid, " (", process.comm, ")");
  state->wanted = clock_.Now();
  state->surely_dotnet =
      std::any_of(process.mappings.all().begin(), process.mappings.all().end(), [](const Mapping& mapping) {
        return absl::StrContains(mapping.path, "/libcoreclr.so") || absl::StrContains(mapping.path, ":doublemapper");
      });
  states_.emplace(process.key, std::move(state));
}

void PerfMapLeases::Poll(ProcessTable& table, MonotonicTime now) {
  main_loop_.Check();
  if (options_.everywhere) {
    absl::flat_hash_map<ProcessKey, uint64_t> looked_at;
    table.ForEach([&](const Process& process) {
      const auto known = looked_at_.find(process.key);
      const uint64_t generation = process.mappings.generation();
      if (known == looked_at_.end() || known->second != generation || states_.contains(process.key)) {
        if (process.mappings.has_jit_memory()) Wanted(process);
      }
      looked_at.emplace(process.key, generation);
    });
    looked_at_ = std::move(looked_at);
  }
  Step(now);
}

void PerfMapLeases::Step(MonotonicTime now) {
  main_loop_.Check();
  const uint64_t began_ns = clock_.Now().ns;
  bool progress = true;
  while (progress) {
    progress = false;
    for (auto& [key, state] : states_) progress |= StepProcess(*state, now);
    const uint64_t spent_ns = clock_.Now().ns - began_ns;
    if (spent_ns >= kPollBudgetNs) break;
    progress |= WaitForReplies(kPollBudgetNs - spent_ns);
  }
  absl::erase_if(states_,
                 [&](const auto& entry) { return entry.second->stage == Stage::kSettled && !IsAlive(*entry.second); });
}

// True when a reply is there, or part of one.
bool PerfMapLeases::WaitForReplies(uint64_t ns) {
  std::vector<pollfd> waits;
  for (const auto& [key, state] : states_) {
    if (!state->exchange.has_value() || state->exchange->over()) continue;
    waits.push_back({state->exchange->fd(), static_cast<short>(state->exchange->sending() ? POLLOUT : POLLIN), 0});
  }
  if (waits.empty()) return false;
  const timespec timeout{0, static_cast<long>(ns)};
  return ppoll(waits.data(), waits.size(), &timeout, nullptr) > 0;
}

bool PerfMapLeases::IsAlive(const ProcessState& state) const {
  return StartTicksOfLiving(options_.proc_root, state.id.tgid) == state.id.start_ticks;
}

bool PerfMapLeases::IsOn(ProcessKey key) const {
  const auto found = states_.find(key);
  return found != states_.end() && found->second->stage == Stage::kOn;
}

bool PerfMapLeases::IsComing(ProcessKey key) const {
  const auto found = states_.find(key);
  if (found == states_.end()) return false;
  const ProcessState& state = *found->second;
  if (state.stage == Stage::kStarting) return state.has_socket && clock_.Now().ns - state.wanted.ns < kExpectNs;
  return state.stage == Stage::kAsking || state.stage == Stage::kDisabling || state.stage == Stage::kEnabling;
}

void PerfMapLeases::Finish() {
  main_loop_.Check();
  const MonotonicTime give_up{clock_.Now().ns + kFinishNs};
  const auto held = [&] {
    return std::any_of(states_.begin(), states_.end(),
                       [](const auto& entry) { return entry.second->lease.has_value(); });
  };
  for (auto& [key, state] : states_) {
    if (state->lease.has_value()) BeginEnding(*state);
  }
  for (MonotonicTime now = clock_.Now(); held() && now < give_up; now = clock_.Now()) {
    for (auto& [key, state] : states_) {
      if (state->lease.has_value()) StepProcess(*state, now);
    }
    if (held()) WaitForReplies(10 * kMillisecondNs);
  }
  for (auto& [key, state] : states_) {
    if (!state->lease.has_value()) continue;
    ++counters_.left;
    notices_.Add("perf_map_left", state->who,
                 absl::StrCat("the perf map of ", state->who, " is still on: its runtime does not answer"),
                 "it is switched off by a guard process, or by the next run of clrsampler");
  }
  states_.clear();  // unlocks what is left
  guard_.reset();
}

}  // namespace clrsampler
