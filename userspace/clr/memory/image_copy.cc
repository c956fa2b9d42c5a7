#include "clr/memory/image_copy.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace clrsampler {

absl::StatusOr<std::vector<std::byte>> CopyImage(MemoryReader& memory, AddressRange image) {
  constexpr uint64_t kBlockBytes = 64 << 10;
  const uint64_t size = image.end - image.begin;
  if (size > kMaxImageCopyBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("an image of ", size, " bytes is not copied"));
  }
  std::vector<std::byte> bytes;
  for (uint64_t at = 0; at < size; at += kBlockBytes) {
    const uint64_t count = std::min(kBlockBytes, size - at);
    bytes.resize(at + count);
    const std::span<std::byte> block = std::span(bytes).subspan(at);
    if (memory.Read(image.begin + at, block)) continue;
    if (at == 0) return absl::UnavailableError("the image is not readable");
    std::fill(block.begin(), block.end(), std::byte{0});
  }
  return bytes;
}

}  // namespace clrsampler
