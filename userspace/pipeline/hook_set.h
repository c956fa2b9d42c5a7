// The probes of one kind in one file of a runtime: planted together, and taken out together for a while where they cost
// too much.
#ifndef CLRSAMPLER_PIPELINE_HOOK_SET_H_
#define CLRSAMPLER_PIPELINE_HOOK_SET_H_

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

namespace clrsampler {

// Plants one; it stays until the descriptor is closed (capture/sampler.h).
using AttachHookFunction = std::function<absl::StatusOr<UniqueFd>(const HookPlace& place, const std::string& path)>;

// Main loop only.
class HookSet {
 public:
  // `file`: the very one in which the places were found. Both it and the clock outlive the set.
  HookSet(AttachHookFunction attach, std::shared_ptr<const OpenedFile> file, const Clock& clock)
      : attach_(std::move(attach)), file_(std::move(file)), clock_(clock) {}
  ~HookSet();
  HookSet(const HookSet&) = delete;
  HookSet& operator=(const HookSet&) = delete;

  // In this order; all, or none.
  absl::Status Plant(const std::vector<HookPlace>& places);

  // Takes the probes out; the kernel needs 60 ms for that, in another thread. What they say counts until `time`. false:
  // not now, since those that were taken out before are not gone yet.
  bool Rest(MonotonicTime time);
  // Puts them back, those that are left out excepted. Where that fails the set goes on resting: FAILED_PRECONDITION for
  // good, since the file is no longer what it was; else MayReturn says when to try again.
  absl::Status Return();
  bool MayReturn() const;

  // One of them alone, until it is let in; also at rest. false: not now.
  bool LeaveOut(wire_hook hook);
  void LetIn(wire_hook hook);
  bool is_out(wire_hook hook) const;

  bool planted() const { return !places_.empty(); }
  bool rests() const { return rests_; }
  bool has_rested() const { return has_rested_; }
  // While some of them are missing, what the others say has no meaning: not before this.
  MonotonicTime complete_since() const { return complete_since_; }
  bool IsCompleteAt(MonotonicTime time) const { return time >= complete_since_ && (!rests_ || time < complete_until_); }

  // For who closes those of many sets at once. The set is of no use after.
  std::vector<UniqueFd> TakeProbes();
  // Until probes that were taken out before are gone.
  void Await() const;

 private:
  struct Probe {
    HookPlace place;
    bool out = false;
    UniqueFd descriptor;  // not valid: not planted
  };

  absl::Status Attach(Probe& probe) const;
  absl::Status AttachAll();
  bool RemovalIsDone() const;

  const AttachHookFunction attach_;
  const std::shared_ptr<const OpenedFile> file_;
  const Clock& clock_;
  std::vector<Probe> places_;
  std::future<void> removal_;
  bool rests_ = false, has_rested_ = false;
  MonotonicTime complete_since_ = MonotonicTime::Max();
  MonotonicTime complete_until_ = MonotonicTime::Max();  // of a set that rests
  MonotonicTime try_again_ = MonotonicTime::Min();
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_HOOK_SET_H_
