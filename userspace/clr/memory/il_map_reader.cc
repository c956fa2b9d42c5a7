#include "clr/memory/il_map_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kMaxHeads = 3;

// As many of the bytes as there are: the page behind the last one may not be there.
std::span<const std::byte> ReadHead(MemoryReader& memory, uint64_t address,
                                    std::array<std::byte, kDebugInfoHeadBytes>& buffer) {
  if (memory.Read(address, buffer)) return buffer;
  const std::span<std::byte> rest = std::span(buffer).first(std::min<uint64_t>(buffer.size(), kPage - address % kPage));
  return memory.Read(address, rest) ? rest : std::span<std::byte>();
}

// The first word of the code's header; 0: there is none.
uint64_t DebugInfoOf(const MethodCode& code) { return LoadAt<uint64_t>(code.identity, 0).value_or(0); }

absl::StatusOr<DebugInfoHeader> ReadHeader(MemoryReader& memory, DebugInfoFormat format, uint64_t info) {
  if (info == 0) return absl::NotFoundError("the method has no debug information");
  DebugInfoPlace place;
  for (int head = 0; head < kMaxHeads; ++head) {
    std::array<std::byte, kDebugInfoHeadBytes> buffer;
    const std::span<const std::byte> bytes = ReadHead(memory, info + place.offset, buffer);
    if (bytes.empty()) return absl::UnavailableError("debug information is not readable");
    ASSIGN_OR_RETURN(const DebugInfoHeader header, ReadDebugInfoHeader(format, bytes, place));
    if (!header.needs_more_at) return header;
    place = *header.needs_more_at;
  }
  return absl::DataLossError("debug information without an end");
}

}  // namespace

absl::StatusOr<IlMap> ReadIlMap(MemoryReader& memory, DebugInfoFormat format, const MethodCode& code) {
  const uint64_t info = DebugInfoOf(code), code_bytes = code.range.end - code.range.begin;
  if (code_bytes > std::numeric_limits<uint32_t>::max()) return absl::DataLossError("a method of an impossible size");
  ASSIGN_OR_RETURN(const DebugInfoHeader header, ReadHeader(memory, format, info));
  if (header.bounds_bytes == 0) return absl::NotFoundError("the method has no IL map");
  std::vector<std::byte> bounds(header.bounds_bytes);
  if (!memory.Read(info + header.bounds_offset, bounds)) return absl::UnavailableError("the IL map is not readable");
  return DecodeBounds(format, bounds, static_cast<uint32_t>(code_bytes));
}

absl::StatusOr<bool> HasPatchpoint(MemoryReader& memory, DebugInfoFormat format, const MethodCode& code) {
  ASSIGN_OR_RETURN(const DebugInfoHeader header, ReadHeader(memory, format, DebugInfoOf(code)));
  return header.has_patchpoint;
}

}  // namespace clrsampler
