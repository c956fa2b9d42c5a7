#include "pipeline/intake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pipeline/run_parts.h"
#include "unit/pipeline/fake_capture.h"

namespace clrsampler {
namespace {

using test_support::FakeCapture;

using testing::Contains;
using testing::Field;

class IntakeTest : public testing::Test {
 protected:
  explicit IntakeTest(SamplesKept kept = SamplesKept::kAll) : parts_(Options(), nullptr, nullptr) {
    auto capture = std::make_unique<FakeCapture>();
    capture_ = capture.get();
    parts_.capture = std::move(capture);
    Begin(kept);
  }
  // `options`: those of Intake behind its parts.
  template <typename... Values>
  void Begin(Values... options) {
    parts_.intake.emplace(
        Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory, nullptr,
                      nullptr, parts_.threads, parts_.account, parts_.notices},
        options...);
  }
  static RecordOptions Options() { return {}; }  // the whole host
  Intake& intake() { return *parts_.intake; }

  static std::string Sample(uint64_t time_ns) {
    wire_cpu_sample sample{};
    sample.header = {sizeof sample, WIRE_CPU_SAMPLE, 0, time_ns};
    sample.tgid = static_cast<uint32_t>(getpid());
    sample.tid = sample.tgid;
    sample.flags = WIRE_SAMPLE_KTHREAD;  // nothing of user memory to look at
    return std::string(reinterpret_cast<const char*>(&sample), sizeof sample);
  }
  static std::string Stack(uint64_t time_ns, uint32_t flags) {
    std::string record = Sample(time_ns);
    wire_cpu_sample sample;
    std::memcpy(&sample, record.data(), sizeof sample);
    sample.header.kind = WIRE_WAIT_STACK;
    sample.flags |= flags;
    std::memcpy(record.data(), &sample, sizeof sample);
    return record;
  }
  static std::string Wait(uint64_t time_ns, uint32_t flags) {
    wire_wait wait{};
    wait.header = {sizeof wait, WIRE_WAIT, 0, time_ns};
    wait.tgid = wait.tid = static_cast<uint32_t>(getpid());
    wait.flags = flags;
    return std::string(reinterpret_cast<const char*>(&wait), sizeof wait);
  }
  std::vector<uint64_t> TimesUntil(uint64_t horizon) {
    std::vector<uint64_t> times;
    intake().PopUntil({horizon}, [&](MonotonicTime time, const HeldItem&) {
      times.push_back(time.ns);
      return true;
    });
    return times;
  }

  // In a queue of the usual length.
  double WaitingSamples() { return intake().queue_fill() * Intake::kQueuedBytes / sizeof(wire_cpu_sample); }

  RunParts parts_;
  FakeCapture* capture_ = nullptr;
};

TEST_F(IntakeTest, HoldsWhatComesAndGivesItInTheOrderOfTheTimes) {
  for (const uint64_t time : {30, 10, 20, 40}) capture_->records.push_back(Sample(time));
  SideBandEvent fork{.kind = SideBandKind::kFork, .time = {15}, .pid = 7, .tid = 7, .parent_pid = 1};
  capture_->events.push_back(fork);
  intake().Drain();
  EXPECT_EQ(parts_.account.samples_taken, 4u);
  EXPECT_EQ(WaitingSamples(), 4);
  EXPECT_THAT(TimesUntil(30), testing::ElementsAre(10, 15, 20, 30));
  EXPECT_EQ(intake().OldestOr({99}).ns, 40u);
  EXPECT_EQ(WaitingSamples(), 1);
}

TEST_F(IntakeTest, StacksOfCompilationsAreNoBacklogOfSamples) {
  std::string stack = Sample(10);
  stack[offsetof(wire_header, kind)] = WIRE_COMPILED_STACK;
  capture_->records = {stack, Sample(20)};
  intake().Drain();
  EXPECT_EQ(WaitingSamples(), 1);
  EXPECT_THAT(TimesUntil(10), testing::ElementsAre(10));
  EXPECT_EQ(WaitingSamples(), 1);
  EXPECT_THAT(TimesUntil(20), testing::ElementsAre(20));
  EXPECT_EQ(WaitingSamples(), 0);
}

TEST_F(IntakeTest, AnItemThatMustWaitComesAgain) {
  capture_->records.push_back(Sample(10));
  intake().Drain();
  intake().PopUntil({50}, [](MonotonicTime, const HeldItem&) { return false; });
  EXPECT_EQ(WaitingSamples(), 1);
  EXPECT_THAT(TimesUntil(50), testing::ElementsAre(10));
}

TEST_F(IntakeTest, SamplesThatWaitTakeABoundedAmountOfMemory) {
  const size_t three = 3 * sizeof(wire_cpu_sample);
  Begin(SamplesKept::kAll, EventBudget(), three);
  for (const uint64_t time : {10, 20, 30, 40, 50}) capture_->records.push_back(Sample(time));
  intake().Drain();
  EXPECT_EQ(parts_.account.samples_taken, 5u);
  EXPECT_EQ(parts_.account.lost["queue_full"], 2u);
  EXPECT_EQ(intake().queue_fill(), 1);
  EXPECT_THAT(TimesUntil(20), testing::ElementsAre(10, 20));
  parts_.account = {};  // another window begins
  for (const uint64_t time : {60, 70, 80}) capture_->records.push_back(Sample(time));
  intake().Drain();
  EXPECT_EQ(parts_.account.lost["queue_full"], 1u) << "there is room for two again";
  EXPECT_EQ(intake().samples_dropped(), 3u);
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(30, 60, 70));
}

