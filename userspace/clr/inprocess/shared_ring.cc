#include "clr/inprocess/shared_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "clrsampler/inprocess_ring.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<SharedRing> SharedRing::Create(size_t capacity) {
  const size_t bytes = kInprocessHeaderBytes + capacity;
  UniqueFd file(memfd_create("clrsampler-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoError(errno, "the ring's memory");
  }
  // Each page counts for the process that touches it first, which is this one. A target may have no room for it.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (memory == MAP_FAILED) return ErrnoError(errno, "the ring's memory");
  return SharedRing(std::move(file), {static_cast<std::byte*>(memory), bytes});
}

SharedRing::~SharedRing() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

}  // namespace clrsampler
