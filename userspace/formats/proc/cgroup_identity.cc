#include "formats/proc/cgroup_identity.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace clrsampler {
namespace {

constexpr size_t kIdDigits = 64;
constexpr size_t kMaxNameBytes = 255;  // length of the id of a unit or container

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
  });
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("._-@:", c);
  });
}

// "\x2d" -> "-": systemd escapes characters that stand for '/' in unit names. Other escapes make no name we would show.
std::string WithoutEscapes(absl::string_view unit) { return absl::StrReplaceAll(unit, {{"\\x2d", "-"}}); }

// "pod0a1b-..." (cgroupfs), "kubepods-burstable-pod0a1b_....slice" (systemd, where '-' separates parents).
std::optional<std::string> PodUid(absl::string_view component) {
  absl::ConsumeSuffix(&component, ".slice");
  const size_t at = component.rfind("pod");
  // "kubepods" itself ends in "pods".
  if (at == absl::string_view::npos || (at != 0 && component[at - 1] != '-')) return std::nullopt;
  std::string uid = absl::StrReplaceAll(component.substr(at + 3), {{"_", "-"}});
  const size_t dashes = static_cast<size_t>(std::count(uid.begin(), uid.end(), '-'));
  const bool has_shape = (uid.size() == 36 && dashes == 4) || (uid.size() == 32 && dashes == 0);
  if (!has_shape || !IsHex(absl::StrReplaceAll(uid, {{"-", ""}}))) return std::nullopt;
  return uid;
}

struct NamedContainer {
  ContainerRuntime runtime;
  absl::string_view id;
};

// "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID", "libpod-ID.scope"; their monitors ("crio-conmon-ID") run
// outside the container and have the prefix of no row.
std::optional<NamedContainer> ScopeOf(absl::string_view component) {
  static constexpr std::pair<absl::string_view, ContainerRuntime> kPrefixes[] = {
      {"docker-", ContainerRuntime::kDocker},      {"cri-containerd-", ContainerRuntime::kContainerd},
      {"nerdctl-", ContainerRuntime::kContainerd}, {"crio-", ContainerRuntime::kCrio},
      {"libpod-", ContainerRuntime::kPodman},
  };
  absl::ConsumeSuffix(&component, ".scope");
  for (const auto& [prefix, runtime] : kPrefixes) {
    absl::string_view id = component;
    if (absl::ConsumePrefix(&id, prefix) && IsContainerId(id)) return NamedContainer{runtime, id};
  }
  // containerd with systemd's driver before it made scopes: "kubepods-podUID.slice:cri-containerd:ID".
  const std::vector<absl::string_view> parts = absl::StrSplit(component, ':');
  if (parts.size() == 3 && parts[1] == "cri-containerd" && IsContainerId(parts[2])) {
    return NamedContainer{ContainerRuntime::kContainerd, parts[2]};
  }
  if (parts.size() == 3 && parts[1] == "docker" && IsContainerId(parts[2])) {
    return NamedContainer{ContainerRuntime::kDocker, parts[2]};
  }
  return std::nullopt;
}

void SetContainer(ContainerRuntime runtime, absl::string_view id, CgroupIdentity& identity) {
  identity.runtime = runtime;
  identity.container_id = std::string(id);
  identity.service.clear();
}

