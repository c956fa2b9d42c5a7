#include "profile/window_owners.h"

#include <string>

namespace clrsampler {

WindowOwners::WindowOwners(const Window& window) : window_(window) {
  for (size_t i = 0; i < window.processes.size(); ++i) by_pid_[window.processes[i].pid].push_back(i);
}

std::optional<size_t> WindowOwners::Of(const ProfileModel& model, const ModelThread& thread) const {
  const auto found = by_pid_.find(thread.pid);
  if (found == by_pid_.end()) return std::nullopt;
  // A process that took another name by an exec is still the only one of its pid.
  if (found->second.size() == 1) return found->second.front();
  for (const size_t index : found->second) {
    const WindowProcess& process = window_.processes[index];
    if (process.comm == model.text(thread.comm) && process.container_id == model.text(thread.container_id)) {
      return index;
    }
  }
  return std::nullopt;
}

WindowProcess AsProcess(const ProfileModel& model, const ModelThread& thread) {
  WindowProcess process;
  process.pid = thread.pid;
  process.comm = std::string(model.text(thread.comm));
  process.container_id = std::string(model.text(thread.container_id));
  return process;
}

}  // namespace clrsampler
