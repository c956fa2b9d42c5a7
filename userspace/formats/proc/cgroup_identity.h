// Finds the container, pod or service that a control group path stands for.
//
// Sources of the path forms: kubernetes/kubernetes:pkg/kubelet/cm/{cgroup_manager,pod_container_manager}_linux.go
// (cgroupfs and systemd drivers, quality of service), containerd/cri and cri-o (scopes "cri-containerd-ID", "crio-ID"),
// moby ("docker-ID", "/docker/ID"), containers/podman ("libpod-ID"), lxc ("lxc.payload.NAME", "/lxc/NAME"),
// systemd-nspawn ("machine-NAME.scope", "systemd-nspawn@NAME.service"; systemd.unit(5) has the escapes). Both versions
// of cgroups give the same path forms.
//
// A container whose user may make control groups can make any path below its own. The innermost container counts, which
// is right for containers in containers and lets such a user choose his own label, not that of others' processes.
#ifndef CLRSAMPLER_FORMATS_PROC_CGROUP_IDENTITY_H_
#define CLRSAMPLER_FORMATS_PROC_CGROUP_IDENTITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class ContainerRuntime : uint8_t {
  kNone,     // no container
  kUnknown,  // a container, but its path does not say whose
  kDocker,
  kContainerd,
  kCrio,
  kPodman,
  kLxc,
  kNspawn,
};
absl::string_view ContainerRuntimeText(ContainerRuntime runtime);  // "docker"; "" for kNone, "unknown" for kUnknown

enum class PodQos : uint8_t { kNone, kGuaranteed, kBurstable, kBestEffort };
absl::string_view PodQosText(PodQos qos);  // "burstable"; "" for kNone

// All texts are short and of letters, digits and "._-@:" only, whatever the path held.
struct CgroupIdentity {
  ContainerRuntime runtime = ContainerRuntime::kNone;
  std::string container_id;  // 64 hex digits; the name for LXC and nspawn
  std::string pod_uid;       // with dashes, as the API server writes it; static pods have 32 hex digits
  PodQos qos = PodQos::kNone;
  std::string service;  // innermost systemd service, "shop.service"; empty inside a container

  bool in_container() const { return runtime != ContainerRuntime::kNone || !pod_uid.empty(); }
};

// `path` as CgroupPath gives it.
CgroupIdentity IdentifyCgroup(absl::string_view path);

// The id of a container, as all runtimes of Kubernetes give it: 64 hexadecimal digits.
bool IsContainerId(absl::string_view text);

// The ids of 64 digits that a path has, the outermost container's first; at most kMaxNestedContainers. A container
// may make groups below its own, and none above it: the first id that somebody knows is the one.
inline constexpr size_t kMaxNestedContainers = 4;
std::vector<std::string> ContainerIdsOf(absl::string_view path);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_CGROUP_IDENTITY_H_