// A container that goes by its name: LXC and systemd-nspawn.
std::optional<std::pair<ContainerRuntime, std::string>> NamedByUnit(absl::string_view component,
                                                                    absl::string_view parent) {
  absl::string_view name = component;
  ContainerRuntime runtime = ContainerRuntime::kLxc;
  if (absl::ConsumePrefix(&name, "lxc.payload.") || parent == "lxc" || parent == "lxc.payload") {
    // "lxc.payload/NAME", "lxc/NAME"
  } else if ((absl::ConsumePrefix(&name, "systemd-nspawn@") && absl::ConsumeSuffix(&name, ".service")) ||
             (absl::ConsumePrefix(&name, "machine-") && absl::ConsumeSuffix(&name, ".scope"))) {
    runtime = ContainerRuntime::kNspawn;
  } else {
    return std::nullopt;
  }
  std::string text = WithoutEscapes(name);
  if (!IsName(text)) return std::nullopt;
  // libvirt's virtual machines and containers have scopes of that form too, "machine-qemu\x2d3\x2dweb.scope".
  const bool is_scope = runtime == ContainerRuntime::kNspawn && absl::StartsWith(component, "machine-");
  if (is_scope && (absl::StartsWith(text, "qemu-") || absl::StartsWith(text, "lxc-"))) return std::nullopt;
  return std::make_pair(runtime, std::move(text));
}

}  // namespace

absl::string_view ContainerRuntimeText(ContainerRuntime runtime) {
  switch (runtime) {
    case ContainerRuntime::kNone:
      return "";
    case ContainerRuntime::kUnknown:
      return "unknown";
    case ContainerRuntime::kDocker:
      return "docker";
    case ContainerRuntime::kContainerd:
      return "containerd";
    case ContainerRuntime::kCrio:
      return "cri-o";
    case ContainerRuntime::kPodman:
      return "podman";
    case ContainerRuntime::kLxc:
      return "lxc";
    case ContainerRuntime::kNspawn:
      return "systemd-nspawn";
  }
  return "";
}

absl::string_view PodQosText(PodQos qos) {
  switch (qos) {
    case PodQos::kNone:
      return "";
    case PodQos::kGuaranteed:
      return "guaranteed";
    case PodQos::kBurstable:
      return "burstable";
    case PodQos::kBestEffort:
      return "besteffort";
  }
  return "";
}

CgroupIdentity IdentifyCgroup(absl::string_view path) {
  CgroupIdentity identity;
  absl::string_view parent;
  for (const absl::string_view component : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (component.size() > 2 * kMaxNameBytes) {
      parent = component;
      continue;
    }
    const absl::string_view pod_part = component.substr(0, component.find(':'));
    if (auto uid = PodUid(pod_part)) {
      identity.pod_uid = *std::move(uid);
      const bool burstable = absl::StrContains(component, "burstable") || parent == "burstable";
      const bool best_effort = absl::StrContains(component, "besteffort") || parent == "besteffort";
      identity.qos = burstable ? PodQos::kBurstable : best_effort ? PodQos::kBestEffort : PodQos::kGuaranteed;
      SetContainer(ContainerRuntime::kNone, "", identity);  // a name that was found outside is the node
    }
    if (const auto scope = ScopeOf(component)) {
      SetContainer(scope->runtime, scope->id, identity);
    } else if (IsContainerId(component)) {
      SetContainer(parent == "docker"          ? ContainerRuntime::kDocker
                   : parent == "libpod_parent" ? ContainerRuntime::kPodman
                                               : ContainerRuntime::kUnknown,
                   component, identity);
    } else if (const auto named = NamedByUnit(component, parent)) {
      SetContainer(named->first, named->second, identity);
    } else if (absl::EndsWith(component, ".service") && !identity.in_container()) {
      // user@1000.service is the manager of a user's own services. The name of one of those is more precise.
      const std::string unit = WithoutEscapes(component);
      if (IsName(unit)) identity.service = unit;
    }
    parent = component;
  }
  return identity;
}

bool IsContainerId(absl::string_view text) { return text.size() == kIdDigits && IsHex(text); }

std::vector<std::string> ContainerIdsOf(absl::string_view path) {
  std::vector<std::string> ids;
  for (const absl::string_view component : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (component.size() > 2 * kMaxNameBytes) continue;
    const auto scope = ScopeOf(component);
    if (!scope && !IsContainerId(component)) continue;
    ids.emplace_back(scope ? scope->id : component);
    if (ids.size() == kMaxNestedContainers) break;
  }
  return ids;
}

}  // namespace clrsampler
