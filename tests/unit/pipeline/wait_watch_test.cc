#include "pipeline/wait_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <string>
#include <vector>

#include "capture/open_waits.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr ProcessKey kShop{42, 7};
constexpr uint64_t kMs = kMillisecondNs;

class WaitWatchTest : public testing::Test {
 protected:
  struct Given {
    WaitKind kind;
    uint64_t ns;
    double stands_for;
    std::vector<std::string> stack, waker_stack;
    uint32_t waker;
    bool by_interrupt;
  };

  WaitWatchTest()
      : watch_(
            [this](const ObservedWait& wait) {
              given_.push_back({wait.kind, wait.wait_ns, wait.stands_for, Texts(wait.frames), Texts(wait.waker_frames),
                                wait.waker_tid, wait.by_interrupt});
            },
            frames_) {}

  std::vector<std::string> Texts(std::span<const FrameId> ids) {
    std::vector<std::string> texts;
    for (const FrameId id : ids) texts.push_back(frames_.at(id).text);
    return texts;
  }
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, text, "", ""});
  }
  FrameId Runtime(const char* text) {
    return frames_.Intern(Frame{FrameKind::kNative, NameSource::kFunctionStart, text, "libcoreclr.so", ""});
  }
  FrameId Kernel(const char* text) {
    return frames_.Intern(Frame{FrameKind::kKernel, NameSource::kKallsyms, text, "", ""});
  }
  std::vector<FrameId> Stack(const char* method) {
    return {Managed(method),    Runtime("wait"),      Kernel("do_futex"),           Kernel("futex_wait"),
            Kernel("schedule"), Kernel("__schedule"), Kernel("finish_task_switch"), Kernel("sysvec_irq_work")};
  }

  wire_wait Wait(uint64_t time, uint64_t blocked, uint64_t runnable = 0) {
    wire_wait wait{};
    wait.header.time_ns = time;
    wait.tgid = kShop.tgid;
    wait.tid = 1;
    wait.blocked_ns = blocked;
    wait.runnable_ns = runnable;
    wait.blocked_weight = blocked == 0 ? 0 : WIRE_WAIT_ONE;
    wait.runnable_weight = runnable == 0 ? 0 : WIRE_WAIT_ONE;
    wait.flags = WIRE_WAIT_HAS_STACK;
    wait.syscall = SYS_futex;
    return wait;
  }
  // A wait of 700 ns that thread 2 has ended.
  wire_wait WokenWait(uint64_t time, uint64_t woken) {
    wire_wait wait = Wait(time, 700);
    wait.woken_ns = woken;
    wait.waker_tid = 2;
    return wait;
  }
  void TakeStack(uint64_t time, const std::vector<FrameId>& frames) {
    wire_cpu_sample sample{};
    sample.header.time_ns = time;
    sample.tid = 1;
    watch_.HandleStack(process_, sample, frames);
  }
  void TakeWaker(uint64_t time, uint32_t tid, const std::vector<FrameId>& frames) {
    wire_cpu_sample sample{};
    sample.header.time_ns = time;
    sample.tid = tid;
    watch_.HandleWakerStack(sample, frames);
  }

  FrameTable frames_;
  const Process process_{kShop, TargetFiles("/nonexistent", kShop.tgid)};
  std::vector<Given> given_;
  WaitWatch watch_;
};

TEST_F(WaitWatchTest, AWaitHasItsStackUpToTheSchedulerAndItsWaker) {
  TakeWaker(800, 2, {Managed("Shop.Gate.Release"), Kernel("futex_wake")});
  wire_wait wait = Wait(1000, 700, 200);
  wait.woken_ns = 800;
  wait.waker_tid = 2;
  wait.flags |= WIRE_WAIT_HAS_WAKER_STACK;
  watch_.Handle(process_, wait);
  EXPECT_THAT(given_, IsEmpty());  // its stack is still to come
  TakeStack(1000, Stack("System.Threading.Monitor.Enter_Slowpath"));
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[0].kind, WaitKind::kMonitor);
  EXPECT_EQ(given_[0].ns, 700);
  EXPECT_THAT(given_[0].stack,
              ElementsAre("System.Threading.Monitor.Enter_Slowpath", "wait", "do_futex", "futex_wait"));
  EXPECT_THAT(given_[0].waker_stack, ElementsAre("Shop.Gate.Release", "futex_wake"));
  EXPECT_EQ(given_[0].waker, 2);
  EXPECT_EQ(given_[1].kind, WaitKind::kRunnable);
  EXPECT_EQ(given_[1].ns, 200);
  EXPECT_EQ(given_[1].waker, 0);
  EXPECT_EQ(watch_.counters().without_stack, 0);
}

