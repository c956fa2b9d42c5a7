// Where the profiler library lies while a process loads it: a folder of ours in the file system that the process sees.
//
// A runtime loads a library by a path, and of the places that both can reach only the file system is sure. A container
// has its own pid namespace, so no /proc/PID/fd of the agent is there. It has its own network namespace, so an abstract
// socket of the agent is none there. The folder holds the library and a Unix socket by which the agent hands over the
// ring. All of it is removed when the library is loaded.
//
// The place is hostile ground. The parent is resolved inside the target's root (process/target_files). It and every
// folder above it belong to root or to the target's user, and have the sticky bit where others may write to them. None
// is a link. So nobody else can put something in the way of what is made there, under a name that can't be guessed.
#ifndef CLRSAMPLER_CLR_INPROCESS_LIBRARY_PLACE_H_
#define CLRSAMPLER_CLR_INPROCESS_LIBRARY_PLACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "process/target_files.h"

namespace clrsampler {

class LibraryPlace {
 public:
  // `preferred` is tried first, where it is not empty: the TMPDIR of the target. `library` are the bytes of the file.
  // FailedPrecondition: there is no folder that may be used.
  static absl::StatusOr<LibraryPlace> Make(const TargetFiles& files, absl::string_view preferred,
                                           absl::string_view library);
  LibraryPlace(LibraryPlace&& other) noexcept;
  LibraryPlace& operator=(LibraryPlace&&) = delete;
  ~LibraryPlace() { Remove(); }

  // As the target sees them; ASCII.
  const std::string& library_path() const { return library_path_; }
  const std::string& socket_path() const { return socket_path_; }
  // Listens, non-blocking; it goes on to do so after Remove.
  const UniqueFd& listener() const { return listener_; }

  void Remove();

 private:
  LibraryPlace() = default;
  static absl::StatusOr<LibraryPlace> MakeIn(const TargetFiles& files, absl::string_view folder,
                                             absl::string_view library);
  absl::Status MakeFolder(absl::string_view folder);
  absl::Status WriteLibrary(absl::string_view library);
  absl::Status Listen();

  UniqueFd parent_;  // O_PATH
  UniqueFd folder_;
  std::string name_;                               // of the folder in its parent; empty: there is none
  bool has_library_ = false, has_socket_ = false;  // made by this object: nothing else is removed
  UniqueFd listener_;
  std::string library_path_, socket_path_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_INPROCESS_LIBRARY_PLACE_H_
