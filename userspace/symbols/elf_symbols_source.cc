#include "symbols/elf_symbols_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/elf/cfi_table.h"
#include "formats/elf/code_rows.h"
#include "formats/elf/plt.h"
#include "formats/names/ilc_names.h"
#include "formats/proc/maps_text.h"
#include "os/path_text.h"
#include "symbols/demangle.h"

namespace clrsampler {
namespace {

void SetPlace(VirtualAddress start, VirtualAddress end, Frame& frame) {
  frame.address = start.value;
  frame.size = static_cast<uint32_t>(std::min<uint64_t>(end.value - start.value, UINT32_MAX));
}

bool HasDebugLines(const ElfImage& image) {
  return image.FindSection(".debug_line") != nullptr || image.FindSection(".zdebug_line") != nullptr;
}

// An image may be there again ImageFiles::kAskAgainNs after it could not be had. Stacks that are cached with the reason
// do not make that much longer.
constexpr uint64_t kUnavailableHoldsNs = ImageFiles::kAskAgainNs / 8;

// musl's libc has hidden functions without symbols or unwind data. Calls of them show where they begin. Empty for other
// images.
std::vector<CodeFunction> FunctionsByCode(const ElfImage& image) {
  const absl::StatusOr<CfiTable> table = CfiTable::Open(image);
  if (table.ok() ? !table->may_cover_little() || !table->Extent().is_next_to_none()
                 : !absl::IsNotFound(table.status())) {
    return {};
  }
  absl::StatusOr<CodeRows> code = RowsOfCode(image);
  return code.ok() ? std::move(code->bounds) : std::vector<CodeFunction>();
}

}  // namespace

// One image and the data that was made from it. Each is set once, except frames, `last_used` and the data of a server's
// file.
struct ElfSymbolsSource::Image {
  std::string name;  // file name
  std::string path;  // in the mount namespaces of its processes; the vDSO has none
  ImageRef ref;
  std::shared_ptr<const ImageFile> file;
  std::shared_ptr<const ImageFile> debug_file;
  std::shared_ptr<const ImageFile> lines_file;  // has debug information of lines; nullptr: none is known
  bool lines_fetched = false;
  std::vector<std::byte> vdso_bytes;
  std::optional<ElfImage> elf;  // nullopt: could not be read, every address is `nameless`
  ElfSymbols symbols;
  std::optional<EhFrameTable> functions;
  PltStubs plt;
  std::optional<RuntimeFunctions> runtime;  // of a .NET runtime, read when a function without a symbol is met
  bool runtime_asked = false;
  // The functions of images with next to no unwind data. nullopt: nobody has asked yet.
  std::optional<std::vector<CodeFunction>> functions_by_code;
  bool managed_unnamed = false;  // said so
  // Code of a NativeAOT program that was C#: its methods, and the code that unboxes their owners. Empty: another
  // program.
  std::vector<ElfSection> managed;
  std::string nameless;  // text of the frame of an address without a function
  // By start of the range that the name covers. Names by symbol and by function start are kept apart: a symbol may end
  // before its function does.
  absl::flat_hash_map<uint64_t, FrameId> symbol_frames;
  absl::flat_hash_map<uint64_t, FrameId> function_frames;
  uint64_t last_used = 0;
  std::optional<SymbolFileKey> wanted;  // its symbols are somewhere else
  std::optional<uint64_t> asked_at;     // generation of the symbol files

  size_t bytes() const {
    constexpr size_t kFrameBytes = sizeof(uint64_t) + sizeof(FrameId) + 5;  // and room in the table
    const size_t by_code = functions_by_code ? functions_by_code->capacity() * sizeof(CodeFunction) : 0;
    return sizeof(Image) + index_bytes() + by_code + plt.memory_bytes() +
           (symbol_frames.size() + function_frames.size()) * kFrameBytes;
  }

