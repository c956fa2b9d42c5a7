#include "clr/r2r_memory_images.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// 65,530 mappings are the kernel's default limit (vm.max_map_count); a line of an anonymous one has 50 bytes.
constexpr size_t kMaxMapsBytes = 16 << 20;
constexpr uint64_t kReservationAlignment = 64 << 10;  // of the runtime's memory reservations (PAL, VIRTUAL_64KB)
// Between header and code of an image lies one mapping; others can be merged or split, but not by much.
constexpr size_t kMaxMappingsBack = 16;
constexpr uint64_t kMaxCandidatesPerMapping = 64;

bool IsAnonymous(absl::string_view path, uint64_t inode) {
  return inode == 0 && (path.empty() || path == "//anon" || path.substr(0, 6) == "[anon:");
}

// A hash of the ranges that were copied, with their places. Everything else of an image is zero.
uint64_t HashOf(std::span<const std::byte> image, const std::vector<RvaRange>& copied) {
  size_t hash = image.size();
  for (const RvaRange& range : copied) {
    hash = absl::HashOf(hash, range.rva, AsText(image.subspan(range.rva, range.bytes)));
  }
  return hash;
}

bool SameContent(const MemoryImage& a, const MemoryImage& b) {
  const std::span<const std::byte> x = a.memory.bytes(), y = b.memory.bytes();
  if (x.size() != y.size() || a.loaded.copied.size() != b.loaded.copied.size()) return false;
  for (size_t i = 0; i < a.loaded.copied.size(); ++i) {
    const RvaRange &one = a.loaded.copied[i], &other = b.loaded.copied[i];
    if (one.rva != other.rva || one.bytes != other.bytes) return false;
    if (std::memcmp(x.data() + one.rva, y.data() + one.rva, one.bytes) != 0) return false;
  }
  return true;
}

}  // namespace

std::map<std::string, uint64_t> R2rMemoryCounters::ByName() const {
  return {{"images", images_copied},
          {"images_shared", images_shared},
          {"images_failed", images_failed},
          {"images_postponed", maps_postponed}};
}

std::optional<R2rMemoryImages::Place> R2rMemoryImages::Find(const Process& process, const Mapping& mapping,
                                                            uint64_t address, MonotonicTime now) {
  main_loop_.Check();
  if (!options_.read_memory || !IsAnonymous(mapping.path, mapping.inode)) return std::nullopt;
  ProcessState& known = states_.Of(process);
  if (known.exec_count != process.exec_count || known.mappings.size() > options_.max_images_per_process) {
    known.mappings.clear();
    known.exec_count = process.exec_count;
  }
  const auto [it, fresh] = known.mappings.try_emplace(mapping.start);
  Known& entry = it->second;
  const uint64_t generation = process.mappings.generation();
  if (!fresh && entry.end == mapping.end) {
    if (entry.place.image == nullptr) return std::nullopt;
    if (entry.confirmed == generation) return entry.place;
    // Something was mapped or unmapped since, so the image may be another one.
    if (process.exited != MonotonicTime::Max() || StillThere(process, entry.place)) {
      entry.confirmed = generation;
      return entry.place;
    }
  }
  if (maps_.process != process.key || maps_.generation != generation) {
    if (!MayReadMaps(known, now)) {
      ++counters_.maps_postponed;
      known.mappings.erase(it);  // asked again by the next sample in it
      return std::nullopt;
    }
    ReadMaps(process, known);
  }
  entry = Known{mapping.end, generation, {}};
  const std::optional<uint64_t> base = FindBase(process, mapping, address);
  if (!base) return std::nullopt;
  entry.place.image = Copy(process, *base);
  entry.place.base = *base;
  if (entry.place.image == nullptr) return std::nullopt;
  return entry.place;
}

bool R2rMemoryImages::MayReadMaps(ProcessState& state, MonotonicTime now) {
  if (now > state.counted) {
    // Beyond this time all of it has come back.
    constexpr uint64_t kAllNs = 2 * kMostMapsLines / kMapsLinesPerSecond * kSecondNs;
    const uint64_t passed_ns = std::min(kAllNs, now.ns - std::min(state.counted, now).ns);
    state.lines_left += static_cast<int64_t>(passed_ns * kMapsLinesPerSecond / kSecondNs);
    state.lines_left = std::min(state.lines_left, kMostMapsLines);
    state.counted = now;
  }
  return state.lines_left > 0;
}

void R2rMemoryImages::ReadMaps(const Process& process, ProcessState& state) {
  const absl::StatusOr<std::string> text = process.files.ReadProc("maps", kMaxMapsBytes);
  ++counters_.maps_read;
  maps_ = MapsText{process.key, process.mappings.generation(), {}};
  if (text.ok()) maps_.lines = ParseMaps(*text).lines;
  state.lines_left -= static_cast<int64_t>(maps_.lines.size());
}

