#include "formats/pe/r2r_image.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/native_format.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// owners_ has one word per runtime function, so that a look-up is one step for any input. The top two bits say what the
// other bits are. All ones: nobody owns the function.
constexpr uint32_t kOwnerTag = 3u << 30;
constexpr uint32_t kOwnerMethodDef = 0u << 30;  // number of the method: component base + rid - 1
constexpr uint32_t kOwnerInstance = 1u << 30;   // offset of its signature in section 109
constexpr uint32_t kOwnerBack = 2u << 30;       // distance back to the function where its method begins
constexpr uint32_t kOwnerNobody = UINT32_MAX;
constexpr uint32_t kOwnerValue = ~kOwnerTag;

// In all components, and those without code count too. Metadata has as many methods at most, a composite framework
// 250,000.
constexpr uint64_t kMaxMethods = 1 << 24;
static_assert(kMaxMethods <= kOwnerValue);

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("R2R tables: ", what)); }

}  // namespace

absl::StatusOr<std::unique_ptr<R2rImage>> R2rImage::Open(PeImage pe, absl::string_view name) {
  if (!pe.r2r()) return absl::FailedPreconditionError("the image has no ReadyToRun code");
  const R2rCoreHeader& core = pe.r2r()->core;
  // Before anything else: a component still carries the debug entry and the flags of the image that it was made of.
  if (core.Find(R2rSectionType::kOwnerCompositeExecutable) != nullptr) {
    return absl::FailedPreconditionError("the image is a component: its code is in a composite image");
  }
  if (const uint16_t major = pe.r2r()->major;
      major > kNewestR2rMajor || (major > kNewestR2rMajorOf10 && major < kRuntimeAsyncR2rMajor)) {
    return absl::UnimplementedError(
        absl::StrCat("R2R version ", pe.r2r()->major, ".", pe.r2r()->minor, " is not known"));
  }
  if (pe.machine() == PeMachine::kOther)
    return absl::FailedPreconditionError("ReadyToRun code for another architecture");

  std::unique_ptr<R2rImage> image(new R2rImage(std::move(pe)));
  const R2rHeader& header = *image->pe_.r2r();
  image->composite_ = header.core.Find(R2rSectionType::kComponentAssemblies) != nullptr;
  image->manifest_has_index_ = header.major > 6 || (header.major == 6 && header.minor >= 3);
  absl::Status status = image->ReadMetadata(name);
  if (status.ok()) status = image->ReadFunctions();
  if (status.ok()) status = image->ReadComponents();
  if (status.ok()) status = image->ReadInstances();
  if (status.ok()) status = image->ReadHotColdMap();
  if (status.ok()) status = image->FindResumptionStubs();
  if (status.ok()) status = image->LinkFunclets();
  if (!status.ok()) return Annotate(status, absl::StrCat("R2R ", header.major, ".", header.minor));
  return image;
}

std::optional<std::span<const std::byte>> R2rImage::SectionBytes(R2rSectionType type) const {
  const R2rSection* section = pe_.r2r()->core.Find(type);
  if (section == nullptr || section->range.bytes == 0) return std::span<const std::byte>();
  return pe_.Bytes(section->range);
}

absl::Status R2rImage::ReadMetadata(absl::string_view name) {
  const std::optional<std::span<const std::byte>> manifest = SectionBytes(R2rSectionType::kManifestMetadata);
  const std::optional<std::span<const std::byte>> mvids = SectionBytes(R2rSectionType::kManifestAssemblyMvids);
  if (!manifest || !mvids) return Damaged("a section lies outside the file");
  mvids_ = *mvids;
  if (!manifest->empty()) {
    ASSIGN_OR_RETURN(MetadataTables tables, MetadataTables::Parse(*manifest));
    manifest_ = SignatureModule{absl::StrCat(name, " manifest"), std::move(tables)};
  }
  if (composite_) return absl::OkStatus();
  self_ = SignatureModule{std::string(name), std::nullopt};
  const std::optional<std::span<const std::byte>> metadata =
      pe_.metadata() ? pe_.Bytes(*pe_.metadata()) : std::optional<std::span<const std::byte>>();
  if (!metadata) return Damaged("the metadata lies outside the file");
  ASSIGN_OR_RETURN(MetadataTables tables, MetadataTables::Parse(*metadata));
  if (const std::optional<absl::string_view> own = tables.AssemblyName()) self_->name = std::string(*own);
  self_->tables = std::move(tables);
  return absl::OkStatus();
}

