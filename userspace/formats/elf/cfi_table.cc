#include "formats/elf/cfi_table.h"

#include <elf.h>

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/cfi_program.h"

namespace clrsampler {
namespace {

// mov $15, %rax; syscall, and mov x8, #139; svc #0.
constexpr uint8_t kX64SignalReturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
constexpr uint8_t kArm64SignalReturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
constexpr uint64_t kX64SecondInstruction = 7, kArm64SecondInstruction = 4;

CfiRow SignalRow() {
  CfiRow row;
  row.ra = row.fp = RegisterRule::kUnsupported;
  row.signal_frame = true;
  return row;
}

absl::StatusOr<FrameSection> SectionNamed(const ElfImage& image, absl::string_view name) {
  const ElfSection* section = image.FindSection(name);
  if (section == nullptr) return absl::NotFoundError(absl::StrCat("no ", name));
  if ((section->flags & SHF_COMPRESSED) != 0) return absl::UnimplementedError(absl::StrCat("compressed ", name));
  const auto bytes = image.SectionBytes(*section);
  if (!bytes) return absl::NotFoundError(absl::StrCat(name, " has no bytes in this file"));
  return FrameSection{*bytes, section->address, name == ".debug_frame"};
}

}  // namespace

// Makes one CompiledCfi: functions are collected in the order of the file, sorted, and run one after the other.
class CfiCompiler {
 public:
  CfiCompiler(ElfMachine machine, const FrameSection& section) : machine_(machine), section_(section) {}

  absl::StatusOr<CompiledCfi> Run() {
    if (section_.bytes.size() > CompiledCfi::kMaxSectionBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(section_.bytes.size(), " bytes of unwind data"));
    }
    CollectFunctions();
    if (functions_.empty()) {
      if (out_.damaged_ == 0) return absl::NotFoundError("unwind data without functions");
      return absl::DataLossError(absl::StrCat(out_.damaged_, " unreadable entries of unwind data, and no other"));
    }
    // If functions overlap, the one that starts last is taken, as a search in .eh_frame_hdr does.
    std::stable_sort(functions_.begin(), functions_.end(),
                     [](const Function& a, const Function& b) { return a.start < b.start; });
    out_.base_ = {functions_.front().start};
    for (size_t i = 0; i < functions_.size(); ++i) {
      const uint64_t next = i + 1 < functions_.size() ? functions_[i + 1].start : UINT64_MAX;
      if (next == functions_[i].start) continue;
      if (!AddFunction(functions_[i], next)) break;
    }
    if (out_.starts_.size() >= CompiledCfi::kMaxRows) {
      return absl::ResourceExhaustedError(absl::StrCat("more than ", CompiledCfi::kMaxRows, " rows of unwind data"));
    }
    out_.starts_.shrink_to_fit();
    out_.ids_.shrink_to_fit();
    out_.rows_.shrink_to_fit();
    return std::move(out_);
  }

 private:
  struct Function {
    uint64_t start;
    uint64_t end;
    uint32_t at;  // of its FDE in the section
  };
  struct Common {
    CommonEntry entry;
    CfiProgram program;
  };

  // nullptr: unreadable. A CIE is read once, for any number of functions. All CIEs together may be at most as long as
  // the section. CIEs that lie inside one another would make the time grow with its square.
  const Common* CommonAt(uint64_t at) {
    if (at == last_common_at_) return last_common_;
    const auto [it, fresh] = commons_.try_emplace(at);
    if (fresh) {
      const std::optional<CommonEntry> entry = ReadCommonEntry(section_, at);
      if (entry && entry->instructions.size() <= common_bytes_left_) {
        common_bytes_left_ -= entry->instructions.size();
        it->second = std::make_unique<Common>(Common{*entry, CfiProgram(machine_, *entry)});
      }
    }
    last_common_at_ = at;
    return last_common_ = it->second.get();
  }

  void CollectFunctions() {
    common_bytes_left_ = section_.bytes.size();
    uint64_t at = 0;
    while (at < section_.bytes.size()) {
      const std::optional<FrameEntry> entry = ReadFrameEntry(section_, at);
      if (!entry) {
        // Object files that end the list (crtend.o) can lie in the middle.
        if (LoadAt<uint32_t>(section_.bytes, at).value_or(1) != 0) {
          ++out_.damaged_;
          return;
        }
        at += sizeof(uint32_t);
        continue;
      }
      if (!entry->is_common) {
        const Common* common = CommonAt(entry->common_at);
        const auto function = common == nullptr ? std::nullopt : ReadFrameDescription(*entry, common->entry);
        if (function && functions_.size() < CompiledCfi::kMaxFunctions) {
          functions_.push_back({function->start.value, function->end.value, static_cast<uint32_t>(at)});
        } else {
          ++out_.damaged_;
        }
      }
      at = entry->end;
    }
  }

