#include "clr/r2r_methods.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clr/r2r_map_file.h"
#include "clr/r2r_unwind_parts.h"
#include "formats/byte_reader.h"
#include "formats/names/async_body.h"
#include "formats/names/runtime_names.h"
#include "formats/pe/bundle_content.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/r2r_image.h"
#include "os/path_text.h"
#include "process/mounts_identity.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxMethodLines = 1 << 16;  // methods of an image

// What the next short-lived process can use again: CoreLib takes 5 ms to index. The test programs use 5 to 10 images.
constexpr size_t kMaxIdleFiles = 32;

// Assemblies unpacked from one compressed bundle: CoreLib has 5 MB without its code. What does not fit is not unpacked,
// and names that need it stay tokens.
constexpr uint64_t kMaxInflatedBytes = 256 << 20;

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

struct R2rMethods::Image {
  enum class State { kUsable, kNoCode, kRefused };
  struct Named {
    FrameId frame;
    bool retry;  // an assembly was missing: another process may see it
  };

  std::shared_ptr<const MemoryImage> memory;  // where the image is in no file; before `r2r`, which points into it
  State state = State::kNoCode;
  std::string file_name;  // "System.Linq.dll"
  std::string module;     // "System.Linq"
  std::string refusal;
  std::unique_ptr<R2rImage> r2r;
  bool map_tried = false;
  std::optional<R2rMapFile> map;
  std::optional<uint64_t> map_asked_at;           // generation of the symbol files; nullopt: no map is wanted yet
  absl::flat_hash_set<std::string> maps_refused;  // signatures of maps that came and were not of this build
  absl::flat_hash_map<uint32_t, Named> names;     // by the function where the method begins
  // By the function where the method begins; nullptr: it has no lines.
  absl::flat_hash_map<uint32_t, std::shared_ptr<const MethodLines>> lines;
  std::vector<std::shared_ptr<const ImageFile>> opened;  // other assemblies, to notice damage
  size_t missing_counted = 0;

  // Another process may see the assemblies that were missing.
  void AskAgain() {
    if (r2r == nullptr || r2r->missing_assemblies().empty()) return;
    r2r->ForgetMissing();
    missing_counted = 0;
    absl::erase_if(names, [](const auto& entry) { return entry.second.retry; });
  }
};

struct R2rMethods::File {
  std::shared_ptr<const ImageFile> content;
  std::string path;  // without " (deleted)"
  bool is_pe = false;
  std::optional<BundleManifest> bundle;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Image>> images;  // by offset in the file
  absl::flat_hash_map<const MemoryImage*, std::unique_ptr<Image>> memory_images;
  absl::flat_hash_map<uint64_t, std::shared_ptr<const std::vector<std::byte>>> inflated;  // by offset in the file
  uint64_t inflated_bytes = 0;
  size_t users = 0;
  uint64_t idle_since = 0;
  bool damage_counted = false;
};

// Assemblies as the target sees them: in the bundle, beside the image, or where the framework is.
class R2rMethods::Assemblies : public AssemblyOpener {
 public:
  Assemblies(ImageFiles* images, const Process& process, File& file, Image& image)
      : images_(images), process_(process), file_(file), image_(image) {}

  std::optional<OpenedAssembly> Open(absl::string_view simple_name) override {
    const std::string file_name = absl::StrCat(simple_name, ".dll");
    if (file_.bundle) {
      const BundleEntry* entry = file_.bundle->Named(file_name);
      if (entry != nullptr && entry->compressed_bytes == 0) {
        const auto bytes = SliceAt(file_.content->bytes(), entry->offset, entry->bytes);
        if (bytes) return OpenedAssembly{*bytes, file_.content};
      } else if (entry != nullptr) {
        if (const auto unpacked = Inflate(*entry)) return OpenedAssembly{*unpacked, unpacked};
      }
    }
    if (file_.path.empty()) return std::nullopt;
    if (std::optional<OpenedAssembly> beside = OpenPath(absl::StrCat(FolderOf(file_.path), file_name))) return beside;
    for (const Mapping& mapping : process_.mappings.all()) {
      const absl::string_view name = FileNameOf(mapping.path);
      if (name != file_name && name != "System.Private.CoreLib.dll") continue;
      if (std::optional<OpenedAssembly> other = OpenPath(absl::StrCat(FolderOf(mapping.path), file_name))) return other;
    }
    return std::nullopt;
  }

