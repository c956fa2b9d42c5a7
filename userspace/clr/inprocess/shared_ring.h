// The memory of a ring: a memfd that neither side can make smaller.
#ifndef CLRSAMPLER_CLR_INPROCESS_SHARED_RING_H_
#define CLRSAMPLER_CLR_INPROCESS_SHARED_RING_H_

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

class SharedRing {
 public:
  // `capacity`: as of clrsampler/inprocess_ring.h.
  static absl::StatusOr<SharedRing> Create(size_t capacity);
  SharedRing(SharedRing&& other) noexcept
      : file_(std::move(other.file_)), memory_(std::exchange(other.memory_, std::span<std::byte>())) {}
  SharedRing& operator=(SharedRing&&) = delete;
  ~SharedRing();

  const UniqueFd& file() const { return file_; }
  std::span<std::byte> memory() const { return memory_; }

 private:
  SharedRing(UniqueFd file, std::span<std::byte> memory) : file_(std::move(file)), memory_(memory) {}

  UniqueFd file_;
  std::span<std::byte> memory_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_INPROCESS_SHARED_RING_H_
