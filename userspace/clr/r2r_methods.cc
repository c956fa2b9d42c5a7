#include "clr/r2r_methods.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clr/r2r_assemblies.h"
#include "clr/r2r_map_file.h"
#include "clr/r2r_unwind_parts.h"
#include "formats/names/async_body.h"
#include "formats/names/runtime_names.h"
#include "formats/pe/r2r_image.h"
#include "os/path_text.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxMethodLines = 1 << 16;  // methods of an image

}  // namespace

R2rMethods::R2rMethods(ImageFiles* images, FrameTable* frames, NameStyle style, R2rMemoryOptions memory,
                       SymbolFiles* symbol_files)
    : images_(images),
      frames_(frames),
      style_(style),
      symbol_files_(symbol_files),
      files_(images, std::move(memory), counters_) {}

R2rMethods::~R2rMethods() = default;

std::optional<Resolution> R2rMethods::Resolve(const FrameQuery& query) {
  main_loop_.Check();
  const uint64_t postponed = memory_counters().maps_postponed;
  const std::optional<R2rFiles::Place> place = files_.Find(query);
  // An answer must not outlive a look that was not taken.
  if (!place && memory_counters().maps_postponed > postponed) return Postponed(query);
  if (!place) return std::nullopt;
  std::optional<Resolution> resolution;
  if (place->image->state == R2rLoadedImage::State::kRefused) {
    resolution =
        Unnamed(*place->image, absl::StrCat("[r2r ", place->image->file_name, ": ", place->image->refusal, "]"));
  } else if (place->rva) {
    resolution = ResolveAt(*place->file, query.process, *place->image, *place->rva);
  }
  // The file is known to be still whole only after it was read, so the question comes last.
  if (place->image->memory == nullptr && files_.IsDamaged(*place->file)) return std::nullopt;
  return resolution;
}

std::optional<R2rMethods::Code> R2rMethods::CodeAt(const FrameQuery& query) {
  main_loop_.Check();
  const std::optional<R2rFiles::Place> place = files_.Find(query);
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
  if (files_.IsDamaged(*place->file)) return std::nullopt;
  return code;
}

R2rTables R2rMethods::TablesAt(const Process& process, const Mapping& mapping, uint64_t address) {
  main_loop_.Check();
  const std::optional<R2rFiles::Place> place =
      files_.FindInFile({process, &mapping, address, address, MonotonicTime::Min()});
  if (!place || place->image->r2r == nullptr || files_.IsDamaged(*place->file)) return {};
  place->image->AskAgain();
  return {place->image->r2r.get(),
          std::make_unique<R2rAssemblies>(images_, files_, process, *place->file, *place->image)};
}

