#include "process/container.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/proc/cgroup_text.h"
#include "formats/proc/environ_text.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxCgroupBytes = 256 * 1024;
constexpr size_t kShownIdDigits = 12;  // as docker ps and crictl ps show it
constexpr size_t kMaxNameBytes = 253;  // a DNS name

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

std::string Container::Label() const {
  if (!name.empty()) return name;
  if (!cgroup.container_id.empty()) {
    const bool is_id = cgroup.container_id.size() > kShownIdDigits && cgroup.runtime != ContainerRuntime::kLxc &&
                       cgroup.runtime != ContainerRuntime::kNspawn;
    const absl::string_view runtime =
        cgroup.runtime == ContainerRuntime::kUnknown ? "container" : ContainerRuntimeText(cgroup.runtime);
    return absl::StrCat(runtime, ":", is_id ? cgroup.container_id.substr(0, kShownIdDigits) : cgroup.container_id);
  }
  if (!cgroup.pod_uid.empty()) return absl::StrCat("pod:", cgroup.pod_uid);
  return cgroup.service;
}

Container ContainerOf(absl::string_view cgroup_text, absl::string_view environment) {
  Container container;
  container.path = CgroupPath(ParseCgroup(cgroup_text));
  container.cgroup = IdentifyCgroup(container.path);
  if (!container.cgroup.in_container()) return container;
  // POD_NAME is the usual name that the downward API is told to set. HOSTNAME is the pod's name in Kubernetes, and
  // elsewhere the argument of --hostname. Where nobody chose, it repeats the id.
  for (const absl::string_view variable : {"POD_NAME", "HOSTNAME"}) {
    const auto value = EnvironmentValue(environment, variable);
    if (!value.has_value() || !IsName(*value)) continue;
    if (value->size() >= kShownIdDigits && absl::StartsWith(container.cgroup.container_id, *value)) continue;
    container.name = std::string(*value);
    break;
  }
  return container;
}

Container ReadContainer(const TargetFiles& files) {
  const auto cgroup = files.ReadProc("cgroup", kMaxCgroupBytes);
  if (!cgroup.ok()) return {};
  if (!IdentifyCgroup(CgroupPath(ParseCgroup(*cgroup))).in_container()) return ContainerOf(*cgroup, "");
  const auto environment = files.ReadProc("environ", kMaxEnvironmentBytes);
  return ContainerOf(*cgroup, environment.ok() ? absl::string_view(*environment) : absl::string_view());
}

}  // namespace clrsampler
