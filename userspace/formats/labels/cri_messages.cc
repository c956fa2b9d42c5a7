#include "formats/labels/cri_messages.h"

#include "absl/strings/match.h"
#include "formats/labels/field_bytes.h"
#include "formats/proc/cgroup_identity.h"
#include "protozero/exception.hpp"
#include "protozero/pbf_builder.hpp"
#include "protozero/pbf_message.hpp"

namespace clrsampler {
namespace {

using protozero::data_view;
using protozero::pbf_builder;
using protozero::pbf_message;
using protozero::pbf_wire_type;

// Requests and answers of both lists have the same numbers.
enum class Request : protozero::pbf_tag_type { kFilter = 1 };
enum class Filter : protozero::pbf_tag_type { kId = 1 };
enum class Answer : protozero::pbf_tag_type { kItems = 1 };
enum class StatusRequest : protozero::pbf_tag_type { kId = 1 };
enum class ContainerStatus : protozero::pbf_tag_type { kId = 1, kImage = 8 };
enum class Container : protozero::pbf_tag_type { kId = 1, kPod = 2, kMetadata = 3, kImage = 4 };
enum class ContainerMetadata : protozero::pbf_tag_type { kName = 1 };
enum class Image : protozero::pbf_tag_type { kImage = 1, kAsked = 18 };
enum class Pod : protozero::pbf_tag_type { kId = 1, kMetadata = 2 };
enum class PodMetadata : protozero::pbf_tag_type { kName = 1, kNamespace = 3 };

// The bytes of a field. A field that is not there has none.
template <typename Fields>
data_view BytesOrNone(data_view bytes, Fields field) {
  return BytesOf(bytes, field).value_or(data_view());
}

std::string RequestFor(absl::string_view id) {
  std::string request;
  pbf_builder<Request> out(request);
  pbf_builder<Filter> filter(out, Request::kFilter);
  filter.add_string(Filter::kId, id.data(), id.size());
  return request;
}

// The item of an answer that has this id. nullopt: there is none at all.
template <typename Fields>
absl::StatusOr<std::optional<data_view>> ItemOf(absl::string_view bytes, Fields id_field, absl::string_view id) {
  bool empty = true;
  pbf_message<Answer> answer(bytes.data(), bytes.size());
  while (answer.next()) {
    if (answer.tag() != Answer::kItems || answer.wire_type() != pbf_wire_type::length_delimited) {
      answer.skip();
      continue;
    }
    const data_view item = answer.get_view();
    if (TextOf(BytesOrNone(item, id_field)) == id) return std::optional<data_view>(item);
    empty = false;
  }
  if (empty) return std::optional<data_view>();
  return absl::InvalidArgumentError("it is about something else than what was asked");
}

void SetImage(data_view image, ProcessLabels& labels) {
  // This field has the text that the pod's author wrote. The other field mostly is an id.
  absl::string_view text = TextOf(BytesOrNone(image, Image::kAsked));
  if (text.empty()) text = TextOf(BytesOrNone(image, Image::kImage));
  const ImageReference reference = ParseImageReference(text);
  labels.Set(LabelKey::kImageName, reference.name);
  labels.Set(LabelKey::kImageTag, reference.tag);
}

template <typename Parse>
auto Bounded(absl::string_view bytes, Parse&& parse) -> decltype(parse()) {
  if (bytes.size() > kMaxCriAnswerBytes) return absl::InvalidArgumentError("it is too large");
  try {  // protozero's way to say that bytes are no protobuf message; nothing of ours throws
    return parse();
  } catch (const protozero::exception&) {
    return absl::InvalidArgumentError("its bytes are no message of the CRI");
  }
}

}  // namespace

std::string ListContainersRequest(absl::string_view id) { return RequestFor(id); }

std::string ListPodSandboxRequest(absl::string_view id) { return RequestFor(id); }

std::string ContainerStatusRequest(absl::string_view id) {
  std::string request;
  pbf_builder<StatusRequest>(request).add_string(StatusRequest::kId, id.data(), id.size());
  return request;
}

absl::StatusOr<std::optional<CriContainer>> ParseListContainers(absl::string_view bytes, absl::string_view id) {
  return Bounded(bytes, [&]() -> absl::StatusOr<std::optional<CriContainer>> {
    const absl::StatusOr<std::optional<data_view>> item = ItemOf(bytes, Container::kId, id);
    if (!item.ok()) return item.status();
    if (!item->has_value()) return std::optional<CriContainer>();
    CriContainer container;
    container.pod = std::string(TextOf(BytesOrNone(**item, Container::kPod)));
    const data_view metadata = BytesOrNone(**item, Container::kMetadata);
    container.labels.Set(LabelKey::kKubernetesContainer, TextOf(BytesOrNone(metadata, ContainerMetadata::kName)));
    SetImage(BytesOrNone(**item, Container::kImage), container.labels);
    return container;
  });
}

absl::StatusOr<std::optional<ProcessLabels>> ParseListPodSandbox(absl::string_view bytes, absl::string_view id) {
  return Bounded(bytes, [&]() -> absl::StatusOr<std::optional<ProcessLabels>> {
    const absl::StatusOr<std::optional<data_view>> item = ItemOf(bytes, Pod::kId, id);
    if (!item.ok()) return item.status();
    if (!item->has_value()) return std::optional<ProcessLabels>();
    ProcessLabels labels;
    const data_view metadata = BytesOrNone(**item, Pod::kMetadata);
    labels.Set(LabelKey::kKubernetesPod, TextOf(BytesOrNone(metadata, PodMetadata::kName)));
    labels.Set(LabelKey::kKubernetesNamespace, TextOf(BytesOrNone(metadata, PodMetadata::kNamespace)));
    return labels;
  });
}

absl::StatusOr<ProcessLabels> ParseContainerStatus(absl::string_view bytes, absl::string_view id) {
  return Bounded(bytes, [&]() -> absl::StatusOr<ProcessLabels> {
    // The one status stands where lists have their items.
    const absl::StatusOr<std::optional<data_view>> status = ItemOf(bytes, ContainerStatus::kId, id);
    if (!status.ok()) return status.status();
    ProcessLabels labels;
    if (status->has_value()) SetImage(BytesOrNone(**status, ContainerStatus::kImage), labels);
    return labels;
  });
}

ImageReference ParseImageReference(absl::string_view text) {
  text = text.substr(0, text.find('@'));
  if (IsContainerId(text) || absl::StartsWith(text, "sha256:")) return {};
  const size_t slash = text.rfind('/');
  const size_t colon = text.rfind(':');
  // The colon of a port comes before a slash.
  if (colon == absl::string_view::npos || (slash != absl::string_view::npos && colon < slash)) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace clrsampler
