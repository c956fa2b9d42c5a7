#include "formats/pe/loaded_image.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pe/r2r_image.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMinPrice = 512;
constexpr uint32_t kMaxDebugEntryBytes = 4096;  // a perf-map entry has 284, a CodeView entry 25 and a path
// The headers of components are bounded by the section that lists them.
constexpr R2rSectionType kWanted[] = {R2rSectionType::kRuntimeFunctions,    R2rSectionType::kMethodDefEntryPoints,
                                      R2rSectionType::kInstanceEntryPoints, R2rSectionType::kManifestMetadata,
                                      R2rSectionType::kComponentAssemblies, R2rSectionType::kManifestAssemblyMvids,
                                      R2rSectionType::kHotColdMap};

class Copier {
 public:
  Copier(const ImageReader& read, uint64_t max_bytes, std::span<std::byte> image)
      : read_(read), budget_(max_bytes), image_(image) {}

  absl::Status Copy(RvaRange range) {
    if (range.bytes == 0) return absl::OkStatus();
    if (range.rva > image_.size() || image_.size() - range.rva < range.bytes) {
      return absl::DataLossError("a table lies outside the image");
    }
    // A read has a price of its own: a million ranges of 8 bytes must not take seconds.
    const uint64_t price = std::max<uint64_t>(range.bytes, kMinPrice);
    if (price > budget_) return absl::ResourceExhaustedError("the tables of the image are too large");
    budget_ -= price;
    if (!read_(range.rva, image_.subspan(range.rva, range.bytes))) {
      return absl::UnavailableError("the image's memory cannot be read");
    }
    copied_.push_back(range);
    return absl::OkStatus();
  }

  absl::StatusOr<PeImage> Headers() {
    RETURN_IF_ERROR(Copy({0, static_cast<uint32_t>(std::min(image_.size(), kImageHeaderBytes))}));
    // Each step leads to the place of the next one. Bytes that are not there yet read as absent.
    absl::StatusOr<PeImage> pe = PeImage::Parse(image_, PeLayout::kLoaded);
    RETURN_IF_ERROR(pe.status());
    const RvaRange cli = pe->cli_header();
    if (cli.bytes < 72) return absl::FailedPreconditionError("no .NET image");
    RETURN_IF_ERROR(Copy({cli.rva, 72}));
    const uint32_t r2r = LoadAt<uint32_t>(image_, uint64_t{cli.rva} + 64).value_or(0);
    if (r2r == 0) return absl::FailedPreconditionError("the image has no ReadyToRun code");
    RETURN_IF_ERROR(Copy({r2r, 8}));
    RETURN_IF_ERROR(CopyCoreHeader(uint64_t{r2r} + 8));
    return PeImage::Parse(image_, PeLayout::kLoaded);
  }

  absl::Status Tables(const PeImage& pe) {
    if (!pe.r2r()) return absl::FailedPreconditionError("the image has no ReadyToRun code");
    const R2rCoreHeader& core = pe.r2r()->core;
    for (const R2rSectionType type : kWanted) {
      if (const R2rSection* section = core.Find(type)) RETURN_IF_ERROR(Copy(section->range));
    }
    // Only this table tells the stubs that resume async methods from funclets.
    if (const R2rSection* infos = core.Find(R2rSectionType::kDebugInfo);
        infos != nullptr && pe.r2r()->major >= kRuntimeAsyncR2rMajor) {
      RETURN_IF_ERROR(Copy(infos->range));
    }
    if (pe.metadata()) RETURN_IF_ERROR(Copy(*pe.metadata()));
    RETURN_IF_ERROR(Components(pe, core));
    if (pe.machine() == PeMachine::kArm64) RETURN_IF_ERROR(UnwindData(core));
    return DebugEntries(pe);
  }

  std::vector<RvaRange> TakeCopied() { return std::move(copied_); }

