// The profiler library in a .NET process, from its load to its unload: a state machine, stepped by one thread, that
// never waits for the process.
//
// The runtime is asked over its diagnostics socket to load the library. The library connects to the agent's socket and
// gets the ring. It works until that connection ends, whichever side ends it and however.
#ifndef CLRSAMPLER_CLR_INPROCESS_LIBRARY_SESSION_H_
#define CLRSAMPLER_CLR_INPROCESS_LIBRARY_SESSION_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clr/diagnostics_client.h"
#include "clr/inprocess/library_place.h"
#include "clr/inprocess/library_socket.h"
#include "clr/inprocess/shared_ring.h"
#include "formats/inprocess/ring_reader.h"
#include "os/clock.h"
#include "os/unique_fd.h"

namespace clrsampler {

class LibrarySession {
 public:
  // How long the runtime may take to load the library, and to let go of it.
  static constexpr uint64_t kPatienceNs = 30'000'000'000;
  // Most records of one step, but of the last one, which takes all that the ring may hold.
  static constexpr size_t kStepRecords = 16 * 1024;

  // `connected`: ConnectToRuntime. `tgid` is the process as we number it. `kinds`: bits of InprocessKindBit.
  static absl::StatusOr<LibrarySession> Start(UniqueFd connected, uint32_t tgid, uint64_t kinds, LibraryPlace place,
                                              SharedRing ring, MonotonicTime now);

  // Waits at `socket` for a program that is started with the library; of this program's user, or of any user where
  // this is root's. The socket is closed once one has come: the library of others, such as those that this one starts,
  // does not wait for an agent that has no ring for it.
  static absl::StatusOr<LibrarySession> Await(LibrarySocket socket, uint64_t kinds, SharedRing ring);

  // Does what is possible now. True once the session is over: status() says how.
  bool Step(MonotonicTime now, absl::FunctionRef<void(LibraryRecord)> take);

  // The process has ended, even if a child that it forked has its end of the connection.
  void ProcessEnded() { process_ended_ = true; }

  // Lets the library go. Step goes on until the runtime has unloaded it. Where no program has come yet, it is over.
  void Stop(MonotonicTime now);

  // The process, as we number it; 0: no program has come yet.
  uint32_t tgid() const { return tgid_; }
  bool began() const { return state_ >= State::kRunning; }
  bool over() const { return state_ == State::kOver; }
  // To be watched for reading; -1: nothing yet.
  int fd() const { return library_.get(); }
  // Ok: the library is gone, or the process. DeadlineExceeded; what the runtime refused; DataLoss: no library writes
  // such records. FailedPrecondition: it has left before it ran.
  const absl::Status& status() const { return status_; }
  // Records that the library had no room for.
  uint64_t lost() const { return reader_.lost(); }
  // Methods whose maps it left out, since a module was unloaded meanwhile.
  uint64_t left_out() const { return reader_.left_out(); }
  // Once it is over: bytes of records behind one that the process began and never finished.
  uint64_t unread_bytes() const { return reader_.unread_bytes(); }
  // The library did not leave in time; it sends nothing any more.
  bool stayed() const { return stayed_; }

 private:
  enum class State : uint8_t { kLoading, kRunning, kLeaving, kOver };

  LibrarySession(uint64_t kinds, SharedRing ring, InprocessRingReader reader)
      : kinds_(kinds), ring_(std::move(ring)), reader_(std::move(reader)) {}
  bool awaits() const { return !attach_.has_value(); }
  void Accept();
  // Hands the ring over if it is the library's connection.
  void Take(UniqueFd connection);
  absl::Status HandOver(int connection) const;
  void Load(MonotonicTime now);
  // Whether the other end of the connection has gone.
  bool LibraryLeft() const;
  bool End(absl::Status status);

  std::optional<DiagnosticsExchange> attach_;
  std::optional<LibraryPlace> place_;
  std::optional<LibrarySocket> socket_;  // where there is no place_
  uint32_t tgid_ = 0;
  uint64_t kinds_;
  SharedRing ring_;
  InprocessRingReader reader_;
  UniqueFd library_;  // the connection
  State state_ = State::kLoading;
  MonotonicTime end_by_ = MonotonicTime::Max();
  bool stayed_ = false;
  bool process_ended_ = false;
  absl::Status status_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_INPROCESS_LIBRARY_SESSION_H_
