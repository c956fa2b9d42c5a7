// Zeroes that cost memory only where something is written.
#ifndef CLRSAMPLER_OS_SPARSE_MEMORY_H_
#define CLRSAMPLER_OS_SPARSE_MEMORY_H_

#include <cstddef>
#include <span>

#include "absl/status/statusor.h"

namespace clrsampler {

// Move-only owner of anonymous memory, for a copy of a large image of which only parts are wanted.
class SparseMemory {
 public:
  static absl::StatusOr<SparseMemory> Reserve(size_t bytes);

  SparseMemory(SparseMemory&& other) noexcept;
  SparseMemory& operator=(SparseMemory&& other) noexcept;
  ~SparseMemory();

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  SparseMemory(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_SPARSE_MEMORY_H_
