// The command after "--": started by us, held back until sampling has begun, so that its first instruction is in the
// profile.
#ifndef CLRSAMPLER_PIPELINE_TARGET_COMMAND_H_
#define CLRSAMPLER_PIPELINE_TARGET_COMMAND_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

// The limits that the profiler raises for itself. The command gets them as they were: programs size tables by the
// number of open files, close that many descriptors, or wait with select().
struct ResourceLimits {
  rlimit open_files;
  rlimit locked_memory;
  static ResourceLimits Current();
};

// Owner of a child process. Its destructor ends a child that was never released and leaves a running one alone.
class TargetCommand {
 public:
  // Whether there is such a program, looked up in PATH, and it may be run. The error is that of Release. Whether exec
  // takes it is only known then: its interpreter may be missing.
  static absl::Status Check(const std::vector<std::string>& command);

  // Forks and waits in the child. The command inherits our terminal, standard streams and environment. Where this
  // program runs by way of sudo the command still runs as root, as with perf.
  static absl::StatusOr<TargetCommand> Start(const std::vector<std::string>& command,
                                             const ResourceLimits& limits = ResourceLimits::Current());

  TargetCommand(TargetCommand&&) noexcept = default;
  TargetCommand& operator=(TargetCommand&&) noexcept = default;
  ~TargetCommand();

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

  // Lets the child exec. An error names the reason that exec gave (no such program, not executable).
  absl::Status Release();

  // True once the child has exited; then cpu_ns() is the time that it and all children it waited for used.
  bool PollExited();
  uint64_t cpu_ns() const { return cpu_ns_; }
  std::optional<int> exit_status() const { return exit_status_; }  // as the shell shows it

  void Signal(int signal_number) const;

 private:
  TargetCommand() = default;

  pid_t pid_ = -1;
  std::string name_;
  UniqueFd go_;      // closed without a byte: the child gives up
  UniqueFd result_;  // errno of a failed exec; closed by a successful one
  bool released_ = false;
  std::optional<int> exit_status_;
  uint64_t cpu_ns_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_TARGET_COMMAND_H_
