// A process's memory from a few bytes: pieces of {u32 offset from kBase, u32 length, bytes}, of which later ones cover
// earlier ones. The shape of the inputs of tests/fuzz/memory_fuzz.
#ifndef CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_MEMORY_PIECES_H_
#define CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_MEMORY_PIECES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "process/target_memory.h"

namespace clrsampler {

class MemoryPieces : public MemoryReader {
 public:
  static constexpr uint64_t kBase = 0x7E0000000000;
  uint64_t reads = 0;

  explicit MemoryPieces(std::span<const std::byte> bytes) {
    while (bytes.size() > 8 && pieces_.size() < 4096) {
      uint32_t head[2];
      std::memcpy(head, bytes.data(), sizeof head);
      const size_t length = std::min<size_t>(head[1], bytes.size() - 8);
      pieces_.push_back({kBase + head[0], bytes.subspan(8, length)});
      bytes = bytes.subspan(8 + length);
    }
  }

  // A page that has a piece in it is there, zeros where no piece is.
  bool Read(uint64_t address, std::span<std::byte> into) override {
    ++reads;
    if (address + into.size() < address) return false;
    std::fill(into.begin(), into.end(), std::byte{0});
    uint64_t pages = 0;  // of the read, that are there: no more than are asked about
    const uint64_t first = address >> 12, last = (address + into.size() - (into.empty() ? 0 : 1)) >> 12;
    std::vector<bool> there(last - first + 1 < 65536 ? last - first + 1 : 0);
    if (there.empty()) return false;
    for (const Piece& piece : pieces_) {
      const uint64_t end = piece.address + piece.bytes.size();
      for (uint64_t page = std::max(piece.address >> 12, first); page <= std::min(end >> 12, last); ++page) {
        if (!there[page - first]) ++pages;
        there[page - first] = true;
      }
      const uint64_t from = std::max(piece.address, address), to = std::min(end, address + into.size());
      if (from < to)
        std::memcpy(into.data() + (from - address), piece.bytes.data() + (from - piece.address), to - from);
    }
    return pages == there.size();
  }

 private:
  struct Piece {
    uint64_t address;
    std::span<const std::byte> bytes;
  };
  std::vector<Piece> pieces_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_CLR_MEMORY_MEMORY_PIECES_H_
