// The third part of R2rImage: the IL maps of its methods, section 105.
#include <algorithm>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/native_format.h"
#include "formats/pe/r2r_image.h"
#include "formats/runtime/il_map_decoder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status DamagedDebugInfo(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("R2R debug info: ", what));
}

// R2rImage::Open refuses the versions between these, and newer ones.
DebugInfoFormat FormatOf(uint16_t r2r_major) {
  if (r2r_major < kNewestR2rMajorOf10) return DebugInfoFormat::kNet8;
  return r2r_major == kNewestR2rMajorOf10 ? DebugInfoFormat::kNet10 : DebugInfoFormat::kNet11;
}

// Methods with the same debug information share it: an element says how far before it that lies, or 0 if it follows.
std::optional<std::span<const std::byte>> DebugInfoAt(std::span<const std::byte> section, uint64_t element) {
  const std::optional<NativeNumber> back = ReadNativeUnsigned(section, element);
  if (!back || back->value > element) return std::nullopt;
  return section.subspan(back->value == 0 ? back->next : element - back->value);
}

}  // namespace

std::optional<R2rCodePlace> R2rImage::PlaceOf(uint32_t rva, FramePlace place) const {
  const uint32_t within = place == FramePlace::kCaller && rva != 0 ? rva - 1 : rva;
  const std::optional<R2rFunction> function = Find(within);
  if (!function || (function->part != R2rPart::kBody && function->part != R2rPart::kFunclet)) return std::nullopt;
  if (function->method == R2rFunction::kNoOwner) return std::nullopt;
  return R2rCodePlace{function->method, rva - Begin(function->method)};
}

RvaRange R2rImage::HotCodeOf(uint32_t method) const {
  const uint32_t hot_count = std::min(function_count_, first_cold_);
  uint32_t last = method;
  while (last + 1 < hot_count && !ReferenceOf(last + 1)) ++last;
  return {Begin(method), End(last, Begin(last)) - Begin(method)};
}

// Up to the end of the code before the next method: funclets, and perhaps the stub that resumes it. Offsets of its cold
// parts follow. PlaceOf leads to neither stubs nor cold parts, so any offset of them will do.
uint32_t R2rImage::CodeBytesOf(uint32_t method) const {
  const uint32_t hot_bytes = HotCodeOf(method).bytes;
  if (!has_cold_parts()) return hot_bytes;
  const uint32_t final = function_count_ - 1;
  return hot_bytes + End(final, Begin(final)) - Begin(first_cold_);
}

absl::StatusOr<IlMap> R2rImage::IlMapOf(uint32_t method) const {
  if (!ReferenceOf(method)) return absl::NotFoundError(absl::StrCat("no method begins at runtime function ", method));
  const std::optional<std::span<const std::byte>> section = SectionBytes(R2rSectionType::kDebugInfo);
  if (!section) return DamagedDebugInfo("it lies outside the file");
  ASSIGN_OR_RETURN(const std::optional<uint64_t> element,
                   section->empty() ? std::optional<uint64_t>() : FindInNativeArray(*section, method));
  if (!element.has_value()) return absl::NotFoundError(absl::StrCat("runtime function ", method, " has no IL map"));
  const std::optional<std::span<const std::byte>> info = DebugInfoAt(*section, *element);
  if (!info) return DamagedDebugInfo("a method shares what lies outside the section");
  const DebugInfoFormat format = FormatOf(pe_.r2r()->major);
  const absl::StatusOr<DebugInfoHeader> header = ReadDebugInfoHeader(format, *info, {DebugInfoPart::kSizes, 0});
  RETURN_IF_ERROR(header.status());
  const std::optional<std::span<const std::byte>> bounds = SliceAt(*info, header->bounds_offset, header->bounds_bytes);
  if (!bounds) return DamagedDebugInfo("an IL map lies outside the section");
  return DecodeBounds(format, *bounds, CodeBytesOf(method));
}

}  // namespace clrsampler
