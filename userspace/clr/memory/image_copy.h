// A whole image out of the memory of a process, for what only a look into it tells.
#ifndef CLRSAMPLER_CLR_MEMORY_IMAGE_COPY_H_
#define CLRSAMPLER_CLR_MEMORY_IMAGE_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/memory/code_ranges.h"
#include "process/target_memory.h"

namespace clrsampler {

// The largest image that is copied; most assemblies of applications have less than 1 MB.
constexpr uint64_t kMaxImageCopyBytes = 16 << 20;

// Zeroes where nothing can be read: an image as the loader lays it out has holes. ResourceExhausted: larger than
// kMaxImageCopyBytes. Unavailable: not even its header can be read.
absl::StatusOr<std::vector<std::byte>> CopyImage(MemoryReader& memory, AddressRange image);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_IMAGE_COPY_H_
