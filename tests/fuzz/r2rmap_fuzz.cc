// Properties: a file that is taken has the header it must have, its rows lie in the text and are bounded by it, and
// written out again it is taken again with the same content.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/jit/r2rmap_parser.h"

namespace clrsampler {
namespace {

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

std::string Written(const R2rMap& map) {
  std::string text =
      absl::StrFormat("FFFFFFFF 00 %s\nFFFFFFFE 00 %u\nFFFFFFFD 00 %u\nFFFFFFFC 00 %u\nFFFFFFFB 00 %u\n",
                      R2rMapSignatureText(map.header), map.header.version, static_cast<uint32_t>(map.header.os),
                      static_cast<uint32_t>(map.header.architecture), static_cast<uint32_t>(map.header.abi));
  for (const R2rMapRow& row : map.rows)
    absl::StrAppend(&text, absl::StrFormat("%08X %02X %s\r\n", row.rva, row.length, row.name));
  return text;
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;  // NOLINT
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<R2rMap> map = ParseR2rMap(text);
  if (!map.ok()) {
    Require(!map.status().message().empty());
    return 0;
  }
  Require(map->header.version == kR2rMapVersion && map->rows.size() <= size / 6);
  for (const R2rMapRow& row : map->rows) {
    Require(row.name.data() >= text.data() && row.name.data() + row.name.size() < text.data() + size);
    Require(uint64_t{row.rva} + row.length <= UINT32_MAX && row.rva < 0xFFFFFFFB);
  }
  const std::string again_text = Written(*map);
  const absl::StatusOr<R2rMap> again = ParseR2rMap(again_text);
  Require(again.ok() && again->rows.size() == map->rows.size() && again->header.signature == map->header.signature);
  for (size_t i = 0; i < map->rows.size(); ++i) {
    Require(again->rows[i].rva == map->rows[i].rva && again->rows[i].length == map->rows[i].length &&
            again->rows[i].name == map->rows[i].name);
  }
  return 0;
}
