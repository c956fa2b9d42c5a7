// Symbols of fixtures by name.
#ifndef CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FIND_SYMBOL_H_
#define CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FIND_SYMBOL_H_

#include <elf.h>

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// The defined symbol of that name, any type; .symtab first.
inline std::optional<ElfSymbol> FindSymbol(const ElfImage& image, absl::string_view name) {
  for (const std::optional<ElfSymbolTable>& table : {image.symtab(), image.dynsym()}) {
    if (!table) continue;
    for (size_t i = 0; i < table->size(); ++i) {
      const ElfSymbol symbol = table->At(i);
      if (symbol.section != SHN_UNDEF && table->NamePrefix(symbol.name, name.size() + 1) == name) return symbol;
    }
  }
  return std::nullopt;
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_FORMATS_ELF_FIND_SYMBOL_H_