std::optional<uint64_t> R2rMemoryImages::FindBase(const Process& process, const Mapping& mapping, uint64_t address) {
  const std::vector<MapsLine>& lines = maps_.lines;
  const auto after = std::upper_bound(lines.begin(), lines.end(), address,
                                      [](uint64_t a, const MapsLine& line) { return a < line.start; });
  size_t i = static_cast<size_t>(after - lines.begin());
  if (i == 0 || address >= lines[i - 1].end) return std::nullopt;  // gone
  uint64_t below = lines[i - 1].start;
  if (below > mapping.start) return std::nullopt;
  for (size_t back = 0; back < kMaxMappingsBack && --i > 0; ++back) {
    const MapsLine& line = lines[i - 1];
    if (line.end != below || !IsAnonymous(line.path, line.inode)) return std::nullopt;
    below = line.start;
    if (!line.readable || line.writable || line.executable) continue;
    uint64_t base = (line.end - 1) & ~(kReservationAlignment - 1);
    for (uint64_t n = 0; n < kMaxCandidatesPerMapping && base >= line.start; ++n, base -= kReservationAlignment) {
      if (IsBase(process, base, address)) return base;
      if (base < kReservationAlignment) break;
    }
  }
  return std::nullopt;
}

bool R2rMemoryImages::IsBase(const Process& process, uint64_t base, uint64_t address) {
  std::array<std::byte, kImageHeaderBytes> header;
  if (!options_.read_memory(process.key.tgid, base, header)) return false;
  const absl::StatusOr<uint32_t> bytes = LoadedImageBytes(header);
  return bytes.ok() && address - base < *bytes && *bytes <= options_.max_image_bytes;
}

std::shared_ptr<const MemoryImage> R2rMemoryImages::Copy(const Process& process, uint64_t base) {
  std::array<std::byte, kImageHeaderBytes> header;
  if (!options_.read_memory(process.key.tgid, base, header)) return nullptr;
  const absl::StatusOr<uint32_t> bytes = LoadedImageBytes(header);
  if (!bytes.ok() || *bytes < header.size() || *bytes > options_.max_image_bytes) return nullptr;
  absl::StatusOr<SparseMemory> memory = SparseMemory::Reserve(*bytes);
  if (!memory.ok()) {
    ++counters_.images_failed;
    return nullptr;
  }
  const ImageReader read = [&](uint32_t rva, std::span<std::byte> into) {
    return options_.read_memory(process.key.tgid, base + rva, into);
  };
  const uint64_t in_use = BytesInUse();
  const uint64_t room = options_.max_total_bytes - std::min(options_.max_total_bytes, in_use);
  absl::StatusOr<LoadedImage> loaded =
      CopyLoadedImage(read, std::min(room, options_.max_copied_bytes), memory->bytes());
  if (!loaded.ok()) {
    if (!absl::IsFailedPrecondition(loaded.status())) ++counters_.images_failed;
    return nullptr;
  }
  uint64_t copied_bytes = 0;
  for (const RvaRange& range : loaded->copied) copied_bytes += range.bytes;
  counters_.bytes_copied += copied_bytes;
  ++counters_.images_copied;
  const uint64_t hash = HashOf(memory->bytes(), loaded->copied);
  // The address of the bytes stays the same when their owner moves.
  auto image =
      std::make_shared<const MemoryImage>(MemoryImage{*std::move(memory), *std::move(loaded), hash, copied_bytes});

  std::vector<std::weak_ptr<const MemoryImage>>& same_hash = by_hash_[hash];
  for (auto it = same_hash.begin(); it != same_hash.end();) {
    std::shared_ptr<const MemoryImage> other = it->lock();
    if (other == nullptr) {
      it = same_hash.erase(it);
      continue;
    }
    if (SameContent(*other, *image)) {
      ++counters_.images_shared;
      return other;
    }
    ++it;
  }
  same_hash.push_back(image);
  if (by_hash_.size() >= purge_at_) {
    absl::erase_if(by_hash_, [](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(), [](const auto& weak) { return weak.expired(); });
    });
    purge_at_ = 2 * by_hash_.size() + 64;
  }
  return image;
}

uint64_t R2rMemoryImages::BytesInUse() const {
  uint64_t bytes = 0;
  for (const auto& [hash, images] : by_hash_) {
    for (const auto& weak : images) {
      if (const std::shared_ptr<const MemoryImage> image = weak.lock()) bytes += image->copied_bytes;
    }
  }
  return bytes;
}

bool R2rMemoryImages::StillThere(const Process& process, const Place& place) {
  std::array<std::byte, kImageHeaderBytes> header;
  return options_.read_memory(process.key.tgid, place.base, header) &&
         std::memcmp(header.data(), place.image->memory.bytes().data(), header.size()) == 0;
}

}  // namespace clrsampler
