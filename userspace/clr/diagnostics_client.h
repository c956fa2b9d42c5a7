// Talks to the diagnostics server of a .NET runtime in another process, without ever waiting for it.
//
// The socket lies in the target's own mount namespace, in its TMPDIR or in /tmp, and is called
// dotnet-diagnostic-PID-KEY-socket: PID as the process sees itself, KEY its start time in clock ticks as it sees it
// (field 22 of /proc/PID/stat; a time namespace moves it). Killed runtimes leave their socket behind, and so do 10.0.12
// and 10.0.14 at SIGTERM: the KEY tells them apart, so exactly one name is tried and no directory is read.
// Connecting is an act of root on hostile ground: the path is resolved inside the target's root (process/target_files),
// and nothing is sent unless the kernel says that the target itself listens (SO_PEERCRED).
//
// It is a state machine stepped by the main loop, and no worker thread. The only thing to wait for is the reply, on a
// descriptor that poll(2) can watch. A thread would need the locks that the program does without.
#ifndef CLRSAMPLER_CLR_DIAGNOSTICS_CLIENT_H_
#define CLRSAMPLER_CLR_DIAGNOSTICS_CLIENT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/runtime/diagnostics_message.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/target_files.h"

namespace clrsampler {

// A process, told from a later one with the same pid.
struct TargetIdentity {
  uint32_t tgid = 0;           // in our own pid namespace
  uint32_t namespace_pid = 0;  // innermost
  uint64_t start_ticks = 0;    // field 22 of /proc/PID/stat as we see it
};

// nullopt: gone, or a zombie, which has neither memory nor descriptors.
std::optional<uint64_t> StartTicksOfLiving(absl::string_view proc_root, uint32_t tgid);

// The paths, in the target's file system, at which its runtime may have put its socket; never more than a few.
std::vector<std::string> DiagnosticsSocketPaths(absl::string_view proc_root, const TargetIdentity& target,
                                                const TargetFiles& files);

// Whether a socket of that name is there; nothing is connected to.
bool HasDiagnosticsSocket(absl::string_view proc_root, const TargetIdentity& target, const TargetFiles& files);

// A connected, non-blocking socket whose other end is the target itself. NotFound: it has no diagnostics server (no
// .NET, DOTNET_EnableDiagnostics=0, still starting, or replaced by exec). Unavailable: it has one that takes no
// connection now. PermissionDenied: somebody else listens there.
absl::StatusOr<UniqueFd> ConnectToRuntime(absl::string_view proc_root, const TargetIdentity& target,
                                          const TargetFiles& files);

// The fate of the connection when a reply other than a refusal has come.
enum class AfterReply : uint8_t {
  kClose,
  kStream,  // it goes on: TakeStream
};

// One request and its reply on one connection. Closing it early is no way back: the runtime may act all the same.
class DiagnosticsExchange {
 public:
  // `deadline` ends the waiting for a reply.
  DiagnosticsExchange(UniqueFd connected, std::string request, MonotonicTime deadline,
                      AfterReply after = AfterReply::kClose);

  // Sends and receives what is possible now. True once the exchange is over: status() says how.
  bool Step(MonotonicTime now);

  bool over() const { return over_; }
  int fd() const { return connection_.get(); }              // -1 once over
  bool sending() const { return sent_ < request_.size(); }  // whether fd() is to be watched for writing

  // Ok: a reply came, success or refusal. DeadlineExceeded; Unavailable: closed without a whole reply; DataLoss:
  // nonsense.
  const absl::Status& status() const { return status_; }
  std::optional<uint32_t> error() const { return error_; }  // HRESULT of a refusal
  std::span<const std::byte> payload() const;
  // The bytes that came behind the reply already; valid as long as this.
  std::span<const std::byte> surplus() const;
  UniqueFd TakeStream() { return std::move(stream_); }

 private:
  bool End(absl::Status status);

  UniqueFd connection_;
  UniqueFd stream_;
  AfterReply after_;
  std::string request_;
  size_t sent_ = 0;
  MonotonicTime deadline_;
  std::vector<std::byte> received_;  // at most one message and what fits behind it in the last read
  bool over_ = false;
  absl::Status status_;
  std::optional<uint32_t> error_;
  size_t payload_bytes_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_DIAGNOSTICS_CLIENT_H_
