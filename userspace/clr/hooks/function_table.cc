#include "clr/hooks/function_table.h"

#include <elf.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/elf/eh_frame.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMaxBlocks = 1 << 17;  // 512 KB, however far apart functions are
constexpr int kBlockBits = 6;             // of addresses, if that many blocks are enough

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

// Where code lies in the file; to be asked by rising addresses.
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
  result.IndexBlocks();
  return result;
}

absl::Status FunctionTable::AddUnwindTable(const ElfImage& image) {
  const absl::StatusOr<EhFrameTable> table = EhFrameTable::Parse(image);
  if (!table.ok()) return table.status();
  if (table->size() > kMaxFunctions) return TooMany(table->size());
  functions_.reserve(table->size());
  CodeFinder code(image);
  VirtualAddress end{0};
  for (size_t i = 0; i < table->size(); ++i) {
    const VirtualAddress start = table->FunctionStart(i);
    if (i > 0 && start <= table->FunctionStart(i - 1)) {
      return absl::DataLossError(absl::StrCat("the unwind table is not in order at 0x", absl::Hex(start.value)));
    }
    if (start < end) {
      return absl::DataLossError(
          absl::StrCat("the unwind table has a function inside another one at 0x", absl::Hex(start.value)));
    }
    const absl::StatusOr<FrameDescription> description = table->Description(i);
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

void FunctionTable::IndexBlocks() {
  if (functions_.empty()) return;
  const uint64_t first = functions_.front().start.value, span = functions_.back().start.value - first;
  block_bits_ = kBlockBits;
  while (span >> block_bits_ >= kMaxBlocks) ++block_bits_;
  first_in_block_.reserve((span >> block_bits_) + 2);
  for (uint32_t i = 0; i < functions_.size(); ++i) {
    first_in_block_.resize(((functions_[i].start.value - first) >> block_bits_) + 1, i);
  }
  first_in_block_.push_back(static_cast<uint32_t>(functions_.size()));
}

std::optional<uint32_t> FunctionTable::StartingAt(VirtualAddress address) const {
  if (functions_.empty() || address < functions_.front().start || functions_.back().start < address) {
    return std::nullopt;
  }
  const size_t block = (address.value - functions_.front().start.value) >> block_bits_;
  const auto begin = functions_.begin() + first_in_block_[block], end = functions_.begin() + first_in_block_[block + 1];
  const auto found = std::lower_bound(begin, end, address,
                                      [](const Function& function, VirtualAddress at) { return function.start < at; });
  if (found == end || found->start != address) return std::nullopt;
  return static_cast<uint32_t>(found - functions_.begin());
}

}  // namespace clrsampler