absl::Status R2rImage::ReadFunctions() {
  const std::optional<std::span<const std::byte>> section = SectionBytes(R2rSectionType::kRuntimeFunctions);
  if (!section) return Damaged("section 102 lies outside the file");
  const bool has_end = pe_.machine() == PeMachine::kX64;  // {begin, end, unwind}; arm64 {begin, unwind}
  function_bytes_ = has_end ? 12 : 8;
  functions_ = *section;
  if (functions_.size() / function_bytes_ >= kOwnerValue) return Damaged("too many runtime functions");
  function_count_ = static_cast<uint32_t>(functions_.size() / function_bytes_);
  uint32_t previous_end = 0;
  for (uint32_t i = 0; i < function_count_; ++i) {
    const uint32_t begin = Begin(i);
    const uint32_t end = has_end ? End(i, begin) : begin + 1;
    if (begin < previous_end || end <= begin) return Damaged(absl::StrCat("runtime function ", i, " is out of order"));
    previous_end = end;
  }
  owners_.assign(function_count_, kOwnerNobody);
  return absl::OkStatus();
}

std::optional<R2rImage::MethodReference> R2rImage::ReferenceOf(uint32_t method) const {
  if (method >= function_count_ || owners_[method] == kOwnerNobody) return std::nullopt;
  const uint32_t owner = owners_[method];
  if ((owner & kOwnerTag) == kOwnerBack) return std::nullopt;
  return MethodReference{(owner & kOwnerTag) == kOwnerInstance, owner & kOwnerValue};
}

absl::Status R2rImage::Claim(uint32_t function, uint32_t owner) {
  if (function >= function_count_) return Damaged(absl::StrCat("a method begins at runtime function ", function));
  if (owners_[function] != kOwnerNobody)
    return Damaged(absl::StrCat("two methods begin at runtime function ", function));
  owners_[function] = owner;
  return absl::OkStatus();
}

absl::Status R2rImage::ReadMethods(std::span<const std::byte> section, uint32_t module, std::optional<uint32_t> rows) {
  ASSIGN_OR_RETURN(const uint32_t length, NativeArrayLength(section));
  if (rows && length > *rows) return Damaged("more methods with code than methods");
  const uint64_t first = components_.empty() ? 0 : method_count_;
  if (first + length > kMaxMethods) return Damaged("too many methods");
  components_.push_back({static_cast<uint32_t>(first), module});
  method_count_ += length;
  return ForEachInNativeArray(section, length, [&](uint32_t index, uint64_t offset) -> absl::Status {
    const std::optional<uint32_t> function = ReadEntryPoint(section, offset);
    if (!function) return Damaged("section 103 is cut off");
    return Claim(*function, kOwnerMethodDef | (static_cast<uint32_t>(first) + index));
  });
}

