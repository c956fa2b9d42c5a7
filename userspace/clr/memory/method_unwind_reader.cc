#include "clr/memory/method_unwind_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/memory/memory_probe.h"
#include "formats/byte_reader.h"
#include "formats/unwind/arm64_unwind.h"
#include "formats/unwind/unwind_bytes.h"

namespace clrsampler {
namespace {

// Its end and its unwind data, of a part that begins at `begin`. Addresses count from `base`.
struct Part {
  uint32_t end = 0;
  std::string bytes;
};

std::optional<Part> ReadX64Part(ReadBytes read, uint64_t base, std::span<const std::byte> function) {
  const uint32_t end = *LoadAt<uint32_t>(function, 4), unwind = *LoadAt<uint32_t>(function, 8);
  UnwindInfoBytes info;
  absl::StatusOr<std::string> bytes =
      UnwindBytes([&](uint32_t rva) { return ReadUnwindInfoBytes(read, base + rva, info); }, unwind);
  if (!bytes.ok()) return std::nullopt;
  return Part{end, *std::move(bytes)};
}

std::optional<Part> ReadArm64Part(ReadBytes read, uint64_t base, std::span<const std::byte> function) {
  const uint32_t begin = *LoadAt<uint32_t>(function, 0), unwind = *LoadAt<uint32_t>(function, 4);
  if (unwind % 4 != 0) return std::nullopt;  // the data itself, in a form that CoreCLR does not write
  absl::StatusOr<std::string> bytes = Arm64UnwindBytes(read, base + unwind);
  if (!bytes.ok()) return std::nullopt;
  const absl::StatusOr<Arm64UnwindInfo> info = Arm64UnwindInfo::Parse(AsBytes(*bytes));
  if (!info.ok() || info->function_bytes > UINT32_MAX - begin) return std::nullopt;
  return Part{begin + info->function_bytes, *std::move(bytes)};
}

}  // namespace

std::vector<CodeUnwind> ReadUnwindParts(MemoryReader& memory, const RuntimeLayout& layout, const MethodCode& code) {
  const auto count = FieldOf<uint32_t>(code.identity, layout.code_header.unwind_count);
  const size_t row = layout.runtime_function.bytes;
  std::vector<std::byte> table(std::min<size_t>(count, kMaxUnwindParts) * row);
  if (table.empty() || !memory.Read(code.header + layout.code_header.unwinds, table)) return {};
  const uint32_t first = *LoadAt<uint32_t>(std::span<const std::byte>(table), 0);
  const uint64_t base = code.range.begin - first, size = code.range.end - code.range.begin;
  const auto read = [&](uint64_t address, std::span<std::byte> into) { return memory.Read(address, into); };
  std::vector<CodeUnwind> parts;
  uint32_t least = first;
  for (size_t at = 0; at < table.size(); at += row) {
    const auto function = std::span<const std::byte>(table).subspan(at, row);
    const uint32_t begin = *LoadAt<uint32_t>(function, 0);
    std::optional<Part> part =
        layout.runtime_function.has_end ? ReadX64Part(read, base, function) : ReadArm64Part(read, base, function);
    if (!part || begin < least || part->end <= begin || part->end - first > size) return {};
    least = part->end;
    parts.push_back({begin - first, part->end - first, std::move(part->bytes)});
  }
  return parts;
}

}  // namespace clrsampler
