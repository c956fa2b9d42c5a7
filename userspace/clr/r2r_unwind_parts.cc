#include "clr/r2r_unwind_parts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "formats/unwind/unwind_bytes.h"

namespace clrsampler {
namespace {

absl::StatusOr<std::string> UnwindBytesOf(const PeImage& pe, const R2rFunction& function) {
  if (pe.machine() == PeMachine::kX64) {
    return UnwindBytes([&](uint32_t rva) { return pe.BytesFrom(rva, UnwindInfo::kMaxBytes); }, function.unwind);
  }
  const auto read = [&](uint64_t rva, std::span<std::byte> into) {
    const auto bytes = pe.Bytes({static_cast<uint32_t>(rva), static_cast<uint32_t>(into.size())});
    if (bytes) std::copy(bytes->begin(), bytes->end(), into.begin());
    return bytes.has_value();
  };
  return Arm64UnwindBytes(read, function.unwind);
}

}  // namespace

std::vector<CodeUnwind> UnwindPartsOf(const R2rImage& image, uint32_t method) {
  const PeImage& pe = image.pe();
  const RvaRange code = image.HotCodeOf(method);
  std::vector<CodeUnwind> parts;
  uint32_t least = 0;
  for (uint32_t i = 0; i < kMaxUnwindParts; ++i) {
    const std::optional<R2rFunction> function = image.Function(method + i);
    if (!function || function->begin < code.rva || function->begin - code.rva >= code.bytes) break;
    const uint32_t begin = function->begin - code.rva, end = function->end - code.rva;
    // The image's file may be written to while it is read.
    if (begin < least || end <= begin || end > code.bytes) break;
    least = end;
    if (function->unwind == 0) continue;
    absl::StatusOr<std::string> bytes = UnwindBytesOf(pe, *function);
    if (bytes.ok()) parts.push_back({begin, end, *std::move(bytes)});
  }
  return parts;
}

}  // namespace clrsampler