TEST_F(WaitWatchTest, AMethodThatIsSuspendedIsNotWhatTheThreadWaitsIn) {
  std::vector<FrameId> stack = Stack("Shop.Gate.Pass");
  const char* const awaiter = "System.Threading.SemaphoreSlim.WaitUntilCountOrTimeoutAsync [awaits]";
  stack.insert(stack.begin() + 1, Managed(awaiter));
  watch_.Handle(process_, Wait(1000, 700));
  TakeStack(1000, stack);
  stack[1] = Managed("System.Threading.SemaphoreSlim.WaitUntilCountOrTimeout");
  watch_.Handle(process_, Wait(2000, 700));
  TakeStack(2000, stack);
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[0].kind, WaitKind::kFutex);
  EXPECT_EQ(given_[1].kind, WaitKind::kSemaphore);
}

TEST_F(WaitWatchTest, AThreadThatAnInterruptMeetsHasWokenNobody) {
  TakeWaker(800, 2, {Managed("Shop.Order.Total"), Kernel("asm_sysvec_apic_timer_interrupt"), Kernel("hrtimer_wakeup")});
  watch_.Handle(process_, WokenWait(1000, 800));
  TakeStack(1000, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_TRUE(given_[0].by_interrupt);
  EXPECT_EQ(given_[0].waker, 0);
  EXPECT_THAT(given_[0].waker_stack, IsEmpty());
}

TEST_F(WaitWatchTest, AWakerOutsideOfTheNamespaceIsNoInterrupt) {
  wire_wait wait = WokenWait(1000, 800);
  wait.waker_tid = 0;
  watch_.Handle(process_, wait);
  TakeStack(1000, Stack("System.Threading.Thread.Sleep"));
  wait = WokenWait(2000, 1800);
  wait.waker_tid = 0;
  wait.flags |= WIRE_WAIT_WAKER_OUTSIDE;
  watch_.Handle(process_, wait);
  TakeStack(2000, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_TRUE(given_[0].by_interrupt);
  EXPECT_FALSE(given_[1].by_interrupt);
  EXPECT_EQ(given_[1].waker, 0);
}

TEST_F(WaitWatchTest, WhatASenderDeliversOnTheStackOfInterruptsIsItsOwn) {
  TakeWaker(800, 2,
            {Managed("Shop.Sender.Send"), Kernel("tcp_sendmsg"), Kernel("do_softirq_own_stack"),
             Kernel("call_on_irq_stack"), Kernel("sock_def_readable")});
  watch_.Handle(process_, WokenWait(1000, 800));
  TakeStack(1000, Stack("Shop.Receiver.Receive"));
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_FALSE(given_[0].by_interrupt);
  EXPECT_EQ(given_[0].waker, 2);
}

TEST_F(WaitWatchTest, AThreadThatTheKernelMadeLookForTimersAndPacketsWokeNobody) {
  const std::vector<std::vector<const char*>> found = {
      {"tcp_sendmsg", "__local_bh_enable_ip", "do_softirq", "net_rx_action", "__napi_poll", "virtnet_poll"},
      {"tcp_sendmsg", "__local_bh_enable_ip", "do_softirq", "run_timer_softirq", "call_timer_fn"},
      {"tcp_sendmsg", "__local_bh_enable_ip", "do_softirq", "net_rx_action", "__napi_poll", "process_backlog"}};
  uint64_t time_ns = 1000;
  for (const std::vector<const char*>& kernel : found) {
    std::vector<FrameId> stack = {Managed("Shop.Sender.Send")};
    for (const char* name : kernel) stack.push_back(Kernel(name));
    TakeWaker(time_ns - 200, 2, stack);
    watch_.Handle(process_, WokenWait(time_ns, time_ns - 200));
    TakeStack(time_ns, Stack("Shop.Receiver.Receive"));
    time_ns += 1000;
  }
  ASSERT_THAT(given_, SizeIs(3));
  EXPECT_TRUE(given_[0].by_interrupt);
  EXPECT_TRUE(given_[1].by_interrupt);
  EXPECT_FALSE(given_[2].by_interrupt) << "its own message to a process of this host";
  EXPECT_EQ(given_[2].waker, 2);
}

TEST_F(WaitWatchTest, AWakerThatMayHaveBeenInterruptedIsNotNamed) {
  watch_.Handle(process_, WokenWait(1000, 800));  // its waker's stack is lost
  TakeStack(1000, Stack("System.Threading.Thread.Sleep"));
  TakeWaker(1800, 2, {Managed("Shop.Order.Total")});  // nothing of the kernel has a name
  watch_.Handle(process_, WokenWait(2000, 1800));
  TakeStack(2000, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(2));
  for (const Given& given : given_) {
    EXPECT_EQ(given.waker, 0);
    EXPECT_FALSE(given.by_interrupt);
  }
}

TEST_F(WaitWatchTest, AStackThatWasTakenTooLateIsNone) {
  watch_.Handle(process_, Wait(1000, 700));
  TakeStack(1000, {Managed("Shop.Order.Total"), Kernel("sysvec_irq_work")});
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_THAT(given_[0].stack, ElementsAre("[stack not taken]"));
  EXPECT_EQ(given_[0].kind, WaitKind::kOther);
  EXPECT_EQ(watch_.counters().late_stacks, 1);
}

TEST_F(WaitWatchTest, OneThatStillGoesOnHasNoScheduler) {
  wire_wait wait = Wait(1000, 700);
  wait.flags |= WIRE_WAIT_OPEN;
  watch_.Handle(process_, wait);
  TakeStack(1000, {Managed("System.Threading.Thread.Sleep"), Kernel("do_futex")});
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_THAT(given_[0].stack, ElementsAre("System.Threading.Thread.Sleep", "do_futex"));
}

TEST_F(WaitWatchTest, AStackOfAnotherWaitIsNotTaken) {
  watch_.Handle(process_, Wait(1000, 700));
  TakeStack(1001, Stack("Shop.Order.Total"));
  EXPECT_THAT(given_, IsEmpty());
  watch_.Handle(process_, Wait(2000, 300));
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_THAT(given_[0].stack, ElementsAre("[stack not taken]"));
  watch_.Finish();
  EXPECT_THAT(given_, SizeIs(2));
}

TEST_F(WaitWatchTest, WeightsSayHowManyAWaitStandsFor) {
  wire_wait wait = Wait(1000, 700);
  wait.blocked_weight = 3 * WIRE_WAIT_ONE / 2;
  watch_.Handle(process_, wait);
  TakeStack(1000, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_EQ(given_[0].stands_for, 1.5);
}

TEST_F(WaitWatchTest, OnlyAWaitThatMeetsAPauseIsOneForTheRuntime) {
  watch_.NotePause(kShop, {500}, {900});
  watch_.Handle(process_, Wait(1000, 400));  // from 600 on
  TakeStack(1000, Stack("Shop.Order.Total"));
  watch_.Handle(process_, Wait(2000, 400));
  TakeStack(2000, Stack("Shop.Order.Total"));
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[0].kind, WaitKind::kSuspended);
  EXPECT_EQ(given_[1].kind, WaitKind::kFutex);
}

TEST_F(WaitWatchTest, AWaitThatReachesBeyondAPauseIsNotForTheRuntime) {
  watch_.NotePause(kShop, {1000 * kMs}, {1002 * kMs});
  const std::vector<FrameId> stack = Stack("Shop.Order.Total");
  // From 900 ms to 1001, from 1001 to 1900, and from 999 to 1004: the last one is as long as the pause, nearly.
  for (const auto& [ended, blocked] : {std::pair(1001, 101), std::pair(1900, 899), std::pair(1004, 5)}) {
    watch_.Handle(process_, Wait(ended * kMs, blocked * kMs));
    TakeStack(ended * kMs, stack);
  }
  ASSERT_THAT(given_, SizeIs(3));
  EXPECT_EQ(given_[0].kind, WaitKind::kFutex);
  EXPECT_EQ(given_[1].kind, WaitKind::kFutex);
  EXPECT_EQ(given_[2].kind, WaitKind::kSuspended);
}

TEST_F(WaitWatchTest, PausesThatFollowEachOtherAreOne) {
  watch_.NotePause(kShop, {1000 * kMs}, {1100 * kMs});
  watch_.NotePause(kShop, {1050 * kMs}, {1200 * kMs});  // asked for during the first one
  watch_.Handle(process_, Wait(1200 * kMs, 199 * kMs));
  TakeStack(1200 * kMs, Stack("Shop.Order.Total"));
  watch_.NotePause(kShop, {1300 * kMs}, {1400 * kMs});
  watch_.Handle(process_, Wait(1400 * kMs, 250 * kMs));
  TakeStack(1400 * kMs, Stack("Shop.Order.Total"));
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[0].kind, WaitKind::kSuspended);
  EXPECT_EQ(given_[1].kind, WaitKind::kFutex);
}

TEST_F(WaitWatchTest, AThreadMayTellOfItsWaitAfterTheNextPause) {
  watch_.NotePause(kShop, {1000 * kMs}, {1100 * kMs});
  watch_.NotePause(kShop, {1120 * kMs}, {1200 * kMs});
  watch_.Handle(process_, Wait(1250 * kMs, 98 * kMs, 150 * kMs));  // woken at 1100
  TakeStack(1250 * kMs, Stack("Shop.Order.Total"));
  ASSERT_FALSE(given_.empty());
  EXPECT_EQ(given_[0].kind, WaitKind::kSuspended);
}

TEST_F(WaitWatchTest, AThreadThatStillWaitsBehindAPauseIsNotSuspended) {
  watch_.NotePause(kShop, {1000 * kMs}, {1100 * kMs});
  wire_wait wait = Wait(1100 * kMs, 90 * kMs);
  wait.flags |= WIRE_WAIT_OPEN;
  watch_.Handle(process_, wait);
  TakeStack(1100 * kMs, {Managed("Shop.Order.Total"), Runtime("wait"), Kernel("futex_wait")});
  wait = Wait(2000 * kMs, 990 * kMs);
  wait.flags = WIRE_WAIT_OPEN | kWaitUnmoved;
  watch_.Handle(process_, wait);
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[0].kind, WaitKind::kSuspended);
  EXPECT_EQ(given_[1].kind, WaitKind::kFutex);
}

