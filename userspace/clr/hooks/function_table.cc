#include "clr/hooks/function_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/elf/eh_frame.h"
#include "status/status.h"

namespace clrsampler {
namespace {

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

}  // namespace

absl::StatusOr<FunctionTable> FunctionTable::Read(const ElfImage& image) {
  RETURN_IF_ERROR(SegmentsAreApart(image.segments()));
  const absl::StatusOr<EhFrameTable> table = EhFrameTable::Parse(image);
  if (!table.ok()) return table.status();
  if (table->size() > kMaxFunctions) {
    return absl::UnimplementedError(absl::StrCat("the unwind table has ", table->size(), " functions"));
  }
  FunctionTable result;
  result.bytes_ = image.bytes();
  result.functions_.reserve(table->size());
  uint64_t code_bytes = 0;
  VirtualAddress end{0};
  auto segment = image.segments().begin();
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
    while (segment != image.segments().end() && start.value - segment->address.value >= segment->file_bytes &&
           segment->address < start) {
      ++segment;
    }
    if (segment == image.segments().end()) break;
    const uint64_t inside = start.value - segment->address.value;
    if (start < segment->address || !segment->executable || bytes > segment->file_bytes - inside) continue;
    const FileOffset offset{segment->offset.value + inside};
    if (offset.value > image.bytes().size() || bytes > image.bytes().size() - offset.value) continue;
    code_bytes += bytes;
    if (code_bytes > kMaxCodeBytes) {
      return absl::UnimplementedError(absl::StrCat("more than ", kMaxCodeBytes >> 20, " MB of code"));
    }
    result.functions_.push_back({start, offset, static_cast<uint32_t>(bytes)});
  }
  return result;
}

std::optional<uint32_t> FunctionTable::StartingAt(VirtualAddress address) const {
  const auto found = std::lower_bound(functions_.begin(), functions_.end(), address,
                                      [](const Function& function, VirtualAddress at) { return function.start < at; });
  if (found == functions_.end() || found->start != address) return std::nullopt;
  return static_cast<uint32_t>(found - functions_.begin());
}

}  // namespace clrsampler
