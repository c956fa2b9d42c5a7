#include "clr/lines/method_lines.h"

namespace clrsampler {

std::optional<SourcePlace> MethodLines::At(uint32_t native_offset) const {
  AssemblyLines* const lines = assembly->lines();
  if (lines == nullptr) return std::nullopt;
  const std::optional<IlPlace> il = map.Lookup(native_offset, FramePlace::kLeaf);
  std::optional<SourcePlace> place = il ? lines->At(rid, il->il_offset) : std::nullopt;
  if (place) place->kind = kind;
  return place;
}

std::optional<SourcePlace> MethodLines::Begin() const {
  AssemblyLines* const lines = assembly->lines();
  std::optional<SourcePlace> place = lines != nullptr ? lines->BeginOf(rid) : std::nullopt;
  if (place) place->kind = kind;
  return place;
}

}  // namespace clrsampler
