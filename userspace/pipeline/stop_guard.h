// Ends the program when it was asked to stop and its loop hangs in the kernel.
//
// Whatever may wait for a file system is done by another process (process/file_broker.h). This is for what we did not
// think of: the end of the agent must not depend on it.
#ifndef CLRSAMPLER_PIPELINE_STOP_GUARD_H_
#define CLRSAMPLER_PIPELINE_STOP_GUARD_H_

#include <sys/types.h>

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Made by the thread that it guards.
class StopGuard {
 public:
  // `signals` is the signalfd that the guarded thread reads; it is lent.
  static absl::StatusOr<std::unique_ptr<StopGuard>> Start(int signals);
  ~StopGuard();

  // With a signal waiting, the thread is looked at this often, and the program ends when it hangs each time.
  static constexpr int kLookMs = 100;
  static constexpr int kLooks = 13;

 private:
  StopGuard(int signals, UniqueFd end, pid_t guarded) : signals_(signals), end_(std::move(end)), guarded_(guarded) {}
  void Watch() const;

  const int signals_;
  const UniqueFd end_;  // eventfd
  const pid_t guarded_;
  std::thread thread_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_STOP_GUARD_H_
