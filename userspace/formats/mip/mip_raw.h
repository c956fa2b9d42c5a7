// .mipraw: the counters of one run of an instrumented program, as its section __llvm_mipraw was when it ended.
//
// The records do not say where they begin: only a map, or the profile made from it, knows their offsets and how many
// blocks each has. The section starts as all ones and the program clears what runs, so a byte is 00 where the code ran
// and FF where it did not. docs/mip.md has the layout.
#ifndef CLRSAMPLER_FORMATS_MIP_MIP_RAW_H_
#define CLRSAMPLER_FORMATS_MIP_MIP_RAW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "formats/mip/mip_layout.h"

namespace clrsampler {

// Bytes of a record that lie in the file whatever blocks a function has.
constexpr uint64_t MipRawFixedBytes(uint32_t kinds) { return (kinds & kMipFunctionCoverage) != 0 ? 1 : 8; }
// Bytes of the record of a function with so many blocks beside its entry: they are there only with kMipBlockCoverage.
constexpr uint64_t MipRawRecordBytes(uint32_t kinds, uint32_t block_count) {
  return MipRawFixedBytes(kinds) + ((kinds & kMipBlockCoverage) != 0 ? block_count : 0);
}

struct MipRawCounters {
  bool ran = false;
  uint32_t call_count = 0;  // 1 where only coverage was recorded; stays at 2^32 - 2
  uint32_t timestamp = 0;   // the how manieth function of the process it was to run first, from 1; 0: not recorded
};

// Borrows the bytes. Copyable; any thread.
class MipRaw {
 public:
  static absl::StatusOr<MipRaw> Parse(std::span<const std::byte> bytes);

  const MipHeader& header() const { return header_; }

  struct Record {
    MipRawCounters counters;
    std::span<const std::byte> blocks;  // empty where blocks are not recorded
    uint32_t odd_bytes = 0;             // neither 00 nor FF: counted as not run

    bool BlockRan(size_t index) const { return blocks[index] == std::byte{0}; }
  };
  // kDataLoss, with the offset: it does not lie in the file's data, or one of its two words says "never called" and
  // the other does not.
  absl::StatusOr<Record> At(uint64_t offset, uint32_t block_count) const;

 private:
  std::span<const std::byte> bytes_;
  MipHeader header_;
};

// Builds such a file: for tests, and for programs that record their own.
class MipRawWriter {
 public:
  // type, raw_section_offset and data_offset of `header` are ignored.
  explicit MipRawWriter(MipHeader header);

  // One record; the return value is its offset, for the map. `covered` has an element for each block beside the entry;
  // it is written where the header's kinds have blocks.
  uint64_t Add(const MipRawCounters& counters, std::span<const uint8_t> covered = {});

  const std::string& bytes() const { return bytes_; }

 private:
  uint32_t kinds_;
  std::string bytes_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_MIP_MIP_RAW_H_
