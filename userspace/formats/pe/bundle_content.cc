#include "formats/pe/bundle_content.h"

#include <zlib.h>

#include <climits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// The most that deflate can do is 258 bytes for 2 bits. An entry that promises more lies, and nothing is allocated.
constexpr uint64_t kMaxRatio = 1032;

}  // namespace

absl::StatusOr<std::vector<std::byte>> InflateBundleEntry(std::span<const std::byte> host, const BundleEntry& entry,
                                                          uint64_t max_bytes) {
  if (entry.bytes > max_bytes || entry.compressed_bytes > max_bytes || max_bytes > UINT_MAX) {
    return absl::ResourceExhaustedError(absl::StrCat("bundle entry of ", entry.bytes, " bytes"));
  }
  const std::optional<std::span<const std::byte>> input = SliceAt(host, entry.offset, entry.compressed_bytes);
  if (!input || entry.bytes == 0 || entry.bytes / kMaxRatio > entry.compressed_bytes) {
    return absl::DataLossError("the size of a bundle entry is impossible");
  }
  std::vector<std::byte> output(entry.bytes);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return absl::ResourceExhaustedError("no memory to inflate");
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input->data()));
  stream.avail_in = static_cast<uInt>(input->size());
  stream.next_out = reinterpret_cast<Bytef*>(output.data());
  stream.avail_out = static_cast<uInt>(output.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) return absl::DataLossError("a compressed bundle entry is damaged");
  return output;
}

}  // namespace clrsampler
