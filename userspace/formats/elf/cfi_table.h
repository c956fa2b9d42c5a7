// Finds the CFI row that holds at an address of an image.
//
// Normally the row is found when it is asked for: .eh_frame_hdr is searched and one function's instructions are run
// over the mapped file. That takes 0.2 to 0.5 us (tests/bench/cfi_bench) and no memory, and starts at once. Images
// without .eh_frame_hdr, and .debug_frame, are compiled into a sorted table when they are opened: 10 ms a megabyte, 6
// bytes a row, 0.02 to 0.15 us a look-up. In 524 libraries of a Debian 12 machine and of .NET 8 to 10, all that have
// functions in .eh_frame have every one of them in .eh_frame_hdr.
#ifndef CLRSAMPLER_FORMATS_ELF_CFI_TABLE_H_
#define CLRSAMPLER_FORMATS_ELF_CFI_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/elf/cfi_rows.h"
#include "formats/elf/code_rows.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

enum class CfiCoverage : uint8_t {
  kRow,         // there is a row
  kBetween,     // no function of the tables contains the address: PLT entries and assembly without directives
  kUnreadable,  // a function contains it, but what is said about it is damaged or unknown
};

struct CfiAnswer {
  CfiCoverage coverage = CfiCoverage::kBetween;
  CfiRow row;  // of kRow
  // The function that contains the address, where .eh_frame_hdr led to it; else empty.
  VirtualAddress start;
  VirtualAddress end;  // exclusive
};

// The rows of a whole image. Owns what it holds.
class CompiledCfi {
 public:
  // Bounds on what is made of one image. libLLVM-14 has 5.0 MB of .eh_frame and 950,000 rows.
  static constexpr size_t kMaxSectionBytes = 32 << 20;
  static constexpr size_t kMaxFunctions = 1'000'000;
  static constexpr size_t kMaxRows = 4'000'000;  // 24 MB
  static constexpr size_t kMaxDistinctRows = 65'000;

  static absl::StatusOr<CompiledCfi> Compile(ElfMachine machine, const FrameSection& section);
  // kResourceExhausted: more rows, or more that differ, than there is room for.
  static absl::StatusOr<CompiledCfi> FromCode(const CodeRows& code);

  CfiAnswer At(VirtualAddress address) const;
  size_t size() const { return starts_.size(); }
  size_t distinct_rows() const { return rows_.size(); }
  size_t functions() const { return functions_; }
  size_t damaged() const { return damaged_; }  // entries that could not be used, or not to their end
  size_t memory_bytes() const;
  // How much of [start, start + bytes) has a row.
  uint64_t CoveredBytes(VirtualAddress start, uint64_t bytes) const;

 private:
  friend class CfiCompiler;
  static constexpr uint16_t kNone = 0xffff, kBad = 0xfffe;  // in place of a row's index

  VirtualAddress base_;
  // A row is in force from its start to the next one's. Starts count from `base_`.
  std::vector<uint32_t> starts_;
  std::vector<uint16_t> ids_;  // into rows_
  std::vector<CfiRow> rows_;   // distinct
  size_t functions_ = 0;
  size_t damaged_ = 0;
};

// How much of an image's executable sections has rows.
struct CfiExtent {
  uint64_t code_bytes = 0;
  uint64_t covered_bytes = 0;
  // musl's libc has rows for 0.6 % of its code, which are of what the compiler's own start-up files bring. Libraries
  // with unwind data of their own have them for 97 to 100 %.
  bool is_next_to_none() const { return covered_bytes * 10 < code_bytes; }
};

// Immutable but for Supplement; borrows the image's bytes unless everything was compiled. Any thread.
class CfiTable {
 public:
  // kNotFound: the image has no unwind data. Others: what it has can't be used.
  static absl::StatusOr<CfiTable> Open(const ElfImage& image);
  // As Open does for an image without .eh_frame_hdr.
  static absl::StatusOr<CfiTable> OpenCompiled(const ElfImage& image);

  // Made of other rows alone, of an image that has none.
  static CfiTable OfRows(const ElfImage& image, CompiledCfi rows);
  // Adds what is asked where the image's own tables have nothing: rows of its debug file, or of its code.
  void Supplement(CompiledCfi rows) { supplement_ = std::move(rows); }

  CfiAnswer At(VirtualAddress address) const;
  std::optional<CfiRow> Row(VirtualAddress address) const;
  // Without what has no section headers. Reads all entries: 2 ms for a runtime's 17,000 functions.
  CfiExtent Extent() const;
  // Whether it is worth asking that: functions would have to be longer than any are on the average (200 bytes).
  bool may_cover_little() const;

  bool on_demand() const { return index_.has_value(); }
  const std::optional<CompiledCfi>& compiled() const { return compiled_; }
  size_t memory_bytes() const {
    return (compiled_ ? compiled_->memory_bytes() : 0) + (supplement_ ? supplement_->memory_bytes() : 0);
  }

 private:
  explicit CfiTable(const ElfImage& image) : image_(image) {}
  CfiAnswer OnDemand(VirtualAddress address) const;

  ElfImage image_;
  std::optional<EhFrameTable> index_;
  std::optional<CompiledCfi> compiled_;
  std::optional<CompiledCfi> supplement_;
};

// Whether this is the code to which a signal handler returns, where the C library or the kernel has no unwind data for
// it: musl on x86-64, the vDSO on arm64. Known by its instructions, which are agreed on for this purpose (Linux:
// arch/arm64/kernel/vdso/sigreturn.S). `address` may be that of either instruction or one byte below the first.
bool IsSignalReturn(const ElfImage& image, VirtualAddress address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_CFI_TABLE_H_
