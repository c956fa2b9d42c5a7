#include "clr/runtime_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clr/runtime_facts.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_exports.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kAotCookie = "DNDH";

// A single-file host has 80 MB, its .rodata a few. An image with more than this is not a runtime.
constexpr size_t kMaxSearchBytes = 64 << 20;
// A hostile image could be made of nothing but marks.
constexpr int kMaxCandidates = 1000;

constexpr absl::string_view kExports[] = {"coreclr_initialize",
                                          "g_dacTable",
                                          "DotNetRuntimeContractDescriptor",
                                          "DotNetRuntimeInfo",
                                          "coreclr_execute_assembly",
                                          "DotNetRuntimeDebugHeader",
                                          "GC_Initialize",
                                          "GC_VersionInfo"};

// Calls `visit` with the bytes of each section that holds data, until it says true.
template <typename Visitor>
void ForEachDataSection(const ElfImage& image, Visitor visit) {
  for (const ElfSection& section : image.sections()) {
    if ((section.flags & SHF_ALLOC) == 0 || (section.flags & SHF_EXECINSTR) != 0 || section.type != SHT_PROGBITS) {
      continue;
    }
    const auto bytes = image.SectionBytes(section);
    if (bytes.has_value() && visit(bytes->first(std::min(bytes->size(), kMaxSearchBytes)))) return;
  }
}

RuntimeVersion FindMarkedVersion(const ElfImage& image) {
  RuntimeVersion version;
  ForEachDataSection(image, [&](std::span<const std::byte> bytes) {
    const void* found = memmem(bytes.data(), bytes.size(), kVersionMark.data(), kVersionMark.size());
    if (found == nullptr) return false;
    const size_t offset = static_cast<size_t>(static_cast<const std::byte*>(found) - bytes.data());
    const auto text = TextAt(bytes, offset, 256);
    version = text.has_value() ? VersionFromMark(*text).value_or(RuntimeVersion{}) : RuntimeVersion{};
    return version.known();
  });
  return version;
}

// "9.0.20+3879076d..." that stands close behind "9.0.2026.41315": the core library's two versions. A program's own
// version looks like the former but has no such neighbour.
std::optional<RuntimeVersion> VersionAround(absl::string_view bytes, size_t plus) {
  constexpr size_t kNear = 64, kCommitDigits = 40;
  if (bytes.size() - plus <= kCommitDigits) return std::nullopt;
  for (const char c : bytes.substr(plus + 1, kCommitDigits)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c)) && (c < 'a' || c > 'f')) return std::nullopt;
  }
  const size_t from = plus > kNear ? plus - kNear : 0;
  const absl::string_view before = bytes.substr(from, plus - from);
  for (size_t at = 0; at < before.size(); ++at) {
    const bool begins = absl::ascii_isdigit(static_cast<unsigned char>(before[at])) &&
                        (at == 0 || !absl::ascii_isdigit(static_cast<unsigned char>(before[at - 1])));
    if (!begins) continue;
    const size_t end = std::min(before.find_first_not_of("0123456789.", at), before.size());
    const absl::string_view text = before.substr(at, end - at);
    if (std::count(text.begin(), text.end(), '.') != 3) continue;
    const auto version = VersionFromFileVersion(text);
    if (version.has_value() && absl::EndsWith(before, version->Text())) return version;
  }
  return std::nullopt;
}

RuntimeVersion FindAotVersion(const ElfImage& image) {
  RuntimeVersion version;
  ForEachDataSection(image, [&](std::span<const std::byte> section) {
    const absl::string_view bytes = AsText(section);
    int candidates = 0;
    for (size_t plus = bytes.find('+'); plus != absl::string_view::npos; plus = bytes.find('+', plus + 1)) {
      if (plus == 0 || !absl::ascii_isdigit(static_cast<unsigned char>(bytes[plus - 1]))) continue;
      if (++candidates > kMaxCandidates) return false;
      if (const auto found = VersionAround(bytes, plus)) {
        version = *found;
        return true;
      }
    }
    return false;
  });
  return version;
}

RuntimeImageKind Classify(const ElfImage& image, const std::vector<RuntimeExport>& exports) {
  const auto find = [&](absl::string_view name) {
    const auto found = std::find_if(exports.begin(), exports.end(), [&](const auto& one) { return one.name == name; });
    return found == exports.end() ? nullptr : &*found;
  };
  const bool has_dac_table = find("g_dacTable") != nullptr;
  if (find("coreclr_initialize") != nullptr) {
    return has_dac_table ? RuntimeImageKind::kCoreClr : RuntimeImageKind::kMono;
  }
  if (has_dac_table && find("DotNetRuntimeInfo") != nullptr) return RuntimeImageKind::kSingleFileHost;
  if (const RuntimeExport* header = find("DotNetRuntimeDebugHeader"); header != nullptr) {
    const auto bytes = image.BytesFrom(header->address);
    if (bytes.has_value() && absl::StartsWith(AsText(*bytes), kAotCookie)) return RuntimeImageKind::kNativeAot;
  }
  if (find("GC_Initialize") != nullptr && find("GC_VersionInfo") != nullptr) return RuntimeImageKind::kStandaloneGc;
  return RuntimeImageKind::kNone;
}

}  // namespace

RuntimeImage ReadRuntimeImage(const ElfImage& image) {
  RuntimeImage result;
  result.machine = image.machine();
  const ElfExports exports(image);
  for (const absl::string_view name : kExports) {
    if (const auto symbol = exports.Find(name)) result.exports.push_back({name, symbol->address, symbol->size});
  }
  if (result.exports.empty()) return result;
  result.kind = Classify(image, result.exports);
  if (result.kind == RuntimeImageKind::kCoreClr || result.kind == RuntimeImageKind::kSingleFileHost) {
    result.version = FindMarkedVersion(image);
  } else if (result.kind == RuntimeImageKind::kNativeAot) {
    result.version = FindAotVersion(image);
  }
  return result;
}

LibcFlavour LibcOfInterpreter(absl::string_view interpreter) {
  const absl::string_view name = interpreter.substr(interpreter.rfind('/') + 1);
  if (absl::StartsWith(name, "ld-musl-")) return LibcFlavour::kMusl;
  if (absl::StartsWith(name, "ld-linux-") || absl::StartsWith(name, "ld64.so")) return LibcFlavour::kGlibc;
  return LibcFlavour::kUnknown;
}

}  // namespace clrsampler
