// The process that talks to symbol servers.
//
// A process and not a thread: it can be ended at any moment, also while a name server does not answer; and what parses
// the answers of strangers has nothing to lose. It is `nobody` without capabilities, in a sandbox that lets it read
// certificates and libraries (sandbox/sandbox.h), and writes into descriptors that it is given, up to a limit.
#ifndef CLRSAMPLER_SYMBOL_SERVER_FETCH_PROCESS_H_
#define CLRSAMPLER_SYMBOL_SERVER_FETCH_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

// Move-only owner: the process ends with it, or with this program however that ends.
class FetchProcess {
 public:
  // Runs in the new process with one end of a pair of datagram sockets, the only descriptor it has besides the standard
  // ones and the one by which it is ended; its return ends the process. This program must have one thread.
  using Main = std::function<void(int socket)>;
  static absl::StatusOr<FetchProcess> Start(uint64_t max_file_bytes, const Main& main);

  FetchProcess(FetchProcess&& other) noexcept;
  FetchProcess& operator=(FetchProcess&&) = delete;
  ~FetchProcess() { End(); }

  pid_t pid() const { return pid_; }
  // `file`: goes along, -1: none. False: the other side takes no more now, or has ended.
  bool Send(absl::string_view datagram, int file = -1);
  // nullopt: nothing has come. Does not wait.
  std::optional<std::string> Receive();
  // The process ended by itself, which only a defect of it or the kernel makes it do.
  bool ended() const { return ended_; }

  void End();

  // In the process: waits for a datagram, and for the file that came along. nullopt: the other side is gone.
  struct Message {
    std::string text;
    UniqueFd file;
  };
  static std::optional<Message> Wait(int socket);

  static constexpr size_t kMaxDatagramBytes = 4096;

 private:
  FetchProcess(pid_t pid, UniqueFd socket, UniqueFd life)
      : pid_(pid), socket_(std::move(socket)), life_(std::move(life)) {}

  pid_t pid_ = -1;
  UniqueFd socket_;
  // Closed, by us or by our end, it ends the process. A signal of ours would not reach it: it is another user's, and we
  // keep no CAP_KILL, which a parent-death signal takes as well.
  UniqueFd life_;
  bool ended_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_FETCH_PROCESS_H_
