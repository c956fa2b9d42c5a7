// The answers of container runtimes about containers and pods: messages of the Kubernetes Container Runtime Interface,
// version v1.
//
// Pure. Source: kubernetes/cri-api, pkg/apis/runtime/v1/api.proto. A question names one container or pod by its full
// id, so that the answer is small. Labels and annotations of pods are anybody's, and are not read.
#ifndef CLRSAMPLER_FORMATS_LABELS_CRI_MESSAGES_H_
#define CLRSAMPLER_FORMATS_LABELS_CRI_MESSAGES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/labels/process_labels.h"

namespace clrsampler {

inline constexpr absl::string_view kListContainers = "/runtime.v1.RuntimeService/ListContainers";
inline constexpr absl::string_view kListPodSandbox = "/runtime.v1.RuntimeService/ListPodSandbox";
inline constexpr absl::string_view kContainerStatus = "/runtime.v1.RuntimeService/ContainerStatus";
// Pods may have 256 KiB of annotations, which come along.
inline constexpr size_t kMaxCriAnswerBytes = size_t{1} << 20;

// Requests for the one that has this id.
std::string ListContainersRequest(absl::string_view id);
std::string ListPodSandboxRequest(absl::string_view id);
std::string ContainerStatusRequest(absl::string_view id);

struct CriContainer {
  std::string pod;       // the id of its pod's sandbox; any bytes
  ProcessLabels labels;  // its name, and its image where it has a name
};

// nullopt: the runtime knows no container of this id. InvalidArgument: the bytes are no such answer, or one about
// another container.
absl::StatusOr<std::optional<CriContainer>> ParseListContainers(absl::string_view bytes, absl::string_view id);
// The same of a pod: its name and its namespace.
absl::StatusOr<std::optional<ProcessLabels>> ParseListPodSandbox(absl::string_view bytes, absl::string_view id);

// Only its image, which lists of containerd 1.6 name by an id.
absl::StatusOr<ProcessLabels> ParseContainerStatus(absl::string_view bytes, absl::string_view id);

// "registry:5000/shop/web:1.2@sha256:...": name and tag. A digest or an id alone names no image.
struct ImageReference {
  absl::string_view name, tag;
};
ImageReference ParseImageReference(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_LABELS_CRI_MESSAGES_H_
