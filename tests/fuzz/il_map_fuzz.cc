// Debug information of a compiled body, read as from another process. The first byte chooses the format and where the
// head begins, and three say how large the code is. The rest is the debug information.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/byte_reader.h"
#include "formats/runtime/il_map_decoder.h"

namespace {

using clrsampler::DebugInfoFormat;
using clrsampler::DebugInfoHeader;
using clrsampler::DebugInfoPart;
using clrsampler::DebugInfoPlace;
using clrsampler::FramePlace;
using clrsampler::IlMap;
using clrsampler::IlMapEntry;
using clrsampler::IlPlace;

using Bytes = std::span<const std::byte>;

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

// As it is read of a process: some bytes at a time.
std::optional<DebugInfoHeader> ReadInPieces(DebugInfoFormat format, Bytes info, DebugInfoPlace place) {
  for (int reads = 0; reads < 3; ++reads) {
    const Bytes rest = info.subspan(std::min<uint64_t>(place.offset, info.size()));
    const auto header = clrsampler::ReadDebugInfoHeader(
        format, rest.first(std::min(rest.size(), clrsampler::kDebugInfoHeadBytes)), place);
    if (!header.ok()) return std::nullopt;
    if (!header->needs_more_at) return *header;
    Require(header->needs_more_at->offset > place.offset);
    place = *header->needs_more_at;
  }
  Require(false);
  return std::nullopt;
}

// An answer is the offset of an entry, or the first instruction in the prolog.
void CheckAnswer(const IlMap& map, const std::optional<IlPlace>& answer) {
  if (!answer) return;
  const bool is_prolog = answer->kind == clrsampler::IlPlaceKind::kProlog;
  const int64_t wanted = is_prolog ? IlMapEntry::kProlog : int64_t{answer->il_offset};
  Require(!is_prolog || answer->il_offset == 0);
  Require(std::any_of(map.entries().begin(), map.entries().end(),
                      [&](const IlMapEntry& entry) { return entry.il_offset == wanted; }));
}

void UseMap(const IlMap& map, size_t bounds_bytes, uint32_t code_bytes) {
  Require(map.entries().size() <= bounds_bytes * 2);
  constexpr size_t kMaxEntriesAsked = 200;  // so that one input stays fast
  size_t asked = 0;
  for (const IlMapEntry& entry : map.entries()) {
    if (++asked > kMaxEntriesAsked) break;
    const uint32_t native = entry.native_offset;
    Require(native <= code_bytes);
    Require((entry.sources & IlMapEntry::kCallInstruction) == 0);
    const auto leaf = map.Lookup(native, FramePlace::kLeaf);
    CheckAnswer(map, leaf);
    Require(map.Lookup(native + 1, FramePlace::kCaller) == leaf);
  }
  Require(!map.Lookup(code_bytes, FramePlace::kLeaf).has_value());
  Require(!map.Lookup(0, FramePlace::kCaller).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  constexpr DebugInfoFormat kFormats[] = {DebugInfoFormat::kNet8, DebugInfoFormat::kNet10, DebugInfoFormat::kNet11};
  const DebugInfoFormat format = kFormats[data[0] % 3];
  const DebugInfoPlace start = {static_cast<DebugInfoPart>(data[0] / 3 % 3), 0};
  const uint32_t code_bytes = data[1] | uint32_t{data[2]} << 8 | uint32_t{data[3]} << 16;
  const Bytes info = std::as_bytes(std::span(data + 4, size - 4));

  const auto whole = clrsampler::ReadDebugInfoHeader(format, info, start);
  const std::optional<DebugInfoHeader> header = ReadInPieces(format, info, start);
  if (header && whole.ok() && !whole->needs_more_at) {
    Require(header->bounds_offset == whole->bounds_offset && header->bounds_bytes == whole->bounds_bytes);
  }
  if (header) {
    Require(header->bounds_bytes <= clrsampler::kMaxBoundsBytes);
    if (const auto bounds = clrsampler::SliceAt(info, header->bounds_offset, header->bounds_bytes)) {
      const auto map = clrsampler::DecodeBounds(format, *bounds, code_bytes);
      if (map.ok()) UseMap(*map, bounds->size(), code_bytes);
    }
  }
  const auto map = clrsampler::DecodeBounds(format, info, code_bytes);
  if (map.ok()) UseMap(*map, info.size(), code_bytes);
  return 0;
}
