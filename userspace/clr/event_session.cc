#include "clr/event_session.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<EventSession> EventSession::Start(Connect connect, TracingRequest request, MonotonicTime now) {
  EventSession session(std::move(connect), std::move(request));
  if (absl::Status asked = session.Ask(DiagnosticsCommand::kCollectTracing3, now); !asked.ok()) return asked;
  return session;
}

absl::Status EventSession::Ask(DiagnosticsCommand command, MonotonicTime now) {
  ASSIGN_OR_RETURN(UniqueFd connected, connect_());
  command_ = command;
  start_.emplace(std::move(connected), EncodeCollectTracing(command, request_), MonotonicTime{now.ns + kPatienceNs},
                 AfterReply::kStream);
  return absl::OkStatus();
}

bool EventSession::End(absl::Status status) {
  over_ = true;
  status_ = std::move(status);
  stream_.reset();
  stop_.reset();
  return true;
}

bool EventSession::Begin(MonotonicTime now, absl::FunctionRef<void(std::span<const std::byte>)> take) {
  if (!start_->Step(now)) return false;
  absl::Status status = start_->status();
  if (status.ok() && start_->error() == kDiagnosticsUnknownCommand &&
      command_ != DiagnosticsCommand::kCollectTracing2) {
    status = Ask(DiagnosticsCommand::kCollectTracing2, now);
    if (status.ok()) return false;
  }
  if (status.ok() && start_->error().has_value()) {
    status = absl::FailedPreconditionError(DiagnosticsErrorText(*start_->error()));
  }
  const absl::StatusOr<uint64_t> session = ParseTracingSession(start_->payload());
  if (status.ok()) status = session.status();
  if (!status.ok()) {
    End(std::move(status));
    return false;
  }
  session_ = *session;
  enabled_by_ = {now.ns + kPatienceNs};
  stream_ = start_->TakeStream();
  if (!start_->surplus().empty()) take(start_->surplus());
  if (stopping_) Stop(now);  // it was asked to before it had begun
  return true;
}

void EventSession::SeeEnabled(MonotonicTime now) {
  if (!proof_.has_value()) {
    // Its server may have a full queue.
    if (absl::StatusOr<UniqueFd> connected = connect_(); connected.ok()) {
      proof_.emplace(*std::move(connected), EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo), enabled_by_);
    }
  }
  // Any answer will do, and so does an end of the connection.
  enabled_ = (proof_.has_value() && proof_->Step(now)) || now >= enabled_by_;
}

void EventSession::Stop(MonotonicTime now) {
  if (over_ || stop_.has_value()) return;
  stopping_ = true;
  if (!began()) return;
  end_by_ = {now.ns + kPatienceNs};
  AskToStop();
}

void EventSession::AskToStop() {
  absl::StatusOr<UniqueFd> connected = connect_();
  unasked_ = connected.status();
  if (connected.ok()) stop_.emplace(*std::move(connected), EncodeStopTracing(*session_), end_by_);
}

bool EventSession::Step(MonotonicTime now, absl::FunctionRef<void(std::span<const std::byte>)> take) {
  if (over_) return true;
  if (!began() && !Begin(now, take)) return over_;
  if (!enabled_) SeeEnabled(now);
  // Its server may have a full queue, or the process be about to exit.
  if (stopping_ && !unasked_.ok()) AskToStop();
  // Its answer says nothing that the end of the stream does not say.
  if (stop_.has_value()) static_cast<void>(stop_->Step(now));
  if (over_ || Receive(take)) return true;
  // Nothing is left to do but to close the stream, which ends the session as well.
  if (now >= end_by_ && !unasked_.ok()) return End(unasked_);
  if (now >= end_by_) return End(absl::DeadlineExceededError("the runtime did not end its stream of events in time"));
  return false;
}

bool EventSession::Receive(absl::FunctionRef<void(std::span<const std::byte>)> take) {
  std::array<std::byte, 64 << 10> chunk;
  for (size_t taken = 0; taken < kStepBytes;) {
    const ssize_t got = recv(stream_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    // A reset: the runtime is gone, and had not read all that was sent to it.
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return End(absl::OkStatus());
    if (got < 0) return End(absl::UnavailableError(absl::StrCat("recv: ", std::strerror(errno))));
    take(std::span(chunk).first(static_cast<size_t>(got)));
    if (over_) return true;  // abandoned meanwhile
    taken += static_cast<size_t>(got);
  }
  return false;
}

}  // namespace clrsampler
