// Variables in the environment that a process was started with, which is all that /proc/PID/environ shows.
#ifndef CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_
#define CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// NUL-separated; at most 1 MiB. nullopt when it can't be read.
std::optional<std::string> ReadEnvironment(absl::string_view proc_root, uint32_t tgid);

// The value of the first variable of that name, pointing into `environment`.
std::optional<absl::string_view> EnvironmentVariable(absl::string_view environment, absl::string_view name);

// The value of DOTNET_`name`, else of COMPlus_`name`.
std::optional<absl::string_view> RuntimeSetting(absl::string_view environment, absl::string_view name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_
