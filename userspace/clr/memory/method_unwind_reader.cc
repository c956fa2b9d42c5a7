#include "clr/memory/method_unwind_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "clr/memory/memory_probe.h"
#include "formats/unwind/unwind_bytes.h"

namespace clrsampler {

std::vector<CodeUnwind> ReadUnwindParts(MemoryReader& memory, const RuntimeLayout& layout, const MethodCode& code) {
  const auto count = FieldOf<uint32_t>(code.identity, layout.code_header.unwind_count);
  std::vector<std::array<uint32_t, 3>> table(std::min<size_t>(count, kMaxUnwindParts));  // {begin, end, unwind data}
  if (table.empty() ||
      !memory.Read(code.header + layout.code_header.unwinds, std::as_writable_bytes(std::span(table)))) {
    return {};
  }
  const uint32_t first = table[0][0];
  const uint64_t base = code.range.begin - first, size = code.range.end - code.range.begin;
  const auto read = [&](uint64_t address, std::span<std::byte> into) { return memory.Read(address, into); };
  std::vector<CodeUnwind> parts;
  uint32_t least = first;
  for (const auto& [begin, end, unwind] : table) {
    if (begin < least || end <= begin || end - first > size) return {};
    least = end;
    UnwindInfoBytes info;
    absl::StatusOr<std::string> bytes =
        UnwindBytes([&](uint32_t rva) { return ReadUnwindInfoBytes(read, base + rva, info); }, unwind);
    if (!bytes.ok()) return {};
    parts.push_back({begin - first, end - first, *std::move(bytes)});
  }
  return parts;
}

}  // namespace clrsampler