// A lower rate of sampling would not make room.
TEST_F(IntakeTest, SamplesThatFindTheRoomFullOfStacksOfHooksAreNoBacklogOfSamples) {
  const size_t four = 4 * sizeof(wire_cpu_sample);
  Begin(SamplesKept::kAll, EventBudget(), four);
  capture_->records = {Sample(10), Stack(20, 0), Stack(30, 0), Stack(40, 0), Sample(50)};
  intake().Drain();
  EXPECT_EQ(parts_.account.lost["queue_full"], 1u);
  EXPECT_EQ(intake().samples_dropped(), 0u);
  EXPECT_THAT(TimesUntil(30), testing::ElementsAre(10, 20, 30));
  capture_->records = {Sample(60), Sample(70), Sample(80), Sample(90)};
  intake().Drain();
  EXPECT_EQ(parts_.account.lost["queue_full"], 2u);
  EXPECT_EQ(intake().samples_dropped(), 1u) << "samples are most of what waits";
}

// Without the sums of its threads a process would lose its CPU samples, too.
TEST_F(IntakeTest, WhatALookTellsOfThreadsAlwaysHasRoom) {
  Begin(SamplesKept::kAll, EventBudget(), /*max_queued_bytes=*/1);
  capture_->records = {Sample(10), Wait(20, 0), Wait(30, WIRE_WAIT_OPEN), Wait(40, WIRE_WAIT_OPEN)};
  intake().Drain();
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(10, 30, 40));
  EXPECT_EQ(intake().wait_records_dropped(), 1u);
  EXPECT_EQ(intake().runtime_events_dropped(), 0u);
}

// Nothing that comes later has the sums of a thread that has ended.
TEST_F(IntakeTest, TheLastRecordOfAThreadAlwaysHasRoom) {
  Begin(SamplesKept::kAll, EventBudget(1, 1));
  capture_->records = {Wait(10, 0), Wait(20, 0), Wait(30, WIRE_WAIT_THREAD_ENDED)};
  intake().Drain();
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(10, 30));
  EXPECT_EQ(intake().wait_records_dropped(), 1u);
}

TEST_F(IntakeTest, AStackOfALookIsNoEventOfTheHost) {
  Begin(SamplesKept::kAll, EventBudget(1, 8));
  const std::string of_event = Stack(10, 0);
  capture_->records = {of_event, of_event, Stack(20, WIRE_SAMPLE_LOOK), Stack(30, WIRE_SAMPLE_LOOK)};
  intake().Drain();
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(10, 20, 30));
  EXPECT_EQ(intake().wait_stacks_dropped(), 1u);
  EXPECT_EQ(intake().runtime_events_limited(), 0u) << "no runtime had any";
}

// The stack of a thread that does not move comes once.
TEST_F(IntakeTest, AStackOfALookAlwaysHasRoom) {
  Begin(SamplesKept::kAll, EventBudget(), /*max_queued_bytes=*/1);
  capture_->records = {Sample(10), Stack(20, 0), Stack(30, WIRE_SAMPLE_LOOK)};
  intake().Drain();
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(10, 30));
  EXPECT_EQ(intake().wait_stacks_dropped(), 1u);
}

