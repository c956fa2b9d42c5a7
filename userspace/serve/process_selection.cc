#include "serve/process_selection.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace clrsampler {
namespace {

constexpr size_t kCommBytes = 15;      // TASK_COMM_LEN without its end (linux/sched.h)
constexpr size_t kShortIdDigits = 12;  // what docker ps and its kin show

bool IsBelow(absl::string_view path, absl::string_view top) {
  absl::ConsumeSuffix(&top, "/");
  return absl::ConsumePrefix(&path, top) && (path.empty() || path.front() == '/');
}

bool IsContainer(const Container& container, absl::string_view wanted) {
  if (container.cgroup.container_id.empty()) return false;
  return wanted == container.name || wanted == container.Label() ||
         (wanted.size() >= kShortIdDigits && absl::StartsWith(container.cgroup.container_id, wanted));
}

}  // namespace

bool Selects(const ProcessSelection& selection, const Process& process) {
  const auto any = [](const auto& wanted, auto&& fits) {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), fits);
  };
  return any(selection.cgroups, [&](const auto& path) { return IsBelow(process.container.path, path); }) &&
         any(selection.containers, [&](const auto& name) { return IsContainer(process.container, name); }) &&
         any(selection.comms, [&](const auto& comm) { return comm.substr(0, kCommBytes) == process.comm; }) &&
         any(selection.uids, [&](const auto& uid) { return process.uid == uid; });
}

}  // namespace clrsampler
