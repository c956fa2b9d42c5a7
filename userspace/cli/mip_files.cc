#include "cli/mip_files.h"

#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/input_file.h"
#include "cli/output_file.h"
#include "formats/elf/elf_image.h"
#include "formats/mip/mip_writer.h"
#include "os/replaced_file.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kDebugHint[] = "--debug takes the program or library that the profile is of, built with -g";

bool IsDeviceOrPipe(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

absl::Status WithFileBytes(const std::string& path,
                           const std::function<absl::Status(std::span<const std::byte>)>& parse) {
  ASSIGN_OR_RETURN(const MappedFile file, MapInputFile(path));
  const absl::Status parsed = parse(file.bytes());
  if (file.damaged()) {
    return WithHint(absl::AbortedError(absl::StrCat(path, " was cut while it was read")), "read it when it is whole");
  }
  return Annotate(parsed, path);
}

absl::StatusOr<MipProfile> ReadMipFile(const std::string& path, MipNaming naming) {
  MipProfile profile;
  RETURN_IF_ERROR(WithFileBytes(path, [&](std::span<const std::byte> bytes) {
    absl::StatusOr<MipProfile> read = ReadMip(bytes, naming);
    if (read.ok()) profile = *std::move(read);
    return read.status();
  }));
  if (profile.version < kMipVersion) {
    std::fprintf(stderr, "note: %s says that it is of version %u; read as version %u\n", path.c_str(), profile.version,
                 kMipVersion);
  }
  return profile;
}

absl::StatusOr<MipMap> ReadMipMapFile(const std::string& path) {
  MipMap map;
  RETURN_IF_ERROR(WithFileBytes(path, [&](std::span<const std::byte> bytes) -> absl::Status {
    if (ElfImage::HasMagic(bytes)) {
      const absl::StatusOr<ElfImage> image = ElfImage::Parse(bytes);
      if (!image.ok()) {
        return WithHint(image.status(),
                        "objcopy --dump-section __llvm_mipmap=X.mipmap PROGRAM takes the map out of it");
      }
      const ElfSection* section = image->FindSection(kMipMapSection);
      const auto content = section == nullptr ? std::nullopt : image->SectionBytes(*section);
      if (!content) {
        return WithHint(absl::NotFoundError(absl::StrCat("it has no section ", kMipMapSection)),
                        "the map is in the program as it was linked; strip and some packagers take it out");
      }
      bytes = *content;
    }
    absl::StatusOr<MipMap> read = ReadMipMap(bytes);
    if (read.ok()) map = *std::move(read);
    return read.status();
  }));
  return map;
}

absl::Status WriteMipFile(const MipProfile& profile, MipLayout layout, const std::string& path) {
  if (path == "-" || IsDeviceOrPipe(path)) {
    ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(path));
    RETURN_IF_ERROR(WriteMip(profile, layout, [&](absl::string_view piece) { return output.Write(piece); }));
    return output.Finish();
  }
  absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(path, CallerBySudo());
  if (!file.ok()) {
    return WithHint(file.status(), absl::IsFailedPrecondition(file.status())
                                       ? "give another name, or a folder of your own"
                                       : "give a file in a folder that exists and that this user may write to");
  }
  RETURN_IF_ERROR(WriteMip(profile, layout, [&](absl::string_view piece) { return file->Write(piece); }));
  return file->Commit();
}

absl::StatusOr<MipSourceLines> MipSourceLines::Open(const std::string& image_path) {
  VirtualAddress base;
  RETURN_IF_ERROR(WithFileBytes(image_path, [&](std::span<const std::byte> bytes) -> absl::Status {
    const absl::StatusOr<ElfImage> image = ElfImage::Parse(bytes);
    if (!image.ok()) return WithHint(image.status(), kDebugHint);
    if (const ElfSection* section = image->FindSection(kMipRawSection)) base = section->address;
    return absl::OkStatus();
  }));
  absl::StatusOr<SourceLines> lines = SourceLines::Open(image_path);
  if (!lines.ok()) return WithHint(lines.status(), kDebugHint);
  return MipSourceLines(*std::move(lines), base);
}

std::optional<SourceLine> MipSourceLines::Of(const MipFunction& function) const {
  return lines_.At({base_.value + static_cast<uint64_t>(function.start_offset)});
}

std::string SourceText(const std::optional<SourceLine>& line) {
  return line ? absl::StrCat(line->file, ":", line->line) : "";
}

}  // namespace clrsampler