TEST_F(IntakeTest, WaitsBeyondTheBudgetOfTheHostAreCountedAsWaits) {
  Begin(SamplesKept::kAll, EventBudget(1, 2));
  capture_->records = {Wait(10, 0), Wait(20, 0), Wait(30, 0)};
  intake().Drain();
  EXPECT_THAT(TimesUntil(90), testing::ElementsAre(10, 20));
  EXPECT_EQ(intake().wait_records_dropped(), 1u);
  EXPECT_EQ(intake().runtime_events_limited(), 0u);
}

TEST_F(IntakeTest, DamagedRecordsAreCountedAndNothingElse) {
  const std::string whole = Sample(10);
  for (const size_t length : {size_t{0}, size_t{8}, whole.size() - 1}) {
    capture_->records.push_back(whole.substr(0, length));
  }
  std::string unknown = whole;
  unknown[4] = 77;  // a kind of another version
  capture_->records.push_back(unknown);
  intake().Drain();
  EXPECT_EQ(parts_.account.lost["damaged_record"], 3u);
  EXPECT_EQ(WaitingSamples(), 0);
}

TEST_F(IntakeTest, LostProcessEventsAreSaidAndKeepTheirTurn) {
  capture_->events.push_back({.kind = SideBandKind::kLost, .time = {5}, .lost = 3});
  intake().Drain();
  EXPECT_THAT(parts_.notices.kept(), Contains(Field(&Notice::kind, "side_band_lost")));
  EXPECT_THAT(TimesUntil(9), testing::ElementsAre(5));
}

TEST_F(IntakeTest, ACpuThatCameBackIsSaid) {
  capture_->events.push_back({.kind = SideBandKind::kLost, .time = {5}, .cpu = 3});
  intake().Drain();
  EXPECT_THAT(parts_.notices.kept(),
              Contains(AllOf(Field(&Notice::kind, "side_band_lost"),
                             Field(&Notice::message, testing::HasSubstr("CPU 3 came online, or came back")))));
  EXPECT_THAT(TimesUntil(9), testing::ElementsAre(5)) << "processes are read again";
}

TEST_F(IntakeTest, TasksOutsideOfOurNamespaceAreNoProcess) {
  capture_->events.push_back({.kind = SideBandKind::kExit, .time = {5}, .pid = 0});
  intake().Drain();
  EXPECT_EQ(intake().news(), 0u);
  EXPECT_THAT(TimesUntil(9), testing::ElementsAre());
}

TEST_F(IntakeTest, EventsOfHooksThatNobodyWatchesEndHere) {
  wire_runtime_event event{};
  event.header = {sizeof event, WIRE_RUNTIME_EVENT, 0, 5};
  capture_->records.emplace_back(reinterpret_cast<const char*>(&event), sizeof event);
  intake().Drain();
  EXPECT_THAT(TimesUntil(9), testing::ElementsAre());
  EXPECT_EQ(intake().runtime_events_dropped(), 0u);
}

TEST_F(IntakeTest, TheFullestRingSinceTheLastQuestionCounts) {
  for (const double fill : {0.25, 0.75, 0.5}) {
    capture_->fill_now = fill;
    intake().Drain();
  }
  EXPECT_EQ(intake().TakeRingFill(), 0.75);
  EXPECT_EQ(intake().TakeRingFill(), 0);
}

