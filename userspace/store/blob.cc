#include "store/blob.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

constexpr size_t kChecksumBytes = 4, kHeaderBytes = 5;
constexpr char kPlain = 0, kZstd = 1;
constexpr size_t kWorthCompressing = 64;  // a frame costs some 10 bytes

uint32_t Checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

BlobPacker::BlobPacker() : context_(ZSTD_createCCtx()) {}
BlobPacker::~BlobPacker() { ZSTD_freeCCtx(context_); }

absl::StatusOr<std::string> BlobPacker::Pack(std::span<const std::byte> bytes, int zstd_level) {
  if (bytes.size() > kMaxBlobBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a blob of ", bytes.size(), " bytes"));
  }
  std::string blob(kHeaderBytes, kPlain);
  if (context_ != nullptr && bytes.size() >= kWorthCompressing) {
    blob.resize(kHeaderBytes + ZSTD_compressBound(bytes.size()));
    const size_t size = ZSTD_compressCCtx(context_, blob.data() + kHeaderBytes, blob.size() - kHeaderBytes,
                                          bytes.data(), bytes.size(), zstd_level);
    const bool shorter = !ZSTD_isError(size) && size < bytes.size();
    blob.resize(kHeaderBytes + (shorter ? size : 0));
    blob[kChecksumBytes] = shorter ? kZstd : kPlain;
  }
  if (blob[kChecksumBytes] == kPlain) blob.append(AsText(bytes).data(), bytes.size());
  const uint32_t checksum = Checksum(AsBytes(blob).subspan(kChecksumBytes));
  std::memcpy(blob.data(), &checksum, sizeof checksum);
  return blob;
}

absl::StatusOr<std::string> UnpackBlob(std::span<const std::byte> blob) {
  if (blob.size() < kHeaderBytes) return absl::DataLossError("a blob without a header");
  if (LoadAt<uint32_t>(blob, 0) != Checksum(blob.subspan(kChecksumBytes))) {
    return absl::DataLossError("a blob with a wrong checksum");
  }
  const std::span<const std::byte> content = blob.subspan(kHeaderBytes);
  switch (static_cast<char>(blob[kChecksumBytes])) {
    case kPlain:
      return std::string(AsText(content).data(), content.size());
    case kZstd: {
      const unsigned long long size = ZSTD_getFrameContentSize(content.data(), content.size());
      if (size > kMaxBlobBytes) return absl::DataLossError("a blob that does not tell its size, or too large a one");
      std::string bytes(size, '\0');
      if (ZSTD_decompress(bytes.data(), bytes.size(), content.data(), content.size()) != size) {
        return absl::DataLossError("a blob that can't be decompressed");
      }
      return bytes;
    }
    default:
      return absl::DataLossError("a blob of an unknown form");
  }
}

}  // namespace clrsampler
