// Opens a file that a person named for a result, so that no other user chooses where the result goes or reads it.
#ifndef CLRSAMPLER_OS_CREATED_FILE_H_
#define CLRSAMPLER_OS_CREATED_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

// The user that a result is for.
struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};

// The person behind `sudo`: SUDO_UID and SUDO_GID, where we are root; nullopt: nobody. Only root can start us with
// these variables and root's rights.
std::optional<FileOwner> CallerBySudo();

// Takes the name of a new file away again, unless it is told to keep it. Another file that has the name by then stays.
class NewFile {
 public:
  // `folder`: open, of any kind. `file`: the new one.
  NewFile(UniqueFd folder, std::string name, int file);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void Keep() { folder_.reset(); }

 private:
  UniqueFd folder_;  // whatever becomes of its path
  const std::string name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Where the name of a result stands.
struct ResultPlace {
  UniqueFd folder;  // of any kind
  std::string name;
  // Others may put a name there: the folder is one that everybody may write to, or another user owns it.
  bool guarded = false;
};
absl::StatusOr<ResultPlace> FindResultPlace(const std::string& path, const std::optional<FileOwner>& caller);
// FailedPrecondition: a file with this status may not take a result in a guarded place. Says why, without the path.
absl::Status CheckGuardedResult(const struct stat& file, const std::optional<FileOwner>& caller);

// For writing; nothing of an existing file is cut. A new file of root is closed to others (0600) and belongs to
// `caller`; a new file of another user gets 0644 less the umask, or 0600 where `secret` says so.
//
// In a guarded place no link is followed. The file there must have one name and belong to root, to us or to `caller`.
// Elsewhere links are followed, /dev/stdout
// among them: a user that made them there may also write the file.
absl::StatusOr<UniqueFd> OpenCreated(const std::string& path, std::optional<FileOwner> caller, bool secret = false);
// `made`: set where the file is new.
absl::StatusOr<UniqueFd> OpenCreated(const std::string& path, std::optional<FileOwner> caller, bool secret,
                                     std::unique_ptr<NewFile>& made);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_CREATED_FILE_H_
