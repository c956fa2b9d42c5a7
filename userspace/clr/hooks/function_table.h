// The functions of an image, from .eh_frame_hdr and .eh_frame, under conditions that make a function's first byte the
// first byte of an instruction, and a position of the file one place in memory.
//
// The runtime in NativeAOT programs has no unwind tables since .NET 9. For these, symbols with a size tell functions
// too, where they agree with each other and with the unwind table.
//
// EhFrameTable looks up one address and stands bad entries. Here all entries are read once, and a table that
// contradicts itself is refused as a whole: it is what says where probes may go.
#ifndef CLRSAMPLER_CLR_HOOKS_FUNCTION_TABLE_H_
#define CLRSAMPLER_CLR_HOOKS_FUNCTION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// Borrows the image's bytes; 24 bytes a function, and 1.5 bits for each place where one could begin. Immutable; any
// thread.
class FunctionTable {
 public:
  // Single-file hosts have 24,000, NativeAOT programs 35,000 and up. The bound holds for either source.
  static constexpr size_t kMaxFunctions = 1'000'000;

  // Errors say what is wrong: there is no table, it is not in order, functions overlap, segments share addresses or
  // file bytes, or there are too many. Entries that are unreadable, or lie outside the executable part
  // of the file, are left out.
  //
  // `symbols`: of exactly this build, or null. Function symbols that overlap another one, or a function of the unwind
  // table, without being the same are left out.
  static absl::StatusOr<FunctionTable> Read(const ElfImage& image, const ElfSymbolTable* symbols = nullptr);

  size_t size() const { return functions_.size(); }
  // By address; precondition of these three: index < size().
  VirtualAddress Start(uint32_t index) const { return functions_[index].start; }
  FileOffset Offset(uint32_t index) const { return functions_[index].offset; }
  std::span<const std::byte> Code(uint32_t index) const {
    return bytes_.subspan(functions_[index].offset.value, functions_[index].code_bytes);
  }
  // The function whose first byte is at `address`.
  std::optional<uint32_t> StartingAt(VirtualAddress address) const {
    const uint32_t index = IndexAt(address);
    return index == kNone ? std::nullopt : std::optional(index);
  }
  // The same for those who ask for each of an image's branches, 114,000 in libcoreclr: an optional is returned by way
  // of memory, which takes longer than the rest. kNone: there is none.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t IndexAt(VirtualAddress address) const;

 private:
  struct Function {
    VirtualAddress start;
    FileOffset offset;
    uint32_t code_bytes;

    VirtualAddress end() const { return {start.value + code_bytes}; }
  };
  absl::Status AddUnwindTable(const ElfImage& image);
  void AddSymbols(const ElfImage& image, const ElfSymbolTable& symbols);
  void IndexStarts();

  std::span<const std::byte> bytes_;
  std::vector<Function> functions_;
  // Where functions start, counted from the first one in units of 1 << unit_bits_ bytes, the largest that all are
  // multiples of: a bit each, and how many there are before each word of bits. Empty: functions lie too far apart.
  std::vector<uint64_t> starts_;
  std::vector<uint32_t> before_;
  int unit_bits_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_HOOKS_FUNCTION_TABLE_H_
