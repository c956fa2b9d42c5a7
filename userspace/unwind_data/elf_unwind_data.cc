#include "unwind_data/elf_unwind_data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/code_rows.h"
#include "formats/unwind/arm64_code.h"
#include "formats/unwind/x64_code.h"
#include "unwind_data/managed_functions.h"
#include "unwind_data/return_trap.h"

namespace clrsampler {

struct ElfUnwindData::Image {
  std::string path;
  std::shared_ptr<const ImageFile> file;        // nullptr: the vDSO
  std::shared_ptr<const ImageFile> debug_file;  // where the table is from, if not from `file`
  std::vector<std::byte> vdso_bytes;
  std::optional<ElfImage> elf;
  std::optional<CfiTable> table;  // nullopt: unusable
  ElfSection managed;             // code of NativeAOT's compiler; empty in other images
  // Its own tables cover next to none of its code. Other processes may have a debug file for it.
  bool needs_debug_file = false;
  bool by_code = false;  // has rows made from its instructions
  size_t bytes = 0;
  uint64_t last_used = 0;

  bool damaged() const {
    return (file != nullptr && file->content.damaged()) || (debug_file != nullptr && debug_file->content.damaged());
  }
};

namespace {

// OnHijackTripThread on x86-64: 66 to 84 bytes on 8, 9 and 10.
constexpr uint64_t kReturnTrapBytes = 96;
constexpr uint64_t kArm64InstructionBytes = 4;

bool BeginsWith(std::span<const std::byte> code, std::span<const uint8_t> bytes) {
  return code.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), code.begin(),
                                                   [](uint8_t a, std::byte b) { return a == static_cast<uint8_t>(b); });
}

// Whether `at`, of which `row` speaks, lies behind the first instruction of OnHijackTripThread.
bool IsInReturnTrap(const ElfImage& image, const CfiTable& table, const CfiRow& row, VirtualAddress at) {
  if (image.machine() != ElfMachine::kX64 || row.cfa != CfaRule::kSpOffset || row.cfa_offset < 16 ||
      row.fp != RegisterRule::kSame || at.value < kReturnTrapBytes) {
    return false;
  }
  const uint64_t low = at.value - kReturnTrapBytes;
  const auto code = image.BytesFrom({low});
  if (!code) return false;
  for (size_t i = 0; i < kReturnTrapBytes && i < code->size(); ++i) {
    if (!BeginsReturnTrap(image.machine(), code->subspan(i))) continue;
    // In this function, and not in one behind it.
    for (uint64_t between = low + i + 1; between <= at.value; ++between) {
      const std::optional<CfiRow> other = table.Row({between});
      if (!other || other->cfa_offset < 16) return false;
    }
    return true;
  }
  return false;
}

bool NeedsDebugFile(const absl::StatusOr<CfiTable>& table) {
  if (!table.ok()) return absl::IsNotFound(table.status());
  return table->may_cover_little() && table->Extent().is_next_to_none();
}

// An entry of the PLT, or another jump by memory, leads to other images.
bool LeadsElsewhere(const ElfImage& image, VirtualAddress at) {
  constexpr auto kEndbr = std::to_array<uint8_t>({0xF3, 0x0F, 0x1E, 0xFA});
  constexpr auto kBnd = std::to_array<uint8_t>({0xF2});
  constexpr auto kJump = std::to_array<uint8_t>({0xFF, 0x25});
  auto code = image.BytesFrom(at).value_or(std::span<const std::byte>());
  if (BeginsWith(code, kEndbr)) code = code.subspan(kEndbr.size());
  if (BeginsWith(code, kBnd)) code = code.subspan(kBnd.size());
  return BeginsWith(code, kJump);
}

// Notes whether the instruction that ends at `at` calls, and on x86-64 what it calls.
void NoteCall(const ElfImage& image, VirtualAddress at, CodeAt& code) {
  const uint64_t end = at.value + 1;
  if (image.machine() == ElfMachine::kArm64 && end % kArm64InstructionBytes == 0) {
    const auto bytes = image.BytesFrom({end - kArm64InstructionBytes});
    const std::optional<uint32_t> instruction = bytes ? LoadAt<uint32_t>(*bytes, 0) : std::nullopt;
    code.no_call = instruction && !IsArm64Call(*instruction);
  }
  if (image.machine() != ElfMachine::kX64 || at.value < kMaxCallBytes) return;
  const auto bytes = image.BytesFrom({at.value + 1 - kMaxCallBytes});
  if (!bytes || bytes->size() < kMaxCallBytes) return;
  const CallEnd call = DecodeCallEnd(bytes->first(kMaxCallBytes));
  code.no_call = !call.may_call;
  if (!call.distance || LeadsElsewhere(image, {at.value + 1 + static_cast<uint64_t>(int64_t{*call.distance})})) return;
  code.call_distance = *call.distance;
}

