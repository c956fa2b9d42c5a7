#include "profile/wait_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <vector>

namespace clrsampler {
namespace {

using Names = std::vector<absl::string_view>;

WaitKind KindOf(int32_t syscall, const Names& kernel, const Names& managed, bool in_runtime = true,
                bool suspended = false, bool ended_by_monitor = false) {
  return KindOfWait({.syscall = syscall,
                     .kernel = kernel,
                     .managed = managed,
                     .suspended = suspended,
                     .ended_by_monitor = ended_by_monitor,
                     .in_runtime = in_runtime});
}

TEST(WaitKindTest, EveryKindHasATextThatIsRead) {
  for (int i = 0; i < kWaitKindCount; ++i) {
    const auto kind = static_cast<WaitKind>(i);
    EXPECT_EQ(WaitKindOf(WaitKindText(kind)), kind);
  }
  EXPECT_EQ(WaitKindOf("no kind"), std::nullopt);
}

TEST(WaitKindTest, ThePurposeOfTheOutermostMethodThatWaitsCounts) {
  EXPECT_EQ(KindOf(SYS_futex, {},
                   {"System.Threading.Monitor.Wait", "System.Threading.ManualResetEventSlim.Wait",
                    "System.Threading.Tasks.Task.SpinThenBlockingWait", "System.Threading.Tasks.Task.Wait",
                    "Shop.Order.Total"}),
            WaitKind::kTaskWait);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Monitor.Wait", "System.Threading.SemaphoreSlim.WaitCore"}),
            WaitKind::kSemaphore);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Lock.TryEnterSlow", "System.Threading.Monitor.Enter"}),
            WaitKind::kMonitor);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Lock.TryEnterSlow", "Shop.Order.Total"}), WaitKind::kLock);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Thread.Sleep"}), WaitKind::kSleep);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.WaitHandle.WaitOneNoCheck"}), WaitKind::kEvent);
}

