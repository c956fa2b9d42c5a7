#include "clr/r2r_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/byte_reader.h"
#include "formats/proc/maps_text.h"
#include "os/path_text.h"
#include "process/mounts_identity.h"

namespace clrsampler {
namespace {

// The files that the next short-lived process can use again: CoreLib takes 5 ms to index. The test programs use 5 to 10
// images.
constexpr size_t kMaxIdleFiles = 32;

// Where the last loadable segment of an ELF file ends. Files of a single-file bundle are appended behind it, so a
// mapping in front of it is the host's own code. nullopt: not a 64-bit ELF file.
std::optional<uint64_t> EndOfElfSegments(std::span<const std::byte> file) {
  constexpr uint32_t kElfMagic = 0x464C457F, kLoad = 1;
  if (LoadAt<uint32_t>(file, 0) != kElfMagic || LoadAt<uint8_t>(file, 4) != 2) return std::nullopt;
  const uint64_t table = LoadAt<uint64_t>(file, 32).value_or(0);
  const uint64_t row_bytes = LoadAt<uint16_t>(file, 54).value_or(0);
  const uint64_t rows = LoadAt<uint16_t>(file, 56).value_or(0);
  if (table > file.size() || row_bytes < 56) return std::nullopt;
  uint64_t end = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    const std::optional<std::span<const std::byte>> row = SliceAt(file, table + i * row_bytes, 56);
    if (!row) return std::nullopt;
    if (LoadAt<uint32_t>(*row, 0) != kLoad) continue;
    const uint64_t offset = *LoadAt<uint64_t>(*row, 8), bytes = *LoadAt<uint64_t>(*row, 32);
    if (offset <= file.size() && bytes <= file.size() - offset) end = std::max(end, offset + bytes);
  }
  return end;
}

}  // namespace

void R2rLoadedImage::AskAgain() {
  if (r2r == nullptr || r2r->missing_assemblies().empty()) return;
  r2r->ForgetMissing();
  missing_counted = 0;
  absl::erase_if(names, [](const auto& entry) { return entry.second.retry; });
}

R2rFiles::R2rFiles(ImageFiles* images, R2rMemoryOptions memory, R2rMethodCounters& counters)
    : images_(images),
      counters_(counters),
      most_unpacked_(memory.max_unpacked_bytes),
      most_unpacked_of_one_(memory.max_unpacked_bytes_per_process),
      memory_(std::move(memory)),
      no_host_(std::make_unique<R2rFile>()),
      by_process_([this](ProcessKey, Used& used) { Release(used); }) {}

std::optional<R2rFiles::Place> R2rFiles::Find(const FrameQuery& query) {
  main_loop_.Check();
  if (query.mapping == nullptr) return std::nullopt;
  if (query.lookup_address < query.mapping->start || query.lookup_address >= query.mapping->end) return std::nullopt;
  std::optional<Place> place;
  switch (query.mapping->kind) {
    case MappingKind::kFile:
      place = FindInFile(query);
      break;
    case MappingKind::kJitMemory:
      place = FindInMemory(query);
      break;
    case MappingKind::kVdso:
    case MappingKind::kOther:
      break;
  }
  if (!place || place->image->state == R2rLoadedImage::State::kNoCode) return std::nullopt;
  if (place->rva) {
    const PeSection* section = place->image->r2r->pe().SectionOfRva(*place->rva);
    if (section == nullptr || !section->executable) place->rva.reset();
  }
  return place;
}

bool R2rFiles::IsDamaged(R2rFile& file) {
  main_loop_.Check();
  if (!file.content->content.damaged()) return false;
  if (!std::exchange(file.damage_counted, true)) ++counters_.images_damaged;
  return true;
}

std::optional<R2rFiles::Place> R2rFiles::FindInFile(const FrameQuery& query) {
  main_loop_.Check();
  R2rFile* file = FileOf(query);
  if (file == nullptr) return std::nullopt;
  const uint64_t offset = query.lookup_address - query.mapping->start + query.mapping->file_offset;
  Place place{file, ImageAt(*file, offset)};
  if (place.image == nullptr) return std::nullopt;
  if (place.image->state == R2rLoadedImage::State::kUsable) {
    const PeImage& pe = place.image->r2r->pe();
    place.rva = pe.RvaOfOffset(offset - static_cast<uint64_t>(pe.file().data() - file->content->bytes().data()));
  }
  return place;
}

