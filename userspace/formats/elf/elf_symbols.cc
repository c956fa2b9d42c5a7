#include "formats/elf/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <tuple>

#include "formats/elf/eh_frame.h"
#include "formats/x64/instruction.h"

namespace clrsampler {
namespace {

constexpr uint32_t kDynamicBit = uint32_t{1} << 31;  // string tables end below 2 GiB

// Bits of Candidate::rank, most important first; lower is better. Names are compared only when all bits are equal.
constexpr uint32_t kLabel = 1 << 16, kLocal = 1 << 15, kUnderscoreShift = 2, kWeak = 1 << 1;
// The number of bytes of a name that are looked at: enough for its underscores, and enough to tell aliases apart. A
// hostile table can make millions of symbols share a name that has no end.
constexpr size_t kRankedBytes = 16, kComparedBytes = 256;
// Names of so many aliases are compared, which bounds their copies to 16 MB.
constexpr size_t kMaxComparedAliases = 65'536;

struct Candidate {
  uint32_t start;
  uint32_t bytes;
  uint32_t name;
  uint32_t rank;
};

uint32_t LeadingUnderscores(absl::string_view name) {
  const size_t first = name.find_first_not_of('_');
  return static_cast<uint32_t>(first == absl::string_view::npos ? name.size() : first);
}

}  // namespace

class ElfSymbolsBuilder {
 public:
  ElfSymbolsBuilder(const ElfImage& names, const ElfImage& code) : names_(names), code_(code) {
    index_.base_ = code.lowest_address();
    for (const ElfSection& section : names.sections()) {
      if ((section.flags & SHF_EXECINSTR) != 0) code_sections_.push_back(section);
    }
    std::stable_sort(code_sections_.begin(), code_sections_.end(),
                     [](const ElfSection& a, const ElfSection& b) { return a.address < b.address; });
  }

  ElfSymbols Build() {
    const std::optional<ElfSymbolTable> symtab = names_.symtab();
    has_symtab_ = symtab.has_value();
    if (symtab) Collect(*symtab, 0);
    if (const auto table = names_.dynsym()) Collect(*table, kDynamicBit);
    Sort(sized_);
    Sort(unsized_);
    Flatten();
    FillGaps();
    index_.ranges_.shrink_to_fit();
    return std::move(index_);
  }

 private:
  absl::string_view ComparedName(uint32_t name) const {
    return index_.tables_[(name & kDynamicBit) != 0 ? 1 : 0].NamePrefix(name & ~kDynamicBit, kComparedBytes);
  }

  const ElfSection* CodeSectionAt(VirtualAddress address) const {
    const auto above = std::upper_bound(code_sections_.begin(), code_sections_.end(), address,
                                        [](VirtualAddress at, const ElfSection& s) { return at < s.address; });
    if (above == code_sections_.begin() || !(above - 1)->contains(address)) return nullptr;
    return &*(above - 1);
  }

  void Collect(const ElfSymbolTable& table, uint32_t table_bit) {
    index_.tables_[table_bit != 0 ? 1 : 0] = table;
    index_.symbols_not_read_ += table.left_out;
    const size_t count = table.size();
    for (size_t i = 0; i < count; ++i) {
      const ElfSymbol symbol = table.At(i);
      const bool is_function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
      if ((!is_function && symbol.type != STT_NOTYPE) || symbol.section == SHN_UNDEF || symbol.section == SHN_ABS)
        continue;
      if (symbol.name == 0 || symbol.name >= kDynamicBit) continue;
      const absl::string_view name = table.NamePrefix(symbol.name, kRankedBytes);
      if (name.empty() || (!is_function && !IsCodeLabel(symbol, name))) continue;
      if (symbol.address < index_.base_ || symbol.address.value - index_.base_.value > UINT32_MAX ||
          sized_.size() + unsized_.size() >= ElfSymbols::kMaxFunctions) {
        ++index_.ignored_symbols_;
        continue;
      }
      Candidate candidate;
      candidate.start = static_cast<uint32_t>(symbol.address.value - index_.base_.value);
      candidate.bytes = static_cast<uint32_t>(
          std::min<uint64_t>(symbol.size, std::numeric_limits<uint32_t>::max() - candidate.start));
      candidate.name = symbol.name | table_bit;
      candidate.rank = (is_function ? 0 : kLabel) | (symbol.binding == STB_LOCAL ? kLocal : 0) |
                       (symbol.binding == STB_WEAK ? kWeak : 0) | LeadingUnderscores(name) << kUnderscoreShift;
      (candidate.bytes != 0 ? sized_ : unsized_).push_back(candidate);
    }
  }

  bool IsCodeLabel(const ElfSymbol& symbol, absl::string_view name) const {
    if (symbol.visibility == STV_HIDDEN || symbol.visibility == STV_INTERNAL) return false;
    if (name.front() == '.' || name.front() == '$') return false;
    return CodeSectionAt(symbol.address) != nullptr;
  }