  // `limit`: where the next function begins. False: no room for more.
  bool AddFunction(const Function& function, uint64_t limit) {
    const uint64_t end = std::min(function.end, limit);
    const uint64_t base = out_.base_.value;
    if (end - base > UINT32_MAX) {  // 4 GiB from the first function: no linker makes such an image
      ++out_.damaged_;
      return true;
    }
    const std::optional<FrameEntry> entry = ReadFrameEntry(section_, function.at);
    const Common* common = entry ? CommonAt(entry->common_at) : nullptr;
    const auto description = common == nullptr ? std::nullopt : ReadFrameDescription(*entry, common->entry);
    // This gives the same again, unless somebody writes to the file meanwhile.
    if (!description || description->start.value != function.start || description->end.value != function.end) {
      ++out_.damaged_;
      return true;
    }
    ++out_.functions_;
    uint64_t known_to = function.start;
    const bool complete =
        common->program.ForEachRow(*description, [&](VirtualAddress start, VirtualAddress row_end, const CfiRow& row) {
          if (start.value >= end) return false;
          Append(start.value, Intern(row));
          known_to = row_end.value;
          return out_.starts_.size() < CompiledCfi::kMaxRows;
        });
    if (!complete) {
      ++out_.damaged_;
      if (known_to < end) Append(known_to, CompiledCfi::kBad);
    }
    Append(end, CompiledCfi::kNone);
    return out_.starts_.size() < CompiledCfi::kMaxRows;
  }

  void Append(uint64_t at, uint16_t id) {
    const uint32_t start = static_cast<uint32_t>(at - out_.base_.value);
    // The next function often begins where the one before ends.
    if (!out_.starts_.empty() && out_.starts_.back() == start) {
      out_.starts_.pop_back();
      out_.ids_.pop_back();
    }
    if (!out_.ids_.empty() && out_.ids_.back() == id) return;
    out_.starts_.push_back(start);
    out_.ids_.push_back(id);
  }

  uint16_t Intern(const CfiRow& row) {
    const auto found = ids_.find(row);
    if (found != ids_.end()) return found->second;
    if (out_.rows_.size() >= CompiledCfi::kMaxDistinctRows) return CompiledCfi::kBad;
    const auto id = static_cast<uint16_t>(out_.rows_.size());
    out_.rows_.push_back(row);
    ids_.emplace(row, id);
    return id;
  }

  ElfMachine machine_;
  FrameSection section_;
  CompiledCfi out_;
  std::vector<Function> functions_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Common>> commons_;
  uint64_t last_common_at_ = UINT64_MAX;
  const Common* last_common_ = nullptr;
  size_t common_bytes_left_ = 0;
  absl::flat_hash_map<CfiRow, uint16_t> ids_;
};

absl::StatusOr<CompiledCfi> CompiledCfi::Compile(ElfMachine machine, const FrameSection& section) {
  return CfiCompiler(machine, section).Run();
}

CfiAnswer CompiledCfi::At(VirtualAddress address) const {
  if (address < base_ || address.value - base_.value > UINT32_MAX) return {};
  const auto above =
      std::upper_bound(starts_.begin(), starts_.end(), static_cast<uint32_t>(address.value - base_.value));
  if (above == starts_.begin()) return {};
  const uint16_t id = ids_[static_cast<size_t>(above - starts_.begin()) - 1];
  if (id == kNone) return {};
  if (id == kBad) return {CfiCoverage::kUnreadable, CfiRow()};
  return {CfiCoverage::kRow, rows_[id]};
}

size_t CompiledCfi::memory_bytes() const {
  return starts_.capacity() * sizeof(uint32_t) + ids_.capacity() * sizeof(uint16_t) + rows_.capacity() * sizeof(CfiRow);
}

