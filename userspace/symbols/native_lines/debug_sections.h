// The debug sections of an ELF file, by its section headers. Pure.
//
// libdw inflates every debug section when it opens a file, whether it will be read or not.
#ifndef CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_SECTIONS_H_
#define CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace clrsampler {

struct DebugSection {
  absl::string_view name;  // ".debug_" and more; borrowed from the file
  size_t index = 0;        // of its header
  uint64_t type_at = 0;    // where the file has the header's type (sh_type, 4 bytes)
  bool compressed = false;
};

// In the order of their headers. Empty where the file is not ELF64, little-endian, or is damaged.
std::vector<DebugSection> ListDebugSections(std::span<const std::byte> file);

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_NATIVE_LINES_DEBUG_SECTIONS_H_
