// Memory for a ring, aligned as a mapping is.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_INPROCESS_RING_MEMORY_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_INPROCESS_RING_MEMORY_H_

#include <cstddef>
#include <span>
#include <vector>

#include "clrsampler/inprocess_ring.h"

namespace clrsampler {

class RingMemory {
 public:
  explicit RingMemory(size_t capacity = kMinInprocessCapacity)
      : pages_((kInprocessHeaderBytes + capacity) / sizeof(Page)) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(pages_)); }
  // A word of the part behind the header.
  uint64_t& word(size_t offset) {
    return *reinterpret_cast<uint64_t*>(bytes().data() + kInprocessHeaderBytes + offset);
  }

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> pages_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_INPROCESS_RING_MEMORY_H_