absl::StatusOr<CompiledCfi> CompiledCfi::FromCode(const CodeRows& code) {
  CompiledCfi out;
  if (code.rows.empty()) return absl::NotFoundError("none of its code has a row");
  if (2 * code.rows.size() > kMaxRows) return absl::ResourceExhaustedError("more rows than there is room for");
  out.base_ = code.rows.front().start;
  absl::flat_hash_map<CfiRow, uint16_t> ids;
  const auto append = [&](VirtualAddress at, uint16_t id) {
    const auto start = static_cast<uint32_t>(at.value - out.base_.value);
    if (!out.starts_.empty() && out.starts_.back() == start) {
      out.ids_.back() = id;
      return;
    }
    out.starts_.push_back(start);
    out.ids_.push_back(id);
  };
  for (const CodeRow& row : code.rows) {
    if (row.end.value - out.base_.value > UINT32_MAX) return absl::ResourceExhaustedError("code 4 GiB apart");
    const auto [found, fresh] = ids.try_emplace(row.row, static_cast<uint16_t>(out.rows_.size()));
    if (fresh) {
      if (out.rows_.size() >= kMaxDistinctRows) return absl::ResourceExhaustedError("too many rows that differ");
      out.rows_.push_back(row.row);
    }
    append(row.start, found->second);
    append(row.end, kNone);
  }
  out.functions_ = code.functions;
  out.starts_.shrink_to_fit();
  out.ids_.shrink_to_fit();
  out.rows_.shrink_to_fit();
  return out;
}

uint64_t CompiledCfi::CoveredBytes(VirtualAddress start, uint64_t bytes) const {
  const uint64_t end = start.value + std::min(bytes, UINT64_MAX - start.value);
  uint64_t covered = 0;
  auto next = start < base_
                  ? starts_.begin()
                  : std::upper_bound(starts_.begin(), starts_.end(),
                                     static_cast<uint32_t>(std::min<uint64_t>(start.value - base_.value, UINT32_MAX)));
  if (next != starts_.begin()) --next;
  for (; next != starts_.end(); ++next) {
    const uint64_t from = base_.value + *next;
    if (from >= end) break;
    const uint64_t to = next + 1 == starts_.end() ? from : base_.value + *(next + 1);
    const uint64_t low = std::max(from, start.value), high = std::min(to, end);
    if (ids_[static_cast<size_t>(next - starts_.begin())] < kBad && high > low) covered += high - low;
  }
  return covered;
}

absl::StatusOr<CfiTable> CfiTable::OpenCompiled(const ElfImage& image) {
  CfiTable table(image);
  absl::Status why = absl::NotFoundError("no .eh_frame and no .debug_frame");
  for (const char* name : {".eh_frame", ".debug_frame"}) {
    const absl::StatusOr<FrameSection> section = SectionNamed(image, name);
    if (!section.ok()) {
      if (!absl::IsNotFound(section.status())) why = section.status();
      continue;
    }
    absl::StatusOr<CompiledCfi> compiled = CompiledCfi::Compile(image.machine(), *section);
    if (compiled.ok()) {
      table.compiled_ = *std::move(compiled);
      return table;
    }
    why = absl::Status(compiled.status().code(), absl::StrCat(name, ": ", compiled.status().message()));
  }
  return why;
}

absl::StatusOr<CfiTable> CfiTable::Open(const ElfImage& image) {
  absl::StatusOr<EhFrameTable> index = EhFrameTable::Parse(image);
  if (!index.ok() || index->size() == 0) return OpenCompiled(image);
  CfiTable table(image);
  table.index_ = *std::move(index);
  // Programs built without unwind tables have some for the C library's start-up code, and .debug_frame for the rest.
  if (const auto section = SectionNamed(image, ".debug_frame"); section.ok()) {
    absl::StatusOr<CompiledCfi> compiled = CompiledCfi::Compile(image.machine(), *section);
    if (compiled.ok()) table.compiled_ = *std::move(compiled);
  }
  return table;
}

CfiTable CfiTable::OfRows(const ElfImage& image, CompiledCfi rows) {
  CfiTable table(image);
  table.supplement_ = std::move(rows);
  return table;
}

namespace {

// Sections of code, by address. None lies over another one, as in every image of a linker: each function is met once.
std::vector<ElfSection> CodeSections(const ElfImage& image) {
  std::vector<ElfSection> sections;
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0 || section.size > UINT64_MAX - section.address.value) continue;
    sections.push_back(section);
  }
  std::stable_sort(sections.begin(), sections.end(),
                   [](const ElfSection& a, const ElfSection& b) { return a.address < b.address; });
  uint64_t end = 0;
  std::erase_if(sections, [&end](const ElfSection& section) {
    if (section.address.value < end) return true;
    end = section.address.value + section.size;
    return false;
  });
  return sections;
}

}  // namespace

