// Finds the function that a stub of the procedure linkage table jumps to (x86-64 psABI 5.2, arm64 ELF ABI).
#ifndef CLRSAMPLER_FORMATS_ELF_PLT_H_
#define CLRSAMPLER_FORMATS_ELF_PLT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

struct PltStub {
  VirtualAddress start;
  absl::string_view section;  // ".plt", ".plt.sec", ".plt.got", ".iplt"
  absl::string_view target;   // symbol name; empty: the stub does not decode or its slot has no symbol (IRELATIVE)
};

// The stubs of one image.
class PltStubs {
 public:
  // nullopt: the address is in no such section. Decodes the stub to find its GOT slot and then the relocation of that
  // slot, so it does not depend on the order in which a linker writes them. The first call looks for the sections, and
  // the first one that needs the relocations reads all of them. So later calls do not depend on the number of sections
  // and symbols. `image` is the same each time.
  std::optional<PltStub> Find(const ElfImage& image, VirtualAddress address);

  size_t memory_bytes() const {
    return (sections_ ? sections_->capacity() * sizeof(ElfSection) : 0) +
           (calls_ ? calls_->slots.capacity() * sizeof(Slot) : 0);
  }

 private:
  struct Slot {
    uint64_t address = 0;
    uint32_t symbol = 0;  // number in .dynsym
  };
  struct Calls {
    std::vector<Slot> slots;                // by address
    std::optional<ElfSymbolTable> symbols;  // .dynsym
  };
  static std::vector<ElfSection> SectionsOf(const ElfImage& image);
  static std::vector<Slot> SlotsOf(const ElfImage& image);
  absl::string_view SymbolOf(const ElfImage& image, VirtualAddress slot);

  // nullopt: not read yet.
  std::optional<std::vector<ElfSection>> sections_;  // of stubs, by address
  std::optional<Calls> calls_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_PLT_H_
