#include "formats/mip/mip_map.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/mip/little_endian.h"
#include "formats/mip/mip_raw.h"
#include "status/status.h"

namespace clrsampler {
namespace {

uint64_t AlignmentOf(MipLayout layout, bool is_32_bit) { return layout == MipLayout::kOld || !is_32_bit ? 8 : 4; }

// Reads fields one after the other. The first one that is not there makes all further ones 0.
class FieldReader {
 public:
  FieldReader(std::span<const std::byte> bytes, uint64_t offset) : bytes_(bytes), offset_(offset) {}

  template <typename T>
  T Next() {
    const std::optional<T> value = LoadAt<T>(bytes_, offset_);
    missing_ |= !value;
    offset_ += sizeof(T);
    return value.value_or(0);
  }
  absl::string_view Text(uint32_t length) {
    const auto bytes = SliceAt(bytes_, offset_, length);
    missing_ |= !bytes;
    offset_ += length;
    return bytes ? AsText(*bytes) : absl::string_view();
  }
  uint64_t left() const { return missing_ || offset_ > bytes_.size() ? 0 : bytes_.size() - offset_; }
  bool missing() const { return missing_; }
  uint64_t offset() const { return offset_; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t offset_;
  bool missing_ = false;
};

class MapReader {
 public:
  MapReader(std::span<const std::byte> bytes, const MipHeader& header)
      : bytes_(bytes), header_(header), builder_(header.kinds, header.module_hash) {}

  absl::StatusOr<MipMap> Read() {
    const uint64_t alignment = AlignmentOf(header_.layout, header_.is_32_bit);
    uint64_t entry = header_.data_offset;
    while (entry < bytes_.size()) {
      ASSIGN_OR_RETURN(const uint64_t end, ReadEntry(entry));
      entry = (end + alignment - 1) / alignment * alignment;
    }
    map_.profile = std::move(builder_).Build();
    map_.profile.version = header_.version;
    map_.profile.layout = header_.layout;
    RETURN_IF_ERROR(CheckRecords());
    return std::move(map_);
  }

 private:
  // The places of the raw record and of the code, from the start of the raw section.
  struct Addresses {
    int64_t raw, start;
  };
  // Each PC offset is relative to the entry. In the old layout the start of the raw section is relative to it, too.
  // Sums wrap like the addresses of the machine.
  Addresses ReadAddresses(FieldReader& fields, uint64_t entry) const {
    if (header_.layout == MipLayout::kOld) {
      const uint32_t section = fields.Next<uint32_t>(), raw = fields.Next<uint32_t>(), start = fields.Next<uint32_t>();
      return {static_cast<int32_t>(raw - section), static_cast<int32_t>(start - section)};
    }
    const uint64_t section = static_cast<uint64_t>(header_.raw_section_offset) - entry;
    if (header_.is_32_bit) {
      const uint32_t raw = fields.Next<uint32_t>(), start = fields.Next<uint32_t>();
      return {static_cast<int32_t>(raw - static_cast<uint32_t>(section)),
              static_cast<int32_t>(start - static_cast<uint32_t>(section))};
    }
    const uint64_t raw = fields.Next<uint64_t>(), start = fields.Next<uint64_t>();
    return {static_cast<int64_t>(raw - section), static_cast<int64_t>(start - section)};
  }

  // Where it ends.
  absl::StatusOr<uint64_t> ReadEntry(uint64_t entry) {
    FieldReader fields(bytes_, entry);
    const Addresses addresses = ReadAddresses(fields, entry);
    NewMipFunction function{.start_offset = addresses.start};
    function.size = fields.Next<uint32_t>();
    function.cfg_signature = fields.Next<uint32_t>();
    const uint32_t block_count = fields.Next<uint32_t>();
    if (block_count > fields.left() / 4) {
      return Damaged(entry, absl::StrCat("NonEntryBlockCount is ", block_count, ", and the file has room for ",
                                         fields.left() / 4));
    }
    blocks_.clear();
    for (uint32_t i = 0; i < block_count; ++i) blocks_.push_back(fields.Next<uint32_t>());
    const uint32_t name_length = fields.Next<uint32_t>();
    function.name = fields.Text(name_length);
    if (fields.missing()) return Damaged(entry, "the file ends in it");
    // The relocation of what was discarded gives an address of 0, far before the section.
    if (addresses.raw < TraitsOf(header_.layout).header_bytes) {
      ++map_.discarded;
      return fields.offset();
    }
    function.raw_offset = static_cast<uint64_t>(addresses.raw);
    function.block_offsets = blocks_;
    const absl::Status added = builder_.Add(function);
    if (!added.ok()) return Annotate(added, absl::StrFormat("in the entry at byte %#x", entry));
    entries_.push_back(entry);
    return fields.offset();
  }

