#include "formats/runtime/il_map_decoder.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/runtime/nibble_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("debug information: ", what)); }

constexpr uint8_t kFlagPatchpoint = 1;
constexpr uint8_t kFlagRich = 2;

// A copy of the runtime's PatchpointInfo, whose size follows from the method's number of local variables.
struct PatchpointForm {
  uint32_t count_offset;  // of that number, 32 bits
  uint32_t fixed_bytes;   // each local takes 4 more
};
PatchpointForm PatchpointFormOf(DebugInfoFormat format) {
  return format == DebugInfoFormat::kNet8 ? PatchpointForm{8, 32} : PatchpointForm{16, 40};
}
constexpr uint32_t kMaxLocals = 0xFFFF;  // locals and arguments

// The result of reading a part of the head: the place where the next part begins. nullopt: the bytes end before the
// part does.
using NextPlace = absl::StatusOr<std::optional<DebugInfoPlace>>;

// `bytes` begin at the flags.
NextPlace ReadStart(DebugInfoFormat format, std::span<const std::byte> bytes, uint64_t offset) {
  const std::optional<uint8_t> flags = LoadAt<uint8_t>(bytes, 0);
  if (!flags) return std::nullopt;
  if ((*flags & ~(kFlagPatchpoint | kFlagRich)) != 0) return Damaged("unknown flags");
  uint64_t length = sizeof *flags;
  if ((*flags & kFlagPatchpoint) != 0) {
    const PatchpointForm form = PatchpointFormOf(format);
    const std::optional<uint32_t> locals = LoadAt<uint32_t>(bytes, length + form.count_offset);
    if (!locals) return std::nullopt;
    if (*locals > kMaxLocals) return Damaged("a patchpoint of too many locals");
    length += form.fixed_bytes + uint64_t{4} * *locals;
  }
  return DebugInfoPlace{(*flags & kFlagRich) != 0 ? DebugInfoPart::kRich : DebugInfoPart::kSizes, offset + length,
                        (*flags & kFlagPatchpoint) != 0};
}

// `bytes` begin at the size.
NextPlace ReadRich(std::span<const std::byte> bytes, const DebugInfoPlace& place) {
  const std::optional<uint32_t> size = LoadAt<uint32_t>(bytes, 0);
  if (!size) return std::nullopt;
  return DebugInfoPlace{DebugInfoPart::kSizes, place.offset + sizeof *size + *size, place.has_patchpoint};
}

struct ChunkSizes {
  uint32_t bounds = 0;
  uint32_t variables = 0;
  uint32_t uninstrumented = 0;  // of the map of the original instructions, where a profiler changed them
  uint32_t patchpoint = 0;      // of .NET 11
};

// .NET 8 and 9: two numbers. 10: the same, or this mark and three. 11: two numbers, or a 0 and six.
constexpr uint32_t kThreeSizes = UINT32_MAX;

bool ReadNumbers(NibbleReader& reader, std::initializer_list<uint32_t*> numbers) {
  for (uint32_t* const number : numbers) {
    const std::optional<uint32_t> value = reader.Number();
    if (!value) return false;
    *number = *value;
  }
  return true;
}

bool ReadSizes(DebugInfoFormat format, NibbleReader& reader, ChunkSizes& sizes) {
  if (!ReadNumbers(reader, {&sizes.bounds})) return false;
  if (format == DebugInfoFormat::kNet10 && sizes.bounds == kThreeSizes) {
    return ReadNumbers(reader, {&sizes.bounds, &sizes.uninstrumented, &sizes.variables});
  }
  if (format == DebugInfoFormat::kNet11 && sizes.bounds == 0) {
    uint32_t rich = 0, async = 0;
    return ReadNumbers(reader,
                       {&sizes.bounds, &sizes.variables, &sizes.uninstrumented, &sizes.patchpoint, &rich, &async});
  }
  return ReadNumbers(reader, {&sizes.variables});
}

