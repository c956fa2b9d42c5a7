// Copies the parts of a ready-to-run image that its names need, from a place where only the loaded image is. That is
// the memory of a process whose images come out of a compressed single-file bundle and are in no file.
//
// The runtime lays such an image out itself (dotnet/runtime src/coreclr/vm/peimagelayout.cpp, ConvertedImageLayout, 8.0
// to 10.0): every section at its RVA, the header first. Code is not copied, nor what the runtime writes into: of the
// 16 MB of CoreLib 5 MB remain, and two processes that run the same image give the same bytes.
#ifndef CLRSAMPLER_FORMATS_PE_LOADED_IMAGE_H_
#define CLRSAMPLER_FORMATS_PE_LOADED_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/pe/pe_image.h"

namespace clrsampler {

// Reads `into.size()` bytes of the image from this RVA on; false: not all of them can be read.
using ImageReader = std::function<bool(uint32_t rva, std::span<std::byte> into)>;

// The part of an image that tells what it is; headers of images end far below (the sections begin at 64 KiB).
constexpr size_t kImageHeaderBytes = 4096;

// SizeOfImage of a 64-bit PE header. DataLoss: no such header.
absl::StatusOr<uint32_t> LoadedImageBytes(std::span<const std::byte> header);

struct LoadedImage {
  PeImage pe;                    // a view of the `image` that was filled
  std::vector<RvaRange> copied;  // in the order of copying; may overlap
};

// Fills `image` (zeroes, SizeOfImage bytes long), which R2rImage::Open can then read; the rest stays zero.
// FailedPrecondition: no ready-to-run code in it. ResourceExhausted: more than `max_bytes` would be copied.
// Unavailable: `read` failed. DataLoss: the headers do not hold together.
absl::StatusOr<LoadedImage> CopyLoadedImage(const ImageReader& read, uint64_t max_bytes, std::span<std::byte> image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PE_LOADED_IMAGE_H_
