// --ring-bytes, of the commands that sample for a long time.
#ifndef CLRSAMPLER_CLI_RING_OPTION_H_
#define CLRSAMPLER_CLI_RING_OPTION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

void DeclareRingBytes(CLI::App& app, std::optional<std::string>& text);

absl::StatusOr<uint64_t> ParseRingBytes(const std::string& text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_RING_OPTION_H_
