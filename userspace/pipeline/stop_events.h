// The events that end a recording: a signal, its duration, the exit of the last target.
#ifndef CLRSAMPLER_PIPELINE_STOP_EVENTS_H_
#define CLRSAMPLER_PIPELINE_STOP_EVENTS_H_

#include <signal.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "os/tape.h"
#include "os/unique_fd.h"
#include "pipeline/stop_guard.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Whether SIGHUP is ignored, as nohup has it. One that is blocked is queued all the same.
bool HangupIsIgnored();

// Main loop only. SIGINT, SIGTERM and SIGHUP are blocked for the life of this object and read from a descriptor; one
// that was sent before, while they were blocked already, counts. SIGHUP is left alone where it is ignored.
class StopEvents {
 public:
  // `tape`, where there is one, has the answers and outlives this.
  static absl::StatusOr<StopEvents> Create(Tape* tape = nullptr);
  StopEvents(StopEvents&&) = default;
  ~StopEvents();

  // From now on the program ends on a signal even where the calling thread hangs (stop_guard.h). A second thread.
  absl::Status GuardThisThread();

  // Watches a process; an error says that it is gone.
  absl::Status WatchProcess(uint32_t pid);
  // Wakes Wait when readable, without meaning.
  absl::Status WatchReadable(int fd);

  // Waits at most this long for anything to happen.
  void Wait(int timeout_ms);

  bool signalled() const { return signal_ != 0; }
  int signal_number() const { return signal_; }
  // Sent by the kernel, as for Ctrl-C: then the whole foreground process group has received it.
  bool signal_of_terminal() const { return signal_of_terminal_; }
  // All watched processes have exited, and there was at least one.
  bool targets_gone() const { return watched_ > 0 && living_count_ == 0; }

 private:
  StopEvents() = default;
  void WaitNow(int timeout_ms);

  Tape* tape_ = nullptr;
  sigset_t before_{};  // signals blocked before this object
  UniqueFd epoll_;
  UniqueFd signals_;
  std::unique_ptr<StopGuard> guard_;  // nullptr until GuardThisThread
  std::vector<UniqueFd> living_;      // pidfds
  size_t watched_ = 0;
  size_t living_count_ = 0;
  int signal_ = 0;
  bool signal_of_terminal_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_STOP_EVENTS_H_