TEST_F(WaitWatchTest, SumsAreTheLastOnesOfEachThread) {
  wire_wait wait = Wait(1000, 700);
  wait.seen_ns = 100;
  wait.total_cpu_ns = 10;
  watch_.Handle(process_, wait);
  wait = Wait(3000, 0);
  wait.flags = WIRE_WAIT_THREAD_ENDED;
  wait.seen_ns = 100;
  wait.total_cpu_ns = 30;
  wait.total_blocked_ns = 800;
  watch_.Handle(process_, wait);
  const WaitWatch::Threads threads = watch_.TakeThreads(kShop);
  ASSERT_THAT(threads, SizeIs(1));
  EXPECT_EQ(threads.at(1).cpu_ns, 30);
  EXPECT_EQ(threads.at(1).blocked_ns, 800);
  EXPECT_TRUE(threads.at(1).ended);
  EXPECT_THAT(given_, SizeIs(1));  // an end is no wait
  watch_.End(kShop);
  EXPECT_THAT(watch_.TakeThreads(kShop), IsEmpty());
}

TEST_F(WaitWatchTest, TimesAreThoseSinceTheyWereTaken) {
  wire_wait wait = Wait(1000, 700);
  wait.seen_ns = 100;
  wait.total_cpu_ns = 200;
  wait.total_blocked_ns = 700;
  watch_.Handle(process_, wait);
  EXPECT_EQ(watch_.TakeThreads(kShop).at(1).blocked_ns, 700u);
  EXPECT_THAT(watch_.TakeThreads(kShop), IsEmpty()) << "nothing is new";
  wait = Wait(2000, 600);
  wait.seen_ns = 100;
  wait.total_cpu_ns = 600;
  wait.total_blocked_ns = 1300;
  watch_.Handle(process_, wait);
  const WaitWatch::Threads threads = watch_.TakeThreads(kShop);
  EXPECT_EQ(threads.at(1).blocked_ns, 600u);
  EXPECT_EQ(threads.at(1).cpu_ns, 400u);
}

