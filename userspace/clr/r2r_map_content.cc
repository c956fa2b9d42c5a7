#include "clr/r2r_map_content.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/jit/r2rmap_writer.h"
#include "os/file_io.h"
#include "os/path_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A self-contained composite framework has 220 MB (.NET 10.0.12).
constexpr uint64_t kMaxImageBytes = uint64_t{2} << 30;

absl::StatusOr<std::shared_ptr<MappedFile>> MapImage(const std::string& path) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(path));
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Map(fd.get(), 0, 0, kMaxImageBytes));
  return std::make_shared<MappedFile>(std::move(file));
}

class FolderAssemblies : public AssemblyOpener {
 public:
  explicit FolderAssemblies(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  std::optional<OpenedAssembly> Open(absl::string_view simple_name) override {
    for (const std::string& folder : folders_) {
      absl::StatusOr<std::shared_ptr<MappedFile>> file = MapImage(absl::StrCat(folder, "/", simple_name, ".dll"));
      if (file.ok()) return OpenedAssembly{(*file)->bytes(), *file};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::string> folders_;
};

R2rMapOs OsOf(const PeImage& pe) {
  switch (pe.os()) {
    case PeOs::kLinux:
      return R2rMapOs::kLinux;
    case PeOs::kFreeBsd:
      return R2rMapOs::kFreeBsd;
    case PeOs::kApple:
      return R2rMapOs::kOsx;
    case PeOs::kWindowsOrAny:
      return R2rMapOs::kWindows;
    case PeOs::kOther:
      return R2rMapOs::kUnknown;
  }
  return R2rMapOs::kUnknown;
}

std::optional<PerfMapDebugEntry> EntryOf(const PeImage& pe) {
  for (PerfMapDebugEntry& entry : pe.PerfMapEntries()) {
    if (entry.version == kR2rMapVersion) return std::move(entry);
  }
  return std::nullopt;
}

bool HasRow(const R2rFunction& function) {
  return function.method == function.index && function.part == R2rPart::kBody;
}

// The end of each method's code, by its index: behind the last of its funclets.
absl::flat_hash_map<uint32_t, uint32_t> EndsOf(const R2rImage& image) {
  absl::flat_hash_map<uint32_t, uint32_t> ends;
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    const std::optional<R2rFunction> function = image.Function(i);
    if (!function || (function->part != R2rPart::kBody && function->part != R2rPart::kFunclet)) continue;
    uint32_t& end = ends[function->method];
    end = std::max(end, function->end);
  }
  return ends;
}

}  // namespace

absl::StatusOr<R2rImageFile> R2rImageFile::Open(const std::string& path, const std::vector<std::string>& folders) {
  absl::StatusOr<std::shared_ptr<MappedFile>> file = MapImage(path);
  RETURN_IF_ERROR(Annotate(file.status(), "cannot read"));
  absl::StatusOr<PeImage> pe = PeImage::Parse((*file)->bytes());
  RETURN_IF_ERROR(Annotate(pe.status(), path));
  absl::StatusOr<std::unique_ptr<R2rImage>> image =
      R2rImage::Open(*std::move(pe), absl::StripSuffix(FileNameOf(path), ".dll"));
  RETURN_IF_ERROR(Annotate(image.status(), path));
  R2rImageFile opened;
  opened.file_ = *std::move(file);
  opened.image_ = *std::move(image);
  std::vector<std::string> all = {absl::StrCat("./", FolderOf(path))};
  if (absl::StartsWith(path, "/")) all.front() = std::string(FolderOf(path));
  all.insert(all.end(), folders.begin(), folders.end());
  opened.assemblies_ = std::make_unique<FolderAssemblies>(std::move(all));
  return opened;
}

absl::StatusOr<R2rMapHeader> R2rMapHeaderOf(const PeImage& pe) {
  const std::optional<PerfMapDebugEntry> entry = EntryOf(pe);
  if (!entry) {
    return absl::FailedPreconditionError("the image names no r2rmap, so no map could be proven to belong to it");
  }
  R2rMapHeader header;
  header.signature = entry->signature;
  header.version = entry->version;
  header.os = OsOf(pe);
  header.architecture = pe.machine() == PeMachine::kArm64 ? R2rMapArchitecture::kArm64 : R2rMapArchitecture::kX64;
  header.abi = R2rMapAbi::kDefault;
  return header;
}

std::string R2rMapFileNameOf(const PeImage& pe) {
  const std::optional<PerfMapDebugEntry> entry = EntryOf(pe);
  return entry ? std::string(FileNameOf(entry->file_name)) : "";
}

absl::StatusOr<R2rMapContent> R2rMapContentOf(R2rImage& image, AssemblyOpener& assemblies) {
  ASSIGN_OR_RETURN(const R2rMapHeader header, R2rMapHeaderOf(image.pe()));
  R2rMapContent content;
  content.map.header = header;
  const absl::flat_hash_map<uint32_t, uint32_t> ends = EndsOf(image);
  for (uint32_t i = 0; i < image.function_count(); ++i) {
    const std::optional<R2rFunction> function = image.Function(i);
    if (!function || !HasRow(*function)) continue;
    const absl::StatusOr<R2rMethodName> name = image.Name(i, assemblies, MethodVariables::kReplaced);
    std::string text = name.ok() ? R2rMapText(name->name) : "";
    if (!name.ok() || name->method_by_token || name->types_by_token || !FitsR2rMap(text)) {
      ++content.nameless;
      continue;
    }
    const std::string& kept = content.names.emplace_back(std::move(text));
    content.map.rows.push_back({function->begin, ends.at(i) - function->begin, kept});
  }
  return content;
}

}  // namespace clrsampler