CfiExtent CfiTable::Extent() const {
  std::vector<std::pair<uint64_t, uint64_t>> functions;  // start, end; in order
  if (index_) {
    functions.reserve(index_->size());
    for (size_t i = 0; i < index_->size(); ++i) {
      const absl::StatusOr<FrameDescription> function = index_->Description(i);
      if (function.ok()) functions.emplace_back(function->start.value, function->end.value);
    }
    std::sort(functions.begin(), functions.end());
  }
  CfiExtent extent;
  for (const ElfSection& section : CodeSections(image_)) {
    const uint64_t begin = section.address.value, end = begin + section.size;
    extent.code_bytes += section.size;
    uint64_t indexed = 0, compiled = 0, supplied = 0, reached = begin;
    const auto supply_up_to = [&](uint64_t address) {
      if (supplement_ && address > reached) supplied += supplement_->CoveredBytes({reached}, address - reached);
    };
    auto next = std::lower_bound(functions.begin(), functions.end(), std::pair<uint64_t, uint64_t>(begin, 0));
    for (; next != functions.end() && next->first < end; ++next) {
      const uint64_t low = std::max(next->first, reached), high = std::min(next->second, end);
      if (high <= low) continue;
      supply_up_to(low);
      indexed += high - low;
      reached = high;
    }
    supply_up_to(end);
    if (compiled_) compiled = compiled_->CoveredBytes(section.address, section.size);
    // Tables of one image hardly overlap. Each covers the addresses that the others leave out.
    extent.covered_bytes += std::min(section.size, indexed + compiled + supplied);
  }
  return extent;
}

bool CfiTable::may_cover_little() const {
  constexpr uint64_t kManyBytes = 2048;
  uint64_t code_bytes = 0;
  for (const ElfSection& section : image_.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    // A section may claim any size. There is no more code than the file has bytes.
    code_bytes =
        std::min<uint64_t>(image_.bytes().size(), code_bytes + std::min(section.size, UINT64_MAX - code_bytes));
  }
  const size_t functions = (index_ ? index_->size() : 0) + (compiled_ ? compiled_->functions() : 0);
  return code_bytes / kManyBytes > functions;
}

CfiAnswer CfiTable::OnDemand(VirtualAddress address) const {
  const std::optional<size_t> at = index_->IndexBelow(address);
  if (!at || index_->FunctionStart(*at) > address) return {};
  const absl::StatusOr<FrameDescription> function = index_->Description(*at);
  if (!function.ok() || function->start != index_->FunctionStart(*at)) return {CfiCoverage::kUnreadable, CfiRow()};
  if (address >= function->end) return {};
  const std::optional<CfiRow> row = CfiProgram(image_.machine(), function->common).RowAt(*function, address);
  if (!row) return {CfiCoverage::kUnreadable, CfiRow()};
  return {CfiCoverage::kRow, *row, function->start, function->end};
}

CfiAnswer CfiTable::At(VirtualAddress address) const {
  CfiAnswer answer = index_ ? OnDemand(address) : CfiAnswer();
  if (answer.coverage != CfiCoverage::kRow && compiled_) {
    const CfiAnswer other = compiled_->At(address);
    if (other.coverage != CfiCoverage::kBetween) answer = other;
  }
  if (answer.coverage == CfiCoverage::kBetween && IsSignalReturn(image_, address)) {
    return {CfiCoverage::kRow, SignalRow()};
  }
  if (answer.coverage == CfiCoverage::kBetween && supplement_) return supplement_->At(address);
  return answer;
}

std::optional<CfiRow> CfiTable::Row(VirtualAddress address) const {
  const CfiAnswer answer = At(address);
  if (answer.coverage != CfiCoverage::kRow) return std::nullopt;
  return answer.row;
}

bool IsSignalReturn(const ElfImage& image, VirtualAddress address) {
  const bool x64 = image.machine() == ElfMachine::kX64;
  const std::span<const uint8_t> code = x64 ? std::span<const uint8_t>(kX64SignalReturn) : kArm64SignalReturn;
  const uint64_t second = x64 ? kX64SecondInstruction : kArm64SecondInstruction;
  for (const uint64_t start : {address.value, address.value + 1, address.value - second}) {
    const auto bytes = image.BytesFrom({start});
    if (!bytes || bytes->size() < code.size() || !image.IsExecutable({start})) continue;
    if (std::equal(code.begin(), code.end(), bytes->begin(),
                   [](uint8_t a, std::byte b) { return a == static_cast<uint8_t>(b); }))
      return true;
  }
  return false;
}

}  // namespace clrsampler