// The kernel's sums of a thread go on when it calls exec.
TEST_F(WaitWatchTest, TimeBeforeAnExecCountsOnce) {
  wire_wait wait = Wait(1000, 700);
  wait.seen_ns = 100;
  wait.total_blocked_ns = 700;
  watch_.Handle(process_, wait);
  watch_.EndProgram(kShop);
  EXPECT_THAT(given_, SizeIs(1)) << "the stack of that wait was never to come";
  EXPECT_EQ(watch_.TakeThreads(kShop).at(1).blocked_ns, 700u);
  wait = Wait(2000, 600);
  wait.seen_ns = 100;
  wait.total_blocked_ns = 1300;
  watch_.Handle(process_, wait);
  EXPECT_EQ(watch_.TakeThreads(kShop).at(1).blocked_ns, 600u);
}

TEST_F(WaitWatchTest, SumsThatALookWasAheadOfDoNotFall) {
  for (const uint64_t blocked : {700, 650, 900}) {
    wire_wait wait = Wait(1000 + blocked, 0);
    wait.seen_ns = 100;
    wait.total_blocked_ns = blocked;
    watch_.Handle(process_, wait);
    const WaitWatch::Threads threads = watch_.TakeThreads(kShop);
    EXPECT_EQ(threads.at(1).blocked_ns, blocked == 700 ? 700u : blocked == 650 ? 0u : 200u);
  }
}

