#include "formats/runtime/il_map.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace clrsampler {

absl::StatusOr<IlMap> IlMap::Make(std::vector<IlMapEntry> entries, uint32_t code_bytes) {
  uint32_t previous = 0;
  for (const IlMapEntry& entry : entries) {
    const uint32_t native = entry.native_offset;
    if (&entry == &entries.front() && native != 0) return absl::DataLossError("an IL map does not begin at 0");
    if (native < previous) return absl::DataLossError("the entries of an IL map are not in order");
    if (native > code_bytes) {
      return absl::DataLossError(absl::StrCat("an IL map has an entry at ", native, " of ", code_bytes, " bytes"));
    }
    if (entry.il_offset < IlMapEntry::kEpilog) return absl::DataLossError("an IL map has an impossible IL offset");
    previous = native;
  }
  std::erase_if(entries, [](const IlMapEntry& entry) { return (entry.sources & IlMapEntry::kCallInstruction) != 0; });
  return IlMap(std::move(entries), code_bytes);
}

std::optional<IlPlace> IlMap::Lookup(uint32_t native_offset, FramePlace place) const {
  if (place == FramePlace::kCaller && native_offset-- == 0) return std::nullopt;
  if (native_offset >= code_bytes_) return std::nullopt;
  auto entry = std::upper_bound(entries_.begin(), entries_.end(), native_offset,
                                [](uint32_t offset, const IlMapEntry& row) { return offset < row.native_offset; });
  if (entry == entries_.begin()) return std::nullopt;
  --entry;
  switch (entry->il_offset) {
    case IlMapEntry::kNoMapping:
      return std::nullopt;
    case IlMapEntry::kProlog:
      return IlPlace{0, IlPlaceKind::kProlog};
    case IlMapEntry::kEpilog:
      while (entry != entries_.begin()) {
        --entry;
        if (entry->il_offset >= 0) return IlPlace{static_cast<uint32_t>(entry->il_offset), IlPlaceKind::kEpilog};
      }
      return std::nullopt;
    default:
      return IlPlace{static_cast<uint32_t>(entry->il_offset), IlPlaceKind::kInstruction};
  }
}

}  // namespace clrsampler
