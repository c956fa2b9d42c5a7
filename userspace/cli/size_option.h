// Sizes on the command line.
#ifndef CLRSAMPLER_CLI_SIZE_OPTION_H_
#define CLRSAMPLER_CLI_SIZE_OPTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// "64KiB", "8M", "16777216": bytes in powers of 1024, from `min_bytes` to `max_bytes`. Errors are sentences that name
// the option, with the given hint.
absl::StatusOr<uint64_t> ParseSizeBytes(absl::string_view option, const std::string& text, uint64_t min_bytes,
                                        uint64_t max_bytes, absl::string_view hint);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_SIZE_OPTION_H_
