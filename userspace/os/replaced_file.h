// A file that is written beside its place and takes it when it is whole: readers see the old or the new one.
#ifndef CLRSAMPLER_OS_REPLACED_FILE_H_
#define CLRSAMPLER_OS_REPLACED_FILE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/created_file.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Move-only; what is not committed leaves nothing behind. The new file has the mode of the old one, or 0666 less the
// umask. Errors name the path.
class ReplacedFile {
 public:
  // Follows symbolic links, but for those in a guarded place (created_file.h): their target is replaced.
  // FailedPrecondition: there is something that is no regular file (a device, a pipe), which can only be written to, or
  // a file that may not take a result in a guarded place. `caller`: as in OpenCreated.
  static absl::StatusOr<ReplacedFile> Open(const std::string& path, const std::optional<FileOwner>& caller);

  ReplacedFile(ReplacedFile&& other) noexcept;
  ReplacedFile& operator=(ReplacedFile&&) = delete;
  ~ReplacedFile();

  absl::Status Write(absl::string_view text);
  absl::Status Commit();

 private:
  ReplacedFile() = default;

  std::string path_;
  ResultPlace place_;
  std::string beside_;  // the name of the new file; empty: committed or moved from
  UniqueFd fd_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_REPLACED_FILE_H_
