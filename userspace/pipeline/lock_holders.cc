#include "pipeline/lock_holders.h"

#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/proc/status_text.h"
#include "formats/proc/syscall_text.h"
#include "os/file_io.h"
#include "profile/wait_cycles.h"

namespace clrsampler {
namespace {

// A thread that was stopped for its stack needs a CPU to go back to its wait. It is looked at this often, with this
// time between two looks.
constexpr int kLooks = 10;
constexpr timespec kBetweenLooks = {.tv_sec = 0, .tv_nsec = 1'000'000};

}  // namespace

LockHolders::LockHolders(std::string proc_root, uint32_t pid, RuntimeMemory& runtime)
    : proc_root_(std::move(proc_root)), pid_(pid), reader_(runtime) {}

std::optional<uint32_t> LockHolders::AddHolder(uint32_t tid) {
  main_loop_.Check();
  const absl::StatusOr<std::string> text =
      ReadWholeFile(absl::StrCat(proc_root_, "/", pid_, "/task/", tid, "/status"), kMaxStatusBytes);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<StatusText> status = ParseStatus(*text);
  if (!status.ok()) return std::nullopt;
  const uint32_t namespace_tid = status->namespace_pids.empty() ? tid : status->namespace_pids.back();
  by_namespace_[namespace_tid] = tid;
  return namespace_tid;
}

void LockHolders::Add(uint32_t tid, uint64_t stack_pointer, const WaitFrames& frames) {
  main_loop_.Check();
  const std::optional<uint32_t> namespace_tid = AddHolder(tid);
  if (namespace_tid) threads_[tid] = {*namespace_tid, stack_pointer, frames};
}

std::optional<uint64_t> LockHolders::SwitchesOfStanding(uint32_t tid, const Thread& thread, Look look) const {
  const std::string folder = absl::StrCat(proc_root_, "/", pid_, "/task/", tid);
  const auto read_call = [&] { return ReadWholeFile(absl::StrCat(folder, "/syscall"), 512); };
  absl::StatusOr<std::string> call = look == Look::kAfter ? read_call() : std::string();
  const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(folder, "/status"), kMaxStatusBytes);
  if (look == Look::kBefore) call = read_call();
  if (!text.ok() || !call.ok() || StackPointerOfBlocked(*call) != thread.stack_pointer) return std::nullopt;
  const absl::StatusOr<StatusText> status = ParseStatus(*text);
  if (!status.ok()) return std::nullopt;
  return status->switches;
}

std::optional<HeldLock> LockHolders::ReadOne(const Thread& thread) {
  std::optional<LockWait> wait = reader_.WaitOf(thread.namespace_tid, thread.frames);
  if (!wait) return std::nullopt;
  HeldLock held{*std::move(wait)};
  const auto holder = by_namespace_.find(held.wait.owner_tid);
  if (holder != by_namespace_.end()) held.holder_tid = holder->second;
  return held;
}

// False: it may wait for a lock, and did not stand still, or the lock was just being left or taken.
bool LockHolders::IsTold(uint32_t tid, const Thread& thread, bool is_last) {
  const std::optional<uint64_t> before = SwitchesOfStanding(tid, thread, Look::kBefore);
  std::optional<HeldLock> held = ReadOne(thread);
  if (!held) return true;
  if (!before || SwitchesOfStanding(tid, thread, Look::kAfter) != before) return false;
  if (held->wait.changing || (!held->wait.held && !is_last)) return false;
  waits_[tid] = *std::move(held);
  return true;
}

void LockHolders::Read() {
  main_loop_.Check();
  listed_ = reader_.Refresh();
  std::vector<uint32_t> left;
  for (const auto& [tid, thread] : threads_) left.push_back(tid);
  for (int look = 0; look < kLooks && !left.empty(); ++look) {
    if (look > 0) nanosleep(&kBetweenLooks, nullptr);
    std::erase_if(left, [&](uint32_t tid) { return IsTold(tid, threads_[tid], look + 1 == kLooks); });
  }
  restless_ = left.size();
  std::map<uint32_t, uint32_t> waits_for;
  for (const auto& [tid, held] : waits_) {
    if (held.holder_tid != 0 && !held.wait.limited) waits_for[tid] = held.holder_tid;
  }
  for (std::vector<uint32_t>& cycle : WaitCycles(waits_for)) {
    if (Holds(cycle)) deadlocks_.push_back(std::move(cycle));
  }
}

std::string LockHolders::Trouble() const {
  std::vector<std::string> all;
  if (!listed_.ok()) all.emplace_back(listed_.message());
  if (restless_ > 0) {
    all.push_back(
        absl::StrCat("threads that ran, or whose lock changed hands, each time that they were looked at: ", restless_));
  }
  return absl::StrJoin(all, "; ");
}

// All of them stand, then each waits for the next one, then all of them have stood all the time.
bool LockHolders::Holds(const std::vector<uint32_t>& cycle) {
  std::vector<std::optional<uint64_t>> before;
  for (const uint32_t tid : cycle) {
    before.push_back(SwitchesOfStanding(tid, threads_[tid], Look::kBefore));
    if (!before.back()) return false;
  }
  for (size_t i = 0; i < cycle.size(); ++i) {
    const std::optional<HeldLock> held = ReadOne(threads_[cycle[i]]);
    if (!held || held->wait.limited || held->holder_tid != cycle[(i + 1) % cycle.size()]) return false;
  }
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (SwitchesOfStanding(cycle[i], threads_[cycle[i]], Look::kAfter) != before[i]) return false;
  }
  return true;
}

}  // namespace clrsampler
