// The probes of one kind in the files of a runtime: planted together, and taken out together for a while where they
// cost too much.
#ifndef CLRSAMPLER_RUNTIME_EVENTS_HOOK_SET_H_
#define CLRSAMPLER_RUNTIME_EVENTS_HOOK_SET_H_

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "capture/hook_form.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/target_files.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Plants one; it stays until the descriptor is closed (capture/sampler.h).
using AttachHookFunction = std::function<absl::StatusOr<UniqueFd>(const HookPlace& place, const std::string& path)>;

// Main loop only.
class HookSet {
 public:
  // The clock outlives the set.
  HookSet(AttachHookFunction attach, const Clock& clock) : attach_(std::move(attach)), clock_(clock) {}
  ~HookSet();
  HookSet(const HookSet&) = delete;
  HookSet& operator=(const HookSet&) = delete;

  // Before Plant. `file`: the very one in which the places were found.
  void Add(const std::shared_ptr<const OpenedFile>& file, const std::vector<HookPlace>& places);
  // In the order in which they were added; all, or none.
  absl::Status Plant();

  // Takes the probes out; the kernel needs 60 ms for that, in another thread. Their reports count until `time`. false:
  // not now, since those that were taken out before are not gone yet.
  bool Detach(MonotonicTime time);
  // Puts them back, those that are detached alone excepted. Where that fails the set stays detached:
  // FAILED_PRECONDITION for good, since the file is not what it was any more; else MayReattach says when to try again.
  absl::Status Reattach();
  bool MayReattach() const;

  // One of them alone, until it is reattached; also of a detached set. false: not now.
  bool DetachProbe(wire_hook hook);
  void ReattachProbe(wire_hook hook);
  bool is_detached(wire_hook hook) const;

  bool planted() const { return !places_.empty(); }
  bool detached() const { return detached_; }
  bool was_detached() const { return was_detached_; }
  // While some of them are missing, what the others say has no meaning: not before this.
  MonotonicTime complete_since() const { return complete_since_; }
  bool IsCompleteAt(MonotonicTime time) const {
    return time >= complete_since_ && (!detached_ || time < complete_until_);
  }

  // For who closes those of many sets at once. The set is of no use after.
  std::vector<UniqueFd> TakeProbes();
  // Until probes that were taken out before are gone.
  void Await() const;

 private:
  struct Probe {
    std::shared_ptr<const OpenedFile> file;
    HookPlace place;
    bool detached = false;
    UniqueFd descriptor;  // not valid: not planted
  };

  absl::Status Attach(Probe& probe) const;
  absl::Status AttachAll();
  bool RemovalIsDone() const;

  const AttachHookFunction attach_;
  const Clock& clock_;
  std::vector<Probe> places_;
  std::future<void> removal_;
  bool detached_ = false, was_detached_ = false;
  MonotonicTime complete_since_ = MonotonicTime::Max();
  MonotonicTime complete_until_ = MonotonicTime::Max();  // of a detached set
  MonotonicTime try_again_ = MonotonicTime::Min();
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_RUNTIME_EVENTS_HOOK_SET_H_
