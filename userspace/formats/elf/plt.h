// Finds the function that a stub of the procedure linkage table jumps to (x86-64 psABI 5.2, arm64 ELF ABI).
#ifndef CLRSAMPLER_FORMATS_ELF_PLT_H_
#define CLRSAMPLER_FORMATS_ELF_PLT_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

struct PltStub {
  VirtualAddress start;
  absl::string_view section;  // ".plt", ".plt.sec", ".plt.got", ".iplt"
  absl::string_view target;   // symbol name; empty: the stub does not decode or its slot has no symbol (IRELATIVE)
};

// nullopt: the address is in no such section. Decodes the stub to find its GOT slot and then the relocation of that
// slot, so it does not depend on the order in which a linker writes them. Linear in the number of relocations.
std::optional<PltStub> FindPltStub(const ElfImage& image, VirtualAddress address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_PLT_H_
