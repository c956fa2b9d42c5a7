// A file mapped by a target: PE image, ReadyToRun tables, metadata, debug directory, bundle manifest.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/pe/bundle_content.h"
#include "formats/pe/bundle_manifest.h"
#include "formats/pe/il_body.h"
#include "formats/pe/loaded_image.h"
#include "formats/pe/pdb_reference.h"
#include "formats/pe/r2r_image.h"

namespace {

using clrsampler::OpenedAssembly;

// Every other assembly is the image itself: its metadata is as good as any.
class SameFile : public clrsampler::AssemblyOpener {
 public:
  explicit SameFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::optional<OpenedAssembly> Open(absl::string_view) override { return OpenedAssembly{bytes_, nullptr}; }

 private:
  std::span<const std::byte> bytes_;
};

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

void UseIlMap(const clrsampler::R2rImage& image, const clrsampler::R2rFunction& function) {
  const auto place = image.PlaceOf(function.begin, clrsampler::FramePlace::kLeaf);
  if (!place) return;
  const auto map = image.IlMapOf(place->method);
  if (!map.ok()) return;
  for (const clrsampler::IlMapEntry& entry : map->entries()) Require(entry.native_offset <= map->code_bytes());
}

void UseImage(clrsampler::R2rImage& image, std::span<const std::byte> bytes) {
  SameFile opener(bytes);
  // A bounded number of names, so that one input stays fast.
  const uint32_t step = std::max<uint32_t>(1, image.function_count() / 200);
  for (uint32_t i = 0; i < image.function_count(); i += step) {
    const auto function = image.Function(i);
    Require(function.has_value() && function->index == i);
    Require(image.BeginsAt(function->begin));
    if (const auto found = image.Find(function->begin)) Require(found->index == i);
    if (const auto behind = image.Find(function->end)) Require(behind->index != i);
    if (function->method == clrsampler::R2rFunction::kNoOwner) continue;
    Require(function->method <= i);
    UseIlMap(image, *function);
    const auto name = image.Name(function->method, opener);
    if (name.ok()) Require(clrsampler::R2rMapText(name->name).size() < 4 * clrsampler::SignatureNames::kMaxTextBytes);
  }
}

// The same bytes as the memory of an image, which is what a target says it is.
void UseAsMemory(std::span<const std::byte> bytes) {
  const auto size = clrsampler::LoadedImageBytes(bytes);
  if (!size.ok()) return;
  constexpr uint64_t kMaxCopied = 1 << 20;
  std::vector<std::byte> image(std::min<uint64_t>(*size, 1 << 20));
  uint64_t copied = 0;
  const auto loaded = clrsampler::CopyLoadedImage(
      [&](uint32_t rva, std::span<std::byte> into) {
        copied += into.size();
        const auto part = clrsampler::SliceAt(bytes, rva, into.size());
        if (part) std::memcpy(into.data(), part->data(), into.size());
        return part.has_value();
      },
      kMaxCopied, image);
  Require(copied <= kMaxCopied);
  if (!loaded.ok()) return;
  auto opened = clrsampler::R2rImage::Open(loaded->pe, "fuzz");
  if (opened.ok()) UseImage(**opened, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto manifest = clrsampler::BundleManifest::Find(bytes); manifest.ok()) {
    for (const clrsampler::BundleEntry& entry : manifest->entries()) {
      const clrsampler::BundleEntry* found = manifest->At(entry.offset);
      Require(found == nullptr || entry.offset - found->offset < found->bytes);
      const auto content = clrsampler::InflateBundleEntry(bytes, entry, 1 << 20);
      Require(!content.ok() || content->size() == entry.bytes);
    }
  }
  UseAsMemory(bytes);
  auto pe = clrsampler::PeImage::Parse(bytes);
  if (!pe.ok()) return 0;
  pe->PerfMapEntries();
  const auto entries = pe->DebugEntries();
  Require(entries.size() <= 64);
  Require(clrsampler::PdbReferences(*pe).size() + clrsampler::PdbChecksums(*pe).size() <= entries.size());
  if (const auto embedded = clrsampler::EmbeddedPdb(*pe)) Require(embedded->size() >= 4 && embedded->size() <= size);
  (void)clrsampler::ReadIlBody(bytes);
  auto image = clrsampler::R2rImage::Open(*std::move(pe), "fuzz");
  if (image.ok()) UseImage(**image, bytes);
  return 0;
}
