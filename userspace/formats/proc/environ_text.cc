#include "formats/proc/environ_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace clrsampler {

std::optional<absl::string_view> EnvironmentValue(absl::string_view text, absl::string_view name) {
  for (absl::string_view variable : absl::StrSplit(text, '\0')) {
    if (absl::ConsumePrefix(&variable, name) && absl::ConsumePrefix(&variable, "=")) return variable;
  }
  return std::nullopt;
}

std::optional<absl::string_view> RuntimeSetting(absl::string_view text, absl::string_view name) {
  const auto value = EnvironmentValue(text, absl::StrCat("DOTNET_", name));
  return value.has_value() ? value : EnvironmentValue(text, absl::StrCat("COMPlus_", name));
}

std::optional<uint32_t> RuntimeNumber(absl::string_view text, absl::string_view name) {
  const auto value = RuntimeSetting(text, name);
  uint32_t number = 0;
  if (!value.has_value() || !absl::SimpleHexAtoi(*value, &number)) return std::nullopt;
  return number;
}

}  // namespace clrsampler
