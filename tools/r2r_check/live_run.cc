// The runtime as judge: a jitdump of a run with DOTNET_PerfMapEnabled=1 has a [PreJIT] record for each precompiled
// method that was prepared, with its address and the runtime's own name for it.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "checked_image.h"

namespace clrsampler {
namespace {

struct CodeMapping {
  uint64_t start, end, file_offset;
  std::string path;
};

std::vector<CodeMapping> ReadMaps(absl::string_view text) {
  std::vector<CodeMapping> mappings;
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, line_end));
    text.remove_prefix(std::min(line_end + 1, text.size()));
    unsigned long long start = 0, end = 0, offset = 0;
    char protection[8] = {};
    int path = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %llx %*s %*s %n", &start, &end, protection, &offset, &path) < 4)
      continue;
    if (protection[2] != 'x' || path == 0 || line[path] != '/') continue;
    mappings.push_back({start, end, offset, line.substr(path)});
  }
  return mappings;
}

// "instance void [System.Private.CoreLib] System.Text.StringBuilder::Append(char)[PreJIT]" -> what follows "[module] ".
absl::string_view BehindModule(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '[') continue;
    size_t end = i + 1;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' ||
                                 text[end] == '.' || text[end] == '-')) {
      ++end;
    }
    if (end > i + 1 && text.substr(end, 2) == "] ") return text.substr(end + 2);
  }
  return text;
}

struct MappedImage {
  std::shared_ptr<MappedFile> file;
  std::optional<BundleManifest> manifest;
  std::unique_ptr<FolderOpener> opener;
  std::map<uint64_t, std::unique_ptr<R2rImage>> images;  // by offset in the file

  // The image at this offset and the RVA there; nullptr: none.
  std::pair<R2rImage*, uint32_t> At(uint64_t file_offset, absl::string_view name) {
    uint64_t base = 0, bytes = file->bytes().size();
    if (manifest) {
      const BundleEntry* entry = manifest->At(file_offset);
      if (entry == nullptr) return {nullptr, 0};
      base = entry->offset;
      bytes = entry->bytes;
      name = entry->path;
    }
    std::unique_ptr<R2rImage>& image = images[base];
    if (!image) {
      absl::StatusOr<PeImage> pe = PeImage::Parse(file->bytes().subspan(base, bytes));
      if (!pe.ok()) return {nullptr, 0};
      absl::StatusOr<std::unique_ptr<R2rImage>> opened = R2rImage::Open(*std::move(pe), StemOf(name));
      if (!opened.ok()) return {nullptr, 0};
      image = *std::move(opened);
    }
    const std::optional<uint32_t> rva = image->pe().RvaOfOffset(file_offset - base);
    if (!rva) return {nullptr, 0};
    return {image.get(), *rva};
  }
};

MappedImage OpenMapped(const std::string& path, const std::vector<std::string>& references) {
  MappedImage mapped;
  if (absl::StatusOr<std::shared_ptr<MappedFile>> file = MapWholeFile(path); file.ok()) {
    mapped.file = *std::move(file);
  } else {
    mapped.file = std::make_shared<MappedFile>();
  }
  std::vector<std::string> folders = references;
  folders.emplace_back(FolderOf(path));
  mapped.opener = std::make_unique<FolderOpener>(folders);
  if (LooksLikePe(mapped.file->bytes())) return mapped;
  if (absl::StatusOr<BundleManifest> manifest = BundleManifest::Find(mapped.file->bytes()); manifest.ok()) {
    mapped.manifest = *std::move(manifest);
  }
  return mapped;
}

// As the runtime writes it: no space behind commas, no arguments of the method itself, "(" behind it.
std::string RuntimeText(const MethodName& name) {
  std::string text = name.type;
  if (!name.type_args.empty()) absl::StrAppend(&text, "[", absl::StrJoin(name.type_args, ","), "]");
  absl::StrAppend(&text, "::", name.method, "(");
  return absl::StrReplaceAll(text, {{", ", ","}});
}

}  // namespace

int CheckLiveRun(const std::string& dump_path, const std::string& maps_path,
                 const std::vector<std::string>& references) {
  const absl::StatusOr<std::shared_ptr<MappedFile>> dump = MapWholeFile(dump_path);
  const absl::StatusOr<std::shared_ptr<MappedFile>> maps = MapWholeFile(maps_path);
  if (!dump.ok() || !maps.ok()) {
    std::printf("%s %s\n", dump.status().ToString().c_str(), maps.status().ToString().c_str());
    return 1;
  }
  const std::vector<CodeMapping> mappings = ReadMaps(AsText((*maps)->bytes()));
  const std::span<const std::byte> bytes = (*dump)->bytes();
  std::map<std::string, MappedImage> images;
  std::set<std::pair<uint64_t, std::string>> seen;
  uint32_t equal = 0, wrong = 0, unplaced = 0, instances = 0;
  for (uint64_t offset = 40; LoadAt<uint64_t>(bytes, offset + 8).has_value();) {
    const uint64_t record = offset;
    const uint32_t size = *LoadAt<uint32_t>(bytes, record + 4);
    if (size < 16 || !SliceAt(bytes, record, size)) break;
    offset += size;
    if (LoadAt<uint32_t>(bytes, record) != 0u || size < 57) continue;
    const uint64_t address = *LoadAt<uint64_t>(bytes, record + 32);
    const std::string name(TextAt(bytes, record + 56, size - 56).value_or(""));
    if (!name.ends_with("[PreJIT]") || !seen.emplace(address, name).second) continue;
    const auto mapping = std::find_if(mappings.begin(), mappings.end(), [&](const CodeMapping& row) {
      return address >= row.start && address < row.end;
    });
    if (mapping == mappings.end()) {
      ++unplaced;
      continue;
    }
    auto known = images.find(mapping->path);
    if (known == images.end()) known = images.emplace(mapping->path, OpenMapped(mapping->path, references)).first;
    const auto [image, rva] = known->second.At(address - mapping->start + mapping->file_offset, mapping->path);
    const std::optional<R2rFunction> function = image != nullptr ? image->Find(rva) : std::nullopt;
    if (!function || function->begin != rva || function->part != R2rPart::kBody) {
      if (++wrong <= 5) std::printf("  %llx no method: %s\n", static_cast<unsigned long long>(address), name.c_str());
      continue;
    }
    const absl::StatusOr<R2rMethodName> method = image->Name(function->method, *known->second.opener);
    const std::string text = method.ok() ? RuntimeText(method->name) : method.status().ToString();
    if (method.ok() && !method->name.type_args.empty()) ++instances;
    if (absl::StartsWith(BehindModule(name), text)) {
      ++equal;
    } else if (++wrong <= 5) {
      std::printf("  runtime %s\n  ours    %s\n", name.c_str(), text.c_str());
    }
  }
  std::printf("%s PreJIT %zu equal %u wrong %u unplaced %u generic-owner %u images %zu\n", dump_path.c_str(),
              seen.size(), equal, wrong, unplaced, instances, images.size());
  return static_cast<int>(wrong + unplaced) + (seen.empty() ? 1 : 0);
}

}  // namespace clrsampler
