#include "clr/memory/target_images.h"

#include <algorithm>

#include "formats/proc/maps_text.h"
#include "os/clock.h"
#include "process/maps_mapping.h"

namespace clrsampler {

bool TargetImages::MayRead() {
  const MonotonicTime now = clock_.Now();
  // The remainder of a byte is small beside the first page of a file.
  const uint64_t passed_ns = std::min(now.ns - std::min(now, counted_at_).ns, kBytesAtOnce / kBytesASecond * kSecondNs);
  bytes_left_ = std::min(kBytesAtOnce, bytes_left_ + passed_ns * kBytesASecond / kSecondNs);
  counted_at_ = now;
  return bytes_left_ > 0;
}

void TargetImages::Read() {
  const auto text = process_.files.ReadProc("maps", kMaxMapsBytes);
  constexpr uint64_t kPageBytes = 4096;  // the least that a reading costs
  bytes_left_ -= std::min<uint64_t>(bytes_left_, text.ok() ? std::max<uint64_t>(text->size(), kPageBytes) : kPageBytes);
  if (!text.ok()) return;
  mappings_.clear();
  for (const MapsLine& line : ParseMaps(*text).lines) mappings_.push_back(MappingOf(line));
}

const Mapping* TargetImages::Find(uint64_t address) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto next = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                       [](uint64_t value, const Mapping& mapping) { return value < mapping.start; });
    if (next != mappings_.begin() && address < std::prev(next)->end) return &*std::prev(next);
    if (attempt > 0 || !MayRead()) return nullptr;
    Read();
  }
  return nullptr;
}

const Mapping* TargetImages::FileMappingAt(uint64_t address) {
  main_loop_.Check();
  const Mapping* mapping = Find(address);
  return mapping != nullptr && mapping->kind == MappingKind::kFile ? mapping : nullptr;
}

std::optional<MappedContent> TargetImages::ContentAt(uint64_t address) {
  main_loop_.Check();
  const Mapping* mapping = FileMappingAt(address);
  if (mapping == nullptr) return std::nullopt;
  const uint64_t offset = mapping->file_offset + (address - mapping->start);
  absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.Get(process_, *mapping);
  if (!file.ok() || offset >= (*file)->bytes().size()) return std::nullopt;
  return MappedContent{(*file)->bytes().subspan(offset), *std::move(file), mapping->path};
}

AddressRange TargetImages::ImageAround(const Mapping& mapping) {
  main_loop_.Check();
  if (Find(mapping.start) == nullptr) return {mapping.start, mapping.end};
  AddressRange range{mapping.start, mapping.end};
  // In order of addresses, without another file between.
  bool inside = false;
  for (const Mapping& other : mappings_) {
    if (ShowSameFile(other, mapping)) {
      if (!inside) range.begin = other.start;
      inside = true;
      range.end = other.end;
    } else if (inside && other.inode == 0 && other.path.empty() && other.start == range.end) {
      range.end = other.end;  // variables without initial values
      if (range.contains(mapping.start)) break;
    } else if (inside && range.contains(mapping.start)) {
      break;
    } else if (inside && other.inode != 0) {
      inside = false;
    }
  }
  return range;
}

}  // namespace clrsampler