  // Entries that say the same twice become one. Entries that contradict each other are an error.
  absl::Status CheckRecords() {
    std::vector<uint32_t> order;
    std::vector<MipFunction>& functions = map_.profile.functions;
    if (const std::optional<MipOverlap> overlap = FindMipOverlap(map_.profile, order)) {
      return Damaged(entries_[overlap->second],
                     absl::StrFormat("its record at byte %#x of a raw file overlaps that of the entry at byte %#x",
                                     functions[overlap->second].raw_offset, entries_[overlap->first]));
    }
    std::vector<bool> again(functions.size());
    for (size_t i = 1; i < order.size(); ++i) {
      const MipFunction &one = functions[order[i - 1]], &other = functions[order[i]];
      again[order[i]] = one.raw_offset == other.raw_offset && one.start_offset == other.start_offset &&
                        one.signature == other.signature;
      map_.repeated += again[order[i]];
    }
    if (map_.repeated > 0) {
      size_t index = 0;
      std::erase_if(functions, [&](const MipFunction&) { return again[index++]; });
    }
    return absl::OkStatus();
  }

  static absl::Status Damaged(uint64_t entry, absl::string_view what) {
    return WithHint(absl::DataLossError(
                        absl::StrFormat("the map is damaged in the entry at byte %#x: %s", entry, std::string(what))),
                    "take it from the program itself: clrsampler mip create -p X.mip PROGRAM");
  }

  std::span<const std::byte> bytes_;
  const MipHeader& header_;
  MipProfileBuilder builder_;
  MipMap map_;
  std::vector<uint32_t> blocks_;   // of the entry that is read
  std::vector<uint64_t> entries_;  // offsets of the functions' entries
};

}  // namespace

std::optional<MipOverlap> FindMipOverlap(const MipProfile& profile, std::vector<uint32_t>& order) {
  const std::vector<MipFunction>& functions = profile.functions;
  order.resize(functions.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto less = [&](uint32_t a, uint32_t b) {
    const auto key = [&](uint32_t i) {
      return std::tuple(functions[i].raw_offset, functions[i].start_offset, functions[i].signature, i);
    };
    return key(a) < key(b);
  };
  if (!std::is_sorted(order.begin(), order.end(), less)) std::sort(order.begin(), order.end(), less);
  for (size_t i = 1; i < order.size(); ++i) {
    const MipFunction &one = functions[order[i - 1]], &other = functions[order[i]];
    const uint64_t length = MipRawRecordBytes(profile.kinds, one.block_count);
    const bool shared =
        one.raw_offset == other.raw_offset && length == MipRawRecordBytes(profile.kinds, other.block_count);
    if (!shared && other.raw_offset - one.raw_offset < length) return MipOverlap{order[i - 1], order[i]};
  }
  return std::nullopt;
}

absl::StatusOr<MipMap> ReadMipMap(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const MipHeader header, ParseMipHeader(bytes, MipFileType::kMap));
  return MapReader(bytes, header).Read();
}

absl::StatusOr<std::string> MipMapBytes(const MipProfile& profile, const MipMapShape& shape) {
  std::string bytes;
  AppendMipHeader({.type = MipFileType::kMap,
                   .is_32_bit = shape.is_32_bit,
                   .kinds = profile.kinds,
                   .module_hash = profile.module_hash,
                   .raw_section_offset = shape.raw_section_offset,
                   .layout = shape.layout},
                  bytes);
  const bool old = shape.layout == MipLayout::kOld;
  const bool narrow = old || shape.is_32_bit;
  const uint64_t alignment = AlignmentOf(shape.layout, shape.is_32_bit);
  for (const MipFunction& function : profile.functions) {
    while (bytes.size() % alignment != 0) bytes.push_back('\0');
    if (narrow && (function.raw_offset > std::numeric_limits<int32_t>::max() ||
                   function.start_offset != static_cast<int32_t>(function.start_offset))) {
      return absl::OutOfRangeError(absl::StrFormat("an address of %s does not fit into the 32 bits of such a map",
                                                   profile.QuotedNameOf(function)));
    }
    const uint64_t section = static_cast<uint64_t>(shape.raw_section_offset) - bytes.size();
    const uint64_t raw = function.raw_offset + section;
    const uint64_t start = static_cast<uint64_t>(function.start_offset) + section;
    if (old) AppendLittle<uint32_t>(bytes, static_cast<uint32_t>(section));
    if (narrow) {
      AppendLittle<uint32_t>(bytes, static_cast<uint32_t>(raw));
      AppendLittle<uint32_t>(bytes, static_cast<uint32_t>(start));
    } else {
      AppendLittle<uint64_t>(bytes, raw);
      AppendLittle<uint64_t>(bytes, start);
    }
    AppendLittle<uint32_t>(bytes, function.size);
    AppendLittle<uint32_t>(bytes, function.cfg_signature);
    AppendLittle<uint32_t>(bytes, function.block_count);
    for (const uint32_t offset : profile.OffsetsOf(function)) AppendLittle<uint32_t>(bytes, offset);
    const absl::string_view name = profile.NameOf(function);
    AppendLittle<uint32_t>(bytes, static_cast<uint32_t>(name.size()));
    bytes.append(name.data(), name.size());
  }
  return bytes;
}

}  // namespace clrsampler
