#include "export/textfile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr mode_t kMode = 0644;
std::string PathIn(const std::string& folder) { return absl::StrCat(folder, "/clrsampler.prom"); }

}  // namespace

absl::Status WriteTextfile(const std::string& folder, absl::string_view text) {
  const std::string path = PathIn(folder);
  // node_exporter reads *.prom only.
  std::string beside = absl::StrCat(folder, "/.clrsampler.XXXXXX");
  UniqueFd file(mkostemp(beside.data(), O_CLOEXEC));
  if (!file.valid()) {
    return WithHint(
        ErrnoError(errno, absl::StrCat("can't write metrics into ", folder)),
        "give the folder that node_exporter reads (--collector.textfile.directory), writable for clrsampler");
  }
  absl::Cleanup remove = [&] { unlink(beside.c_str()); };
  if (const absl::Status written = WriteAll(file.get(), text); !written.ok()) return Annotate(written, path);
  if (fchmod(file.get(), kMode) != 0 || fsync(file.get()) != 0) return ErrnoError(errno, path);
  if (rename(beside.c_str(), path.c_str()) != 0) return ErrnoError(errno, path);
  std::move(remove).Cancel();
  return absl::OkStatus();
}

void RemoveTextfile(const std::string& folder) { unlink(PathIn(folder).c_str()); }

}  // namespace clrsampler
