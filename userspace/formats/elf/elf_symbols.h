// Finds the function of an image that an address belongs to: a compact sorted index over its symbol tables.
//
// The symbol that wins:
//  - Where several cover an address, the one that starts last: a function inside another one's range is the nearer
//    truth.
//  - Where several start there (aliases), the first by these rules. A function comes before a plain label, and global
//    or weak before local. Then fewer leading underscores count ("malloc", not "__libc_malloc"), global before weak,
//    the shorter name, and the lower bytes (of the first 256). Names of more than 65,536 aliases are not compared.
//  - A symbol without size (hand-written assembly) counts only where no sized symbol does. It ends at the next symbol,
//    with its function in .eh_frame_hdr, at the next function start there, or at the end of its section, whichever
//    comes first. Without .symtab other functions may lie behind it that are not exported. Then it goes only as far as
//    its instructions lead without a call (x86-64), or has no name if nothing but the end of the section ends it
//    (arm64). No more than 16 MiB of an image are followed. So musl's memset does not lend its name to
//    __syscall_cp_asm, where threads wait.
// An address that no symbol covers has no name, never a neighbour's.
//
// Counted are defined STT_FUNC and STT_GNU_IFUNC symbols, and untyped labels in executable sections unless they are
// hidden, assembler-local (".L...") or arm64 mapping symbols ("$x", "$d").
#ifndef CLRSAMPLER_FORMATS_ELF_ELF_SYMBOLS_H_
#define CLRSAMPLER_FORMATS_ELF_ELF_SYMBOLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

struct FunctionSymbol {
  absl::string_view name;  // as in the table, with a version suffix "@@V1.0" if it has one; borrowed from the image
  VirtualAddress start;    // of the range that the name covers here; usually the symbol's own
  VirtualAddress end;      // exclusive
};

// Borrows the images' string tables; 12 bytes per range. Immutable after Build; any thread.
class ElfSymbols {
 public:
  ElfSymbols() = default;

  // `names` has the symbol tables (.symtab and .dynsym are merged): the image itself or its separate debug file. `code`
  // has the code and its unwind table; pass the same image twice when there is no debug file.
  static ElfSymbols Build(const ElfImage& names, const ElfImage& code);

  std::optional<FunctionSymbol> Find(VirtualAddress address) const;

  bool empty() const { return ranges_.empty(); }
  size_t size() const { return ranges_.size(); }
  FunctionSymbol At(size_t index) const;  // by address; precondition: index < size()
  size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }
  // Functions left out: more than 4 GiB above the image's start or below it (damage), or more than kMaxFunctions.
  size_t ignored_symbols() const { return ignored_symbols_; }
  // Symbols of any kind that the tables have beyond ElfSymbolTable::kMaxSymbols.
  size_t symbols_not_read() const { return symbols_not_read_; }

  // The largest programs known (browsers with .symtab) have a little over a million. Bounds what a hostile table costs:
  // 64 MB while building.
  static constexpr size_t kMaxFunctions = 4'000'000;

 private:
  struct Range {
    uint32_t start;  // from base_
    uint32_t bytes;
    uint32_t name;  // offset in strings_[highest bit]
  };
  friend class ElfSymbolsBuilder;

  VirtualAddress base_;
  std::array<ElfSymbolTable, 2> tables_;  // .symtab, .dynsym
  std::vector<Range> ranges_;
  size_t ignored_symbols_ = 0;
  size_t symbols_not_read_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_ELF_SYMBOLS_H_