// Events of this process's runtime, as hooks would report them.
class IntakeOfPausesTest : public IntakeTest {
 protected:
  void WatchPauses(EventBudget budget) {
    RuntimeWatchOptions options;
    options.hooks.suspensions = options.roles = true;
    options.hooks.resumed = false;
    options.on_pause = [this](const ObservedPause&) { ++pauses_; };
    options.hits_missed = [this](uint32_t tgid) { return capture_->HookHitsMissed(static_cast<pid_t>(tgid)); };
    parts_.hooks.emplace(std::move(options), parts_.runtimes, parts_.images, parts_.notices, parts_.symbolizer,
                         parts_.frames, parts_.clock);
    parts_.intake.emplace(
        Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory,
                      &*parts_.hooks, nullptr, parts_.threads, parts_.account, parts_.notices},
        SamplesKept::kAll, budget);
  }
  Process& process() { return parts_.table.FindOrScan(static_cast<uint32_t>(getpid()), 0); }
  void Send(wire_hook hook, uint64_t time_ns) {
    wire_runtime_event event{};
    event.header = {sizeof event, WIRE_RUNTIME_EVENT, 0, time_ns};
    event.tgid = static_cast<uint32_t>(getpid());
    event.tid = kThread;
    event.hook = hook;
    if (hook == WIRE_HOOK_SUSPEND || hook == WIRE_HOOK_RESTART) event.values[0] = 1;  // for a collection; it is over
    capture_->records.emplace_back(reinterpret_cast<const char*>(&event), sizeof event);
    intake().Drain();
  }
  PausePhase PhaseAt(uint64_t time_ns) {
    intake().PopUntil({time_ns}, [&](MonotonicTime, const HeldItem& item) {
      parts_.hooks->Handle(process(), std::get<RuntimeItem>(item));
      return true;
    });
    return parts_.hooks->PhaseOf(process().key, {time_ns});
  }
  bool CollectsAt(uint64_t time_ns) {
    wire_cpu_sample sample{};
    sample.header.time_ns = time_ns;
    sample.tid = kThread;
    return parts_.hooks->RoleOf(process(), sample, {}).has_value();
  }

  static constexpr uint32_t kThread = 5;
  int pauses_ = 0;
};

TEST_F(IntakeOfPausesTest, NothingIsUnderWayWhereAnEventWasLeftOut) {
  WatchPauses(EventBudget(1, 3));
  Send(WIRE_HOOK_SUSPEND, 10);
  Send(WIRE_HOOK_SUSPENDED, 20);
  Send(WIRE_HOOK_GC_START, 30);
  EXPECT_TRUE(CollectsAt(35));
  Send(WIRE_HOOK_GC_END, 40);
  Send(WIRE_HOOK_RESTART, 50);
  EXPECT_EQ(intake().runtime_events_limited(), 2u);
  EXPECT_EQ(PhaseAt(35), PausePhase::kStopped);
  EXPECT_EQ(PhaseAt(45), PausePhase::kNone) << "whatever was left out, the process is not stopped for ever";
  EXPECT_FALSE(CollectsAt(45));
  EXPECT_EQ(pauses_, 0);
}

TEST_F(IntakeOfPausesTest, ThreadsThatAreAskedToStopAreNotAskedForEver) {
  WatchPauses(EventBudget(1, 1));
  Send(WIRE_HOOK_SUSPEND, 10);
  EXPECT_TRUE(parts_.hooks->MayBeBlamed(process().key.tgid));
  Send(WIRE_HOOK_SUSPENDED, 20);
  EXPECT_FALSE(parts_.hooks->MayBeBlamed(process().key.tgid));
  EXPECT_EQ(PhaseAt(15), PausePhase::kStopping);
  EXPECT_EQ(PhaseAt(25), PausePhase::kNone);
}

TEST_F(IntakeOfPausesTest, TheEndOfAPauseIsTakenWhereAllElseOfItWas) {
  WatchPauses(EventBudget(1, 2));
  Send(WIRE_HOOK_SUSPEND, 10);
  Send(WIRE_HOOK_SUSPENDED, 20);
  Send(WIRE_HOOK_RESTART, 30);
  Send(WIRE_HOOK_RESTART, 40);  // a program may call this as often as it likes
  EXPECT_EQ(intake().runtime_events_limited(), 1u);
  EXPECT_EQ(PhaseAt(50), PausePhase::kNone);
  EXPECT_EQ(pauses_, 1);
}

TEST_F(IntakeOfPausesTest, NothingIsUnderWayWhereTheKernelDidNotSendTheEnd) {
  WatchPauses(EventBudget());
  Send(WIRE_HOOK_SUSPEND, kSecondNs);
  Send(WIRE_HOOK_SUSPENDED, kSecondNs + 10);
  Send(WIRE_HOOK_GC_START, kSecondNs + 20);
  EXPECT_EQ(PhaseAt(2 * kSecondNs), PausePhase::kStopped);
  parts_.hooks->Tick({2 * kSecondNs});
  EXPECT_EQ(PhaseAt(2 * kSecondNs), PausePhase::kStopped) << "a pause may last, and none of its events is missing";
  EXPECT_TRUE(CollectsAt(2 * kSecondNs));
  capture_->hits_missed = 1;
  parts_.hooks->Tick({3 * kSecondNs});
  EXPECT_EQ(PhaseAt(3 * kSecondNs), PausePhase::kNone);
  EXPECT_FALSE(CollectsAt(3 * kSecondNs));
}

