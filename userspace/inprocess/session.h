// The profiler's work in one process: the connection to the agent, the ring, and what of the runtime is listened to.
//
// It lives from InitializeForAttach or Initialize to ProfilerDetachSucceeded. While it lives, a thread waits for the
// end of the connection; it takes no CPU time. When the agent ends, asks for the end or is killed, the kernel closes
// the connection: from then on nothing is sent, the runtime is told to call no more, and to unload the library.
#ifndef CLRSAMPLER_INPROCESS_SESSION_H_
#define CLRSAMPLER_INPROCESS_SESSION_H_

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "clrsampler/inprocess_ring.h"
#include "inprocess/profiler_api.h"
#include "inprocess/ring_writer.h"

namespace clrsampler {

class Session {
 public:
  // `unknown` is what the runtime gives a profiler to ask it by; `path` that of the agent's socket, `length` bytes
  // without a NUL. On an error nothing is left over. `at_start`: not by an attach. Then masks may have flags that last,
  // and nobody but root and the program's user may listen at the socket.
  Hresult Begin(void* unknown, const char* path, size_t length, bool at_start);
  // The runtime calls no more: the thread, the memory and the descriptor go.
  void End();
  // Nothing is sent from now on.
  void Mute() { kinds_.store(0, std::memory_order_relaxed); }
  // The runtime has called back for the last time before others call, too. Until then it does not count its calls: it
  // would unload the library below one of them.
  void EndAttach() { attaching_.store(false); }
  // The process ends: the runtime may not be called any more.
  void Shut() {
    Mute();
    shut_.store(true, std::memory_order_relaxed);
  }

  // Any thread.
  bool Wants(InprocessKind kind) const {
    return (kinds_.load(std::memory_order_relaxed) & InprocessKindBit(kind)) != 0;
  }
  // Whether each object was asked for, and not the large ones only.
  bool WantsEveryObject() const { return every_object_; }
  // With the time and the thread of now.
  void Send(InprocessMessage& message);
  // Methods without their maps.
  void CountLeftOut(uint64_t methods) { ring_.CountLeftOut(methods); }
  void* info() const { return info_; }

 private:
  Hresult TakeRing();
  bool MapRing(int memory);
  bool StartThread();
  static void* Watch(void* session);
  // False: the runtime is still attaching this after kMaxDetachTries, or the process ends.
  bool AwaitAttached() const;
  // Has the runtime unload the library. False: it refuses.
  bool Detach();
  // Gives the ring's memory and the connection back. The library stays.
  void LetGoOfAgent();
  void CloseSocket();
  void Discard();

  void* info_ = nullptr;
  int socket_ = -1;
  void* memory_ = nullptr;
  InprocessConfig config_{};
  InprocessRingWriter ring_;
  std::atomic<uint64_t> kinds_{0};
  std::atomic<bool> shut_{false};
  std::atomic<bool> attaching_{false};
  pthread_t thread_{};
  bool has_thread_ = false;
  bool every_object_ = false;  // set before the runtime calls
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_INPROCESS_SESSION_H_
