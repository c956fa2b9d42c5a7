#include "clr/hooks/function_table.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/elf/eh_frame.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The most places where a function could begin. They take 6 MB of index, and libcoreclr has 250,000. Images with more
// are searched slowly.
constexpr uint64_t kMaxUnits = uint64_t{1} << 25;
constexpr uint64_t kWordBits = 64;

absl::Status SegmentsAreApart(std::span<const LoadSegment> segments) {
  std::vector<std::pair<uint64_t, uint64_t>> in_file;
  for (size_t i = 0; i < segments.size(); ++i) {  // by address
    if (i > 0 && segments[i].address.value - segments[i - 1].address.value < segments[i - 1].memory_bytes) {
      return absl::DataLossError("two segments are loaded to the same addresses");
    }
    if (segments[i].file_bytes == 0) continue;
    in_file.emplace_back(segments[i].offset.value, segments[i].offset.value + segments[i].file_bytes);
  }
  std::sort(in_file.begin(), in_file.end());
  for (size_t i = 1; i < in_file.size(); ++i) {
    if (in_file[i].first < in_file[i - 1].second) {
      return absl::DataLossError("two segments are loaded from the same bytes of the file");
    }
  }
  return absl::OkStatus();
}

absl::Status TooMany(size_t functions) {
  return absl::UnimplementedError(absl::StrCat("there are ", functions, " functions"));
}

// The places of code in the file, to be asked by rising addresses.
class CodeFinder {
 public:
  explicit CodeFinder(const ElfImage& image)
      : file_bytes_(image.bytes().size()), next_(image.segments().begin()), end_(image.segments().end()) {}

  // nullopt: not all of it is in one executable segment, and in the file.
  std::optional<FileOffset> Find(VirtualAddress start, uint64_t bytes) {
    while (next_ != end_ && next_->address < start && start.value - next_->address.value >= next_->file_bytes) ++next_;
    if (next_ == end_ || start < next_->address || !next_->executable) return std::nullopt;
    const uint64_t inside = start.value - next_->address.value;
    if (inside > next_->file_bytes || bytes > next_->file_bytes - inside || bytes > UINT32_MAX) return std::nullopt;
    const FileOffset offset{next_->offset.value + inside};
    if (offset.value > file_bytes_ || bytes > file_bytes_ - offset.value) return std::nullopt;
    return offset;
  }

 private:
  uint64_t file_bytes_;
  std::span<const LoadSegment>::iterator next_, end_;
};

}  // namespace

absl::StatusOr<FunctionTable> FunctionTable::Read(const ElfImage& image, const ElfSymbolTable* symbols) {
  RETURN_IF_ERROR(SegmentsAreApart(image.segments()));
  FunctionTable result;
  result.bytes_ = image.bytes();
  RETURN_IF_ERROR(result.AddUnwindTable(image));
  if (symbols != nullptr) result.AddSymbols(image, *symbols);
  if (result.functions_.size() > kMaxFunctions) return TooMany(result.functions_.size());
  result.IndexStarts();
  return result;
}

absl::Status FunctionTable::AddUnwindTable(const ElfImage& image) {
  ASSIGN_OR_RETURN(const EhFrameTable table, EhFrameTable::Parse(image));
  if (table.size() > kMaxFunctions) return TooMany(table.size());
  functions_.reserve(table.size());
  CodeFinder code(image);
  FrameDescriptions descriptions(image);
  VirtualAddress end{0};
  for (size_t i = 0; i < table.size(); ++i) {
    const VirtualAddress start = table.FunctionStart(i);
    if (i > 0 && start <= table.FunctionStart(i - 1)) {
      return absl::DataLossError(absl::StrCat("the unwind table is not in order at 0x", absl::Hex(start.value)));
    }
    if (start < end) {
      return absl::DataLossError(
          absl::StrCat("the unwind table has a function inside another one at 0x", absl::Hex(start.value)));
    }
    const absl::StatusOr<FrameDescription> description = descriptions.At(table.DescriptionAddress(i));
    if (!description.ok() || description->start != start) continue;
    end = description->end;
    const uint64_t bytes = description->end.value - start.value;
    const auto offset = code.Find(start, bytes);
    if (offset) functions_.push_back({start, *offset, static_cast<uint32_t>(bytes)});
  }
  return absl::OkStatus();
}