 private:
  std::optional<OpenedAssembly> OpenPath(const std::string& path) {
    absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_->GetByPath(process_, path);
    if (!file.ok()) return std::nullopt;
    // Assemblies that lack something are opened again for each new process.
    if (std::find(image_.opened.begin(), image_.opened.end(), *file) == image_.opened.end())
      image_.opened.push_back(*file);
    return OpenedAssembly{(*file)->bytes(), *file};
  }

  // nullptr: damaged or too large. Remembered either way.
  std::shared_ptr<const std::vector<std::byte>> Inflate(const BundleEntry& entry) {
    const auto [it, fresh] = file_.inflated.try_emplace(entry.offset);
    if (!fresh) return it->second;
    absl::StatusOr<std::vector<std::byte>> bytes =
        InflateBundleEntry(file_.content->bytes(), entry, kMaxInflatedBytes - file_.inflated_bytes);
    if (!bytes.ok() || file_.content->content.damaged()) return nullptr;
    file_.inflated_bytes += bytes->size();
    it->second = std::make_shared<const std::vector<std::byte>>(*std::move(bytes));
    return it->second;
  }

  ImageFiles* images_;
  const Process& process_;
  File& file_;
  Image& image_;
};

R2rMethods::R2rMethods(ImageFiles* images, FrameTable* frames, NameStyle style, R2rMemoryOptions memory,
                       SymbolFiles* symbol_files)
    : images_(images),
      frames_(frames),
      style_(style),
      symbol_files_(symbol_files),
      memory_(std::move(memory)),
      no_host_(std::make_unique<File>()) {}

R2rMethods::~R2rMethods() = default;

std::optional<Resolution> R2rMethods::Resolve(const FrameQuery& query) {
  const std::optional<Place> place = Find(query);
  if (!place) return std::nullopt;
  std::optional<Resolution> resolution;
  if (place->image->state == Image::State::kRefused) {
    resolution =
        Unnamed(*place->image, absl::StrCat("[r2r ", place->image->file_name, ": ", place->image->refusal, "]"));
  } else if (place->rva) {
    resolution = ResolveAt(*place->file, query.process, *place->image, *place->rva);
  }
  // Only what was read tells whether the file is still whole, so the question comes last.
  if (place->image->memory == nullptr && IsDamaged(*place->file)) return std::nullopt;
  return resolution;
}

std::optional<R2rMethods::Code> R2rMethods::CodeAt(const FrameQuery& query) {
  const std::optional<Place> place = Find(query);
  if (!place || place->image->r2r == nullptr || !place->rva) return std::nullopt;
  Code code;
  code.image = place->image->r2r.get();
  code.function = code.image->Find(*place->rva);
  code.address = query.lookup_address - *place->rva;
  code.in_memory = place->image->memory != nullptr;
  if (code.in_memory) {
    code.content = place->image->memory;
    return code;
  }
  code.content = place->file->content;
  code.file = place->file->content.get();
  if (IsDamaged(*place->file)) return std::nullopt;
  return code;
}

R2rTables R2rMethods::TablesAt(const Process& process, const Mapping& mapping, uint64_t address) {
  const std::optional<Place> place = FindInFile({process, &mapping, address, address, MonotonicTime::Min()});
  if (!place || place->image->r2r == nullptr || IsDamaged(*place->file)) return {};
  place->image->AskAgain();
  return {place->image->r2r.get(), std::make_unique<Assemblies>(images_, process, *place->file, *place->image)};
}

