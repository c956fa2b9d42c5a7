// Reading files as a whole or in part, with limits.
#ifndef CLRSAMPLER_OS_FILE_IO_H_
#define CLRSAMPLER_OS_FILE_IO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Opens read-only and close-on-exec. For our own files and /proc; files of a target go through process/target_files.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);

// The same. InvalidArgument: it is a pipe, a device or a folder. Never waits for somebody to write.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path);

// The whole of a file, whatever size stat claims (files of /proc say 0). More than `max_bytes` is an error.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t max_bytes);
absl::StatusOr<std::string> ReadWholeFile(int fd, size_t max_bytes);

// Reads until `buffer` is full or the file ends; returns the number of bytes read.
absl::StatusOr<size_t> ReadAt(int fd, uint64_t offset, std::span<std::byte> buffer);

// The size of the file itself where the path is a link; 0: there is none.
uint64_t SizeOfFile(const std::string& path);

// Writes all of `text`.
absl::Status WriteAll(int fd, absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_FILE_IO_H_
