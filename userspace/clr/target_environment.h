// The environment that a process was started with; what it says: formats/proc/environ_text.h.
#ifndef CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_
#define CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace clrsampler {

// NUL-separated; at most 1 MiB. nullopt when it can't be read.
std::optional<std::string> ReadEnvironment(absl::string_view proc_root, uint32_t tgid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_TARGET_ENVIRONMENT_H_