  std::optional<FunctionBounds> FunctionAt(VirtualAddress address) {
    if (functions) {
      if (const auto function = functions->Find(address)) return function;
    }
    if (!functions_by_code) functions_by_code = FunctionsByCode(*elf);
    const auto above = std::upper_bound(functions_by_code->begin(), functions_by_code->end(), address,
                                        [](VirtualAddress at, const CodeFunction& f) { return at < f.start; });
    if (above != functions_by_code->begin() && address < (above - 1)->end) {
      return FunctionBounds{(above - 1)->start, (above - 1)->end, true};
    }
    // Only the header of a stripped program for arm64 tells where it begins: 13 instructions of libc's.
    constexpr uint64_t kEntryBytes = 64;
    const std::optional<VirtualAddress> entry = elf->entry();
    if (!entry || address < *entry || address.value - entry->value >= kEntryBytes) return std::nullopt;
    return FunctionBounds{*entry, {entry->value + kEntryBytes}, false};
  }

  // A frame of this image.
  Frame NewFrame(FrameKind kind) const {
    Frame frame;
    frame.kind = kind;
    frame.module = name;
    frame.image = ref;
    return frame;
  }

  size_t index_bytes() const { return symbols.memory_bytes() + (runtime ? runtime->memory_bytes() : 0); }

