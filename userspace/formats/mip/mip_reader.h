// Reads .mip files in all three layouts.
//
// The header does not tell which layout it is: documented and LLVM's differ only in the records. The reader walks the
// file both ways; the right one ends exactly at a table of names that fits. If both should, the one whose signatures
// are those of the names wins.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_READER_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "formats/mip/mip_profile.h"

namespace clrsampler {

// A .mip as it lies in the bytes: checked as a whole, and taken apart record by record. Borrows the bytes; copyable;
// any thread.
class MipView {
 public:
  // Errors say the offset of what does not fit; nothing is allocated by a count of the file.
  static absl::StatusOr<MipView> Parse(std::span<const std::byte> bytes);

  const MipHeader& header() const { return header_; }
  MipLayout layout() const { return layout_; }
  uint64_t function_count() const { return function_count_; }
  uint64_t block_count() const { return block_count_; }                  // of all functions
  std::span<const std::byte> name_bytes() const { return name_bytes_; }  // NUL behind each; behind the last maybe not

  struct Record {
    MipFunction function;               // without name and first_block
    std::span<const std::byte> blocks;  // block_count times: offset (4 bytes), covered (1)

    uint32_t BlockOffset(uint32_t index) const;
    bool BlockCovered(uint32_t index) const { return blocks[index * 5 + 4] != std::byte{0}; }
  };

  // Reads one after the other: `offset` begins as first_record() and is moved on. At most function_count() times.
  uint64_t first_record() const { return header_.data_offset + 8; }
  Record Next(uint64_t& offset) const;

 private:
  struct Walked;
  static Walked Walk(std::span<const std::byte> bytes, uint64_t data_offset, MipLayout layout);
  static Record Decode(std::span<const std::byte> bytes, uint64_t& offset, bool wide);
  static uint64_t CountNamed(std::span<const std::byte> bytes, uint64_t first, uint64_t count, bool wide,
                             std::span<const std::byte> names);

  std::span<const std::byte> bytes_;
  MipHeader header_;
  MipLayout layout_ = MipLayout::kDocumented;
  uint64_t function_count_ = 0;
  uint64_t block_count_ = 0;
  std::span<const std::byte> name_bytes_;
};

enum class MipNaming {
  kNow,
  kLater,  // names are bound by their hashes, which takes two thirds of the reading and which merging can do without
};

// All of it. Memory: 64 bytes for a function, 5 for a block, and the names.
absl::StatusOr<MipProfile> ReadMip(std::span<const std::byte> bytes, MipNaming naming = MipNaming::kNow);

// Gives functions the names of their signatures.
void BindMipNames(MipProfile& profile);

// Whether the names of a profile are those of the view, in the same order.
bool SameMipNames(const MipProfile& profile, const MipView& view);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_READER_H_