std::optional<R2rMethods::Place> R2rMethods::Find(const FrameQuery& query) {
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
  if (!place || place->image->state == Image::State::kNoCode) return std::nullopt;
  if (place->rva) {
    const PeSection* section = place->image->r2r->pe().SectionOfRva(*place->rva);
    if (section == nullptr || !section->executable) place->rva.reset();
  }
  return place;
}

bool R2rMethods::IsDamaged(File& file) {
  if (!file.content->content.damaged()) return false;
  if (!std::exchange(file.damage_counted, true)) ++counters_.images_damaged;
  return true;
}

std::optional<R2rMethods::Place> R2rMethods::FindInFile(const FrameQuery& query) {
  File* file = FileOf(query);
  if (file == nullptr) return std::nullopt;
  const uint64_t offset = query.lookup_address - query.mapping->start + query.mapping->file_offset;
  Place place{file, ImageAt(*file, offset)};
  if (place.image == nullptr) return std::nullopt;
  if (place.image->state == Image::State::kUsable) {
    const PeImage& pe = place.image->r2r->pe();
    place.rva = pe.RvaOfOffset(offset - static_cast<uint64_t>(pe.file().data() - file->content->bytes().data()));
  }
  return place;
}

std::optional<R2rMethods::Place> R2rMethods::FindInMemory(const FrameQuery& query) {
  const std::optional<R2rMemoryImages::Place> found = memory_.Find(query.process, *query.mapping, query.lookup_address);
  if (!found) return std::nullopt;
  const uint64_t rva = query.lookup_address - found->base;
  if (query.lookup_address < found->base || rva >= found->image->memory.bytes().size()) return std::nullopt;
  File& host = HostOf(query.process);
  std::unique_ptr<Image>& image = host.memory_images[found->image.get()];
  if (image == nullptr) {
    image = std::make_unique<Image>();
    image->memory = found->image;
    image->file_name = "image in memory";
    OpenTables(*image, found->image->loaded.pe);
    if (image->r2r != nullptr) {
      if (!image->r2r->name().empty()) image->module = std::string(image->r2r->name());
      image->file_name = image->module.empty() ? "composite image in memory" : absl::StrCat(image->module, ".dll");
    }
  }
  Place place{&host, image.get()};
  if (image->state == Image::State::kUsable) place.rva = static_cast<uint32_t>(rva);
  return place;
}

Resolution R2rMethods::ResolveAt(File& file, const Process& process, Image& image, uint32_t rva) {
  const std::optional<R2rFunction> function = image.r2r->Find(rva);
  if (!function && image.r2r->IsMethodCallThunk(rva)) {
    MethodName thunk;
    thunk.kind = MethodKind::kStub;
    thunk.method = "MethodCallThunk";
    return {frames_->Intern(Frame{FrameKind::kR2r, NameSource::kR2rImage, FrameText(thunk, style_), image.module, "",
                                  MethodSymbol(thunk)})};
  }
  if (!function || function->method == R2rFunction::kNoOwner) {
    ++counters_.outside_functions;
    return Unnamed(image, absl::StrCat("[r2r unknown ", image.file_name, "]"));
  }
  if (image.map_asked_at) FetchMap(image);
  const auto known = image.names.find(function->method);
  const FrameId id =
      known != image.names.end() ? known->second.frame : NameMethod(process, file, image, function->method);
  if (function->part != R2rPart::kResumptionStub || frames_->at(id).identity.key == 0) return Resolution{id};
  Frame stub = frames_->at(id);
  stub.identity.body = AsyncBody::kResumptionStub;
  return Resolution{frames_->Intern(std::move(stub))};
}

R2rMethods::File* R2rMethods::FileOf(const FrameQuery& query) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> content = images_->Get(query.process, *query.mapping);
  if (!content.ok()) {
    ++counters_.unreadable_files;
    return nullptr;
  }
  Sources sources{content->get(), MountsIdentity(query.process), query.mapping->path};
  const std::span<const std::byte> bytes = (*content)->bytes();
  if (!files_.contains(sources) && !LooksLikePe(bytes)) {
    // Every native library comes here; only what lies behind its segments can be ours.
    const std::optional<uint64_t> end = EndOfElfSegments(bytes);
    if (!end || query.mapping->file_offset < *end) return nullptr;
  }
  return Use(query.process, *content, std::move(sources));
}

