#include "inprocess/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "inprocess/peer.h"

namespace clrsampler {
namespace {

// The agent listens before it asks the runtime to load the library.
constexpr time_t kPatienceSeconds = 5;
// How soon the runtime looks whether all calls have returned; it takes 300 ms at least.
constexpr uint32_t kDetachMs = 300;
// How often a runtime is asked that is still starting, every 100 ms. The start of a program takes less than 30 s.
constexpr int kMaxDetachTries = 300;
constexpr timespec kBetweenTries{0, 100'000'000};

int ConnectTo(const char* path, size_t length) {
  sockaddr_un address{};
  if (length == 0 || length >= sizeof address.sun_path) return -1;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, length);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return connection;
  close(connection);
  return -1;
}

// The configuration, and the one descriptor beside it; -1: it did not come so. No other descriptor stays.
int ReceiveConfig(int connection, InprocessConfig& config) {
  iovec part{&config, sizeof config};
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* beside = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (beside == nullptr || beside->cmsg_level != SOL_SOCKET || beside->cmsg_type != SCM_RIGHTS) return -1;
  // There is room for two, because the size of a control message is a multiple of eight.
  const size_t count = (beside->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  const bool whole = count == 1 && got == static_cast<ssize_t>(sizeof config) && config.magic == kInprocessMagic;
  int memory = -1;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(&memory, CMSG_DATA(beside) + i * sizeof memory, sizeof memory);
    if (!whole) close(memory);
  }
  return whole ? memory : -1;
}

}  // namespace

Hresult Session::Begin(void* unknown, const char* path, size_t length, bool at_start) {
  if (CallSlot(unknown, kQueryInterface, &kInfoInterface, &info_) != kOk) return kNoInterface;
  socket_ = ConnectTo(path, length);
  // After an attach the socket lies beside the library itself. Anybody who could put another socket there could have
  // put another library there.
  const bool trusted = socket_ >= 0 && (!at_start || IsOfRootOrOurUser(socket_));
  Hresult result = trusted ? TakeRing() : kFailed;
  if (result == kOk) {
    // Before the thread is there, which mutes the session when the agent has gone.
    kinds_.store(config_.kinds, std::memory_order_relaxed);
    const uint32_t low = config_.events_low & (at_start ? kAllowedAtStartLow : kAllowedAfterAttachLow);
    every_object_ = (low & kEveryObjectLow) != 0;
    result = CallSlot(info_, kSetEventMask2, low, config_.events_high & kAllowedHigh);
  }
  attaching_.store(!at_start);
  if (Succeeded(result) && !StartThread()) result = kFailed;
  if (!Succeeded(result)) {
    Discard();
    return result;
  }
  ring_.SayThatItRuns();
  return kOk;
}

Hresult Session::TakeRing() {
  const int memory = ReceiveConfig(socket_, config_);
  if (memory < 0) return kFailed;
  const bool mapped = MapRing(memory);
  close(memory);
  return mapped ? kOk : kFailed;
}

bool Session::MapRing(int memory) {
  // A write behind the end of a file that shrinks kills the process.
  const int seals = fcntl(memory, F_GET_SEALS);
  const off_t size = lseek(memory, 0, SEEK_END);  // older glibcs export no fstat
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || size < 0) return false;
  const uint64_t bytes = config_.ring_bytes;
  if (bytes > kInprocessHeaderBytes + kMaxInprocessCapacity || static_cast<uint64_t>(size) < bytes) return false;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) return false;
  memory_ = mapped;
  return ring_.Open(memory_, bytes);
}

bool Session::StartThread() {
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  has_thread_ = pthread_create(&thread_, nullptr, Watch, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_thread_;
}

void* Session::Watch(void* session) {
  auto* self = static_cast<Session*>(session);
  prctl(PR_SET_NAME, "clrsampler");
  const timeval forever{};
  setsockopt(self->socket_, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
  ssize_t got = 0;
  do {
    char ignored = 0;
    got = recv(self->socket_, &ignored, 1, 0);
  } while (got > 0 || (got < 0 && errno == EINTR));
  self->Mute();
  CallSlot(self->info_, kSetEventMask2, self->config_.events_low & kImmutableLow, uint32_t{0});
  // Where this is refused, because the program ends or a flag is immutable, the library stays and is silent.
  if (!self->AwaitAttached() || !self->Detach()) self->LetGoOfAgent();
  return nullptr;
}

bool Session::AwaitAttached() const {
  for (int waits = 0; attaching_.load(); ++waits) {
    if (waits == kMaxDetachTries || shut_.load(std::memory_order_relaxed)) return false;
    nanosleep(&kBetweenTries, nullptr);
  }
  return true;
}

void Session::LetGoOfAgent() {
  // A callback that is under way may still write, so something has to be there. Where this fails, the ring is.
  static_cast<void>(mmap(memory_, config_.ring_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
  CloseSocket();
}

void Session::CloseSocket() {
  // A child that was forked has it, too.
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
  socket_ = -1;
}

bool Session::Detach() {
  // An agent may die right after it has handed over the ring. Then the runtime is still making this the active
  // profiler.
  for (int tries = 0; tries < kMaxDetachTries && !shut_.load(std::memory_order_relaxed); ++tries) {
    const Hresult result = CallSlot(info_, kRequestProfilerDetach, kDetachMs);
    if (result != kRuntimeStarts && result != kProfilerStarts) return Succeeded(result);
    nanosleep(&kBetweenTries, nullptr);
  }
  return false;
}

void Session::Send(InprocessMessage& message) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  message.time_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  message.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  ring_.Write(message);
}

void Session::End() {
  // The code of the thread is about to be unmapped.
  if (has_thread_) pthread_join(thread_, nullptr);
  has_thread_ = false;
  Discard();
}

void Session::Discard() {
  Mute();
  ring_.Close();
  if (memory_ != nullptr) munmap(memory_, config_.ring_bytes);
  memory_ = nullptr;
  if (socket_ >= 0) CloseSocket();
  if (info_ != nullptr) CallSlot(info_, kRelease);
  info_ = nullptr;
}

}  // namespace clrsampler
