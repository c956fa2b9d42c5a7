#include "profile/wait_kind.h"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "profile/library_methods.h"
#include "profile/method_text.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kTexts[] = {"runnable", "monitor",    "lock",          "task wait", "semaphore", "event",
                                        "sleep",    "idle",       "suspended",     "socket",    "pipe",      "file",
                                        "poll",     "page fault", "child process", "futex",     "other"};
static_assert(std::size(kTexts) == kWaitKindCount);

// A method of the runtime's libraries by which a wait is told: `name` begins that of a managed frame.
struct Rule {
  absl::string_view name;
  WaitKind kind;
};

// The methods of threads that wait for work. They are looked for first, since below them there are waits like any
// others.
constexpr absl::string_view kIdle[] = {
    "System.Threading.PortableThreadPool.GateThread.GateThreadStart",
    "System.Threading.TimerQueue.TimerThread",
    "System.Net.Sockets.SocketAsyncEngine.EventLoop",
    "System.Threading.LowLevelLifoSemaphore.Wait",
    "System.Threading.PortableThreadPool.WaitThread.WaitThreadStart",
};

// From the outermost meaning to the innermost one: the first rule that any frame inside of the program's own meets
// counts.
constexpr Rule kRules[] = {
    {"System.Threading.Tasks.Task.Wait", WaitKind::kTaskWait},
    {"System.Threading.Tasks.Task.InternalWait", WaitKind::kTaskWait},
    {"System.Threading.Tasks.Task.SpinThenBlockingWait", WaitKind::kTaskWait},
    {"System.Threading.Tasks.Task`1.get_Result", WaitKind::kTaskWait},
    {"System.Threading.Tasks.Task`1.GetResultCore", WaitKind::kTaskWait},
    {"System.Runtime.CompilerServices.TaskAwaiter", WaitKind::kTaskWait},
    {"System.Threading.SemaphoreSlim.Wait", WaitKind::kSemaphore},
    {"System.Threading.ManualResetEventSlim.Wait", WaitKind::kEvent},
    {"System.Threading.CountdownEvent.Wait", WaitKind::kEvent},
    {"System.Threading.Barrier.", WaitKind::kEvent},
    {"System.Threading.Monitor.Wait", WaitKind::kEvent},
    {"System.Threading.Monitor.", WaitKind::kMonitor},
    {"System.Threading.ReaderWriterLockSlim.", WaitKind::kLock},
    {"System.Threading.Lock.", WaitKind::kLock},
    {"System.Threading.WaitHandle.", WaitKind::kEvent},
    {"System.Threading.Thread.Sleep", WaitKind::kSleep},
    {"System.Threading.Thread.Join", WaitKind::kEvent},
};

bool AnyContains(std::span<const absl::string_view> names, absl::string_view part) {
  return std::any_of(names.begin(), names.end(),
                     [part](absl::string_view name) { return absl::StrContains(name, part); });
}

// In the full style the module or a return type stands before a method's name.
bool IsMethod(absl::string_view name, absl::string_view method) {
  const size_t at = FindMethod(name, method);
  return at == 0 || (at != absl::string_view::npos && absl::StrContains(" !]", name.substr(at - 1, 1)));
}

bool AnyIs(std::span<const absl::string_view> managed, absl::string_view method) {
  return std::any_of(managed.begin(), managed.end(),
                     [method](absl::string_view name) { return IsMethod(name, method); });
}

// A name without what stands before it: "int Shop.Cart.Add(object)" and "[Shop]Shop.Cart.Add" are "Shop.Cart.Add...".
absl::string_view WithoutReturnType(absl::string_view name) {
  size_t begin = 0;
  int depth = 0;  // of brackets: blanks in them separate arguments
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '(' && depth == 0 && i != begin) break;
    if (c == '<' || c == '[' || c == '(') ++depth;
    if (c == '>' || c == ']' || c == ')') --depth;
    if (depth != 0 || i + 1 == name.size()) continue;
    if (c == ' ' || (c == ']' && name[begin] == '[' && name[i + 1] != ' ')) begin = i + 1;
  }
  return name.substr(begin);
}