R2rMethods::File& R2rMethods::HostOf(const Process& process) {
  const absl::StatusOr<std::shared_ptr<const ImageFile>> content = images_->GetByPath(process, process.executable);
  if (!content.ok()) return *no_host_;
  File* file = Use(process, *content, {content->get(), MountsIdentity(process), process.executable});
  return file == nullptr ? *no_host_ : *file;
}

R2rMethods::File* R2rMethods::Use(const Process& process, const std::shared_ptr<const ImageFile>& content,
                                  Sources sources) {
  const std::string path = std::get<2>(sources);
  std::unique_ptr<File>& slot = files_[std::move(sources)];
  if (slot == nullptr) {
    slot = std::make_unique<File>();
    slot->content = content;
    slot->path = std::string(absl::StripSuffix(path, " (deleted)"));
    slot->is_pe = LooksLikePe(content->bytes());
    if (!slot->is_pe) {
      absl::StatusOr<BundleManifest> bundle = BundleManifest::Find(content->bytes());
      if (bundle.ok()) {
        slot->bundle = *std::move(bundle);
        ++counters_.bundles;
      }
    }
  }
  File* file = slot.get();
  if (by_process_[process.key].insert(file).second) {
    ++file->users;
    for (auto& [offset, image] : file->images) image->AskAgain();
    for (auto& [memory, image] : file->memory_images) image->AskAgain();
  }
  return file;
}

R2rMethods::Image* R2rMethods::ImageAt(File& file, uint64_t file_offset) {
  uint64_t offset = 0, bytes = file.content->bytes().size();
  absl::string_view name = file.path;
  if (!file.is_pe) {
    const BundleEntry* entry = file.bundle ? file.bundle->At(file_offset) : nullptr;
    if (entry == nullptr) return nullptr;
    offset = entry->offset;
    bytes = entry->bytes;
    name = entry->path;
  }
  std::unique_ptr<Image>& image = file.images[offset];
  if (image == nullptr) image = OpenImage(file, offset, bytes, FileNameOf(name));
  return image.get();
}

std::unique_ptr<R2rMethods::Image> R2rMethods::OpenImage(const File& file, uint64_t offset, uint64_t bytes,
                                                         absl::string_view file_name) {
  auto image = std::make_unique<Image>();
  image->file_name = std::string(file_name);
  image->module = std::string(absl::StripSuffix(file_name, ".dll"));
  const auto content = SliceAt(file.content->bytes(), offset, bytes);
  if (!content || !LooksLikePe(*content)) return image;
  OpenTables(*image, PeImage::Parse(*content));
  return image;
}

void R2rMethods::OpenTables(Image& image, absl::StatusOr<PeImage> pe) {
  absl::Status status = pe.status();
  if (pe.ok()) {
    absl::StatusOr<std::unique_ptr<R2rImage>> r2r = R2rImage::Open(*std::move(pe), image.module);
    status = r2r.status();
    if (r2r.ok()) image.r2r = *std::move(r2r);
  }
  if (status.ok()) {
    image.state = Image::State::kUsable;
    ++counters_.images;
  } else if (!absl::IsFailedPrecondition(status)) {  // that code means: no ready-to-run code in it
    image.state = Image::State::kRefused;
    image.refusal = std::string(status.message());
    ++counters_.images_refused;
  }
}