 private:
  absl::Status CopyCoreHeader(uint64_t rva) {
    if (rva > UINT32_MAX) return absl::DataLossError("an R2R header lies outside the image");
    RETURN_IF_ERROR(Copy({static_cast<uint32_t>(rva), 8}));
    const uint32_t count = LoadAt<uint32_t>(image_, rva + 4).value_or(0);
    if (rva + 8 > UINT32_MAX || count > image_.size() / 12) return absl::DataLossError("an R2R header is damaged");
    return Copy({static_cast<uint32_t>(rva + 8), 12 * count});
  }

  absl::Status Components(const PeImage& pe, const R2rCoreHeader& composite) {
    const R2rSection* list = composite.Find(R2rSectionType::kComponentAssemblies);
    if (list == nullptr) return absl::OkStatus();
    for (uint32_t i = 0; i < list->range.bytes / 16; ++i) {
      const uint32_t header = LoadAt<uint32_t>(image_, uint64_t{list->range.rva} + 16 * uint64_t{i} + 8).value_or(0);
      if (header == 0) continue;
      RETURN_IF_ERROR(CopyCoreHeader(header));
      ASSIGN_OR_RETURN(const R2rCoreHeader core, pe.CoreHeaderAt(header));
      if (const R2rSection* methods = core.Find(R2rSectionType::kMethodDefEntryPoints)) {
        RETURN_IF_ERROR(Copy(methods->range));
      }
    }
    return absl::OkStatus();
  }

  // arm64 functions have their length in the first word of their unwind data.
  absl::Status UnwindData(const R2rCoreHeader& core) {
    const R2rSection* functions = core.Find(R2rSectionType::kRuntimeFunctions);
    if (functions == nullptr) return absl::OkStatus();
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = 0; i < functions->range.bytes / 8; ++i) {
      const uint32_t unwind =
          LoadAt<uint32_t>(image_, uint64_t{functions->range.rva} + 8 * uint64_t{i} + 4).value_or(0);
      if ((unwind & 3) != 0) continue;  // packed into the entry
      first = std::min(first, unwind);
      last = std::max(last, unwind);
    }
    return first > last ? absl::OkStatus() : Copy({first, last - first + 4});
  }

  // The r2rmap and the PDB that belong to the image. Without these entries there are none. Nothing else is lost.
  absl::Status DebugEntries(const PeImage& pe) {
    RvaRange rows = pe.debug_directory();
    rows.bytes = std::min<uint32_t>(rows.bytes / 28, 64) * 28;
    RETURN_IF_ERROR(Copy(rows));
    for (uint32_t i = 0; i < rows.bytes / 28; ++i) {
      const uint64_t row = uint64_t{rows.rva} + 28 * uint64_t{i};
      const uint32_t bytes = LoadAt<uint32_t>(image_, row + 16).value_or(0);
      const uint32_t type = LoadAt<uint32_t>(image_, row + 12).value_or(0);
      if (type != kPerfMapDebugEntryType && type != kCodeViewDebugEntryType) continue;
      if (bytes > kMaxDebugEntryBytes) continue;
      RETURN_IF_ERROR(Copy({LoadAt<uint32_t>(image_, row + 20).value_or(0), bytes}));
    }
    return absl::OkStatus();
  }

  const ImageReader& read_;
  uint64_t budget_;
  std::span<std::byte> image_;
  std::vector<RvaRange> copied_;
};

}  // namespace

absl::StatusOr<uint32_t> LoadedImageBytes(std::span<const std::byte> header) {
  if (!LooksLikePe(header)) return absl::DataLossError("not a PE image");
  const uint64_t optional = uint64_t{*LoadAt<uint32_t>(header, 0x3C)} + 24;
  const std::optional<uint32_t> bytes = LoadAt<uint32_t>(header, optional + 56);
  if (LoadAt<uint16_t>(header, optional) != 0x20B || !bytes) return absl::DataLossError("not a 64-bit PE image");
  return *bytes;
}

absl::StatusOr<LoadedImage> CopyLoadedImage(const ImageReader& read, uint64_t max_bytes, std::span<std::byte> image) {
  Copier copier(read, max_bytes, image);
  ASSIGN_OR_RETURN(PeImage pe, copier.Headers());
  RETURN_IF_ERROR(copier.Tables(pe));
  return LoadedImage{std::move(pe), copier.TakeCopied()};
}

}  // namespace clrsampler
