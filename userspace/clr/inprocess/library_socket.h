// Where a program that is started with the profiler library finds the agent: a Unix socket at a path of the user's
// choice, which is there until a program has come.
#ifndef CLRSAMPLER_CLR_INPROCESS_LIBRARY_SOCKET_H_
#define CLRSAMPLER_CLR_INPROCESS_LIBRARY_SOCKET_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

class LibrarySocket {
 public:
  // An error has a hint. It is one if anything is at the path. Any user may connect to a socket of root.
  static absl::StatusOr<LibrarySocket> Listen(std::string path);
  LibrarySocket(LibrarySocket&& other) noexcept
      : path_(std::exchange(other.path_, std::string())), listener_(std::move(other.listener_)) {}
  LibrarySocket& operator=(LibrarySocket&&) = delete;
  ~LibrarySocket() { Close(); }

  // Non-blocking; not valid once closed.
  const UniqueFd& listener() const { return listener_; }
  // From now on connecting fails at once, and so do connections that were not accepted. The path is free.
  void Close();

 private:
  LibrarySocket(std::string path, UniqueFd listener) : path_(std::move(path)), listener_(std::move(listener)) {}

  std::string path_;
  UniqueFd listener_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_INPROCESS_LIBRARY_SOCKET_H_