  // By start; at the same start the best one last, so that it lies on top of the stack in Flatten.
  void Sort(std::vector<Candidate>& candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.start, b.rank, a.bytes, a.name) < std::tie(b.start, a.rank, b.bytes, b.name);
    });
    for (auto first = candidates.begin(); first != candidates.end();) {
      const auto end = std::find_if(first + 1, candidates.end(), [first](const Candidate& other) {
        return other.start != first->start || other.rank != first->rank;
      });
      SortByName(std::span(first, end));
      first = end;
    }
  }

  // The names are copied before they are compared. The owner of the file may change them meanwhile, and std::sort
  // leaves its range where comparisons contradict each other.
  void SortByName(std::span<Candidate> aliases) {
    if (aliases.size() < 2 || aliases.size() > kMaxComparedAliases) return;
    alias_names_.clear();
    aliases_.clear();
    for (const Candidate& candidate : aliases) {
      const size_t begin = alias_names_.size();
      const absl::string_view name = ComparedName(candidate.name);
      alias_names_.append(name.data(), name.size());
      aliases_.push_back({candidate, begin, name.size()});
    }
    std::sort(aliases_.begin(), aliases_.end(), [this](const Alias& a, const Alias& b) {
      if (a.name_bytes != b.name_bytes) return a.name_bytes > b.name_bytes;
      const absl::string_view text = alias_names_;
      const int order = text.substr(a.name_begin, a.name_bytes).compare(text.substr(b.name_begin, b.name_bytes));
      if (order != 0) return order > 0;
      return std::tie(a.candidate.bytes, a.candidate.name) < std::tie(b.candidate.bytes, b.candidate.name);
    });
    std::transform(aliases_.begin(), aliases_.end(), aliases.begin(), [](const Alias& one) { return one.candidate; });
  }

  void Emit(uint32_t start, uint32_t end, uint32_t name) {
    if (start >= end) return;
    // The parts of one symbol around something that came to nothing belong together.
    if (!index_.ranges_.empty()) {
      ElfSymbols::Range& last = index_.ranges_.back();
      if (last.name == name && last.start + last.bytes == start) {
        last.bytes += end - start;
        return;
      }
    }
    index_.ranges_.push_back({start, end - start, name});
  }

  // Sweeps over the starts with a stack of the symbols that are still open. The top one owns the code that comes next.
  // An entry below the top may end first. It is dropped when it surfaces.
  void Flatten() {
    index_.ranges_.reserve(sized_.size());
    std::vector<Candidate> open;
    uint32_t position = 0;
    const auto advance = [&](uint32_t until) {
      while (!open.empty()) {
        const Candidate& top = open.back();
        const uint32_t end = top.start + top.bytes;
        if (end > position) {
          const uint32_t stop = std::min(end, until);
          Emit(position, stop, top.name);
          position = stop;
        }
        if (end > until) return;
        open.pop_back();
      }
    };
    for (const Candidate& candidate : sized_) {
      advance(candidate.start);
      position = candidate.start;
      open.push_back(candidate);
    }
    advance(UINT32_MAX);
  }

  void FillGaps() {
    if (unsized_.empty()) return;
    const absl::StatusOr<EhFrameTable> functions = EhFrameTable::Parse(code_);
    std::vector<ElfSymbols::Range> gaps;
    size_t next_sized = 0;
    const std::vector<ElfSymbols::Range>& sized = index_.ranges_;
    for (size_t i = 0; i < unsized_.size(); ++i) {
      const Candidate& candidate = unsized_[i];
      if (i + 1 < unsized_.size() && unsized_[i + 1].start == candidate.start) continue;  // the last one is the best
      while (next_sized < sized.size() && sized[next_sized].start <= candidate.start) ++next_sized;
      if (next_sized > 0 && candidate.start - sized[next_sized - 1].start < sized[next_sized - 1].bytes) continue;
      uint64_t end = EndOfCode(candidate.start);
      if (next_sized < sized.size()) end = std::min<uint64_t>(end, sized[next_sized].start);
      if (i + 1 < unsized_.size()) end = std::min<uint64_t>(end, unsized_[i + 1].start);
      bool has_bounds = next_sized < sized.size() && end == sized[next_sized].start;
      bool has_function = false;
      if (functions.ok()) {
        const VirtualAddress start{index_.base_.value + candidate.start};
        const auto next = functions->NextStart(start);
        if (next && next->value - index_.base_.value <= end) {
          end = next->value - index_.base_.value;
          has_bounds = true;
        }
        if (const auto function = functions->Find(start); function && function->end_known) {
          end = std::min<uint64_t>(end, function->end.value - index_.base_.value);
          has_function = true;
        }
      }
      // Without .symtab, functions that are not exported may lie in between.
      if (!has_function && !has_symtab_) end = EndWithoutTable(candidate.start, end, has_bounds);
      if (end > candidate.start) {
        gaps.push_back({candidate.start, static_cast<uint32_t>(end - candidate.start), candidate.name});
      }
    }
    const auto by_start = [](const ElfSymbols::Range& a, const ElfSymbols::Range& b) { return a.start < b.start; };
    const auto middle = static_cast<std::ptrdiff_t>(index_.ranges_.size());
    index_.ranges_.insert(index_.ranges_.end(), gaps.begin(), gaps.end());
    std::inplace_merge(index_.ranges_.begin(), index_.ranges_.begin() + middle, index_.ranges_.end(), by_start);
  }

  // From base_; 0 when the address lies in no code at all.
  uint64_t EndOfCode(uint32_t start) const {
    const VirtualAddress address{index_.base_.value + start};
    uint64_t end = 0;
    if (const ElfSection* section = CodeSectionAt(address)) {
      end = section->address.value + section->size - index_.base_.value;
    } else if (code_sections_.empty()) {
      for (const LoadSegment& segment : code_.segments()) {
        if (!segment.executable || address < segment.address) continue;
        if (address.value - segment.address.value >= segment.memory_bytes) continue;
        end = segment.address.value + segment.memory_bytes - index_.base_.value;
      }
    }
    return std::min<uint64_t>(end, UINT32_MAX);
  }

  // How far the instructions at `start` lead without a call, and without a gap but for padding.
  uint64_t EndWithoutTable(uint32_t start, uint64_t end, bool has_bounds) {
    if (code_.machine() != ElfMachine::kX64) return has_bounds ? end : start;
    const auto bytes = code_.BytesFrom({index_.base_.value + start});
    if (!bytes || end <= start) return start;
    const std::span<const std::byte> code =
        bytes->first(std::min<uint64_t>({bytes->size(), end - start, kMaxFollowedBytes, followed_bytes_left_}));
    if (code.empty()) return start;
    followed_bytes_left_ -= code.size();
    std::vector<uint8_t> lengths(code.size());  // of instructions that were reached
    std::vector<size_t> left{0};
    const auto lead_to = [&](uint64_t at) {
      if (at < code.size() && lengths[at] == 0) left.push_back(at);
    };
    while (!left.empty()) {
      const size_t at = left.back();
      left.pop_back();
      if (lengths[at] != 0) continue;
      const auto instruction = DecodeX64(code.subspan(at));
      if (!instruction) continue;
      lengths[at] = instruction->bytes;
      const uint64_t next = at + instruction->bytes;
      const uint64_t target = next + static_cast<uint64_t>(int64_t{instruction->distance});
      switch (instruction->flow) {
        case X64Instruction::Flow::kJump:
          lead_to(target);
          break;
        case X64Instruction::Flow::kBranch:
          lead_to(target);
          lead_to(next);
          break;
        case X64Instruction::Flow::kIndirectJump:
        case X64Instruction::Flow::kReturn:
        case X64Instruction::Flow::kStop:
          break;
        default:
          lead_to(next);
      }
    }
    size_t known = 0;
    for (size_t at = 0; at < code.size();) {
      if (lengths[at] != 0) {
        known = at += lengths[at];
      } else if (const size_t padding = X64PaddingBytes(code.subspan(at)); padding != 0) {
        at += padding;
      } else {
        break;
      }
    }
    return start + known;
  }

  // No function of hand-written assembly is longer: musl's have 333 bytes at most.
  static constexpr uint64_t kMaxFollowedBytes = 64 << 10;
  // A hostile table can ask for these millions of times. So many bytes are followed for all symbols of an image.
  static constexpr uint64_t kMaxFollowedBytesOfImage = 16 << 20;

  struct Alias {
    Candidate candidate;
    size_t name_begin, name_bytes;  // in alias_names_
  };

  const ElfImage& names_;
  const ElfImage& code_;
  std::vector<ElfSection> code_sections_;
  std::vector<Candidate> sized_;
  std::vector<Candidate> unsized_;
  bool has_symtab_ = false;
  uint64_t followed_bytes_left_ = kMaxFollowedBytesOfImage;
  std::string alias_names_;
  std::vector<Alias> aliases_;
  ElfSymbols index_;
};

ElfSymbols ElfSymbols::Build(const ElfImage& names, const ElfImage& code) {
  return ElfSymbolsBuilder(names, code).Build();
}

FunctionSymbol ElfSymbols::At(size_t index) const {
  const Range& range = ranges_[index];
  FunctionSymbol symbol;
  symbol.name = tables_[(range.name & kDynamicBit) != 0 ? 1 : 0].Name(range.name & ~kDynamicBit);
  symbol.start = {base_.value + range.start};
  symbol.end = {symbol.start.value + range.bytes};
  return symbol;
}

std::optional<FunctionSymbol> ElfSymbols::Find(VirtualAddress address) const {
  if (address < base_ || address.value - base_.value > UINT32_MAX) return std::nullopt;
  const uint32_t wanted = static_cast<uint32_t>(address.value - base_.value);
  const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), wanted,
                                      [](uint32_t value, const Range& range) { return value < range.start; });
  if (above == ranges_.begin()) return std::nullopt;
  const size_t index = static_cast<size_t>(above - ranges_.begin()) - 1;
  if (wanted - ranges_[index].start >= ranges_[index].bytes) return std::nullopt;
  return At(index);
}

}  // namespace clrsampler
