#include "formats/labels/process_labels.h"

#include "formats/names/utf8.h"

namespace clrsampler {
namespace {

constexpr std::array<absl::string_view, kLabelKeys> kNames = {
    "service.name", "service.namespace",  "service.version",      "deployment.environment.name", "k8s.namespace.name",
    "k8s.pod.name", "k8s.container.name", "container.image.name", "container.image.tags",
};
// The name in the conventions before 1.27, which many programs still set.
constexpr absl::string_view kOldEnvironment = "deployment.environment";

bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029; }

}  // namespace

absl::string_view LabelName(LabelKey key) { return kNames[static_cast<size_t>(key)]; }

std::optional<LabelKey> LabelKeyOf(absl::string_view attribute) {
  if (attribute == kOldEnvironment) return LabelKey::kEnvironment;
  for (size_t i = 0; i < kLabelKeys; ++i) {
    if (kNames[i] == attribute) return static_cast<LabelKey>(i);
  }
  return std::nullopt;
}

void ProcessLabels::Set(LabelKey key, absl::string_view value) {
  if (value.size() > kMaxLabelBytes) return;
  std::string clean;
  while (!value.empty()) {
    const CodePoint point = DecodeUtf8(value);
    const size_t bytes = point.bytes == 0 ? 1 : point.bytes;
    if (point.bytes == 0) {
      clean.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    } else if (IsControl(point.value)) {
      clean += '_';
    } else {
      clean.append(value.data(), bytes);
    }
    value.remove_prefix(bytes);
  }
  if (clean.size() <= kMaxLabelBytes) values_[static_cast<size_t>(key)] = std::move(clean);
}

void ProcessLabels::FillFrom(const ProcessLabels& other) {
  for (size_t i = 0; i < kLabelKeys; ++i) {
    if (values_[i].empty()) values_[i] = other.values_[i];
  }
}

void ProcessLabels::DropPlace() {
  for (const LabelKey key :
       {LabelKey::kKubernetesNamespace, LabelKey::kKubernetesPod, LabelKey::kKubernetesContainer}) {
    values_[static_cast<size_t>(key)].clear();
  }
  DropImage();
}

void ProcessLabels::DropImage() {
  for (const LabelKey key : {LabelKey::kImageName, LabelKey::kImageTag}) values_[static_cast<size_t>(key)].clear();
}

}  // namespace clrsampler
