#include "formats/pe/raw_deflate.h"

#include <zlib.h>

#include <climits>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// The most that deflate can do is 258 bytes for 2 bits. A file that promises more lies, and nothing is allocated for
// it.
constexpr uint64_t kMaxRatio = 1032;

}  // namespace

absl::StatusOr<std::vector<std::byte>> InflateRaw(std::span<const std::byte> input, uint64_t bytes, uint64_t max_bytes,
                                                  absl::string_view what) {
  if (bytes > max_bytes || input.size() > max_bytes || max_bytes > UINT_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat(what, " of ", bytes, " bytes is too large"));
  }
  if (bytes == 0 || bytes / kMaxRatio > input.size()) {
    return absl::DataLossError(absl::StrCat("the size of ", what, " is impossible"));
  }
  std::vector<std::byte> output(bytes);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::ResourceExhaustedError("no memory to inflate");
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) return absl::DataLossError(absl::StrCat(what, " is damaged"));
  return output;
}

}  // namespace clrsampler