// The methods that the program's innermost own one called. Those outside of it say why that one runs, as Task.Wait does
// that runs a task itself, but not what it waits for.
std::span<const absl::string_view> InsideOfOwn(std::span<const absl::string_view> managed) {
  const auto own = std::find_if(managed.begin(), managed.end(),
                                [](absl::string_view name) { return !IsOfLibraries(WithoutReturnType(name)); });
  return managed.first(static_cast<size_t>(own - managed.begin()));
}

std::optional<WaitKind> KindByMethods(std::span<const absl::string_view> all) {
  const std::span<const absl::string_view> managed = InsideOfOwn(all);
  for (const absl::string_view idle : kIdle) {
    if (AnyIs(managed, idle)) return WaitKind::kIdle;
  }
  for (const Rule& rule : kRules) {
    if (AnyIs(managed, rule.name)) return rule.kind;
  }
  return std::nullopt;
}

WaitKind KindByKernel(const WaitFacts& facts) {
  if (AnyContains(facts.kernel, "page_fault") || AnyContains(facts.kernel, "handle_mm_fault")) {
    return WaitKind::kPageFault;
  }
  switch (WaitCallOf(facts.syscall)) {
    case WaitCall::kSleep:
      return WaitKind::kSleep;
    case WaitCall::kFutex:
      return WaitKind::kFutex;
    case WaitCall::kPoll:
      return WaitKind::kPoll;
    case WaitCall::kSocket:
      return WaitKind::kSocket;
    case WaitCall::kChild:
      return WaitKind::kChild;
    case WaitCall::kReadWrite:
      if (AnyContains(facts.kernel, "sock_")) return WaitKind::kSocket;
      return AnyContains(facts.kernel, "pipe_") ? WaitKind::kPipe : WaitKind::kFile;
    case WaitCall::kNone:
    case WaitCall::kOther:
      break;
  }
  return WaitKind::kOther;
}

}  // namespace

absl::string_view WaitKindText(WaitKind kind) { return kTexts[static_cast<size_t>(kind)]; }

std::optional<WaitKind> WaitKindOf(absl::string_view text) {
  const auto* const found = std::find(std::begin(kTexts), std::end(kTexts), text);
  if (found == std::end(kTexts)) return std::nullopt;
  return static_cast<WaitKind>(found - std::begin(kTexts));
}

WaitCall WaitCallOf(int32_t number) {
  switch (number) {
    case -1:
      return WaitCall::kNone;
#ifdef SYS_pause
    case SYS_pause:
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
      return number == SYS_pause ? WaitCall::kSleep : WaitCall::kPoll;
#endif
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return WaitCall::kSleep;
    case SYS_futex:
      return WaitCall::kFutex;
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
      return WaitCall::kPoll;
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      return WaitCall::kSocket;
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_openat:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_fallocate:
    case SYS_flock:
      return WaitCall::kReadWrite;
    case SYS_wait4:
    case SYS_waitid:
      return WaitCall::kChild;
    default:
      return WaitCall::kOther;
  }
}

WaitKind KindOfWait(const WaitFacts& facts) {
  if (const std::optional<WaitKind> kind = KindByMethods(facts.managed)) return *kind;
  const WaitKind kind = KindByKernel(facts);
  // The runtime's thread for signals reads a pipe. Where a method of the program leads to the read, it is the
  // program's.
  const bool plain = kind == WaitKind::kFutex || kind == WaitKind::kSleep || kind == WaitKind::kPoll ||
                     (kind == WaitKind::kPipe && facts.managed.empty());
  if (!plain || !facts.in_runtime) return kind;
  // A thread of the runtime's own waits for work, and never for a monitor. A thread that leaves a monitor may give it
  // some.
  if (facts.managed.empty()) return facts.cut ? kind : WaitKind::kIdle;
  if (facts.ended_by_monitor) return WaitKind::kMonitor;
  // No method that waits: the runtime itself made a managed thread wait.
  return facts.suspended ? WaitKind::kSuspended : kind;
}

}  // namespace clrsampler