TEST(WaitKindTest, NamesOfTheFullStyleAreMethodsToo) {
  EXPECT_EQ(KindOf(SYS_futex, {}, {"void System.Threading.Monitor.Enter(object, ref bool)"}), WaitKind::kMonitor);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"[System.Private.CoreLib]System.Threading.Lock.Enter()"}), WaitKind::kLock);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"Shop.System.Threading.Monitor.Enter"}), WaitKind::kFutex);
  // The runtime's own notation.
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Monitor::Enter(System.Object)"}), WaitKind::kMonitor);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"void [System.Private.CoreLib] System.Threading.Monitor::Enter(object)[Optimized]"}),
            WaitKind::kMonitor);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Tasks.Task`1[System.__Canon]::get_Result()"}),
            WaitKind::kTaskWait);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.PortableThreadPool+GateThread::GateThreadStart()"}),
            WaitKind::kIdle);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"System.Threading.Monitors::Enter()"}), WaitKind::kFutex);
}

// Task.Wait may run the task itself. The task's own method is what waits then.
TEST(WaitKindTest, AMethodThatATaskWaitRunsWaitsForItself) {
  const auto inside = [](int32_t syscall, const Names& kernel, Names managed, const Names& own) {
    managed.insert(managed.end(), own.begin(), own.end());
    for (const char* outer :
         {"System.Threading.Tasks.Task.InnerInvoke",
          "System.Threading.Tasks.ThreadPoolTaskScheduler.TryExecuteTaskInline",
          "System.Threading.Tasks.Task.WrappedTryRunInline", "System.Threading.Tasks.Task.InternalWait",
          "System.Threading.Tasks.Task.Wait", "Shop.Order.Total"}) {
      managed.emplace_back(outer);
    }
    return KindOf(syscall, kernel, managed);
  };
  for (const char* own : {"Shop.Front.Reads", "Shop!Shop.Front.Reads(System.Object, int) [OptimizedTier1]",
                          "System.Int32 Shop.Front.Reads(System.Object)", "(int, System.String) Shop.Front.Reads()",
                          "System.Collections.Generic.Dictionary<int, System.String> Shop.Front.Reads()",
                          "[Shop]Shop.Front.Reads()", "System.Int32[] Shop.Front<int, long>.Reads()"}) {
    EXPECT_EQ(inside(SYS_recvmsg, {}, {"System.Net.Sockets.Socket.Receive"}, {own}), WaitKind::kSocket) << own;
    EXPECT_EQ(inside(SYS_futex, {}, {"System.Threading.Thread.Sleep"}, {own}), WaitKind::kSleep) << own;
    EXPECT_EQ(inside(SYS_read, {"filemap_read"}, {"System.IO.RandomAccess.ReadAtOffset"}, {own}), WaitKind::kFile);
    EXPECT_EQ(inside(SYS_futex, {}, {"System.Threading.Lock.TryEnterSlow"}, {own}), WaitKind::kLock) << own;
    EXPECT_EQ(inside(SYS_futex, {}, {}, {own}), WaitKind::kFutex) << own;
  }
  // Names before that of a method of the libraries make it no method of the program.
  for (const char* stub :
       {"[stub IL_STUB_PInvoke(int)] [Optimized]", "(bool, int) System.Threading.Waits.Tries()", "[jit 0x7f12]",
        "System.Private.CoreLib!System.Threading.Waits.Tries<int, Shop.Order>(Shop.Order)"}) {
    EXPECT_EQ(inside(SYS_futex, {}, {}, {stub}), WaitKind::kTaskWait) << stub;
  }
}

TEST(WaitKindTest, ThreadsThatWaitForWorkAreIdle) {
  EXPECT_EQ(KindOf(SYS_futex, {},
                   {"System.Threading.LowLevelLifoSemaphore.WaitForSignal",
                    "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart"}),
            WaitKind::kIdle);
  EXPECT_EQ(KindOf(SYS_epoll_pwait, {}, {"System.Net.Sockets.SocketAsyncEngine.EventLoop"}, false), WaitKind::kIdle);
  EXPECT_EQ(KindOf(SYS_futex, {}, {}), WaitKind::kIdle);                        // of the runtime itself
  EXPECT_EQ(KindOf(SYS_read, {"pipe_read", "vfs_read"}, {}), WaitKind::kIdle);  // for signals
  EXPECT_EQ(KindOf(SYS_read, {"pipe_read", "vfs_read"}, {"System.IO.RandomAccess.ReadAtOffset"}), WaitKind::kPipe);
  // The first call of Monitor.Exit may wake the thread that compiles methods anew.
  EXPECT_EQ(KindOf(SYS_futex, {}, {}, true, false, true), WaitKind::kIdle);
  // The frames that a cut stack does not show may be a method.
  EXPECT_EQ(KindOfWait({.syscall = SYS_futex, .cut = true, .in_runtime = true}), WaitKind::kFutex);
  // A pool worker that waits in somebody's work does not.
  EXPECT_EQ(KindOf(SYS_futex, {},
                   {"System.Threading.Tasks.Task.Wait", "Shop.Order.Total",
                    "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart"}),
            WaitKind::kTaskWait);
}

TEST(WaitKindTest, WithoutAMethodThatWaitsTheOthersSay) {
  EXPECT_EQ(KindOf(SYS_futex, {}, {"Shop.Order.Total"}), WaitKind::kFutex);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"Shop.Order.Total"}, true, true), WaitKind::kSuspended);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"Shop.Order.Total"}, true, true, true), WaitKind::kMonitor);
  EXPECT_EQ(KindOf(SYS_futex, {}, {"Shop.Order.Total"}, false, true, true), WaitKind::kFutex);  // native code's own
}

TEST(WaitKindTest, TheKernelTellsWhatIsRead) {
  EXPECT_EQ(KindOf(SYS_read, {"pipe_read", "vfs_read"}, {}, false), WaitKind::kPipe);
  EXPECT_EQ(KindOf(SYS_read, {"sock_read_iter", "vfs_read"}, {}, false), WaitKind::kSocket);
  EXPECT_EQ(KindOf(SYS_read, {"folio_wait_bit_common", "filemap_read"}, {}, false), WaitKind::kFile);
  EXPECT_EQ(KindOf(SYS_recvmsg, {}, {}, false), WaitKind::kSocket);
  EXPECT_EQ(KindOf(SYS_ppoll, {}, {}, false), WaitKind::kPoll);
  EXPECT_EQ(KindOf(SYS_wait4, {}, {}, false), WaitKind::kChild);
  EXPECT_EQ(KindOf(-1, {"folio_wait_bit_common", "filemap_fault", "handle_mm_fault", "exc_page_fault"}, {}, false),
            WaitKind::kPageFault);
  EXPECT_EQ(KindOf(-1, {}, {}, false), WaitKind::kOther);
  EXPECT_EQ(KindOf(100'000, {}, {}, false), WaitKind::kOther);
}

}  // namespace
}  // namespace clrsampler
