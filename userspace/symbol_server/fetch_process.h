// The process that talks to symbol servers.
//
// A process and not a thread: it can be ended at any moment, also while a name server does not answer; libdebuginfod
// takes its settings from the environment, which a command that we start must not inherit; and what parses the answers
// of strangers runs without capabilities and can't write a file above the limit.
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
  // ones; its return ends the process. This program must have one thread.
  using Main = std::function<void(int socket)>;
  static absl::StatusOr<FetchProcess> Start(uint64_t max_file_bytes, const Main& main);

  FetchProcess(FetchProcess&& other) noexcept;
  FetchProcess& operator=(FetchProcess&&) = delete;
  ~FetchProcess() { End(); }

  pid_t pid() const { return pid_; }
  // False: the other side takes no more now, or has ended.
  bool Send(absl::string_view datagram);
  // nullopt: nothing has come. Does not wait.
  std::optional<std::string> Receive();
  // The process ended by itself, which only a defect of it or the kernel makes it do.
  bool ended() const { return ended_; }

  void End();

  static constexpr size_t kMaxDatagramBytes = 4096;

 private:
  FetchProcess(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_ = -1;
  UniqueFd socket_;
  bool ended_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOL_SERVER_FETCH_PROCESS_H_
