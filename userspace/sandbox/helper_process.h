// A process that reads what strangers wrote: the answers of symbol servers, debug information.
//
// A process and not a thread: it can be ended at any moment, also while a name server does not answer; and what parses
// the bytes of strangers has nothing to lose. It is in a sandbox (sandbox/sandbox.h), and has no files but those that
// it is handed over. Into these it writes up to a limit.
#ifndef CLRSAMPLER_SANDBOX_HELPER_PROCESS_H_
#define CLRSAMPLER_SANDBOX_HELPER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"
#include "sandbox/sandbox.h"

namespace clrsampler {

struct HelperOptions {
  const char* name;             // of the process, at most 15 characters
  uint64_t max_file_bytes = 0;  // no file grows beyond it
  SandboxProfile profile;
  std::function<void()> prepare = nullptr;  // in the new process, before the sandbox
};

// Move-only owner: the process ends with it, or with this program however that ends.
class HelperProcess {
 public:
  // Runs in the new process with one end of a pair of datagram sockets. It is the only descriptor that the process has
  // besides the standard ones, and the one by which it is ended. The return ends the process. This program must have
  // one thread.
  using Main = std::function<void(int socket)>;
  static absl::StatusOr<HelperProcess> Start(const HelperOptions& options, const Main& main);

  HelperProcess(HelperProcess&& other) noexcept;
  HelperProcess& operator=(HelperProcess&&) = delete;
  ~HelperProcess() { End(); }

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }  // readable: something has come, or it has ended
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

  static constexpr size_t kMaxDatagramBytes = 64 * 1024;

 private:
  HelperProcess(pid_t pid, UniqueFd socket, UniqueFd life)
      : pid_(pid), socket_(std::move(socket)), life_(std::move(life)) {}

  pid_t pid_ = -1;
  UniqueFd socket_;
  // Closed, by us or by our end, it ends the process. A signal of ours would not reach it: it is another user's, and we
  // keep no CAP_KILL, which a parent-death signal takes as well.
  UniqueFd life_;
  bool ended_ = false;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_HELPER_PROCESS_H_
