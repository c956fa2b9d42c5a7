// A value of the store's tables: bytes with a checksum, compressed where that makes them shorter.
//
// SQLite notices a damaged page only where its own structure breaks; what is inside of a blob it hands out as it is.
// The checksum tells a name or a weight that the disk has changed from one that was measured.
//
//   u32 CRC-32 of what follows | u8 form | 0, plain: bytes      1, zstd: one frame that tells its size
#ifndef CLRSAMPLER_STORE_BLOB_H_
#define CLRSAMPLER_STORE_BLOB_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

struct ZSTD_CCtx_s;

namespace clrsampler {

inline constexpr size_t kMaxBlobBytes = size_t{64} << 20;  // unpacked

// Keeps what compressing needs from one blob to the next. One thread.
class BlobPacker {
 public:
  BlobPacker();
  ~BlobPacker();
  // RESOURCE_EXHAUSTED: longer than kMaxBlobBytes.
  absl::StatusOr<std::string> Pack(std::span<const std::byte> bytes, int zstd_level = 3);

 private:
  ZSTD_CCtx_s* context_;
};

// DATA_LOSS: not what Pack gave.
absl::StatusOr<std::string> UnpackBlob(std::span<const std::byte> blob);

}  // namespace clrsampler

#endif  // CLRSAMPLER_STORE_BLOB_H_
