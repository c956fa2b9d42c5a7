// The agent's questions to file systems that targets see: each call may wait for ever, where the file system is FUSE or
// NFS. So each is a question that one process asks and another one can answer (file_broker.h).
#ifndef CLRSAMPLER_PROCESS_FILE_QUESTION_H_
#define CLRSAMPLER_PROCESS_FILE_QUESTION_H_

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "os/tape_answer.h"
#include "os/unique_fd.h"

namespace clrsampler {

enum class FileQuestionKind : uint8_t {
  kRoot,         // the root directory of the process, its owner, its mount namespace
  kImage,        // a regular file, by a path in the root
  kMapping,      // the file that a mapping shows
  kRuntimeFile,  // a file that a runtime writes for profilers
  kHost,         // a regular file, by a path on the host
  kDirectory,
  kUnlinkedDirectory,  // a directory; no part of its path is a symbolic link
  kSocket,
  kHolds,     // whether the process has a file open
  kProcText,  // the text of /proc/PID/`path`
  kStatus,    // of a descriptor that was opened before, and so on
  kRead,
  kCopy,         // the content as a memfd
  kMappedFiles,  // whether the process has a file mapped of which reading may wait
  kMemory,       // of the process, at `start`: through `fd`, its /proc/PID/mem
  kLast = kMemory,
};

struct FileQuestion {
  FileQuestionKind kind = FileQuestionKind::kRoot;
  std::string proc_root;
  uint32_t pid = 0;
  std::optional<uint32_t> owner;
  std::string path;
  uint64_t start = 0, end = 0;  // of a mapping, or of memory
  uint64_t device = 0, inode = 0;
  uint64_t offset = 0, bytes = 0;  // what is read, or at most
  int32_t descriptor = -1;         // of the process, where the file was seen last
};

struct FileAnswer {
  absl::Status status;
  UniqueFd fd;
  struct stat file {};
  // The file lies where reading may wait for another program or machine. `fd` only locates it then (O_PATH): the close
  // of a descriptor that was opened for reading waits for a FUSE file system as well.
  bool may_wait = false;
  bool on_fuse = false;  // or the file system does not say what it is
  bool on_overlay = false;
  bool metacopy = false;  // on an overlay whose copies of files may have their data in the layer below
  std::optional<uint32_t> owner;
  uint64_t mount_namespace = 0;
  uint8_t state = 0;  // OpenFileState
  int32_t descriptor = -1;
  std::string text;
};

// Asks this machine, from this process, however long it takes. `fd` is the root directory, or the file that the
// question is about; -1: none.
FileAnswer AnswerFileQuestion(const FileQuestion& question, int fd);

// As bytes, without the descriptor. nullopt: these are none.
std::string FileQuestionBytes(const FileQuestion& question);
std::optional<FileQuestion> ParseFileQuestion(absl::string_view bytes);
std::string FileAnswerBytes(const FileAnswer& answer);
std::optional<FileAnswer> ParseFileAnswer(absl::string_view bytes);

// The parts of a file's status that are used, but for the time of its change: no stream has that.
template <>
struct TapeCodec<struct stat> {
  static void Write(const struct stat& status, TapeWriter& out) {
    out.Put(uint64_t{status.st_dev});
    out.Put(uint64_t{status.st_ino});
    out.Put(static_cast<uint64_t>(status.st_size));
    out.Put(static_cast<uint64_t>(status.st_nlink));
    out.Put(uint32_t{status.st_mode});
    out.Put(uint32_t{status.st_uid});
    out.Put(int64_t{status.st_mtim.tv_sec});
    out.Put(int64_t{status.st_mtim.tv_nsec});
  }
  static struct stat Read(TapeReader& in) {
    struct stat status {};
    status.st_dev = in.Get<uint64_t>();
    status.st_ino = in.Get<uint64_t>();
    status.st_size = static_cast<off_t>(in.Get<uint64_t>());
    status.st_nlink = static_cast<nlink_t>(in.Get<uint64_t>());
    status.st_mode = in.Get<uint32_t>();
    status.st_uid = in.Get<uint32_t>();
    status.st_mtim.tv_sec = in.Get<int64_t>();
    status.st_mtim.tv_nsec = in.Get<int64_t>();
    return status;
  }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_FILE_QUESTION_H_