absl::Status R2rImage::ReadComponents() {
  const std::optional<std::span<const std::byte>> methods = SectionBytes(R2rSectionType::kMethodDefEntryPoints);
  const std::optional<std::span<const std::byte>> list = SectionBytes(R2rSectionType::kComponentAssemblies);
  if (!methods || !list) return Damaged("a section lies outside the file");
  if (!composite_) {
    if (methods->empty()) return absl::OkStatus();
    return ReadMethods(*methods, 0, self_->tables->rows(MetadataTable::kMethodDef));
  }
  // Rows of {IL header rva, size, R2R core header rva, size}. Row i is module i + 2 (i + 1 before R2R 6.3).
  for (uint32_t i = 0; i < list->size() / 16; ++i) {
    const uint32_t header = LoadAt<uint32_t>(*list, uint64_t{16} * i + 8).value_or(0);
    if (header == 0) continue;
    ASSIGN_OR_RETURN(const R2rCoreHeader core, pe_.CoreHeaderAt(header));
    const R2rSection* section = core.Find(R2rSectionType::kMethodDefEntryPoints);
    if (section == nullptr || section->range.bytes == 0) continue;
    const std::optional<std::span<const std::byte>> bytes = pe_.Bytes(section->range);
    if (!bytes) return Damaged("section 103 of a component lies outside the file");
    RETURN_IF_ERROR(ReadMethods(*bytes, i + 1 + (manifest_has_index_ ? 1 : 0), std::nullopt));
  }
  return absl::OkStatus();
}

absl::Status R2rImage::ReadInstances() {
  const std::optional<std::span<const std::byte>> section = SectionBytes(R2rSectionType::kInstanceEntryPoints);
  if (!section) return Damaged("section 109 lies outside the file");
  instances_ = *section;
  if (instances_.empty()) return absl::OkStatus();
  if (instances_.size() > kOwnerValue) return Damaged("section 109 is too large");
  // No signature is shared by two entries, so an honest table visits each byte once at most.
  uint64_t budget = instances_.size() + 1;
  return ForEachInNativeHashtable(instances_, [&](uint64_t offset) -> absl::Status {
    BlobCursor cursor(instances_, offset);
    if (!SkipR2rMethod(cursor, budget)) return Damaged("a method signature in section 109 is damaged");
    const std::optional<uint32_t> function = ReadEntryPoint(instances_, cursor.offset());
    if (!function) return Damaged("section 109 is cut off");
    ++instance_count_;
    return Claim(*function, kOwnerInstance | static_cast<uint32_t>(offset));
  });
}

absl::Status R2rImage::ReadHotColdMap() {
  const std::optional<std::span<const std::byte>> map = SectionBytes(R2rSectionType::kHotColdMap);
  if (!map) return Damaged("section 120 lies outside the file");
  const size_t pairs = map->size() / 8;
  if (pairs == 0) return absl::OkStatus();
  // {first cold function, function where its method begins}, sorted by the first. Everything from the first cold
  // function on is cold. The functions between two rows belong to the earlier row.
  first_cold_ = LoadAt<uint32_t>(*map, 0).value_or(0);
  for (size_t i = 0; i < pairs; ++i) {
    const uint32_t cold = LoadAt<uint32_t>(*map, 8 * i).value_or(0);
    const uint32_t hot = LoadAt<uint32_t>(*map, 8 * i + 4).value_or(0);
    const uint32_t next = i + 1 < pairs ? LoadAt<uint32_t>(*map, 8 * i + 8).value_or(0) : function_count_;
    if (cold < first_cold_ || next <= cold || next > function_count_ || hot >= first_cold_ ||
        owners_[hot] == kOwnerNobody) {
      return Damaged(absl::StrCat("row ", i, " of the hot/cold map is impossible"));
    }
    for (uint32_t function = cold; function < next; ++function) {
      RETURN_IF_ERROR(Claim(function, kOwnerBack | (function - hot)));
    }
  }
  return absl::OkStatus();
}

absl::Status R2rImage::FindResumptionStubs() {
  if (!has_runtime_async()) return absl::OkStatus();
  const std::optional<std::span<const std::byte>> section = SectionBytes(R2rSectionType::kDebugInfo);
  if (!section) return Damaged("section 105 lies outside the file");
  if (section->empty()) return absl::OkStatus();
  return ForEachInNativeArray(*section, function_count_, [&](uint32_t index, uint64_t) {
    if (owners_[index] == kOwnerNobody) resumption_stubs_.push_back(index);
    return absl::OkStatus();
  });
}