void FunctionTable::AddSymbols(const ElfImage& image, const ElfSymbolTable& symbols) {
  std::vector<std::pair<VirtualAddress, uint64_t>> named;  // start, bytes
  for (size_t i = 0; i < symbols.size() && named.size() < kMaxFunctions; ++i) {
    const ElfSymbol symbol = symbols.At(i);
    if (symbol.type != STT_FUNC || symbol.section == SHN_UNDEF || symbol.size == 0) continue;
    named.emplace_back(symbol.address, symbol.size);
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());  // names of one function
  CodeFinder code(image);
  std::vector<Function> added;
  auto known = functions_.begin();
  VirtualAddress highest{0};  // end of all symbols so far
  for (size_t i = 0; i < named.size(); ++i) {
    const auto [start, bytes] = named[i];
    const bool alone = start >= highest && (i + 1 == named.size() || named[i + 1].first.value - start.value >= bytes);
    if (bytes > UINT64_MAX - start.value) continue;
    highest = std::max(highest, VirtualAddress{start.value + bytes});
    while (known != functions_.end() && known->end() <= start) ++known;
    if (!alone || (known != functions_.end() && known->start.value < start.value + bytes)) continue;
    const auto offset = code.Find(start, bytes);
    if (offset) added.push_back({start, *offset, static_cast<uint32_t>(bytes)});
  }
  const auto middle = static_cast<std::ptrdiff_t>(functions_.size());
  functions_.insert(functions_.end(), added.begin(), added.end());
  std::inplace_merge(functions_.begin(), functions_.begin() + middle, functions_.end(),
                     [](const Function& a, const Function& b) { return a.start < b.start; });
}

void FunctionTable::IndexStarts() {
  if (functions_.empty()) return;
  const uint64_t first = functions_.front().start.value, span = functions_.back().start.value - first;
  uint64_t distances = span;
  for (const Function& function : functions_) distances |= function.start.value - first;
  unit_bits_ = distances == 0 ? 0 : std::countr_zero(distances);
  if (span >> unit_bits_ >= kMaxUnits) return;
  starts_.assign((span >> unit_bits_) / kWordBits + 1, 0);
  before_.assign(starts_.size(), 0);
  for (const Function& function : functions_) {
    const uint64_t unit = (function.start.value - first) >> unit_bits_;
    starts_[unit / kWordBits] |= uint64_t{1} << unit % kWordBits;
  }
  for (size_t i = 1; i < starts_.size(); ++i) {
    before_[i] = before_[i - 1] + static_cast<uint32_t>(std::popcount(starts_[i - 1]));
  }
}

uint32_t FunctionTable::IndexAt(VirtualAddress address) const {
  if (functions_.empty() || address < functions_.front().start || functions_.back().start < address) return kNone;
  if (starts_.empty()) {
    const auto found = std::ranges::lower_bound(functions_, address, {}, &Function::start);
    if (found == functions_.end() || found->start != address) return kNone;
    return static_cast<uint32_t>(found - functions_.begin());
  }
  const uint64_t distance = address.value - functions_.front().start.value, unit = distance >> unit_bits_;
  if (unit << unit_bits_ != distance) return kNone;
  const uint64_t word = starts_[unit / kWordBits], bit = uint64_t{1} << unit % kWordBits;
  if ((word & bit) == 0) return kNone;
  return before_[unit / kWordBits] + static_cast<uint32_t>(std::popcount(word & (bit - 1)));
}

}  // namespace clrsampler