size_t BytesOf(const ElfImage& image) {
  return image.sections().size() * sizeof(ElfSection) + image.segments().size() * sizeof(LoadSegment);
}

// The row of a leaf in NativeAOT's code, where the image's tables do not have it. Its compiler writes no call frame
// information of epilogues. A tenth of its instructions on x86-64 are in epilogues. On arm64 the first row holds from
// the end of the prologue on. `answer` is about `at`.
std::optional<CfiRow> LeafRow(const ElfImage& image, const CfiAnswer& answer, VirtualAddress at) {
  if (at < answer.start || at >= answer.end) return std::nullopt;
  const uint64_t offset = at.value - answer.start.value, bytes = answer.end.value - answer.start.value;
  auto code = image.BytesFrom(answer.start).value_or(std::span<const std::byte>());
  code = code.first(std::min<uint64_t>(code.size(), bytes));
  const std::optional<CfiRow> row = image.machine() == ElfMachine::kX64
                                        ? RowOfEpilogue(code, bytes, offset)
                                        : LinkRegisterRow(DecodeArm64Leaf(code, offset));
  return row == answer.row ? std::nullopt : row;
}

// Leaves on arm64 without unwind data, such as all of newer kernels' vDSO. The code that follows says whether their
// return address is still in the link register.
void FindWithoutRow(const ElfImage& elf, VirtualAddress address, CodeAt& code) {
  // Return addresses less one are no addresses of instructions.
  if (elf.machine() != ElfMachine::kArm64 || address.value % 4 != 0) return;
  for (const uint64_t before : {uint64_t{kArm64BytesBefore}, uint64_t{0}}) {
    const auto bytes = elf.BytesFrom({address.value - std::min(before, address.value)});
    if (!bytes) continue;
    const std::optional<CfiRow> row = LinkRegisterRow(DecodeArm64Leaf(*bytes, std::min(before, address.value)));
    code.has_row = row.has_value();
    if (row) code.row = *row;
    return;
  }
}

}  // namespace

ElfUnwindData::ElfUnwindData(ImageFiles& images, Options options)
    : images_(images), max_bytes_(options.max_bytes), debug_files_(images, std::move(options.host_debug_root)) {}

ElfUnwindData::~ElfUnwindData() = default;

void ElfUnwindData::NoteUnusable(absl::string_view path, absl::string_view reason) {
  ++counters_.images_unusable;
  const bool known = std::any_of(unusable_.begin(), unusable_.end(), [&](const auto& e) { return e.path == path; });
  if (known || unusable_.size() >= kMaxUnusableListed) return;
  unusable_.push_back({std::string(path), std::string(reason)});
}

// Where in the image an address of the mapping lies; nullopt: in none of its segments.
std::optional<VirtualAddress> ElfUnwindData::PlaceIn(const Image& image, const Mapping& mapping, uint64_t address) {
  const uint64_t inside = address - mapping.start;
  if (!image.elf) return std::nullopt;
  if (mapping.kind != MappingKind::kVdso) return image.elf->ToAddress({mapping.file_offset + inside});
  // A 32-bit process has another.
  if (mapping.end - mapping.start != image.vdso_bytes.size()) return std::nullopt;
  return VirtualAddress{image.elf->lowest_address().value + inside};
}

CodeAt ElfUnwindData::Find(const Process& process, const Mapping& mapping, uint64_t address) {
  main_loop_.Check();
  CodeAt code;
  if (mapping.kind != MappingKind::kFile && mapping.kind != MappingKind::kVdso) return code;
  if (address < mapping.start || address >= mapping.end) return code;
  MappedImage& known = known_.Of(process, mapping);
  if (known.state == MappedImage::State::kForeign) return code;
  code.kind = CodeKind::kNative;
  if (known.state == MappedImage::State::kUnusable) return code;
  std::shared_ptr<Image> image = known.image.lock();
  if (image == nullptr) {
    image = Open(process, mapping, known);
    if (image == nullptr) {
      if (known.state == MappedImage::State::kForeign) code.kind = CodeKind::kUnknown;
      code.unavailable = known.state == MappedImage::State::kUnavailable;
      return code;
    }
  }
  image->last_used = ++clock_;
  const std::optional<VirtualAddress> at = PlaceIn(*image, mapping, address);
  if (!at) {
    // A bundle behind a single-file host.
    if (image->elf && mapping.kind == MappingKind::kFile) code.kind = CodeKind::kUnknown;
    return code;
  }
  // This is also done in images that have no unwind data, or have it in a file without code: musl.
  if ((!image->table || image->debug_file != nullptr) && IsSignalReturn(*image->elf, *at)) {
    code.has_row = true;
    code.row.signal_frame = true;
  } else if (!image->table) {
    FindWithoutRow(*image->elf, *at, code);
  } else {
    FindInTable(*image, *at, code);
  }
  return code;
}

