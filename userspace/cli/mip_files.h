// The files of `clrsampler mip`: profiles read and put in the place of old ones, maps out of programs, source lines.
#ifndef CLRSAMPLER_CLI_MIP_FILES_H_
#define CLRSAMPLER_CLI_MIP_FILES_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "formats/elf/address_conversion.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_profile.h"
#include "formats/mip/mip_reader.h"
#include "symbols/source_lines.h"

namespace clrsampler {

// Calls `parse` with the bytes of a file. Its errors are said with the path. Aborted: the file was cut meanwhile, and
// what `parse` saw and made of it is wrong.
absl::Status WithFileBytes(const std::string& path,
                           const std::function<absl::Status(std::span<const std::byte>)>& parse);

// A .mip file. A version before the present one is said on standard error.
absl::StatusOr<MipProfile> ReadMipFile(const std::string& path, MipNaming naming = MipNaming::kNow);

// A .mipmap file, or a program or library with such a section.
absl::StatusOr<MipMap> ReadMipMapFile(const std::string& path);

// Replaces the file when all is written; a failure leaves the old one.
absl::Status WriteMipFile(const MipProfile& profile, MipLayout layout, const std::string& path);

// Source lines of functions, by the image they were compiled to.
class MipSourceLines {
 public:
  static absl::StatusOr<MipSourceLines> Open(const std::string& image_path);
  // "main.c:12", or "" where the image does not say.
  std::optional<SourceLine> Of(const MipFunction& function) const;

 private:
  MipSourceLines(SourceLines lines, VirtualAddress base) : lines_(std::move(lines)), base_(base) {}
  SourceLines lines_;
  VirtualAddress base_;  // of the raw section; 0 without one: such offsets are addresses
};
std::string SourceText(const std::optional<SourceLine>& line);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_MIP_FILES_H_
