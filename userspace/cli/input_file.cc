#include "cli/input_file.h"

#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMaxInputBytes = uint64_t{16} << 30;

}  // namespace

absl::StatusOr<MappedFile> MapInputFile(const std::string& path) {
  const absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  if (!fd.ok()) return WithHint(Annotate(fd.status(), "cannot read"), "give the path of an existing file");
  absl::StatusOr<MappedFile> file = MappedFile::Map(fd->get(), 0, 0, kMaxInputBytes);
  if (!file.ok()) return Annotate(file.status(), path);
  return file;
}

}  // namespace clrsampler