absl::Status R2rImage::LinkFunclets() {
  uint32_t start = UINT32_MAX;
  for (uint32_t i = 0; i < std::min(first_cold_, function_count_); ++i) {
    if (owners_[i] != kOwnerNobody) {
      start = i;
    } else if (start != UINT32_MAX) {
      owners_[i] = kOwnerBack | (i - start);
    }
  }
  return absl::OkStatus();
}

uint32_t R2rImage::Begin(uint32_t index) const {
  return LoadAt<uint32_t>(functions_, uint64_t{index} * function_bytes_).value_or(0);
}

uint32_t R2rImage::End(uint32_t index, uint32_t begin) const {
  const uint32_t second = LoadAt<uint32_t>(functions_, uint64_t{index} * function_bytes_ + 4).value_or(0);
  if (pe_.machine() == PeMachine::kX64) return second;
  // Length in instructions: packed unwind data in the entry itself, else the first word of .xdata ("ARM64 exception
  // handling" of Microsoft's ABI). The function's literal data behind its code is not counted.
  uint64_t length = 0;
  if ((second & 3) != 0) {
    length = second >> 2 & 0x7FF;
  } else if (const std::optional<std::span<const std::byte>> unwind = pe_.Bytes({second, 4})) {
    length = LoadAt<uint32_t>(*unwind, 0).value_or(0) & 0x3FFFF;
  }
  const uint64_t end = begin + 4 * length;
  const uint64_t limit = index + 1 < function_count_ ? Begin(index + 1) : UINT32_MAX;
  return static_cast<uint32_t>(std::min(end, limit));
}

std::optional<R2rFunction> R2rImage::Function(uint32_t index) const {
  if (index >= function_count_) return std::nullopt;
  R2rFunction function;
  function.index = index;
  function.begin = Begin(index);
  function.end = End(index, function.begin);
  // The last of its words. On arm64 the lowest bits say that it is the data itself.
  const uint32_t unwind = LoadAt<uint32_t>(functions_, (uint64_t{index} + 1) * function_bytes_ - 4).value_or(0);
  if (pe_.machine() == PeMachine::kX64 || (unwind & 3) == 0) function.unwind = unwind;
  const uint32_t owner = owners_[index];
  if (owner == kOwnerNobody) return function;
  if ((owner & kOwnerTag) != kOwnerBack) {
    function.method = index;
    return function;
  }
  function.method = index - (owner & kOwnerValue);
  function.part = index >= first_cold_ ? R2rPart::kCold
                  : std::binary_search(resumption_stubs_.begin(), resumption_stubs_.end(), index)
                      ? R2rPart::kResumptionStub
                      : R2rPart::kFunclet;
  return function;
}

std::optional<uint32_t> R2rImage::IndexAtOrBefore(uint32_t rva) const {
  uint32_t low = 0, high = function_count_;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (Begin(middle) <= rva) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  return low - 1;
}

std::optional<R2rFunction> R2rImage::Find(uint32_t rva) const {
  const std::optional<uint32_t> index = IndexAtOrBefore(rva);
  if (!index) return std::nullopt;
  const std::optional<R2rFunction> function = Function(*index);
  if (!function || rva < function->begin || rva >= function->end) return std::nullopt;
  return function;
}

bool R2rImage::BeginsAt(uint32_t rva) const {
  const std::optional<uint32_t> index = IndexAtOrBefore(rva);
  return index && Begin(*index) == rva;
}

bool R2rImage::IsMethodCallThunk(uint32_t rva) const {
  const R2rSection* section = pe_.r2r()->core.Find(R2rSectionType::kDelayLoadMethodCallThunks);
  return section != nullptr && rva >= section->range.rva && rva - section->range.rva < section->range.bytes;
}

size_t R2rImage::heap_bytes() const {
  return sizeof *this + owners_.capacity() * sizeof owners_[0] + components_.capacity() * sizeof components_[0] +
         resumption_stubs_.capacity() * sizeof resumption_stubs_[0] + modules_.size() * sizeof(LoadedModule);
}

}  // namespace clrsampler
