#include "clr/lines/method_lines.h"

#include <utility>

namespace clrsampler {

std::optional<SourcePlace> MethodLines::At(uint32_t native_offset) const {
  AssemblyLines* const lines = assembly->lines();
  if (lines == nullptr) return std::nullopt;
  const std::optional<IlPlace> il = map.Lookup(native_offset, FramePlace::kLeaf);
  std::optional<SourcePlace> place = il ? lines->At(rid, il->il_offset) : std::nullopt;
  if (place) place->kind = kind;
  return place;
}

std::vector<CodeLine> MethodLines::All() const {
  std::vector<CodeLine> lines;
  if (assembly->lines() == nullptr) return lines;
  for (const IlMapEntry& entry : map.entries()) {
    if (!lines.empty() && lines.back().offset == entry.native_offset) continue;
    std::optional<SourcePlace> place = At(entry.native_offset);
    if (!lines.empty() && lines.back().place == place) continue;
    lines.push_back({entry.native_offset, std::move(place)});
  }
  return lines;
}

std::optional<SourcePlace> MethodLines::Begin() const {
  AssemblyLines* const lines = assembly->lines();
  std::optional<SourcePlace> place = lines != nullptr ? lines->BeginOf(rid) : std::nullopt;
  if (place) place->kind = kind;
  return place;
}

}  // namespace clrsampler
