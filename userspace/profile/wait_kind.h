// The thing that a thread waited for, by the system call and the functions that it waited in.
//
// Pure. Managed methods are told by their names in the short style, as the runtime's own libraries have them
// (docs/waits.md lists them).
#ifndef CLRSAMPLER_PROFILE_WAIT_KIND_H_
#define CLRSAMPLER_PROFILE_WAIT_KIND_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"

namespace clrsampler {

enum class WaitKind : uint8_t {
  kRunnable,   // it could run and had no CPU
  kMonitor,    // Monitor.Enter, and lock of an ordinary object
  kLock,       // the runtime's other locks: Lock, ReaderWriterLockSlim, SpinLock
  kTaskWait,   // for a task: Task.Wait, Result, GetResult
  kSemaphore,  // SemaphoreSlim, Semaphore
  kEvent,  // events and other handles: ManualResetEvent(Slim), AutoResetEvent, Barrier, CountdownEvent, Monitor.Wait
  kSleep,
  kIdle,       // for work to come: pool workers, the timer thread, threads of the runtime itself
  kSuspended,  // the runtime has stopped it, or waits for threads to stop
  kSocket,
  kPipe,
  kFile,
  kPoll,  // for one of several descriptors
  kPageFault,
  kChild,  // another process
  kFutex,  // a lock of native code
  kOther,
};
inline constexpr int kWaitKindCount = 17;
absl::string_view WaitKindText(WaitKind kind);  // "task wait"
std::optional<WaitKind> WaitKindOf(absl::string_view text);

// The kind that the kernel side alone says.
enum class WaitCall : uint8_t { kNone, kSleep, kFutex, kPoll, kSocket, kReadWrite, kChild, kOther };
// `number` of this machine's system calls; -1: none.
WaitCall WaitCallOf(int32_t number);

// Names of frames, innermost first.
struct WaitFacts {
  int32_t syscall = -1;
  std::span<const absl::string_view> kernel;
  std::span<const absl::string_view> managed;
  bool suspended = false;         // meanwhile the runtime has stopped the process's threads
  bool ended_by_monitor = false;  // who ended it was leaving a monitor
  bool cut = false;               // there may be methods behind the end of the stack
  bool in_runtime = false;        // the function that made the system call is the runtime's own
};
WaitKind KindOfWait(const WaitFacts& facts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROFILE_WAIT_KIND_H_
