// The exports of an image, looked up by name as the dynamic linker does it: through the GNU hash table.
//
// Format: "DT_GNU_HASH" as binutils' ld and lld write it (System V gABI supplement; glibc:elf/dl-lookup.c). A miss,
// the usual case when all images of a host are asked, touches one word of the Bloom filter. Without such a table
// the dynamic symbols are gone through one by one. Pure.
#ifndef CLRSAMPLER_FORMATS_ELF_ELF_EXPORTS_H_
#define CLRSAMPLER_FORMATS_ELF_ELF_EXPORTS_H_

#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {

// Borrows from the image's bytes.
class ElfExports {
 public:
  explicit ElfExports(const ElfImage& image);

  // The defined dynamic symbol of that name, any type and version.
  std::optional<ElfSymbol> Find(absl::string_view name) const;

 private:
  // The most entries of a chain or a table without hash that are walked: libraries of a browser export some 100,000
  // symbols.
  static constexpr size_t kMaxSteps = 2'000'000;

  std::optional<ElfSymbol> FindByHash(absl::string_view name) const;
  std::optional<ElfSymbol> Accept(size_t index, absl::string_view name) const;

  std::optional<ElfSymbolTable> symbols_;
  std::span<const std::byte> hash_;  // empty: none
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_ELF_ELF_EXPORTS_H_