void ElfUnwindData::FindInTable(Image& image, VirtualAddress at, CodeAt& code) {
  NoteCall(*image.elf, at, code);
  const CfiAnswer answer = image.table->At(at);
  if (image.damaged()) {
    image.table.reset();
    NoteUnusable(image.path, "it was truncated while it was read");
    return;
  }
  code.has_row = answer.coverage == CfiCoverage::kRow;
  code.between_rows = answer.coverage == CfiCoverage::kBetween;
  if (code.has_row) code.row = answer.row;
  if (code.has_row && image.managed.contains(at)) {
    const std::optional<CfiRow> leaf_row = LeafRow(*image.elf, answer, at);
    code.has_leaf_row = leaf_row.has_value();
    if (leaf_row) code.leaf_row = *leaf_row;
  }
  if (!code.has_row) FindWithoutRow(*image.elf, at, code);
  if (code.has_row && IsInReturnTrap(*image.elf, *image.table, code.row, at)) code.row = RowOfReturnTrap(code.row);
  // At its first byte it has put nothing on the stack yet.
  const ElfMachine machine = image.elf->machine();
  const int called = machine == ElfMachine::kX64 ? 8 : 0;  // the bytes that a call puts there
  if (code.has_row && code.row.cfa == CfaRule::kSpOffset && code.row.cfa_offset == called) {
    const auto there = image.elf->BytesFrom(at).value_or(std::span<const std::byte>());
    const bool aot = image.managed.size != 0 && at == answer.start;
    if (BeginsReturnTrap(machine, there) || (aot && BeginsAotReturnTrap(machine, there))) {
      code.kind = CodeKind::kReturnTrap;
    }
  }
  if (answer.coverage == CfiCoverage::kUnreadable) ++counters_.unreadable_rows;
}

std::shared_ptr<ElfUnwindData::Image> ElfUnwindData::Open(const Process& process, const Mapping& mapping,
                                                          MappedImage& known) {
  const auto before = std::exchange(known.state, MappedImage::State::kImage);
  if (mapping.kind == MappingKind::kVdso) {
    known.image = Vdso();
    return known.image.lock();
  }
  absl::StatusOr<std::shared_ptr<const ImageFile>> file = images_.Get(process, mapping);
  if (!file.ok()) {
    const bool unavailable = absl::IsUnavailable(file.status());
    known.state = unavailable ? MappedImage::State::kUnavailable : MappedImage::State::kUnusable;
    if (before != MappedImage::State::kUnavailable) NoteUnusable(mapping.path, file.status().message());
    return nullptr;
  }
  if (!ElfImage::HasMagic((*file)->bytes())) {
    known.state = MappedImage::State::kForeign;
    return nullptr;
  }
  if (const auto own = by_sources_.find({file->get(), nullptr});
      own != by_sources_.end() && own->second->table && !own->second->needs_debug_file) {
    known.image = own->second;  // it has tables of its own, and needs no debug file
    return own->second;
  }
  absl::StatusOr<ElfImage> elf = ElfImage::Parse((*file)->bytes());
  std::optional<DebugFile> debug;
  absl::StatusOr<CfiTable> table = absl::NotFoundError("no unwind data");
  if (elf.ok() && 4 * BytesOf(*elf) <= max_bytes_) {
    table = CfiTable::Open(*elf);
    if (NeedsDebugFile(table)) debug = debug_files_.Find(process, mapping.path, *file, *elf);
    counters_.debug_files_unchecked = debug_files_.unchecked();
  }
  std::shared_ptr<Image>& shared = by_sources_[{file->get(), debug ? debug->file.get() : nullptr}];
  if (shared == nullptr) {
    shared = Make(*std::move(file), mapping.path, std::move(elf), std::move(table), std::move(debug));
  }
  known.image = shared;
  std::shared_ptr<Image> image = shared;  // eviction moves what is in the map
  Evict(image.get());
  return image;
}

