#include "formats/elf/function_starts.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>

#include "formats/byte_reader.h"
#include "formats/elf/relative_relocations.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxSymbols = 2 << 20;  // as many as there may be bytes of code

void AddSymbols(const ElfSymbolTable& table, const CodeAreas& code, std::vector<CodeIndex>& out) {
  const size_t count = std::min<size_t>(table.size(), kMaxSymbols);
  for (size_t i = 0; i < count; ++i) {
    const ElfSymbol symbol = table.At(i);
    if ((symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC) || symbol.section == SHN_UNDEF) continue;
    if (const CodeIndex at = code.At(symbol.address.value); at != kNoCode) out.push_back(at);
  }
}

}  // namespace

FunctionStarts FunctionStartsOf(const ElfImage& image, const CodeAreas& code) {
  FunctionStarts starts;
  for (const auto& table : {image.symtab(), image.dynsym()}) {
    if (table) AddSymbols(*table, code, starts.symbols);
  }
  const auto entry = LoadAt<uint64_t>(image.bytes(), offsetof(Elf64_Ehdr, e_entry));
  if (entry && *entry != 0) starts.entry = code.At(*entry);
  std::vector<CodeIndex>& symbols = starts.symbols;
  std::erase(symbols, starts.entry);
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  if (const auto relocations = RelativeRelocations::Read(image); relocations.ok()) {
    for (const RelativeRelocation& row : relocations->all()) {
      if (const CodeIndex at = code.At(row.target.value); at != kNoCode) starts.pointers.push_back(at);
    }
  }
  return starts;
}

}  // namespace clrsampler