// The chunks lie behind the sizes: bounds, uninstrumented, variables in .NET 10, and bounds, variables, uninstrumented
// in 11. `bytes` begin at the sizes. nullopt: they end before the sizes do, or a size is no number.
absl::StatusOr<std::optional<DebugInfoHeader>> ReadChunks(DebugInfoFormat format, std::span<const std::byte> bytes,
                                                          const DebugInfoPlace& place) {
  NibbleReader reader(bytes);
  ChunkSizes sizes;
  if (!ReadSizes(format, reader, sizes)) return std::nullopt;
  if (!reader.AlignToByte()) return Damaged("the bits that fill up the sizes are not 0");
  DebugInfoHeader header;
  header.has_patchpoint = place.has_patchpoint || sizes.patchpoint != 0;
  header.bounds_offset = place.offset + reader.bytes_used();
  header.bounds_bytes = sizes.bounds;
  if (sizes.uninstrumented != 0) {
    header.bounds_offset += uint64_t{sizes.bounds} + (format == DebugInfoFormat::kNet11 ? sizes.variables : 0);
    header.bounds_bytes = sizes.uninstrumented;
  }
  if (header.bounds_bytes <= kMaxBoundsBytes) return header;
  return Damaged(absl::StrCat("an IL map of ", header.bounds_bytes, " bytes"));
}

// Entries as they are decoded.
class EntryList {
 public:
  explicit EntryList(uint32_t count) { entries_.reserve(count); }

  // `il_value`: the IL offset as it is written, 0 being the lowest. False: impossible.
  bool Append(uint32_t native_delta, uint32_t il_value, uint32_t sources) {
    native_ += native_delta;
    const int64_t il_offset = int64_t{il_value} + IlMapEntry::kEpilog;
    if (native_ > IlMapEntry::kMaxNativeOffset || il_offset > INT32_MAX) return false;
    IlMapEntry& entry = entries_.emplace_back();
    entry.native_offset = native_ & IlMapEntry::kMaxNativeOffset;
    entry.sources = sources & kAllSources;
    entry.il_offset = static_cast<int32_t>(il_offset);
    return true;
  }

  std::vector<IlMapEntry> Take() { return std::move(entries_); }

 private:
  static constexpr uint32_t kAllSources = IlMapEntry::kCallInstruction | IlMapEntry::kStackEmpty | IlMapEntry::kAsync;

  std::vector<IlMapEntry> entries_;
  uint64_t native_ = 0;
};

// The kinds of sources of .NET 8 and 9, as bits. Only two of them mean something to us.
constexpr uint32_t kSource8StackEmpty = 0x02;
constexpr uint32_t kSource8CallInstruction = 0x10;
constexpr uint32_t kSource8All = 0x1F;

absl::StatusOr<std::vector<IlMapEntry>> DecodeNibbles(std::span<const std::byte> bounds) {
  constexpr size_t kMinEntryNibbles = 3;
  NibbleReader reader(bounds);
  const std::optional<uint32_t> count = reader.Number();
  if (!count || *count == 0 || *count > bounds.size() * 2 / kMinEntryNibbles) return Damaged("an impossible count");
  EntryList entries(*count);
  for (uint32_t i = 0; i < *count; ++i) {
    uint32_t native_delta = 0, il_value = 0, source = 0;
    if (!ReadNumbers(reader, {&native_delta, &il_value, &source})) return Damaged("an IL map is cut off");
    const uint32_t sources = ((source & kSource8StackEmpty) != 0 ? IlMapEntry::kStackEmpty : 0) |
                             ((source & kSource8CallInstruction) != 0 ? IlMapEntry::kCallInstruction : 0);
    if ((source & ~kSource8All) != 0 || !entries.Append(native_delta, il_value, sources)) {
      return Damaged("an impossible entry of an IL map");
    }
  }
  if (!reader.AlignToByte() || reader.bytes_used() != bounds.size()) return Damaged("bytes behind an IL map");
  return entries.Take();
}

// Numbers of up to 32 bits, the lowest bit first. The caller keeps within the bytes.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint32_t Number(uint32_t bits) {
    uint64_t window = 0;
    const size_t first = position_ / 8;
    for (size_t i = first; i <= (position_ + bits - 1) / 8; ++i) {
      window |= static_cast<uint64_t>(bytes_[i]) << 8 * (i - first);
    }
    window >>= position_ % 8;
    position_ += bits;
    return static_cast<uint32_t>(window & ((uint64_t{1} << bits) - 1));
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;  // in bits
};

// The description that a packed map has of itself.
struct PackedForm {
  uint32_t count = 0;
  uint32_t source_bits = 0;
  uint32_t native_bits = 0;
  uint32_t il_bits = 0;

