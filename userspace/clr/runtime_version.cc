#include "clr/runtime_version.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kMark = "@(#)Version ";

// A single-file host has 80 MB, its .rodata a few; more than this is not a runtime.
constexpr size_t kMaxSearchBytes = 64 << 20;

// In .data of folder runtimes (10.0.12), elsewhere it may be among the constants: all sections that are data.
std::string FindVersion(const ElfImage& image) {
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_ALLOC) == 0 || (section.flags & SHF_EXECINSTR) != 0 || section.type != SHT_PROGBITS)
      continue;
    auto bytes = image.SectionBytes(section);
    if (!bytes.has_value()) continue;
    bytes = bytes->first(std::min(bytes->size(), kMaxSearchBytes));
    const void* found = memmem(bytes->data(), bytes->size(), kMark.data(), kMark.size());
    if (found == nullptr) continue;
    const size_t offset = static_cast<size_t>(static_cast<const std::byte*>(found) - bytes->data());
    const auto text = TextAt(*bytes, offset, 256);
    const std::string version = text.has_value() ? RuntimeVersionFromText(*text) : "";
    if (!version.empty()) return version;
  }
  return "unknown";
}

std::string VersionOf(const ImageFile& file) {
  if (!ElfImage::HasMagic(file.bytes())) return "";
  const auto image = ElfImage::Parse(file.bytes());
  if (!image.ok()) return "";
  if (!FindSymbol(*image, "coreclr_initialize").has_value() && !FindSymbol(*image, "DotNetRuntimeInfo").has_value()) {
    return "";
  }
  return FindVersion(*image);
}

}  // namespace

std::string RuntimeVersionFromText(absl::string_view version_text) {
  if (!absl::ConsumePrefix(&version_text, kMark)) return "";
  const absl::string_view numbers = version_text.substr(0, version_text.find(' '));
  const std::vector<absl::string_view> fields = absl::StrSplit(numbers, '.');
  uint32_t major = 0, minor = 0, third = 0;
  if (fields.size() < 3 || !absl::SimpleAtoi(fields[0], &major) || !absl::SimpleAtoi(fields[1], &minor) ||
      !absl::SimpleAtoi(fields[2], &third)) {
    return "";
  }
  return absl::StrCat(major, ".", minor, ".", third / 100);
}

std::string RuntimeVersions::Of(const Process& process) {
  for (const Mapping& mapping : process.mappings.all()) {
    if (mapping.kind != MappingKind::kFile) continue;
    const auto file = images_.Get(process, mapping);
    if (!file.ok()) continue;
    auto [known, is_new] =
        by_image_.try_emplace(Identity((*file)->device, (*file)->inode, (*file)->size, (*file)->modified_ns));
    if (is_new) known->second = VersionOf(**file);
    if (!known->second.empty()) return known->second;
  }
  return "";
}

}  // namespace clrsampler