std::shared_ptr<ElfUnwindData::Image> ElfUnwindData::Make(std::shared_ptr<const ImageFile> file, std::string path,
                                                          absl::StatusOr<ElfImage> elf, absl::StatusOr<CfiTable> table,
                                                          std::optional<DebugFile> debug) {
  ++counters_.images_opened;
  auto image = std::make_shared<Image>();
  image->path = std::move(path);
  image->file = std::move(file);
  if (debug) image->debug_file = debug->file;
  const absl::Status status = Fill(*image, std::move(elf), std::move(table), std::move(debug));
  if (!status.ok()) {
    image->table.reset();
    NoteUnusable(image->path, status.message());
  }
  image->bytes = sizeof(Image) + image->path.capacity();
  if (image->elf) image->bytes += BytesOf(*image->elf);
  if (image->table)
    image->bytes += image->table->memory_bytes() + 2 * BytesOf(*image->elf);  // the table's and its index's
  counters_.bytes += image->bytes;
  return image;
}

absl::Status ElfUnwindData::Fill(Image& image, absl::StatusOr<ElfImage> elf, absl::StatusOr<CfiTable> table,
                                 std::optional<DebugFile> debug) {
  if (!elf.ok()) return elf.status();
  if (4 * BytesOf(*elf) > max_bytes_)
    return absl::ResourceExhaustedError("more section headers than there is room for");
  image.elf = *std::move(elf);
  if (const ElfSection* managed = image.elf->FindSection("__managedcode")) image.managed = *managed;
  image.needs_debug_file = NeedsDebugFile(table);
  if (debug) {
    absl::StatusOr<CfiTable> other = CfiTable::OpenCompiled(debug->image);
    if (other.ok()) ++counters_.debug_files_used;
    if (other.ok() && table.ok() && other->compiled()) {
      table->Supplement(*other->compiled());
    } else if (other.ok() || !absl::IsNotFound(other.status())) {
      table = std::move(other);
    }
  }
  // In the end only its instructions are left. musl's libc is such an image.
  if (NeedsDebugFile(table)) {
    const absl::StatusOr<CodeRows> code = RowsOfCode(*image.elf);
    absl::StatusOr<CompiledCfi> rows = code.ok() ? CompiledCfi::FromCode(*code) : code.status();
    if (rows.ok()) {
      ++counters_.images_by_code;
      image.by_code = true;
      if (table.ok()) {
        table->Supplement(*std::move(rows));
      } else {
        table = CfiTable::OfRows(*image.elf, *std::move(rows));
      }
    }
  }
  if (!table.ok()) return table.status();
  if (table->memory_bytes() > max_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("its table has ", table->memory_bytes(), " bytes"));
  }
  if (image.damaged()) return absl::DataLossError("it was truncated while it was read");
  image.table = *std::move(table);
  return absl::OkStatus();
}

std::shared_ptr<ElfUnwindData::Image> ElfUnwindData::Vdso() {
  if (vdso_ != nullptr) return vdso_;
  vdso_ = std::make_shared<Image>();
  vdso_->path = "[vdso]";
  const std::span<const std::byte> bytes = images_.Vdso();
  vdso_->vdso_bytes.assign(bytes.begin(), bytes.end());
  absl::StatusOr<ElfImage> elf = ElfImage::Parse(vdso_->vdso_bytes);
  if (!elf.ok()) {
    NoteUnusable(vdso_->path, elf.status().message());
    return vdso_;
  }
  vdso_->elf = *std::move(elf);
  absl::StatusOr<CfiTable> table = CfiTable::Open(*vdso_->elf);
  if (table.ok()) {
    vdso_->table = *std::move(table);
  } else {
    NoteUnusable(vdso_->path, table.status().message());
  }
  return vdso_;
}

void ElfUnwindData::Evict(const Image* keep) {
  const auto fits = [&] { return counters_.bytes <= max_bytes_ && by_sources_.size() <= kMaxImages; };
  if (fits()) return;
  std::vector<std::pair<uint64_t, Sources>> by_use;
  for (const auto& [sources, image] : by_sources_) {
    if (image.get() != keep) by_use.emplace_back(image->last_used, sources);
  }
  std::sort(by_use.begin(), by_use.end());
  for (const auto& [last_used, sources] : by_use) {
    if (fits()) return;
    const auto found = by_sources_.find(sources);
    counters_.bytes -= found->second->bytes;
    ++counters_.images_evicted;
    by_sources_.erase(found);  // the file goes with it, unless somebody else has it
  }
}

std::vector<ElfUnwindData::ImageExtent> ElfUnwindData::extents() const {
  std::vector<ImageExtent> extents;
  for (const auto& [sources, image] : by_sources_) {
    if (image->table) extents.push_back({image->path, image->table->Extent(), image->by_code});
  }
  std::sort(extents.begin(), extents.end(), [](const ImageExtent& a, const ImageExtent& b) { return a.path < b.path; });
  return extents;
}

size_t ElfUnwindData::heap_bytes() const { return counters_.bytes + known_.heap_bytes(); }

}  // namespace clrsampler
