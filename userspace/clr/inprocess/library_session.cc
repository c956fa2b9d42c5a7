#include "clr/inprocess/library_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clrsampler/inprocess_ring.h"
#include "formats/inprocess/library_events.h"
#include "formats/runtime/diagnostics_message.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// CORECLR_PROFILER={6C2C8F0E-9D35-4F4B-9A1E-5C3370D10B42}, as it lies in memory; kProfilerClass of the library.
constexpr std::array<uint8_t, 16> kProfilerClassBytes = {0x0e, 0x8f, 0x2c, 0x6c, 0x35, 0x9d, 0x4b, 0x4f,
                                                         0x9a, 0x1e, 0x5c, 0x33, 0x70, 0xd1, 0x0b, 0x42};

constexpr int kConnectionsOfAStep = 1024;

AttachRequest RequestFor(const LibraryPlace& place) {
  AttachRequest request;
  std::memcpy(request.profiler.data(), kProfilerClassBytes.data(), request.profiler.size());
  request.path = place.library_path();
  request.data = place.socket_path();
  return request;
}

absl::Status RefusalOf(uint32_t hresult) {
  switch (hresult) {
    case 0x80131367:  // CORPROF_E_PROFILER_DETACHING
      return absl::UnavailableError("the runtime is still unloading a profiler");
    case 0x8013136a:  // CORPROF_E_PROFILER_ALREADY_ACTIVE
      return absl::AlreadyExistsError("the runtime has another profiler and takes no second one");
    case 0x80131371:  // CORPROF_E_RUNTIME_UNINITIALIZED
    case 0x80131363:  // CORPROF_E_UNSUPPORTED_CALL_SEQUENCE
      return absl::UnavailableError("the runtime is still starting");
    default:
      return absl::FailedPreconditionError(DiagnosticsErrorText(hresult));
  }
}

absl::Status NeverRan(uint32_t tgid) {
  return WithHint(
      absl::FailedPreconditionError(absl::StrCat("the library in process ", tgid, " has left before it ran")),
      "give the program room for the ring's memory (ulimit -v, --buffer), and the library of this version");
}

}  // namespace

absl::StatusOr<LibrarySession> LibrarySession::Start(UniqueFd connected, uint32_t tgid, uint64_t kinds,
                                                     LibraryPlace place, SharedRing ring, MonotonicTime now) {
  ASSIGN_OR_RETURN(InprocessRingReader reader, InprocessRingReader::Create(ring.memory()));
  LibrarySession session(kinds, std::move(ring), std::move(reader));
  session.attach_.emplace(std::move(connected), EncodeAttachProfiler(RequestFor(place)),
                          MonotonicTime{now.ns + kPatienceNs});
  session.place_.emplace(std::move(place));
  session.tgid_ = tgid;
  return session;
}

absl::StatusOr<LibrarySession> LibrarySession::Await(LibrarySocket socket, uint64_t kinds, SharedRing ring) {
  ASSIGN_OR_RETURN(InprocessRingReader reader, InprocessRingReader::Create(ring.memory()));
  LibrarySession session(kinds, std::move(ring), std::move(reader));
  session.socket_.emplace(std::move(socket));
  return session;
}

void LibrarySession::Accept() {
  const int listener = place_.has_value() ? place_->listener().get() : socket_->listener().get();
  // Strangers in between are turned away.
  for (int i = 0; i < kConnectionsOfAStep && !library_.valid(); ++i) {
    UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) return;
    Take(std::move(connection));
  }
}

void LibrarySession::Take(UniqueFd connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0) return;
  const bool stranger = awaits() ? peer.uid != getuid() && getuid() != 0 : static_cast<uint32_t>(peer.pid) != tgid_;
  if (stranger || !HandOver(connection.get()).ok()) return;
  library_ = std::move(connection);
  tgid_ = static_cast<uint32_t>(peer.pid);
  if (socket_.has_value()) socket_->Close();
}

absl::Status LibrarySession::HandOver(int connection) const {
  const LibraryDemand demand = DemandOfLibrary(kinds_, awaits());
  InprocessConfig config{kInprocessMagic, ring_.memory().size(), kinds_, demand.low, demand.high};
  iovec part{&config, sizeof config};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* beside = CMSG_FIRSTHDR(&message);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof(int));
  const int file = ring_.file().get();
  std::memcpy(CMSG_DATA(beside), &file, sizeof file);
  const ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent == static_cast<ssize_t>(sizeof config) ? absl::OkStatus() : ErrnoError(errno, "sendmsg");
}

void LibrarySession::Load(MonotonicTime now) {
  if (!library_.valid()) Accept();
  if (awaits()) {
    if (library_.valid() && reader_.ran()) state_ = State::kRunning;
    return;
  }
  if (!attach_->Step(now)) return;
  place_->Remove();
  if (!attach_->status().ok()) {
    End(attach_->status());
  } else if (attach_->error().has_value()) {
    End(RefusalOf(*attach_->error()));
  } else if (!library_.valid()) {
    End(absl::InternalError("the runtime says that it has loaded the library, which is not there"));
  } else {
    state_ = State::kRunning;
  }
}

bool LibrarySession::LibraryLeft() const {
  if (process_ended_) return true;
  char ignored = 0;
  const ssize_t got = recv(library_.get(), &ignored, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

bool LibrarySession::Step(MonotonicTime now, absl::FunctionRef<void(LibraryRecord)> take) {
  if (over()) return true;
  if (state_ == State::kLoading) Load(now);
  if (over()) return true;
  // This is asked before the ring is emptied. So the records that the process wrote before it left are taken then.
  const bool left = library_.valid() && (awaits() || state_ != State::kLoading) && LibraryLeft();
  const bool too_late = state_ == State::kLeaving && now >= end_by_;
  const size_t most = left || too_late ? ring_.memory().size() / sizeof(InprocessRecord) : kStepRecords;
  if (absl::Status drained = reader_.Drain(most, take); !drained.ok()) return End(std::move(drained));
  if (left) return End(reader_.ran() ? absl::OkStatus() : NeverRan(tgid_));
  if (too_late) {
    stayed_ = true;
    return End(absl::OkStatus());
  }
  return false;
}

void LibrarySession::Stop(MonotonicTime now) {
  if (state_ == State::kLoading && awaits() && !library_.valid()) End(absl::OkStatus());
  const bool may_run = state_ == State::kRunning || (state_ == State::kLoading && awaits());
  if (!may_run) return;
  state_ = State::kLeaving;
  end_by_ = {now.ns + kPatienceNs};
  shutdown(library_.get(), SHUT_WR);
}

bool LibrarySession::End(absl::Status status) {
  state_ = State::kOver;
  status_ = std::move(status);
  library_.reset();
  return true;
}

}  // namespace clrsampler