TEST_F(WaitWatchTest, AnotherThreadOfTheSameNumberCountsAsWell) {
  wire_wait wait = Wait(1000, 0);
  wait.seen_ns = 100;
  wait.total_blocked_ns = 700;
  watch_.Handle(process_, wait);
  wait = Wait(2000, 0);
  wait.seen_ns = 1500;
  wait.total_blocked_ns = 40;
  watch_.Handle(process_, wait);
  EXPECT_EQ(watch_.TakeThreads(kShop).at(1).blocked_ns, 740u);
}

TEST_F(WaitWatchTest, ThreadsThatHaveEndedAreForgotten) {
  wire_wait wait = Wait(1000, 0);
  wait.seen_ns = 100;
  wait.flags = WIRE_WAIT_THREAD_ENDED;
  wait.total_blocked_ns = 700;
  watch_.Handle(process_, wait);
  EXPECT_THAT(watch_.processes(), SizeIs(1));
  EXPECT_EQ(watch_.TakeThreads(kShop, {500}).at(1).blocked_ns, 700u);
  EXPECT_THAT(watch_.processes(), IsEmpty());
}

// Its sums are of a time that belongs to windows before, in which it was not known.
TEST_F(WaitWatchTest, TimeFromBeforeAWindowDoesNotCountInIt) {
  wire_wait wait = Wait(100 * kSecondNs, 0);
  wait.seen_ns = 1 * kSecondNs;
  wait.total_blocked_ns = 99 * kSecondNs;
  watch_.Handle(process_, wait);
  EXPECT_THAT(watch_.TakeThreads(kShop, {90 * kSecondNs}), IsEmpty());
  EXPECT_EQ(watch_.counters().unsure_times, 1u);
  wait = Wait(110 * kSecondNs, 0);
  wait.seen_ns = 1 * kSecondNs;
  wait.total_blocked_ns = 109 * kSecondNs;
  watch_.Handle(process_, wait);
  EXPECT_EQ(watch_.TakeThreads(kShop, {100 * kSecondNs}).at(1).blocked_ns, 10 * kSecondNs);
}

// The last look of a recording is over before the last wait has ended.
TEST_F(WaitWatchTest, WhatALookHasToldOfAWaitIsNotToldAgain) {
  wire_wait wait = Wait(10'000, 9'000);
  wait.flags = WIRE_WAIT_OPEN;
  watch_.Handle(process_, wait);
  ASSERT_THAT(given_, SizeIs(1));
  watch_.Handle(process_, Wait(10'250, 9'200, 50));
  TakeStack(10'250, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(3));
  EXPECT_EQ(given_[1].ns, 200u);
  EXPECT_EQ(given_[2].ns, 50u);
  watch_.Handle(process_, Wait(10'500, 100));
  TakeStack(10'500, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(4));
  EXPECT_EQ(given_[3].ns, 100u) << "another wait";
}

TEST_F(WaitWatchTest, ALookThatToldNothingCutsNothing) {
  wire_wait wait = Wait(10'000, 9'000);
  wait.flags = WIRE_WAIT_OPEN;
  wait.blocked_weight = 0;  // it had run by the time its stack was to be read
  watch_.Handle(process_, wait);
  watch_.Handle(process_, Wait(10'250, 9'200));
  TakeStack(10'250, Stack("System.Threading.Thread.Sleep"));
  ASSERT_THAT(given_, SizeIs(1));
  EXPECT_EQ(given_[0].ns, 9'200u);
}

TEST_F(WaitWatchTest, AThreadThatHasNotRunSinceALookHasTheSameStackAndKind) {
  wire_wait wait = Wait(1000, 700);
  wait.flags |= WIRE_WAIT_OPEN;
  watch_.Handle(process_, wait);
  TakeStack(1000, {Managed("System.Threading.Monitor.Enter"), Kernel("futex_wait")});
  wait = Wait(2000, 1700);
  wait.flags = WIRE_WAIT_OPEN | kWaitUnmoved;
  watch_.Handle(process_, wait);
  ASSERT_THAT(given_, SizeIs(2));
  EXPECT_EQ(given_[1].kind, WaitKind::kMonitor);
  EXPECT_EQ(given_[1].ns, 1700u);
  EXPECT_EQ(given_[1].stack, given_[0].stack);
  // It runs, waits again, and the same is said of it: that stack is none of this wait.
  watch_.Handle(process_, Wait(3000, 0));
  watch_.Handle(process_, wait);
  ASSERT_THAT(given_, SizeIs(3));
  EXPECT_THAT(given_[2].stack, ElementsAre("[stack not taken]"));
}

}  // namespace
}  // namespace clrsampler