  bool IsManaged(VirtualAddress address) const {
    return std::any_of(managed.begin(), managed.end(), [&](const ElfSection& s) { return s.contains(address); });
  }
};

ElfSymbolsSource::ElfSymbolsSource(ImageFiles& images, FrameTable& frames, Notices& notices, NameStyle style,
                                   Options options)
    : images_(images),
      frames_(frames),
      notices_(notices),
      style_(style),
      symbol_files_(options.symbol_files),
      lines_(options.lines),
      idle_bytes_(options.idle_bytes),
      idle_images_(options.idle_images),
      debug_files_(images, std::move(options.host_debug_root)),
      known_([this] { DropIdleImages(); }) {}

ElfSymbolsSource::~ElfSymbolsSource() = default;

FrameId ElfSymbolsSource::Intern(NameSource source, std::string text, const Image& image) {
  Frame frame = image.NewFrame(FrameKind::kNative);
  frame.source = source;
  frame.text = std::move(text);
  return frames_.Intern(std::move(frame));
}

std::optional<Resolution> ElfSymbolsSource::Resolve(const FrameQuery& query) {
  main_loop_.Check();
  if (query.mapping == nullptr) return std::nullopt;
  const Mapping& mapping = *query.mapping;
  if (mapping.kind != MappingKind::kFile && mapping.kind != MappingKind::kVdso) return std::nullopt;
  if (query.lookup_address < mapping.start || query.lookup_address >= mapping.end) return std::nullopt;
  const MappedImage& known = ImageOf(query.process, mapping, query.time);
  const std::shared_ptr<Image>& image = known.image;
  if (image == nullptr) return std::nullopt;
  image->last_used = ++clock_;
  if (!image->elf) return Resolution{Nameless(*image), MonotonicTime::Min(), known.again};
  TakeFetched(*image);
  const uint64_t inside = query.lookup_address - mapping.start;
  if (mapping.kind == MappingKind::kVdso) {
    if (mapping.end - mapping.start != image->vdso_bytes.size())
      return Resolution{Nameless(*image)};  // a 32-bit process
    return Resolution{NameAt(*image, {image->elf->lowest_address().value + inside})};
  }
  const std::optional<VirtualAddress> address = image->elf->ToAddress({mapping.file_offset + inside});
  if (!address) return std::nullopt;
  return Resolution{NameAt(*image, *address)};
}

std::optional<ElfSymbolsSource::LinePlace> ElfSymbolsSource::LinePlaceOf(const Process& process, const Mapping& mapping,
                                                                         uint64_t lookup_address) {
  main_loop_.Check();
  if (!lines_ || mapping.kind != MappingKind::kFile) return std::nullopt;
  if (lookup_address < mapping.start || lookup_address >= mapping.end) return std::nullopt;
  const std::shared_ptr<Image>& image = ImageOf(process, mapping, MonotonicTime::Min()).image;
  if (image == nullptr || !image->elf) return std::nullopt;
  image->last_used = ++clock_;
  TakeFetched(*image);
  if (image->lines_file == nullptr) return std::nullopt;
  const auto address = image->elf->ToAddress({mapping.file_offset + (lookup_address - mapping.start)});
  if (!address) return std::nullopt;
  return LinePlace{image->lines_file, image->lines_fetched, *address};
}

FrameId ElfSymbolsSource::NameAt(Image& image, VirtualAddress address) {
  if (const std::optional<FunctionSymbol> symbol = image.symbols.Find(address); symbol && !symbol->name.empty()) {
    const auto known = image.symbol_frames.find(symbol->start.value);
    if (known != image.symbol_frames.end()) return known->second;
    Frame frame = image.IsManaged(symbol->start) ? ManagedFrame(*symbol, image) : NativeFrame(*symbol, image);
    frame.source = NameSource::kElfSymbols;
    // A version belongs to the library, and not to the function: "memcpy@@GLIBC_2.14".
    frame.symbol = std::string(symbol->name.substr(0, symbol->name.find('@')));
    SetPlace(symbol->start, symbol->end, frame);
    return Keep(image.symbol_frames, symbol->start, frames_.Intern(std::move(frame)));
  }
  if (const std::optional<PltStub> stub = image.plt.Find(*image.elf, address)) {
    const auto known = image.function_frames.find(stub->start.value);
    if (known != image.function_frames.end()) return known->second;
    if (stub->target.empty()) return Intern(NameSource::kNone, absl::StrCat("[plt ", image.name, "]"), image);
    std::string text = style_ == NameStyle::kRaw     ? std::string(stub->target)
                       : style_ == NameStyle::kShort ? DemangleShort(stub->target)
                                                     : absl::StrCat(image.name, "!", DemangleFull(stub->target));
    absl::StrAppend(&text, "@plt");
    return Keep(image.function_frames, stub->start, Intern(NameSource::kElfSymbols, std::move(text), image));
  }
  const std::optional<FunctionBounds> function = image.FunctionAt(address);
  if (!function) return Nameless(image);
  const auto known = image.function_frames.find(function->start.value);
  if (known != image.function_frames.end()) return known->second;
  return Keep(image.function_frames, function->start, InternStart(*function, image));
}

// The image is one of several processes, which may have room.
FrameId ElfSymbolsSource::Keep(absl::flat_hash_map<uint64_t, FrameId>& frames, VirtualAddress start, FrameId frame) {
  if (!frames_.IsRefusal(frame)) frames.emplace(start.value, frame);
  return frame;
}

FrameId ElfSymbolsSource::Nameless(const Image& image) {
  // This frame stands for the vDSO of 32-bit processes, too, so it is of no build.
  if (&image == vdso_.get())
    return frames_.InternOwn({FrameKind::kNative, NameSource::kNone, image.nameless, image.name, ""});
  return Intern(NameSource::kNone, image.nameless, image);
}

FrameId ElfSymbolsSource::InternStart(const FunctionBounds& function, Image& image) {
  const bool managed = image.IsManaged(function.start);
  if (managed && !std::exchange(image.managed_unnamed, true)) {
    notices_.Add("aot_no_symbols", image.path,
                 absl::StrCat("no names for the managed code of ", image.path,
                              ": it is a NativeAOT program without symbols; keep ", image.name,
                              ".dbg, which its publish writes, beside it"));
  }
  const RuntimeFunction* const named = function.end_known ? RuntimeFunctionAt(function.start, image) : nullptr;
  Frame frame = image.NewFrame(managed ? FrameKind::kAot : FrameKind::kNative);
  frame.source = named != nullptr ? NameSource::kRuntimeTable : NameSource::kFunctionStart;
  if (named == nullptr) {
    frame.text = absl::StrCat(image.name, "!0x", absl::Hex(function.start.value));
  } else {
    frame.text = style_ == NameStyle::kFull ? absl::StrCat(image.name, "!", named->name) : named->name;
  }
  SetPlace(function.start, function.end, frame);
  return frames_.Intern(std::move(frame));
}

// nullptr: the image is no runtime, or its tables do not name this function.
const RuntimeFunction* ElfSymbolsSource::RuntimeFunctionAt(VirtualAddress start, Image& image) {
  if (!std::exchange(image.runtime_asked, true)) {
    absl::StatusOr<RuntimeFunctions> functions = RuntimeFunctions::Read(*image.elf);
    const bool damaged = image.file != nullptr && image.file->content.damaged();
    if (functions.ok() && !functions->all().empty() && !damaged) {
      image.runtime = *std::move(functions);
      ++counters_.runtimes_read;
      counters_.index_bytes += image.runtime->memory_bytes();
    }
  }
  return image.runtime ? image.runtime->StartingAt(start) : nullptr;
}

void ElfSymbolsSource::TakeFetched(Image& image) {
  if (!image.wanted || image.asked_at == symbol_files_->generation()) return;
  image.asked_at = symbol_files_->generation();
  const SymbolFiles::Answer answer = symbol_files_->Get(*image.wanted);
  if (answer.state == SymbolFiles::State::kWaiting) return;
  image.wanted.reset();
  if (answer.state == SymbolFiles::State::kNone) return;
  const absl::StatusOr<ElfImage> debug = ElfImage::Parse(answer.file->bytes());
  if (!debug.ok()) return;
  if (lines_ && image.lines_file == nullptr && HasDebugLines(*debug)) {
    image.lines_file = answer.file;
    image.lines_fetched = true;
  }
  if (image.elf->symtab()) return;  // it has its own names
  ElfSymbols symbols = ElfSymbols::Build(*debug, *image.elf);
  if (symbols.empty() || answer.file->content.damaged()) return;
  counters_.index_bytes += symbols.memory_bytes() - image.symbols.memory_bytes();
  ++counters_.debug_files_fetched;
  image.symbols = std::move(symbols);
  image.debug_file = answer.file;
  image.symbol_frames.clear();
  for (const auto& [start, frame] : std::exchange(image.function_frames, {})) {
    const NameSource source = frames_.at(frame).source;
    if (source != NameSource::kFunctionStart && source != NameSource::kRuntimeTable) continue;
    // The frame stands for every address of the function, so one symbol must cover them all.
    const std::optional<FunctionBounds> function = image.FunctionAt({start});
    if (!function || function->end <= function->start) continue;
    const std::optional<FunctionSymbol> first = image.symbols.Find(function->start);
    const std::optional<FunctionSymbol> last = image.symbols.Find({function->end.value - 1});
    if (!first || !last || first->name.empty() || first->start.value != start || last->start.value != start) continue;
    const FrameId name = NameAt(image, function->start);
    if (!frames_.IsRefusal(name)) late_names_[frame] = name;
  }
}

void ElfSymbolsSource::AddLateNames(absl::flat_hash_map<FrameId, FrameId>& names) {
  main_loop_.Check();
  for (const auto& [sources, image] : by_sources_) {
    if (image->elf) TakeFetched(*image);
  }
  names.insert(late_names_.begin(), late_names_.end());
}

Frame ElfSymbolsSource::NativeFrame(const FunctionSymbol& symbol, const Image& image) const {
  Frame frame = image.NewFrame(FrameKind::kNative);
  if (style_ == NameStyle::kRaw) frame.text = std::string(symbol.name);
  if (style_ == NameStyle::kShort) frame.text = DemangleShort(symbol.name);
  if (style_ == NameStyle::kFull) frame.text = absl::StrCat(image.name, "!", DemangleFull(symbol.name));
  return frame;
}

Frame ElfSymbolsSource::ManagedFrame(const FunctionSymbol& symbol, const Image& image) const {
  const MethodName name = ParseIlcName(symbol.name, image.name);
  Frame frame = image.NewFrame(FrameKind::kAot);
  frame.text = style_ == NameStyle::kRaw ? std::string(symbol.name) : FrameText(name, style_);
  if (!name.module.empty()) frame.module = name.module;
  frame.tier = name.tier;
  return frame;
}

const ElfSymbolsSource::MappedImage& ElfSymbolsSource::ImageOf(const Process& process, const Mapping& mapping,
                                                               MonotonicTime time) {
  MappedImage& known = known_.Of(process, mapping);
  if (known.tried && time < known.again) return known;
  known.tried = true;
  known.again = MonotonicTime::Max();
  if (mapping.kind == MappingKind::kVdso) {
    known.image = Vdso();
    return known;
  }
  const absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.Get(process, mapping);
  if (file.ok()) {
    known.image = Open(process, mapping, *file);
    return known;
  }
  if (absl::IsUnavailable(file.status())) known.again = {time.ns + kUnavailableHoldsNs};
  // It is said once.
  if (known.image == nullptr || known.again == MonotonicTime::Max()) known.image = Failed(mapping.path, file.status());
  return known;
}

std::shared_ptr<ElfSymbolsSource::Image> ElfSymbolsSource::Failed(const std::string& path, const absl::Status& status) {
  ++counters_.images_failed;
  notices_.Add("image_unreadable", path, absl::StrCat("no native names from ", path, ": ", status.message()));
  auto image = std::make_shared<Image>();
  image->name = std::string(FileNameOf(WithoutDeletedMark(path)));
  image->nameless = absl::StrCat("[native: cannot read ", image->name, "]");
  return image;
}

void ElfSymbolsSource::NoteUnchecked(const std::string& path) {
  const CrcBounds bounds;
  notices_.Add(
      "debug_file_unchecked", path,
      absl::StrCat("a debug file of ", path, " is not used: they have no build ids. No checksum is computed of ",
                   "a first file beyond ", bounds.first_file >> 20, " MiB, or beyond ", bounds.of_process >> 20,
                   " MiB for a process or ", bounds.of_all >> 20, " MiB for all at a time"),
      "link the image with --build-id");
}

std::shared_ptr<ElfSymbolsSource::Image> ElfSymbolsSource::Open(const Process& process, const Mapping& mapping,
                                                                const std::shared_ptr<const ImageFile>& file) {
  if (!ElfImage::HasMagic(file->bytes())) return nullptr;
  absl::StatusOr<ElfImage> elf = ElfImage::Parse(file->bytes());
  std::optional<DebugFile> debug;
  if (elf.ok() && (!elf->symtab() || (lines_ && !HasDebugLines(*elf)))) {
    const uint64_t unchecked = debug_files_.unchecked();
    debug = debug_files_.Find(process, mapping.path, file, *elf);
    if (debug_files_.unchecked() > unchecked) NoteUnchecked(mapping.path);
  }
  counters_.debug_files_wrong = debug_files_.mismatches();
  std::shared_ptr<Image>& known = by_sources_[{file.get(), debug ? debug->file.get() : nullptr, mapping.path}];
  if (known == nullptr) known = Index(file, mapping.path, std::move(elf), std::move(debug));
  counters_.images_held = by_sources_.size();
  return known;
}

std::shared_ptr<ElfSymbolsSource::Image> ElfSymbolsSource::Index(std::shared_ptr<const ImageFile> file,
                                                                 std::string path, absl::StatusOr<ElfImage> elf,
                                                                 std::optional<DebugFile> debug) {
  ++counters_.images_read;
  const auto failed = [&](const absl::Status& status) {
    std::shared_ptr<Image> image = Failed(path, status);
    image->file = std::move(file);  // these keep the key of by_sources_ alive
    if (debug) image->debug_file = std::move(debug->file);
    return image;
  };
  if (!elf.ok()) return failed(elf.status());
  auto image = std::make_shared<Image>();
  image->path = std::string(WithoutDeletedMark(path));
  image->name = std::string(FileNameOf(image->path));
  image->ref = ImageRef({image->path, BuildIdText(elf->build_id()), images_.HashOf(*file)});
  image->nameless = absl::StrCat("[native: no symbols ", image->name, "]");
  if (!elf->symtab()) {
    if (debug) {
      image->symbols = ElfSymbols::Build(debug->image, *elf);
      image->debug_file = debug->file;
      ++counters_.debug_files_used;
    } else if (symbol_files_ != nullptr) {
      image->wanted = ElfDebugKey(elf->build_id(), path);
    }
  }
  if (lines_) FindLines(file, *elf, debug, *image);
  if (image->symbols.empty()) image->symbols = ElfSymbols::Build(*elf, *elf);
  if (const size_t left_out = image->symbols.symbols_not_read(); left_out > 0) {
    notices_.Add("symbols_left_out", image->path,
                 absl::StrCat(left_out, " symbols of ", image->path, " are left out: it has more than ",
                              ElfSymbolTable::kMaxSymbols, " of them"));
  }
  if (absl::StatusOr<EhFrameTable> functions = EhFrameTable::Parse(*elf); functions.ok()) {
    image->functions = *std::move(functions);
  }
  if (file->content.damaged() || (image->debug_file != nullptr && image->debug_file->content.damaged())) {
    return failed(absl::DataLossError("it was truncated while it was read"));
  }
  for (const absl::string_view name : {"__managedcode", "__unbox"}) {
    if (const ElfSection* section = elf->FindSection(name)) image->managed.push_back(*section);
  }
  image->elf = *std::move(elf);
  image->file = std::move(file);
  counters_.index_bytes += image->symbols.memory_bytes();
  return image;
}

void ElfSymbolsSource::FindLines(const std::shared_ptr<const ImageFile>& file, const ElfImage& elf,
                                 const std::optional<DebugFile>& debug, Image& image) {
  if (debug) image.debug_file = debug->file;
  if (HasDebugLines(elf)) {
    image.lines_file = file;
  } else if (debug) {
    if (HasDebugLines(debug->image)) image.lines_file = debug->file;
  } else if (symbol_files_ != nullptr) {
    image.wanted = ElfDebugKey(elf.build_id(), image.path);
  }
}

std::shared_ptr<ElfSymbolsSource::Image> ElfSymbolsSource::Vdso() {
  if (vdso_ != nullptr) return vdso_;
  vdso_ = std::make_shared<Image>();
  vdso_->name = "[vdso]";
  const std::span<const std::byte> bytes = images_.Vdso();
  vdso_->vdso_bytes.assign(bytes.begin(), bytes.end());
  absl::StatusOr<ElfImage> elf = ElfImage::Parse(vdso_->vdso_bytes);
  vdso_->nameless = "[native: no symbols [vdso]]";
  if (!elf.ok()) return vdso_;
  vdso_->ref = ImageRef({.build_id = BuildIdText(elf->build_id())});
  vdso_->symbols = ElfSymbols::Build(*elf, *elf);
  if (absl::StatusOr<EhFrameTable> functions = EhFrameTable::Parse(*elf); functions.ok()) {
    vdso_->functions = *std::move(functions);
  }
  vdso_->elf = *std::move(elf);
  return vdso_;
}

void ElfSymbolsSource::DropIdleImages() {
  std::vector<std::pair<uint64_t, Sources>> idle;  // last use, key
  size_t bytes = 0;
  for (const auto& [sources, image] : by_sources_) {
    if (image.use_count() > 1) continue;
    idle.emplace_back(image->last_used, sources);
    bytes += image->bytes();
  }
  if (idle.size() <= idle_images_ && bytes <= idle_bytes_) return;
  std::sort(idle.begin(), idle.end());
  size_t left = idle.size();
  for (const auto& [last_used, sources] : idle) {
    if (left-- <= idle_images_ && bytes <= idle_bytes_) break;
    const auto found = by_sources_.find(sources);
    bytes -= found->second->bytes();
    counters_.index_bytes -= found->second->index_bytes();
    by_sources_.erase(found);
  }
  counters_.images_held = by_sources_.size();
}

}  // namespace clrsampler
