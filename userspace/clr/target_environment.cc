#include "clr/target_environment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "os/file_io.h"

namespace clrsampler {

std::optional<std::string> ReadEnvironment(absl::string_view proc_root, uint32_t tgid) {
  absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(proc_root, "/", tgid, "/environ"), 1 << 20);
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

std::optional<absl::string_view> EnvironmentVariable(absl::string_view environment, absl::string_view name) {
  for (absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (absl::ConsumePrefix(&variable, name) && absl::ConsumePrefix(&variable, "=")) return variable;
  }
  return std::nullopt;
}

std::optional<absl::string_view> RuntimeSetting(absl::string_view environment, absl::string_view name) {
  for (const absl::string_view prefix : {"DOTNET_", "COMPlus_"}) {
    if (const auto value = EnvironmentVariable(environment, absl::StrCat(prefix, name))) return value;
  }
  return std::nullopt;
}

}  // namespace clrsampler
