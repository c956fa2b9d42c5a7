#include "formats/labels/environment_labels.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "formats/proc/environ_text.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxListBytes = 16 * 1024;

std::optional<std::string> PercentDecoded(absl::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]))) {
      return std::nullopt;
    }
    result += absl::HexStringToBytes(digits);
    i += 2;
  }
  return result;
}

void AddList(absl::string_view list, ProcessLabels& labels) {
  if (list.size() > kMaxListBytes) return;
  for (const absl::string_view entry : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const std::optional<LabelKey> key = LabelKeyOf(absl::StripAsciiWhitespace(parts.first));
    if (!key || !labels.Get(*key).empty()) continue;
    if (const auto value = PercentDecoded(absl::StripAsciiWhitespace(parts.second))) labels.Set(*key, *value);
  }
}

}  // namespace

ProcessLabels EnvironmentLabels(absl::string_view environment) {
  ProcessLabels labels;
  if (const auto name = EnvironmentValue(environment, "OTEL_SERVICE_NAME")) labels.Set(LabelKey::kServiceName, *name);
  if (const auto list = EnvironmentValue(environment, "OTEL_RESOURCE_ATTRIBUTES")) AddList(*list, labels);
  ProcessLabels pod;
  if (const auto name = EnvironmentValue(environment, "POD_NAME")) pod.Set(LabelKey::kKubernetesPod, *name);
  if (const auto name = EnvironmentValue(environment, "POD_NAMESPACE")) pod.Set(LabelKey::kKubernetesNamespace, *name);
  labels.FillFrom(pod);
  return labels;
}

}  // namespace clrsampler
