// A session of events of a .NET runtime in another process, over its diagnostics socket, without ever waiting for it.
//
// The runtime sends events as a stream of the form nettrace, ten times a second, from a thread of its own. While nobody
// takes them it keeps what fits into the session's buffer and loses the rest; the program goes on.
// 11.0 agrees before its threads know of the session. On a busy machine the first wait was missing in 128 of 359
// programs, though it began 20 ms later. A runtime serves one request at a time, so its answer to the next one proves
// that they know.
//
// An end that takes all events is a request on a second connection, whose answer comes after the last event. When this
// process dies, its connection closes, and the runtime ends the session at its next write.
//
// A state machine stepped by one thread, like DiagnosticsExchange.
#ifndef CLRSAMPLER_CLR_EVENT_SESSION_H_
#define CLRSAMPLER_CLR_EVENT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clr/diagnostics_client.h"
#include "formats/runtime/diagnostics_message.h"
#include "os/clock.h"
#include "os/unique_fd.h"

namespace clrsampler {

class EventSession {
 public:
  // A new connection to the runtime, non-blocking: ConnectToRuntime.
  using Connect = std::function<absl::StatusOr<UniqueFd>()>;

  // How long the runtime may take for its first reply, to enable the events, and for the rest of them when it was asked
  // to stop.
  static constexpr uint64_t kPatienceNs = 10'000'000'000;

  // An error is that of `connect`.
  static absl::StatusOr<EventSession> Start(Connect connect, TracingRequest request, MonotonicTime now);

  // Sends and receives what is possible now; `take` gets the stream's bytes in pieces, at most kStepBytes in one call.
  // True once the session is over: status() says how.
  bool Step(MonotonicTime now, absl::FunctionRef<void(std::span<const std::byte>)> take);
  static constexpr size_t kStepBytes = 1 << 20;

  // Asks the runtime to end. Step goes on until the last event is there, and asks again where nobody took the request.
  void Stop(MonotonicTime now);
  // Ends at once, for a stream that can't be read any further.
  void Abandon(absl::Status status) { End(std::move(status)); }

  // The runtime has agreed.
  bool began() const { return session_.has_value(); }
  // Whatever happens from now on becomes an event: the runtime has proven it, or had kPatienceNs for it.
  bool enabled() const { return enabled_; }
  bool over() const { return over_; }
  // The stream: readable when there is something to take. -1 before the runtime has agreed, and once over. While the
  // session is not enabled, and while it stops, Step is to be called every now and then.
  int fd() const { return stream_.get(); }

  // Ok: the runtime has closed the stream. DeadlineExceeded: it did not answer, or did not end. Unavailable: it closed
  // the connection without a reply, or reading failed. FailedPrecondition: it refused. DataLoss: it spoke nonsense.
  // Those of `connect`: it could not be asked to end.
  const absl::Status& status() const { return status_; }

 private:
  EventSession(Connect connect, TracingRequest request) : connect_(std::move(connect)), request_(std::move(request)) {}

  absl::Status Ask(DiagnosticsCommand command, MonotonicTime now);

  void AskToStop();
  void SeeEnabled(MonotonicTime now);
  bool Begin(MonotonicTime now, absl::FunctionRef<void(std::span<const std::byte>)> take);
  bool Receive(absl::FunctionRef<void(std::span<const std::byte>)> take);
  bool End(absl::Status status);

  Connect connect_;
  TracingRequest request_;
  DiagnosticsCommand command_{};
  std::optional<DiagnosticsExchange> start_;  // from Start on
  std::optional<uint64_t> session_;
  UniqueFd stream_;
  std::optional<DiagnosticsExchange> proof_;  // the request behind that for the session
  MonotonicTime enabled_by_ = MonotonicTime::Max();
  bool enabled_ = false;
  std::optional<DiagnosticsExchange> stop_;
  bool stopping_ = false;
  absl::Status unasked_;  // why the runtime could not be asked to end
  MonotonicTime end_by_ = MonotonicTime::Max();
  bool over_ = false;
  absl::Status status_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_EVENT_SESSION_H_
