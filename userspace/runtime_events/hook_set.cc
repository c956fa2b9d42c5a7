#include "runtime_events/hook_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "capture/uprobe.h"
#include "os/tape_answer.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The wait after probes could not come back. The missing resource, descriptors or memory, may be there again by then.
constexpr uint64_t kTryAgainNs = 10'000'000'000;

bool IsDone(const std::future<void>& done) {
  return !done.valid() || done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

bool IsUnchanged(const OpenedFile& file) {
  const absl::StatusOr<struct stat> now = file.StatusNow();
  return now.ok() && now->st_size == file.status.st_size && now->st_mtim.tv_sec == file.status.st_mtim.tv_sec &&
         now->st_mtim.tv_nsec == file.status.st_mtim.tv_nsec;
}

}  // namespace

HookSet::~HookSet() { CloseUprobes(TakeProbes()); }

void HookSet::Add(const std::shared_ptr<const OpenedFile>& file, const std::vector<HookPlace>& places) {
  main_loop_.Check();
  for (const HookPlace& place : places) places_.push_back({file, place, false, UniqueFd()});
}

absl::Status HookSet::Plant() {
  main_loop_.Check();
  absl::Status planted = AttachAll();
  if (!planted.ok()) {
    CloseUprobes(TakeProbes());  // half a pair means nothing
    places_.clear();
  }
  return planted;
}

absl::Status HookSet::Attach(Probe& probe) const {
  // The descriptor names the very file that was looked at, wherever its path leads by now.
  ASSIGN_OR_RETURN(probe.descriptor, attach_(probe.place, absl::StrCat("/proc/self/fd/", probe.file->fd.get())));
  return absl::OkStatus();
}

absl::Status HookSet::AttachAll() {
  for (Probe& probe : places_) {
    if (!probe.detached) RETURN_IF_ERROR(Attach(probe));
  }
  complete_since_ = clock_.Now();
  return absl::OkStatus();
}

bool HookSet::RemovalIsDone() const {
  if (places_.empty()) return IsDone(removal_);
  const Probe& first = places_.front();
  return Taped(
      first.file->tape, [this] { return IsDone(removal_); }, "removed ", first.file->status.st_ino, " ",
      static_cast<int>(first.place.hook));
}

bool HookSet::Detach(MonotonicTime time) {
  main_loop_.Check();
  if (detached_ || !RemovalIsDone()) return false;
  complete_until_ = time;
  detached_ = was_detached_ = true;
  removal_ = std::async(std::launch::async, [probes = TakeProbes()]() mutable { CloseUprobes(std::move(probes)); });
  return true;
}

bool HookSet::MayReattach() const { return detached_ && planted() && RemovalIsDone() && clock_.Now() >= try_again_; }

absl::Status HookSet::Reattach() {
  main_loop_.Check();
  // A probe inside an instruction kills the process that comes by.
  if (!std::ranges::all_of(places_, [](const Probe& probe) { return IsUnchanged(*probe.file); })) {
    places_.clear();
    return absl::FailedPreconditionError("the file was changed while they were detached");
  }
  absl::Status planted = AttachAll();
  detached_ = !planted.ok();
  if (detached_) {
    try_again_ = {clock_.Now().ns + kTryAgainNs};
    removal_ = std::async(std::launch::async, [probes = TakeProbes()]() mutable { CloseUprobes(std::move(probes)); });
  }
  return planted;
}

bool HookSet::DetachProbe(wire_hook hook) {
  main_loop_.Check();
  const auto probe =
      std::find_if(places_.begin(), places_.end(), [&](const Probe& one) { return one.place.hook == hook; });
  if (probe == places_.end()) return false;
  if (probe->descriptor.valid()) {
    if (!RemovalIsDone()) return false;
    removal_ =
        std::async(std::launch::async, [descriptor = std::move(probe->descriptor)]() mutable { descriptor.reset(); });
  }
  probe->detached = true;
  return true;
}

void HookSet::ReattachProbe(wire_hook hook) {
  main_loop_.Check();
  for (Probe& probe : places_) {
    // Where it can't come back the others go on without it.
    if (probe.place.hook == hook && probe.detached) probe.detached = !detached_ && !Attach(probe).ok();
  }
}

bool HookSet::is_detached(wire_hook hook) const {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const Probe& probe) { return probe.place.hook == hook && probe.detached; });
}

std::vector<UniqueFd> HookSet::TakeProbes() {
  main_loop_.Check();
  std::vector<UniqueFd> all;
  for (Probe& probe : places_) {
    if (probe.descriptor.valid()) all.push_back(std::move(probe.descriptor));
  }
  return all;
}

void HookSet::Await() const {
  if (removal_.valid()) removal_.wait();
}

}  // namespace clrsampler
