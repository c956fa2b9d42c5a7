#include "pipeline/targets.h"

#include <unistd.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/status_text.h"
#include "os/file_io.h"
#include "os/tape_answer.h"
#include "status/status.h"

namespace clrsampler {

Targets::Targets(std::vector<uint32_t> pids, std::vector<std::string> command, uint32_t frequency_hz,
                 std::string proc_root, Tape* tape, Notices& notices)
    : pids_(std::move(pids)),
      command_line_(std::move(command)),
      proc_root_(std::move(proc_root)),
      tape_(tape),
      expected_(frequency_hz,
                [tape](uint32_t pid) {
                  return Taped(
                      tape, [pid] { return ProcessCpuNs(pid); }, "cpu of ", pid);
                }),
      notices_(notices) {}

absl::Status Targets::Check() const { return tape_ != nullptr && tape_->plays() ? absl::OkStatus() : CheckNow(); }

absl::Status Targets::CheckNow() const {
  for (const uint32_t pid : pids_) {
    const std::string folder = absl::StrCat(proc_root_, "/", pid);
    if (access(folder.c_str(), F_OK) != 0) {
      return WithHint(absl::NotFoundError(absl::StrCat("no process ", pid)),
                      "ps -e lists processes; inside a container the ids are others than on the host");
    }
    const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(folder, "/status"), 1 << 20);
    const absl::StatusOr<StatusText> status = text.ok() ? ParseStatus(*text) : text.status();
    if (status.ok() && status->tgid != pid) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat(pid, " is a thread of process ", status->tgid)),
                      absl::StrCat("--pid ", status->tgid));
    }
  }
  // Release comes when the agent has given up the right to delete the empty result files.
  return command_line_.empty() ? absl::OkStatus() : TargetCommand::Check(command_line_);
}

absl::Status Targets::Follow(CaptureControl& capture, StopEvents& stop) {
  main_loop_.Check();
  capture_ = &capture;
  stop_ = &stop;
  for (const uint32_t pid : pids_) {
    if (const absl::Status watched = stop.WatchProcess(pid); !watched.ok()) {
      return WithHint(absl::NotFoundError(absl::StrCat("process ", pid, " exited before sampling began")),
                      "start it by way of clrsampler: clrsampler -- COMMAND");
    }
    RETURN_IF_ERROR(capture.Track(static_cast<pid_t>(pid)));
    followed_.insert(pid);
  }
  if (command_line_.empty()) return absl::OkStatus();
  const absl::StatusOr<uint32_t> started = Taped(
      tape_,
      [this]() -> absl::StatusOr<uint32_t> {
        ASSIGN_OR_RETURN(TargetCommand command, TargetCommand::Start(command_line_, limits_));
        command_.emplace(std::move(command));
        return command_->pid();
      },
      "command");
  RETURN_IF_ERROR(started.status());
  command_pid_ = *started;
  RETURN_IF_ERROR(capture.Track(static_cast<pid_t>(command_pid_)));
  followed_.insert(command_pid_);
  return stop.WatchProcess(command_pid_);
}

absl::Status Targets::Begin() {
  main_loop_.Check();
  if (whole_host()) expected_.StartHost();
  for (const uint32_t pid : pids_) expected_.StartProcess(pid, false);
  if (command_pid_ == 0) return absl::OkStatus();
  expected_.StartProcess(command_pid_, true);
  return Taped(
      tape_, [this] { return command_->Release(); }, "release");
}

bool Targets::Concerns(const SideBandEvent& event) {
  main_loop_.Check();
  if (whole_host()) return true;
  // Events come from all processes of the host. Those of other processes end here.
  if (command_pid_ != 0 && event.kind == SideBandKind::kFork && followed_.contains(event.parent_pid) &&
      followed_.insert(event.pid).second) {
    Track(event.pid);
    expected_.StartProcess(event.pid, /*from_birth=*/true);
  }
  if (!followed_.contains(event.pid)) return false;
  if (command_pid_ != 0 && event.kind == SideBandKind::kExit && event.pid == event.tid) expected_.EndProcess(event.pid);
  return true;
}

void Targets::Sampled(uint32_t pid) {
  main_loop_.Check();
  if (!whole_host() && followed_.insert(pid).second) Track(pid);
}

void Targets::Gone(uint32_t pid) {
  main_loop_.Check();
  if (followed_.erase(pid) > 0) capture_->Untrack(static_cast<pid_t>(pid));
}

void Targets::EndCommand() {
  main_loop_.Check();
  if (command_ && !command_->PollExited() && stop_->signalled() && !stop_->signal_of_terminal()) {
    command_->Signal(stop_->signal_number());
  }
}

void Targets::CountCommand() {
  main_loop_.Check();
  if (command_pid_ == 0) return;
  const std::optional<uint64_t> cpu_ns = Taped(
      tape_,
      [this]() -> std::optional<uint64_t> {
        if (!command_->PollExited()) return std::nullopt;
        return command_->cpu_ns();
      },
      "cpu of command");
  if (cpu_ns) expected_.SetChildCpuNs(*cpu_ns);
}

void Targets::Track(uint32_t pid) {
  if (const absl::Status tracked = capture_->Track(static_cast<pid_t>(pid)); !tracked.ok()) {
    notices_.Add("not_followed", "",
                 absl::StrCat("not all children of the command could be followed: ", tracked.message()));
  }
}

}  // namespace clrsampler
