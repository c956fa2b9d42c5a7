// Data that is deflated without a header (RFC 1951), and whose size somebody promises: files of a single-file bundle, a
// PDB inside an assembly.
#ifndef CLRSAMPLER_FORMATS_PE_RAW_DEFLATE_H_
#define CLRSAMPLER_FORMATS_PE_RAW_DEFLATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Exactly `bytes` bytes; `what` is the content, for errors ("a bundle entry"). ResourceExhausted: `bytes` is more than
// `max_bytes`, which is UINT_MAX at most, or there is no memory. DataLoss: the promise can't be kept, or is not. Bytes
// behind the end of the data in `input` are ignored.
absl::StatusOr<std::vector<std::byte>> InflateRaw(std::span<const std::byte> input, uint64_t bytes, uint64_t max_bytes,
                                                  absl::string_view what);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_RAW_DEFLATE_H_
