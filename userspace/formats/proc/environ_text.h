// /proc/PID/environ (proc(5)): "NAME=VALUE" texts, each ended by NUL. It is as the process was started; the process may
// have written anything over it since.
#ifndef CLRSAMPLER_FORMATS_PROC_ENVIRON_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_ENVIRON_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace clrsampler {

// As much as is read of it.
inline constexpr size_t kMaxEnvironmentBytes = 1 << 20;

// The first setting of the name, as getenv(3) finds it. Borrows from `text`.
std::optional<absl::string_view> EnvironmentValue(absl::string_view text, absl::string_view name);

// A setting of the .NET runtime: DOTNET_NAME, else COMPlus_NAME; letter case counts (measured with 8.0.30 and 10.0.14:
// DOTNET_perfmapenabled is not seen, and DOTNET_PerfMapEnabled=0 wins over COMPlus_PerfMapEnabled=3).
std::optional<absl::string_view> RuntimeSetting(absl::string_view text, absl::string_view name);

// The same as a number, which the runtime reads as hexadecimal with or without "0x"; nullopt: not set, or no number.
std::optional<uint32_t> RuntimeNumber(absl::string_view text, absl::string_view name);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_ENVIRON_TEXT_H_