void R2rMethods::LoadMap(const Process& process, const File& file, Image& image) {
  if (std::exchange(image.map_tried, true) || file.path.empty()) return;
  std::vector<std::string> names;
  for (const PerfMapDebugEntry& entry : image.r2r->pe().PerfMapEntries()) {
    names.push_back(std::string(FileNameOf(entry.file_name)));
  }
  if (names.empty()) return;  // nothing says which map would be right
  names.push_back(absl::StrCat(image.module, ".ni.r2rmap"));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (name.empty()) continue;
    absl::StatusOr<std::shared_ptr<const ImageFile>> text =
        images_->GetByPath(process, absl::StrCat(FolderOf(file.path), name));
    if (!text.ok()) continue;
    absl::StatusOr<R2rMapFile> map = R2rMapFile::Check(*std::move(text), *image.r2r);
    if (!map.ok()) {
      ++counters_.maps_rejected;
      if (notices_ != nullptr) {
        notices_->Add(
            "r2rmap_rejected", image.file_name,
            absl::StrCat("a map of ", image.file_name, " is not used: ", map.status().message()),
            "names come from the image itself; remove the map, or put the one of this build beside the image");
      }
      continue;
    }
    image.map = *std::move(map);
    ++counters_.maps_used;
    return;
  }
}

void R2rMethods::FetchMap(Image& image) {
  if (symbol_files_ == nullptr || image.map || image.map_asked_at == symbol_files_->generation()) return;
  image.map_asked_at = symbol_files_->generation();
  for (const PerfMapDebugEntry& entry : image.r2r->pe().PerfMapEntries()) {
    const std::optional<SymbolFileKey> key = R2rMapKey(entry.signature, entry.version, entry.file_name);
    if (!key || image.maps_refused.contains(key->id)) continue;
    const SymbolFiles::Answer answer = symbol_files_->Get(*key);
    if (answer.state != SymbolFiles::State::kHere) continue;
    absl::StatusOr<R2rMapFile> map = R2rMapFile::Check(answer.file, *image.r2r);
    if (!map.ok()) {
      ++counters_.maps_rejected;
      image.maps_refused.insert(key->id);
      continue;
    }
    image.map = *std::move(map);
    ++counters_.maps_used;
    ++counters_.maps_fetched;
    absl::erase_if(image.names, [](const auto& named) { return named.second.retry; });
    return;
  }
}

std::optional<R2rMethods::Method> R2rMethods::MethodAt(const FrameQuery& query) {
  const std::optional<Place> place = Find(query);
  if (!place || !place->rva || place->image->state != Image::State::kUsable) return std::nullopt;
  const std::optional<R2rCodePlace> code = place->image->r2r->PlaceOf(*place->rva, FramePlace::kLeaf);
  if (!code) return std::nullopt;
  return Method{*place->file, *place->image, *code};
}

std::optional<SourcePlace> R2rMethods::PlaceOf(const FrameQuery& query) {
  if (pdbs_ == nullptr) return std::nullopt;
  const std::optional<Method> method = MethodAt(query);
  const std::shared_ptr<const MethodLines> lines = method ? LinesOf(query.process, *method) : nullptr;
  return lines == nullptr ? std::nullopt : lines->At(method->place.native_offset);
}

std::optional<CodeBody> R2rMethods::BodyOf(const FrameQuery& query) {
  const std::optional<Method> method = MethodAt(query);
  if (!method) return std::nullopt;
  CodeBody body;
  body.start = query.lookup_address - method->place.native_offset;
  body.bytes = CodeBytes(query, *method, body.start);
  if (body.bytes == nullptr) return std::nullopt;
  const bool arm64 = method->image.r2r->pe().machine() == PeMachine::kArm64;
  body.machine = arm64 ? ElfMachine::kArm64 : ElfMachine::kX64;
  if (method->image.memory == nullptr) {  // of images in memory no unwind data was copied
    body.unwind = UnwindPartsOf(*method->image.r2r, method->place.method);
    if (IsDamaged(method->file)) return std::nullopt;
  }
  if (pdbs_ == nullptr) return body;
  if (auto lines = LinesOf(query.process, *method)) body.lines = [lines] { return lines->All(); };
  return body;
}

