#include "formats/pe/bundle_manifest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// SHA-256 of ".net core bundle". The offset of the manifest stands 8 bytes before it, and is 0 in a host without a
// bundle. The bytes are kept with one byte changed, so that they do not occur in our own program. It would look like a
// host with them.
constexpr std::array<uint8_t, 32> kMarkerPlusOne = {0x8c, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
                                                    0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
                                                    0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae};

// The marker lies in the host's data. Hosts with the runtime in them have it at 12 MB (.NET 8 to 11), and files of the
// bundle follow. A file may have gigabytes that are a hole, and each page of it that is read takes memory.
constexpr size_t kMaxSearchedBytes = 64 << 20;
constexpr uint32_t kMaxEntries = 65536;  // a self-contained .NET 10 application has some 180
constexpr uint32_t kMaxEntryPathBytes = 4096;
// Fixed part of an entry in the smallest version: offset, size, type, and a path of one length byte.
constexpr uint32_t kMinEntryBytes = 18;

std::optional<uint64_t> FindMarker(std::span<const std::byte> host) {
  if (host.empty()) return std::nullopt;  // memmem takes no null pointer
  std::array<uint8_t, 32> marker = kMarkerPlusOne;
  marker[0] -= 1;
  // memchr on a byte that is rare in code, then compare: about 10 GB/s.
  const absl::string_view text = AsText(host).substr(0, kMaxSearchedBytes);
  const absl::string_view needle(reinterpret_cast<const char*>(marker.data()), marker.size());
  const void* found = memmem(text.data(), text.size(), needle.data(), needle.size());
  if (found == nullptr) return std::nullopt;
  return static_cast<uint64_t>(static_cast<const char*>(found) - text.data());
}

// A text with its length before it as a 7-bit-group number (BinaryWriter.Write(string)).
std::optional<absl::string_view> ReadText(std::span<const std::byte> host, uint64_t& offset) {
  uint64_t length = 0;
  for (int shift = 0;; shift += 7) {
    const std::optional<uint8_t> byte = LoadAt<uint8_t>(host, offset);
    if (!byte || shift > 14) return std::nullopt;
    ++offset;
    length |= static_cast<uint64_t>(*byte & 0x7F) << shift;
    if (*byte < 0x80) break;
  }
  const std::optional<std::span<const std::byte>> bytes = SliceAt(host, offset, length);
  if (!bytes || length > kMaxEntryPathBytes) return std::nullopt;
  offset += length;
  return AsText(*bytes);
}

}  // namespace

absl::StatusOr<BundleManifest> BundleManifest::Find(std::span<const std::byte> host) {
  const std::optional<uint64_t> marker = FindMarker(host);
  if (!marker || *marker < 8) return absl::NotFoundError("no single-file bundle");
  uint64_t offset = LoadAt<uint64_t>(host, *marker - 8).value_or(0);
  if (offset == 0) return absl::NotFoundError("a host without a bundle");

  BundleManifest manifest;
  const std::optional<uint32_t> major = LoadAt<uint32_t>(host, offset);
  const std::optional<uint32_t> count = LoadAt<uint32_t>(host, offset + 8);
  if (!major || !count) return absl::DataLossError("the bundle manifest lies outside the file");
  manifest.major_version_ = *major;
  if (*major == 0 || *major > 64) return absl::DataLossError(absl::StrCat("bundle manifest of version ", *major));
  if (*count > kMaxEntries || uint64_t{*count} * kMinEntryBytes > host.size()) {
    return absl::DataLossError(absl::StrCat("bundle manifest with ", *count, " entries"));
  }
  offset += 12;
  if (!ReadText(host, offset)) return absl::DataLossError("the bundle id is damaged");
  if (*major >= 2) offset += 40;  // where deps.json and runtimeconfig.json are, and flags
  manifest.entries_.reserve(*count);
  for (uint32_t i = 0; i < *count; ++i) {
    const std::optional<uint64_t> start = LoadAt<uint64_t>(host, offset);
    const std::optional<uint64_t> bytes = LoadAt<uint64_t>(host, offset + 8);
    offset += 16;
    std::optional<uint64_t> compressed = 0;
    if (*major >= 6) {
      compressed = LoadAt<uint64_t>(host, offset);
      offset += 8;
    }
    const std::optional<uint8_t> type = LoadAt<uint8_t>(host, offset++);
    const std::optional<absl::string_view> path = ReadText(host, offset);
    if (!start || !bytes || !compressed || !type || !path) return absl::DataLossError("the bundle manifest is cut off");
    if (!SliceAt(host, *start, *compressed != 0 ? *compressed : *bytes)) {
      return absl::DataLossError(absl::StrCat("bundle entry ", i, " lies outside the file"));
    }
    manifest.entries_.push_back({*start, *bytes, *compressed, *type, *path});
  }
  std::stable_sort(manifest.entries_.begin(), manifest.entries_.end(), [](const BundleEntry& a, const BundleEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  return manifest;
}

const BundleEntry* BundleManifest::At(uint64_t file_offset) const {
  auto next = std::upper_bound(entries_.begin(), entries_.end(), file_offset,
                               [](uint64_t offset, const BundleEntry& entry) { return offset < entry.offset; });
  if (next == entries_.begin()) return nullptr;
  const BundleEntry& entry = *std::prev(next);
  if (entry.compressed_bytes != 0 || file_offset - entry.offset >= entry.bytes) return nullptr;
  return &entry;
}

const BundleEntry* BundleManifest::Named(absl::string_view path) const {
  for (const BundleEntry& entry : entries_) {
    if (entry.path == path) return &entry;
  }
  return nullptr;
}

}  // namespace clrsampler
