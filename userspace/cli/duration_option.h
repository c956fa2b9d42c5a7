// Times on the command line.
#ifndef CLRSAMPLER_CLI_DURATION_OPTION_H_
#define CLRSAMPLER_CLI_DURATION_OPTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

// --duration, of commands that end on Ctrl-C without it.
void DeclareDuration(CLI::App& app, std::optional<std::string>& text);

// A length of time, as the value of `option` ("--duration"): "30s", "500ms", "2m", "1h30m"; a bare number means
// seconds. Nanoseconds, from 1 to those of a year. Errors are sentences that name the option, with a hint.
absl::StatusOr<uint64_t> ParseDurationNs(absl::string_view option, const std::string& text);

// A time since the start of a recording: the same, and 0.
absl::StatusOr<uint64_t> ParseOffsetNs(absl::string_view option, const std::string& text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_DURATION_OPTION_H_
