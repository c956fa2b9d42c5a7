// The names of a process, in the words of OpenTelemetry's semantic conventions.
//
// The set of names is fixed, and none of them is different for each process: no pid, no start time and no
// "service.instance.id". A value is a claim of the process, or comes from the container runtime of its node.
#ifndef CLRSAMPLER_FORMATS_LABELS_PROCESS_LABELS_H_
#define CLRSAMPLER_FORMATS_LABELS_PROCESS_LABELS_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class LabelKey : uint8_t {
  kServiceName,
  kServiceNamespace,
  kServiceVersion,
  kEnvironment,
  kKubernetesNamespace,
  kKubernetesPod,
  kKubernetesContainer,
  kImageName,
  kImageTag,
};
inline constexpr size_t kLabelKeys = 9;
inline constexpr size_t kMaxLabelBytes = 253;  // a DNS name

absl::string_view LabelName(LabelKey key);                        // "service.name"
std::optional<LabelKey> LabelKeyOf(absl::string_view attribute);  // nullopt: not one that is kept

class ProcessLabels {
 public:
  // Well-formed UTF-8 without control characters; empty: not known.
  const std::string& Get(LabelKey key) const { return values_[static_cast<size_t>(key)]; }
  const std::string& service() const { return Get(LabelKey::kServiceName); }
  // Control characters become '_'. A value of more than kMaxLabelBytes is left out: a part of it may be the name of
  // something else.
  void Set(LabelKey key, absl::string_view value);
  // Takes what is not known here. Sources are asked in the order of their precedence.
  void FillFrom(const ProcessLabels& other);
  // Forgets what says where the process runs, which is nonsense of a process outside of containers: the image, too.
  void DropPlace();
  void DropImage();
  bool empty() const { return *this == ProcessLabels(); }

  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (size_t i = 0; i < kLabelKeys; ++i) {
      if (!values_[i].empty()) visit(LabelName(static_cast<LabelKey>(i)), values_[i]);
    }
  }

  friend auto operator<=>(const ProcessLabels&, const ProcessLabels&) = default;

 private:
  std::array<std::string, kLabelKeys> values_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_LABELS_PROCESS_LABELS_H_