// nullptr: they are not in the file, or not in the process any more.
std::shared_ptr<const std::string> R2rMethods::CodeBytes(const FrameQuery& query, const Method& method,
                                                         uint64_t start) {
  const PeImage& pe = method.image.r2r->pe();
  const RvaRange range = method.image.r2r->HotCodeOf(method.place.method);
  if (range.bytes > kMaxBodyBytes) return nullptr;
  if (method.image.memory == nullptr) {
    const std::optional<std::span<const std::byte>> content = pe.Bytes(range);
    if (!content) return nullptr;
    auto bytes = std::make_shared<const std::string>(reinterpret_cast<const char*>(content->data()), content->size());
    return IsDamaged(method.file) ? nullptr : bytes;
  }
  // What is there now may be another program's.
  const Process& process = query.process;
  const bool alive = process.exited == MonotonicTime::Max() && process.exec_announced == MonotonicTime::Max();
  if (!alive) return nullptr;
  std::string bytes(range.bytes, '\0');
  if (!memory_.Read(process.key.tgid, start, std::as_writable_bytes(std::span(bytes)))) return nullptr;
  return std::make_shared<const std::string>(std::move(bytes));
}

std::shared_ptr<const MethodLines> R2rMethods::LinesOf(const Process& process, const Method& method) {
  auto& lines = method.image.lines;
  if (lines.size() >= kMaxMethodLines) lines.clear();
  const auto [known, is_new] = lines.try_emplace(method.place.method);
  if (is_new) known->second = ReadLines(process, method.file, method.image, method.place.method);
  return known->second;
}

std::shared_ptr<const MethodLines> R2rMethods::ReadLines(const Process& process, File& file, Image& image,
                                                         uint32_t method) {
  Assemblies assemblies(images_, process, file, image);
  const absl::StatusOr<R2rMethodName> name = image.r2r->Name(method, assemblies);
  // The offsets of a thunk are those of IL that crossgen2 made.
  if (!name.ok() || name->rid == 0 || name->name.async_body == AsyncBody::kThunk) return nullptr;
  const std::string& module = name->name.module;
  std::shared_ptr<AssemblySlot> lines;
  if (module == image.r2r->name()) {
    std::shared_ptr<const void> keep_alive = file.content;
    if (image.memory != nullptr) keep_alive = image.memory;
    lines = pdbs_->Find(process, image.r2r->pe(), keep_alive, file.path, module);
  } else if (const std::optional<OpenedAssembly> component = assemblies.Open(module)) {
    const absl::StatusOr<PeImage> pe = PeImage::Parse(component->bytes);
    if (pe.ok()) lines = pdbs_->Find(process, *pe, component->keep_alive, file.path, module);
  }
  if (lines == nullptr) return nullptr;
  absl::StatusOr<IlMap> map = image.r2r->IlMapOf(method);
  if (!map.ok() || IsDamaged(file)) return nullptr;
  pdbs_->NoteSources(process, *lines, name->rid);
  return std::make_shared<MethodLines>(MethodLines{*std::move(map), std::move(lines), name->rid, LineKind::kOptimised});
}

