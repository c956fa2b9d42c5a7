#include "pipeline/targets.h"

#include <unistd.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/status_text.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {

absl::Status Targets::Check() const {
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
  return absl::OkStatus();
}

absl::Status Targets::Follow(Sampler& sampler, StopEvents& stop) {
  sampler_ = &sampler;
  stop_ = &stop;
  for (const uint32_t pid : pids_) {
    if (const absl::Status watched = stop.WatchProcess(pid); !watched.ok()) {
      return WithHint(absl::NotFoundError(absl::StrCat("process ", pid, " exited before sampling began")),
                      "start it by way of clrsampler: clrsampler -- COMMAND");
    }
    RETURN_IF_ERROR(sampler.Track(static_cast<pid_t>(pid)));
    followed_.insert(pid);
  }
  if (command_line_.empty()) return absl::OkStatus();
  absl::StatusOr<TargetCommand> command = TargetCommand::Start(command_line_, limits_);
  if (!command.ok()) return command.status();
  command_.emplace(*std::move(command));
  RETURN_IF_ERROR(sampler.Track(static_cast<pid_t>(command_->pid())));
  followed_.insert(command_->pid());
  return stop.WatchProcess(command_->pid());
}

absl::Status Targets::Begin() {
  if (whole_host()) expected_.StartHost();
  for (const uint32_t pid : pids_) expected_.StartProcess(pid, false);
  if (!command_) return absl::OkStatus();
  expected_.StartProcess(command_->pid(), true);
  return command_->Release();
}

bool Targets::Concerns(const SideBandEvent& event) {
  if (whole_host()) return true;
  // Events come from all processes of the host; those of strangers end here.
  if (command_ && event.kind == SideBandKind::kFork && followed_.contains(event.parent_pid) &&
      followed_.insert(event.pid).second) {
    Track(event.pid);
    expected_.StartProcess(event.pid, /*from_birth=*/true);
  }
  if (!followed_.contains(event.pid)) return false;
  if (command_ && event.kind == SideBandKind::kExit && event.pid == event.tid) expected_.EndProcess(event.pid);
  return true;
}

void Targets::Sampled(uint32_t pid) {
  if (!whole_host() && followed_.insert(pid).second) Track(pid);
}

void Targets::Gone(uint32_t pid) {
  if (followed_.erase(pid) > 0) sampler_->Untrack(static_cast<pid_t>(pid));
}

void Targets::EndCommand() {
  if (command_ && !command_->PollExited() && stop_->signalled() && !stop_->signal_of_terminal()) {
    command_->Signal(stop_->signal_number());
  }
}

void Targets::CountCommand() {
  if (command_ && command_->PollExited()) expected_.SetChildCpuNs(command_->cpu_ns());
}

void Targets::Track(uint32_t pid) {
  if (const absl::Status tracked = sampler_->Track(static_cast<pid_t>(pid)); !tracked.ok()) {
    notices_.Add("not_followed", "",
                 absl::StrCat("not all children of the command could be followed: ", tracked.message()));
  }
}

}  // namespace clrsampler
