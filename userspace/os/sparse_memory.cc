#include "os/sparse_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<SparseMemory> SparseMemory::Reserve(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("no memory of 0 bytes");
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return ErrnoError(errno, absl::StrCat("mmap of ", bytes, " bytes"));
  return SparseMemory(static_cast<std::byte*>(data), bytes);
}

SparseMemory::SparseMemory(SparseMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SparseMemory& SparseMemory::operator=(SparseMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SparseMemory::~SparseMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace clrsampler