// Events of this process that are counted, as hooks would report them.
class IntakeOfCountedEventsTest : public IntakeTest {
 protected:
  void Watch(RuntimeWatchOptions options, EventBudget budget) {
    parts_.hooks.emplace(std::move(options), parts_.runtimes, parts_.images, parts_.notices, parts_.symbolizer,
                         parts_.frames, parts_.clock);
    parts_.intake.emplace(
        Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory,
                      &*parts_.hooks, nullptr, parts_.threads, parts_.account, parts_.notices},
        SamplesKept::kAll, budget);
  }
  Process& process() { return parts_.table.FindOrScan(static_cast<uint32_t>(getpid()), 0); }
  void HandleAll() {
    intake().Drain();
    intake().PopUntil(MonotonicTime::Max(), [&](MonotonicTime, const HeldItem& item) {
      parts_.hooks->Handle(process(), std::get<RuntimeItem>(item));
      return true;
    });
  }
};

class IntakeOfExceptionsTest : public IntakeOfCountedEventsTest {
 protected:
  void WatchExceptions(EventBudget budget) {
    RuntimeWatchOptions options;
    options.hooks.exceptions = true;
    options.exceptions.on_exception = [this](const ObservedException&) { ++given_; };
    options.on_exception_factor = [this](ProcessKey, double factor) { factor_ = factor; };
    options.hits_missed = [this](uint32_t tgid) { return capture_->HookHitsMissed(static_cast<pid_t>(tgid)); };
    Watch(std::move(options), budget);
  }
  void Throw(uint64_t time_ns) {
    wire_exception event{};
    event.header = {sizeof event, WIRE_EXCEPTION, 0, time_ns};
    event.tgid = event.tid = static_cast<uint32_t>(getpid());
    capture_->records.emplace_back(reinterpret_cast<const char*>(&event), sizeof event);
  }
  uint64_t Count(const char* name) { return parts_.hooks->ExceptionCounts()[name]; }

  int given_ = 0;
  double factor_ = 0;
};

TEST_F(IntakeOfExceptionsTest, ThoseThatWereLeftOutBehindTheLastEventCountAtTheEndOfTheRecording) {
  WatchExceptions(EventBudget(1, 4));
  for (uint64_t time = 1; time <= 10; ++time) Throw(time);
  HandleAll();
  EXPECT_EQ(intake().runtime_events_limited(), 6u);
  parts_.hooks->Finish();
  EXPECT_EQ(given_, 4);
  EXPECT_EQ(Count("not_sent"), 6u);
  EXPECT_EQ(Count("estimated"), 10u);
  EXPECT_DOUBLE_EQ(factor_, 2.5);
}

TEST_F(IntakeOfExceptionsTest, ThoseThatTheKernelDidNotSendCountUpToTheEndOfTheRecording) {
  WatchExceptions(EventBudget());
  for (uint64_t time = 1; time <= 4; ++time) Throw(time);
  HandleAll();
  capture_->hits_missed = 8;
  parts_.hooks->StopsSampling();
  capture_->hits_missed = 1000;  // nobody reads the ring any more
  parts_.hooks->Finish();
  EXPECT_EQ(Count("not_sent"), 8u);
  EXPECT_EQ(Count("estimated"), 12u);
}

TEST_F(IntakeOfExceptionsTest, HitsBehindACompilationAreNoExceptions) {
  WatchExceptions(EventBudget());
  Throw(1);
  wire_compiled compiled{};
  compiled.header = {sizeof compiled, WIRE_COMPILED, 0, 2};
  compiled.tgid = compiled.tid = static_cast<uint32_t>(getpid());
  capture_->records.emplace_back(reinterpret_cast<const char*>(&compiled), sizeof compiled);
  HandleAll();
  capture_->hits_missed = 5000;
  parts_.hooks->StopsSampling();
  parts_.hooks->Finish();
  EXPECT_EQ(Count("not_sent"), 0u);
  EXPECT_EQ(Count("estimated"), 1u);
}