std::optional<R2rFiles::Place> R2rFiles::FindInMemory(const FrameQuery& query) {
  const std::optional<R2rMemoryImages::Place> found =
      memory_.Find(query.process, *query.mapping, query.lookup_address, query.time);
  if (!found) return std::nullopt;
  const uint64_t rva = query.lookup_address - found->base;
  if (query.lookup_address < found->base || rva >= found->image->memory.bytes().size()) return std::nullopt;
  R2rFile& host = HostOf(query.process);
  std::unique_ptr<R2rLoadedImage>& image = host.memory_images[found->image.get()];
  if (image == nullptr) {
    image = std::make_unique<R2rLoadedImage>();
    image->memory = found->image;
    image->file_name = "image in memory";
    OpenTables(*image, found->image->loaded.pe);
    if (image->r2r != nullptr) {
      if (!image->r2r->name().empty()) image->module = std::string(image->r2r->name());
      image->file_name = image->module.empty() ? "composite image in memory" : absl::StrCat(image->module, ".dll");
    }
  }
  Place place{&host, image.get()};
  if (image->state == R2rLoadedImage::State::kUsable) place.rva = static_cast<uint32_t>(rva);
  return place;
}

R2rFile* R2rFiles::FileOf(const FrameQuery& query) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> content = images_->Get(query.process, *query.mapping);
  if (!content.ok()) {
    ++counters_.unreadable_files;
    return nullptr;
  }
  Sources sources{content->get(), MountsIdentity(query.process), query.mapping->path};
  const std::span<const std::byte> bytes = (*content)->bytes();
  if (!files_.contains(sources) && !LooksLikePe(bytes)) {
    // Every native library comes here. Only the bytes behind its segments can be a bundle.
    const std::optional<uint64_t> end = EndOfElfSegments(bytes);
    if (!end || query.mapping->file_offset < *end) return nullptr;
  }
  return Use(query.process, *content, std::move(sources));
}

R2rFile& R2rFiles::HostOf(const Process& process) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> content = images_->GetByPath(process, process.executable);
  if (!content.ok()) return *no_host_;
  R2rFile* file = Use(process, *content, {content->get(), MountsIdentity(process), process.executable});
  return file == nullptr ? *no_host_ : *file;
}

R2rFile* R2rFiles::Use(const Process& process, const std::shared_ptr<const ImageFile>& content, Sources sources) {
  const std::string path = std::get<2>(sources);
  std::unique_ptr<R2rFile>& slot = files_[std::move(sources)];
  if (slot == nullptr) {
    slot = std::make_unique<R2rFile>();
    slot->content = content;
    slot->path = std::string(WithoutDeletedMark(path));
    slot->is_pe = LooksLikePe(content->bytes());
    if (slot->is_pe) {
      slot->image = ImageRef({.path = slot->path, .file_hash = images_->HashOf(*content)});
    } else {
      absl::StatusOr<BundleManifest> bundle = BundleManifest::Find(content->bytes());
      if (bundle.ok()) {
        slot->bundle = *std::move(bundle);
        ++counters_.bundles;
      }
    }
  }
  R2rFile* file = slot.get();
  if (by_process_.Of(process).insert(file).second) {
    ++file->users;
    for (auto& [offset, image] : file->images) image->AskAgain();
    for (auto& [memory, image] : file->memory_images) image->AskAgain();
  }
  return file;
}

R2rLoadedImage* R2rFiles::ImageAt(R2rFile& file, uint64_t file_offset) {
  uint64_t offset = 0, bytes = file.content->bytes().size();
  absl::string_view name = file.path;
  if (!file.is_pe) {
    const BundleEntry* entry = file.bundle ? file.bundle->At(file_offset) : nullptr;
    if (entry == nullptr) return nullptr;
    offset = entry->offset;
    bytes = entry->bytes;
    name = entry->path;
  }
  std::unique_ptr<R2rLoadedImage>& image = file.images[offset];
  if (image == nullptr) image = OpenImage(file, offset, bytes, FileNameOf(name));
  return image.get();
}