  uint32_t entry_bits() const { return source_bits + native_bits + il_bits; }
};

// The writers of .NET 10 miscount the bits of a third entry of five bits. If it is the last one, as that of
// Object..ctor, they go on with 32 bytes of zeros. A fourth entry would be damaged.
uint64_t ZeroBytesBehind(DebugInfoFormat format, const PackedForm& form) {
  return format == DebugInfoFormat::kNet10 && form.entry_bits() == 5 && form.count == 3 ? 32 : 0;
}

// `entries` are the bytes behind the form. Whether the entries take up all of them.
bool FillsUp(DebugInfoFormat format, const PackedForm& form, std::span<const std::byte> entries) {
  if (form.count > entries.size() * 8 / form.entry_bits()) return false;
  const uint64_t bits = uint64_t{form.count} * form.entry_bits();
  const uint64_t used = (bits + 7) / 8;
  if (entries.size() != used && entries.size() != used + ZeroBytesBehind(format, form)) return false;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  return (bits % 8 == 0 || is_zero(entries[used - 1] >> bits % 8)) &&
         std::all_of(entries.begin() + used, entries.end(), is_zero);
}

absl::StatusOr<std::vector<IlMapEntry>> DecodePacked(DebugInfoFormat format, std::span<const std::byte> bounds) {
  NibbleReader reader(bounds);
  PackedForm form;
  form.source_bits = format == DebugInfoFormat::kNet10 ? 2 : 3;
  if (!ReadNumbers(reader, {&form.count, &form.native_bits, &form.il_bits}) || !reader.AlignToByte()) {
    return Damaged("the head of an IL map");
  }
  if (form.count == 0 || form.native_bits >= IlMapEntry::kNativeBits || form.il_bits >= 32) {
    return Damaged("an impossible head of an IL map");
  }
  ++form.native_bits;  // written is the width less one
  ++form.il_bits;
  const std::span<const std::byte> packed = bounds.subspan(reader.bytes_used());
  if (!FillsUp(format, form, packed)) return Damaged("an IL map does not fill its bytes");
  BitReader bits(packed);
  EntryList entries(form.count);
  for (uint32_t i = 0; i < form.count; ++i) {
    const uint32_t sources = bits.Number(form.source_bits);  // our own bits are the same
    const uint32_t native_delta = bits.Number(form.native_bits);
    if (!entries.Append(native_delta, bits.Number(form.il_bits), sources)) {
      return Damaged("an impossible entry of an IL map");
    }
  }
  return entries.Take();
}

}  // namespace

absl::StatusOr<DebugInfoHeader> ReadDebugInfoHeader(DebugInfoFormat format, std::span<const std::byte> bytes,
                                                    DebugInfoPlace from) {
  DebugInfoPlace place = from;
  if (format == DebugInfoFormat::kNet11) place.part = DebugInfoPart::kSizes;
  for (;;) {  // a part is followed by a later one
    const std::span<const std::byte> rest = bytes.subspan(std::min<uint64_t>(place.offset - from.offset, bytes.size()));
    NextPlace next = std::nullopt;
    if (place.part == DebugInfoPart::kSizes) {
      ASSIGN_OR_RETURN(std::optional<DebugInfoHeader> header, ReadChunks(format, rest, place));
      if (header.has_value()) return *header;
    } else {
      next = place.part == DebugInfoPart::kStart ? ReadStart(format, rest, place.offset) : ReadRich(rest, place);
      RETURN_IF_ERROR(next.status());
    }
    if (next->has_value()) {
      place = **next;
    } else if (place.offset == from.offset) {
      return Damaged("its head is cut off, or no number");
    } else {
      return DebugInfoHeader{place};
    }
  }
}

absl::StatusOr<IlMap> DecodeBounds(DebugInfoFormat format, std::span<const std::byte> bounds, uint32_t code_bytes) {
  if (bounds.size() > kMaxBoundsBytes) return Damaged("an IL map is too large");
  std::vector<IlMapEntry> entries;
  if (!bounds.empty()) {
    ASSIGN_OR_RETURN(entries, format == DebugInfoFormat::kNet8 ? DecodeNibbles(bounds) : DecodePacked(format, bounds));
  }
  return IlMap::Make(std::move(entries), code_bytes);
}

}  // namespace clrsampler