TEST_F(IntakeOfExceptionsTest, ThoseBehindTheLastEventCountAtTheEndOfTheProcess) {
  WatchExceptions(EventBudget(1, 4));
  for (uint64_t time = 1; time <= 6; ++time) Throw(time);
  HandleAll();
  const ProcessKey key = process().key;
  capture_->hits_missed = 2;
  parts_.hooks->EndThread(key, key.tgid);
  parts_.hooks->End(key);
  parts_.hooks->Finish();
  EXPECT_EQ(Count("not_sent"), 4u) << "two were left out, and two were not sent";
  EXPECT_EQ(Count("estimated"), 8u);
}

class IntakeOfAllocationsTest : public IntakeOfCountedEventsTest {
 protected:
  IntakeOfAllocationsTest() {
    RuntimeWatchOptions options;
    options.hooks.allocations = true;
    options.allocations.on_allocation = [this](const ObservedAllocation& allocation) { bytes_ += allocation.bytes; };
    options.on_allocation_factor = [this](ProcessKey, double factor) { factor_ = factor; };
    options.read_allocation_sum = [this](uint32_t tgid) {
      EXPECT_EQ(tgid, process().key.tgid);
      Allocate(0, 900'000);  // 500 KB were only summed up since the last record
    };
    Watch(std::move(options), EventBudget());
  }
  void Allocate(uint64_t bytes, uint64_t total) {
    wire_allocation event{};
    event.header = {sizeof event, WIRE_ALLOCATION, 0, ++time_};
    event.tgid = process().key.tgid;
    event.tid = bytes == 0 ? 0 : event.tgid;
    event.bytes = bytes;
    event.weight = bytes == 0 ? 0 : WIRE_ALLOCATION_ONE;
    event.total_bytes = total;
    event.total_hits = total / 100'000;
    capture_->records.emplace_back(reinterpret_cast<const char*>(&event), sizeof event);
  }

  uint64_t time_ = 0, bytes_ = 0;
  double factor_ = 0;
};

TEST_F(IntakeOfAllocationsTest, BytesThatNoRecordToldCountAtTheEndOfTheRecording) {
  parts_.hooks->StopsSampling();
  HandleAll();
  EXPECT_EQ(parts_.hooks->AllocationCounts()["bytes"], 0u) << "nothing is known of the process";
  Allocate(400'000, 400'000);
  HandleAll();
  parts_.hooks->StopsSampling();
  HandleAll();
  parts_.hooks->Finish();
  EXPECT_EQ(parts_.hooks->AllocationCounts()["bytes"], 900'000u);
  EXPECT_DOUBLE_EQ(factor_ * static_cast<double>(bytes_), 900'000);
}

TEST_F(IntakeOfAllocationsTest, BytesThatNoRecordToldCountAtTheEndOfTheProcess) {
  Allocate(400'000, 400'000);
  HandleAll();
  const ProcessKey key = process().key;
  parts_.hooks->EndThread(key, key.tgid + 1);
  HandleAll();
  EXPECT_EQ(parts_.hooks->AllocationCounts()["bytes"], 400'000u) << "others go on";
  parts_.hooks->EndThread(key, key.tgid);
  HandleAll();
  parts_.hooks->EndAllocations(key);
  EXPECT_EQ(parts_.hooks->AllocationCounts()["bytes"], 900'000u);
  EXPECT_DOUBLE_EQ(factor_ * static_cast<double>(bytes_), 900'000);
}

class IntakeKeepsNoneTest : public IntakeTest {
 protected:
  IntakeKeepsNoneTest() : IntakeTest(SamplesKept::kNone) {}
};

TEST_F(IntakeKeepsNoneTest, SamplesAreSetAsideAndCounted) {
  capture_->records.push_back(Sample(10));
  intake().Drain();
  EXPECT_EQ(parts_.account.samples_taken, 1u);
  EXPECT_EQ(parts_.account.samples_set_aside, 1u);
  EXPECT_EQ(WaitingSamples(), 0);
}

}  // namespace
}  // namespace clrsampler