std::unique_ptr<R2rLoadedImage> R2rFiles::OpenImage(const R2rFile& file, uint64_t offset, uint64_t bytes,
                                                    absl::string_view file_name) {
  auto image = std::make_unique<R2rLoadedImage>();
  image->file_name = std::string(file_name);
  image->module = std::string(absl::StripSuffix(file_name, ".dll"));
  const auto content = SliceAt(file.content->bytes(), offset, bytes);
  if (!content || !LooksLikePe(*content)) return image;
  OpenTables(*image, PeImage::Parse(*content));
  return image;
}

void R2rFiles::OpenTables(R2rLoadedImage& image, absl::StatusOr<PeImage> pe) {
  absl::Status status = pe.status();
  if (pe.ok()) {
    absl::StatusOr<std::unique_ptr<R2rImage>> r2r = R2rImage::Open(*std::move(pe), image.module);
    status = r2r.status();
    if (r2r.ok()) image.r2r = *std::move(r2r);
  }
  if (status.ok()) {
    image.state = R2rLoadedImage::State::kUsable;
    ++counters_.images;
  } else if (!absl::IsFailedPrecondition(status)) {  // that code means: no ready-to-run code in it
    image.state = R2rLoadedImage::State::kRefused;
    image.refusal = std::string(status.message());
    ++counters_.images_refused;
  }
}

void R2rFiles::Release(const Used& used) {
  ++ends_;
  for (R2rFile* file : used) {
    if (--file->users == 0) file->idle_since = ends_;
  }
  DropIdleFiles();
}

void R2rFiles::DropIdleFiles() {
  const auto drop_unused = [](R2rFile& file) {
    if (file.memory_images.size() <= kMaxIdleFiles) return;
    absl::erase_if(file.memory_images, [](const auto& entry) { return entry.second->memory.use_count() == 1; });
  };
  drop_unused(*no_host_);
  for (const auto& [sources, file] : files_) drop_unused(*file);
  std::vector<std::pair<uint64_t, Sources>> idle;
  uint64_t unpacked = 0;
  for (const auto& [sources, file] : files_) {
    if (file->users != 0) continue;
    idle.emplace_back(file->idle_since, sources);
    unpacked += file->inflated_bytes;
  }
  std::sort(idle.begin(), idle.end());
  // Files of programs that have ended leave most of the room to those that run.
  const uint64_t most_unpacked = most_unpacked_ / 4;
  for (size_t left = idle.size(), i = 0; left > kMaxIdleFiles || unpacked > most_unpacked; --left, ++i) {
    const auto file = files_.find(idle[i].second);
    unpacked -= file->second->inflated_bytes;
    files_.erase(file);
  }
}

uint64_t R2rFiles::RoomToUnpack(ProcessKey key) const {
  uint64_t all = 0, own = 0;
  for (const auto& [sources, file] : files_) all += file->inflated_bytes;
  if (const Used* const used = by_process_.Find(key); used != nullptr) {
    for (const R2rFile* file : *used) own += file->inflated_bytes;
  }
  return std::min(most_unpacked_ - std::min(most_unpacked_, all),
                  most_unpacked_of_one_ - std::min(most_unpacked_of_one_, own));
}

size_t R2rFiles::heap_bytes() const {
  size_t bytes = 0;
  const auto add = [&](const R2rLoadedImage& image) {
    bytes += sizeof image + image.names.capacity() * sizeof(std::pair<uint32_t, R2rLoadedImage::Named>);
    if (image.r2r != nullptr) bytes += image.r2r->heap_bytes();
    if (image.map) bytes += image.map->heap_bytes();
    if (image.memory != nullptr) bytes += image.memory->copied_bytes;
  };
  for (const auto& [sources, file] : files_) {
    bytes += file->inflated_bytes;
    for (const auto& [offset, image] : file->images) add(*image);
    for (const auto& [memory, image] : file->memory_images) add(*image);
  }
  return bytes;
}

}  // namespace clrsampler
