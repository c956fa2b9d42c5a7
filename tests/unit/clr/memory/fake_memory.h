// The memory of a process that a test makes up.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_MEMORY_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "process/target_memory.h"

namespace clrsampler {

// Blocks at any address. A read must lie inside one block, so that one that goes too far fails.
class FakeMemory : public MemoryReader {
 public:
  uint64_t reads = 0;
  uint64_t bytes = 0;
  // Called before each read: for memory that changes while it is read.
  std::function<void(uint64_t address)> before_read;

  FakeMemory() = default;
  // Where Allocate begins, and how much unmapped memory it leaves behind each block.
  FakeMemory(uint64_t first, uint64_t gap) : next_(first), gap_(gap) {}

  // Zeros.
  void Map(uint64_t address, size_t size) { blocks_[address].assign(size, std::byte{0}); }
  void Unmap(uint64_t address) { blocks_.erase(address); }
  // Zeros at an address of its own choice.
  uint64_t Allocate(size_t size) {
    const uint64_t address = next_;
    next_ += (size + gap_ + 63) & ~uint64_t{63};
    Map(address, size);
    return address;
  }

  template <typename T>
  void Set(uint64_t address, T value) {
    SetBytes(address, std::as_bytes(std::span(&value, 1)));
  }
  void SetText(uint64_t address, const std::string& text) {
    SetBytes(address, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  // Maps them where nothing is.
  void SetBytes(uint64_t address, std::span<const std::byte> content) {
    std::byte* there = At(address, content.size());
    if (there == nullptr) {
      Map(address, content.size());
      there = At(address, content.size());
    }
    std::memcpy(there, content.data(), content.size());
  }

  const std::map<uint64_t, std::vector<std::byte>>& blocks() const { return blocks_; }

  bool Read(uint64_t address, std::span<std::byte> into) override {
    ++reads;
    bytes += into.size();
    if (before_read) before_read(address);
    const std::byte* there = At(address, into.size());
    if (there == nullptr) return false;
    std::memcpy(into.data(), there, into.size());
    return true;
  }

 private:
  std::byte* At(uint64_t address, size_t size) {
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return nullptr;
    --block;
    const uint64_t offset = address - block->first;
    if (offset > block->second.size() || block->second.size() - offset < size) return nullptr;
    return block->second.data() + offset;
  }

  std::map<uint64_t, std::vector<std::byte>> blocks_;
  uint64_t next_ = 0x5500'0000'0000;
  uint64_t gap_ = 4096;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_FAKE_MEMORY_H_
