// Chooses the processes whose samples are taken: the whole host's, those of processes by number, or those of a command
// and its children.
#ifndef CLRSAMPLER_PIPELINE_TARGETS_H_
#define CLRSAMPLER_PIPELINE_TARGETS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "capture/capture_control.h"
#include "capture/side_band_parser.h"
#include "os/tape.h"
#include "pipeline/expected_samples.h"
#include "pipeline/stop_events.h"
#include "pipeline/target_command.h"
#include "process/cpu_time.h"
#include "status/notices.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. To be made before anything raises this process's limits: the command gets them as they were.
class Targets {
 public:
  // Borrows `notices`, and `tape`, which has the answers where there is one. No pids and no command: the whole host.
  Targets(std::vector<uint32_t> pids, std::vector<std::string> command, uint32_t frequency_hz, std::string proc_root,
          Tape* tape, Notices& notices);

  bool whole_host() const { return pids_.empty() && command_line_.empty(); }

  // Whether the pids are processes at all. Errors carry a hint.
  absl::Status Check() const;
  // Has them sampled and their ends waited for; the command is started and held back. Borrows both from here on.
  absl::Status Follow(CaptureControl& capture, StopEvents& stop);
  uint32_t command_pid() const { return command_pid_; }  // 0: there is none
  // Sampling has begun: their CPU time counts from now on, and the command runs.
  absl::Status Begin();

  // Whether an event is of a target. Children of the command become targets.
  bool Concerns(const SideBandEvent& event);
  // A sample of the process has come: the kernel has taken it for a target's, so it is one.
  void Sampled(uint32_t pid);
  // No process has this number any more; a stranger may get it.
  void Gone(uint32_t pid);

  // Sampling ends for the reason that `stop` has. A command that still runs is ours: it is ended as Ctrl-C on a
  // terminal would have, unless a terminal did. Many programs take a second signal for "at once".
  void EndCommand();
  void CountCommand();  // the exact CPU time of a command that has ended

  ExpectedSamples& expected() { return expected_; }

 private:
  absl::Status CheckNow() const;
  void Track(uint32_t pid);

  const std::vector<uint32_t> pids_;
  const std::vector<std::string> command_line_;
  const std::string proc_root_;
  Tape* const tape_;
  const ResourceLimits limits_ = ResourceLimits::Current();
  ExpectedSamples expected_;
  Notices& notices_;
  CaptureControl* capture_ = nullptr;
  StopEvents* stop_ = nullptr;
  std::optional<TargetCommand> command_;  // nullopt also where a tape plays
  uint32_t command_pid_ = 0;
  absl::flat_hash_set<uint32_t> followed_;  // the pids, the command and its children; empty for the whole host
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_TARGETS_H_
