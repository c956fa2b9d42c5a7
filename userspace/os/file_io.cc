#include "os/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return ErrnoError(errno, path);
  return fd;
}

absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  return fd;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes) {
  ASSIGN_OR_RETURN(UniqueFd fd, OpenForReading(path));
  absl::StatusOr<std::string> text = ReadWholeFile(fd.get(), max_bytes);
  if (!text.ok()) return Annotate(text.status(), path);
  return text;
}

absl::StatusOr<std::string> ReadWholeFile(int fd, size_t max_bytes) {
  std::string text;
  size_t used = 0;
  size_t step = 4096;  // what /proc gives at once; most of its files are shorter
  while (true) {
    text.resize(used + std::min(step, max_bytes + 1 - used));
    const ssize_t got = read(fd, text.data() + used, text.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "read");
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
    if (used > max_bytes) return absl::ResourceExhaustedError(absl::StrCat("longer than ", max_bytes, " bytes"));
    if (used == text.size()) step = std::min<size_t>(step * 2, 4 << 20);
  }
  text.resize(used);
  return text;
}

absl::StatusOr<size_t> ReadAt(int fd, uint64_t offset, std::span<std::byte> buffer) {
  size_t used = 0;
  while (used < buffer.size()) {
    const ssize_t got = pread(fd, buffer.data() + used, buffer.size() - used, static_cast<off_t>(offset + used));
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "pread");
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  return used;
}

uint64_t SizeOfFile(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

absl::Status WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "write");
    }
    text.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
