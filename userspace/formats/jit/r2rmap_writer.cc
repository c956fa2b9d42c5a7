#include "formats/jit/r2rmap_writer.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace clrsampler {

bool FitsR2rMap(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxR2rMapNameBytes &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '\0' || c == '\n' || c == '\r'; });
}

std::string WriteR2rMap(const R2rMap& map) {
  std::string text = absl::StrCat("FFFFFFFF 00 ", R2rMapSignatureText(map.header), "\n");
  absl::StrAppend(&text, "FFFFFFFE 00 ", map.header.version, "\n");
  absl::StrAppend(&text, "FFFFFFFD 00 ", static_cast<uint32_t>(map.header.os), "\n");
  absl::StrAppend(&text, "FFFFFFFC 00 ", static_cast<uint32_t>(map.header.architecture), "\n");
  absl::StrAppend(&text, "FFFFFFFB 00 ", static_cast<uint32_t>(map.header.abi), "\n");
  for (const R2rMapRow& row : map.rows) {
    if (FitsR2rMap(row.name)) absl::StrAppendFormat(&text, "%08X %02X %s\n", row.rva, row.length, row.name);
  }
  return text;
}

}  // namespace clrsampler