FrameId R2rMethods::NameMethod(const Process& process, File& file, Image& image, uint32_t method) {
  LoadMap(process, file, image);
  Assemblies assemblies(images_, process, file, image);
  absl::StatusOr<R2rMethodName> own = image.r2r->Name(method, assemblies);
  const size_t missing = image.r2r->missing_assemblies().size();
  counters_.missing_assemblies += missing - std::min(missing, std::exchange(image.missing_counted, missing));
  const bool opened_damaged = std::any_of(image.opened.begin(), image.opened.end(),
                                          [](const auto& assembly) { return assembly->content.damaged(); });
  if (opened_damaged) own = absl::DataLossError("another assembly was truncated while it was read");

  if (!own.ok() || own->method_by_token || own->types_by_token) FetchMap(image);
  const std::optional<R2rFunction> start = image.r2r->Function(method);
  std::optional<absl::string_view> row;
  if (image.map && start && !image.map->damaged()) row = image.map->RowAt(start->begin);

  Frame frame{FrameKind::kR2r, NameSource::kR2rImage, "", image.module, "PreJIT"};
  const bool complete = own.ok() && !own->method_by_token;
  bool agrees = false;
  if (complete && row) {
    const absl::StatusOr<R2rMethodName> replaced = image.r2r->Name(method, assemblies, MethodVariables::kReplaced);
    agrees = replaced.ok() && R2rMapText(replaced->name) == *row;
  }
  if (complete && row && !agrees && !own->types_by_token) {
    ++counters_.map_disagreements;
    if (notices_ != nullptr) {
      notices_->Add("r2rmap_disagrees", image.file_name,
                    absl::StrCat("the map of ", image.file_name, " says other names than the image, whose names stand"),
                    "the map belongs to another build or was edited; remove it");
    }
  }
  // The image's own tables are the truth about its code; a signature does not prove a map's texts.
  const bool use_row = row && (!complete || (own->types_by_token && !agrees));
  if (complete || use_row) {
    MethodName name = use_row ? ParseR2rMapName(*row) : std::move(own->name);
    if (name.module.empty()) name.module = image.module;
    name.tier = frame.tier;
    if (row && (use_row || agrees)) frame.source = NameSource::kR2rMap;
    frame.module = name.module;
    frame.symbol = MethodSymbol(name);
    if (style_ == NameStyle::kShort) frame.identity = IdentityOf(name);
    if (file.is_pe && image.memory == nullptr) frame.module_path = file.path;
    if (start) {
      frame.address = start->begin;
      frame.size = start->end - start->begin;
    }
    frame.text =
        frame.source == NameSource::kR2rMap && style_ == NameStyle::kRaw ? std::string(*row) : FrameText(name, style_);
    ++counters_.methods_named;
    if (!use_row && own->types_by_token) ++counters_.methods_with_type_tokens;
  } else {
    frame.source = NameSource::kNone;
    frame.tier.clear();
    if (own.ok()) {
      frame.text = absl::StrCat("[r2r ", own->name.method, ": assembly ", own->name.module, " not found]");
      ++counters_.methods_by_token;
    } else {
      frame.text = absl::StrCat("[r2r unknown ", image.file_name, "]");
      ++counters_.methods_failed;
    }
  }
  const bool retry = !use_row && (!own.ok() || own->method_by_token || own->types_by_token);
  const FrameId id = frames_->Intern(std::move(frame));
  image.names.emplace(method, Image::Named{id, retry});
  return id;
}

Resolution R2rMethods::Unnamed(const Image& image, std::string text) {
  Resolution resolution{frames_->Intern(Frame{FrameKind::kR2r, NameSource::kNone, std::move(text), image.module, ""})};
  return resolution;
}

void R2rMethods::Forget(ProcessKey key) {
  memory_.Forget(key);
  const auto used = by_process_.find(key);
  if (used == by_process_.end()) return;
  ++forget_count_;
  for (File* file : used->second) {
    if (--file->users == 0) file->idle_since = forget_count_;
  }
  by_process_.erase(used);
  DropIdleFiles();
}

void R2rMethods::DropIdleFiles() {
  const auto drop_unused = [](File& file) {
    if (file.memory_images.size() <= kMaxIdleFiles) return;
    absl::erase_if(file.memory_images, [](const auto& entry) { return entry.second->memory.use_count() == 1; });
  };
  drop_unused(*no_host_);
  for (const auto& [sources, file] : files_) drop_unused(*file);
  std::vector<std::pair<uint64_t, Sources>> idle;
  for (const auto& [sources, file] : files_) {
    if (file->users == 0) idle.emplace_back(file->idle_since, sources);
  }
  if (idle.size() <= kMaxIdleFiles) return;
  std::sort(idle.begin(), idle.end());
  idle.resize(idle.size() - kMaxIdleFiles);
  for (const auto& [since, sources] : idle) files_.erase(sources);
}

size_t R2rMethods::heap_bytes() const {
  size_t bytes = 0;
  const auto add = [&](const Image& image) {
    bytes += sizeof image + image.names.capacity() * sizeof(std::pair<uint32_t, Image::Named>);
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