Resolution R2rMethods::ResolveAt(R2rFile& file, const Process& process, R2rLoadedImage& image, uint32_t rva) {
  const std::optional<R2rFunction> function = image.r2r->Find(rva);
  if (!function && image.r2r->IsMethodCallThunk(rva)) {
    MethodName thunk;
    thunk.kind = MethodKind::kStub;
    thunk.method = "MethodCallThunk";
    Frame frame{FrameKind::kR2r,    NameSource::kR2rImage, FrameText(thunk, style_), image.module, "",
                MethodSymbol(thunk)};
    if (image.memory == nullptr) frame.image = file.image;
    return {frames_->Intern(std::move(frame))};
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

void R2rMethods::LoadMap(const Process& process, const R2rFile& file, R2rLoadedImage& image) {
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

void R2rMethods::FetchMap(R2rLoadedImage& image) {
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
  const std::optional<R2rFiles::Place> place = files_.Find(query);
  if (!place || !place->rva || place->image->state != R2rLoadedImage::State::kUsable) return std::nullopt;
  const std::optional<R2rCodePlace> code = place->image->r2r->PlaceOf(*place->rva, FramePlace::kLeaf);
  if (!code) return std::nullopt;
  return Method{*place->file, *place->image, *code};
}

std::optional<SourcePlace> R2rMethods::PlaceOf(const FrameQuery& query) {
  main_loop_.Check();
  if (pdbs_ == nullptr) return std::nullopt;
  const std::optional<Method> method = MethodAt(query);
  const std::shared_ptr<const MethodLines> lines = method ? LinesOf(query.process, *method) : nullptr;
  return lines == nullptr ? std::nullopt : lines->At(method->place.native_offset);
}

std::optional<CodeBody> R2rMethods::BodyOf(const FrameQuery& query) {
  main_loop_.Check();
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
    if (files_.IsDamaged(method->file)) return std::nullopt;
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
    return files_.IsDamaged(method.file) ? nullptr : bytes;
  }
  // The code there may be another program's by now.
  const Process& process = query.process;
  const bool alive = process.exited == MonotonicTime::Max() && process.exec_announced == MonotonicTime::Max();
  if (!alive) return nullptr;
  std::string bytes(range.bytes, '\0');
  if (!files_.memory().Read(process.key.tgid, start, std::as_writable_bytes(std::span(bytes)))) return nullptr;
  return std::make_shared<const std::string>(std::move(bytes));
}

std::shared_ptr<const MethodLines> R2rMethods::LinesOf(const Process& process, const Method& method) {
  auto& lines = method.image.lines;
  if (lines.size() >= kMaxMethodLines) lines.clear();
  const auto [known, is_new] = lines.try_emplace(method.place.method);
  if (is_new) known->second = ReadLines(process, method.file, method.image, method.place.method);
  return known->second;
}

std::shared_ptr<const MethodLines> R2rMethods::ReadLines(const Process& process, R2rFile& file, R2rLoadedImage& image,
                                                         uint32_t method) {
  R2rAssemblies assemblies(images_, files_, process, file, image);
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
  if (!map.ok() || files_.IsDamaged(file)) return nullptr;
  pdbs_->NoteSources(process, *lines, name->rid);
  return std::make_shared<MethodLines>(MethodLines{*std::move(map), std::move(lines), name->rid, LineKind::kOptimised});
}

absl::StatusOr<R2rMethodName> R2rMethods::OwnName(R2rLoadedImage& image, uint32_t method, AssemblyOpener& assemblies) {
  absl::StatusOr<R2rMethodName> own = image.r2r->Name(method, assemblies);
  const size_t missing = image.r2r->missing_assemblies().size();
  counters_.missing_assemblies += missing - std::min(missing, std::exchange(image.missing_counted, missing));
  const bool opened_damaged = std::any_of(image.opened.begin(), image.opened.end(),
                                          [](const auto& assembly) { return assembly->content.damaged(); });
  if (opened_damaged) return absl::DataLossError("another assembly was truncated while it was read");
  return own;
}

// Whether the row of a map agrees with the image.
bool R2rMethods::Agrees(const R2rLoadedImage& image, uint32_t method, absl::string_view row,
                        AssemblyOpener& assemblies) {
  const absl::StatusOr<R2rMethodName> replaced = image.r2r->Name(method, assemblies, MethodVariables::kReplaced);
  return replaced.ok() && R2rMapText(replaced->name) == row;
}

void R2rMethods::NoteDisagreement(const R2rLoadedImage& image) {
  ++counters_.map_disagreements;
  if (notices_ == nullptr) return;
  notices_->Add("r2rmap_disagrees", image.file_name,
                absl::StrCat("the map of ", image.file_name, " says other names than the image, whose names stand"),
                "the map belongs to another build or was edited; remove it");
}

Frame R2rMethods::UnnamedFrame(const R2rLoadedImage& image, const absl::StatusOr<R2rMethodName>& own) {
  Frame frame{FrameKind::kR2r, NameSource::kNone, "", image.module, ""};
  if (own.ok()) {
    frame.text = absl::StrCat("[r2r ", own->name.method, ": assembly ", own->name.module, " not found]");
    ++counters_.methods_by_token;
  } else {
    frame.text = absl::StrCat("[r2r unknown ", image.file_name, "]");
    ++counters_.methods_failed;
  }
  return frame;
}

// `row` is that of the map if its text is what is reported.
Frame R2rMethods::NamedFrame(const R2rFile& file, const R2rLoadedImage& image, MethodName name,
                             const std::optional<R2rFunction>& start, std::optional<absl::string_view> row) {
  Frame frame{FrameKind::kR2r, row ? NameSource::kR2rMap : NameSource::kR2rImage, "", image.module, "PreJIT"};
  if (name.module.empty()) name.module = image.module;
  name.tier = frame.tier;
  frame.module = name.module;
  frame.symbol = MethodSymbol(name);
  if (style_ == NameStyle::kShort) frame.identity = IdentityOf(name);
  if (image.memory == nullptr) frame.image = file.image;
  if (start) {
    frame.address = start->begin;
    frame.size = start->end - start->begin;
  }
  frame.text = row && style_ == NameStyle::kRaw ? std::string(*row) : FrameText(name, style_);
  ++counters_.methods_named;
  return frame;
}

FrameId R2rMethods::NameMethod(const Process& process, R2rFile& file, R2rLoadedImage& image, uint32_t method) {
  LoadMap(process, file, image);
  R2rAssemblies assemblies(images_, files_, process, file, image);
  absl::StatusOr<R2rMethodName> own = OwnName(image, method, assemblies);
  if (!own.ok() || own->method_by_token || own->types_by_token) FetchMap(image);
  const std::optional<R2rFunction> start = image.r2r->Function(method);
  std::optional<absl::string_view> row;
  if (image.map && start && !image.map->damaged()) row = image.map->RowAt(start->begin);

  const bool complete = own.ok() && !own->method_by_token;
  const bool agrees = complete && row && Agrees(image, method, *row, assemblies);
  if (complete && row && !agrees && !own->types_by_token) NoteDisagreement(image);
  // The image's own tables are the truth about its code; a signature does not prove a map's texts.
  const bool use_row = row && (!complete || (own->types_by_token && !agrees));
  Frame frame;
  if (complete || use_row) {
    if (!use_row && own->types_by_token) ++counters_.methods_with_type_tokens;
    MethodName name = use_row ? ParseR2rMapName(*row) : own->name;
    frame = NamedFrame(file, image, std::move(name), start, use_row || agrees ? row : std::nullopt);
  } else {
    frame = UnnamedFrame(image, own);
  }
  const bool retry = !use_row && (!own.ok() || own->method_by_token || own->types_by_token);
  const FrameId id = frames_->Intern(std::move(frame));
  if (!frames_->IsRefusal(id)) image.names.emplace(method, R2rLoadedImage::Named{id, retry});
  return id;
}

Resolution R2rMethods::Postponed(const FrameQuery& query) {
  const Frame frame{FrameKind::kR2r, NameSource::kNone, "[r2r: too many mappings to look for an image]", "", ""};
  return {frames_->InternOwn(frame), query.time, query.time};
}

Resolution R2rMethods::Unnamed(const R2rLoadedImage& image, std::string text) {
  Resolution resolution{frames_->Intern(Frame{FrameKind::kR2r, NameSource::kNone, std::move(text), image.module, ""})};
  return resolution;
}

}  // namespace clrsampler
