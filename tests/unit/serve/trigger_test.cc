#include "serve/trigger.h"

#include <gtest/gtest.h>

#include "status/status.h"

namespace clrsampler {
namespace {

TEST(TriggerTest, ReadsWhatTheHelpShows) {
  const absl::StatusOr<Trigger> pause = ParseTrigger(" pause > 100ms ");
  ASSERT_TRUE(pause.ok()) << pause.status();
  EXPECT_EQ(pause->kind, TriggerKind::kPause);
  EXPECT_EQ(pause->more_than_ns, 100'000'000u);
  EXPECT_EQ(pause->text, "pause > 100ms");
  const absl::StatusOr<Trigger> delay = ParseTrigger("suspend-delay>1.5s");
  ASSERT_TRUE(delay.ok()) << delay.status();
  EXPECT_EQ(delay->kind, TriggerKind::kSuspendDelay);
  EXPECT_EQ(delay->more_than_ns, 1'500'000'000u);
  const absl::StatusOr<Trigger> cpu = ParseTrigger("cpu>80% for 10s");
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_DOUBLE_EQ(cpu->more_than_rate, 0.8);
  EXPECT_EQ(cpu->for_ns, 10'000'000'000u);
  EXPECT_EQ(ParseTrigger("cpu>250%")->for_ns, 0u);
  const absl::StatusOr<Trigger> alloc = ParseTrigger("alloc > 500 MB/s for 20s");
  ASSERT_TRUE(alloc.ok()) << alloc.status();
  EXPECT_EQ(alloc->kind, TriggerKind::kAllocations);
  EXPECT_DOUBLE_EQ(alloc->more_than_rate, 5e8);
  EXPECT_EQ(alloc->for_ns, 20'000'000'000u);
  const absl::StatusOr<Trigger> wait = ParseTrigger("wait:monitor+task-wait > 250% for 20s");
  ASSERT_TRUE(wait.ok()) << wait.status();
  EXPECT_EQ(wait->kind, TriggerKind::kWaits);
  EXPECT_EQ(wait->waits, (std::vector<WaitKind>{WaitKind::kMonitor, WaitKind::kTaskWait}));
  EXPECT_DOUBLE_EQ(wait->more_than_rate, 2.5);
  EXPECT_EQ(wait->for_ns, 20'000'000'000u);
  EXPECT_DOUBLE_EQ(ParseTrigger("alloc>1.5GiB/s")->more_than_rate, 1.5 * 1024 * 1024 * 1024);
}

TEST(TriggerTest, RefusesTheRestWithAHint) {
  for (const char* text : {"",
                           "pause",
                           "pause<1ms",
                           "pause>",
                           "pause>1",
                           "pause>0ms",
                           "pause>-1ms",
                           "pause>nanms",
                           "pause>1e99s",
                           "pause>80%",
                           "pause>1ms for 10s",
                           "cpu>80",
                           "cpu>0%",
                           "cpu>inf%",
                           "cpu>80% for",
                           "cpu>80% for 10",
                           "cpu>80% for x",
                           "memory>1GiB",
                           ">1ms",
                           "alloc>",
                           "alloc>500MB",
                           "alloc>500",
                           "alloc>0MB/s",
                           "alloc>-1MB/s",
                           "alloc>infGB/s",
                           "alloc>1e300GB/s",
                           "alloc>80%",
                           "alloc>1MB/s for",
                           "wait>50%",
                           "wait:>50%",
                           "wait:running>50%",
                           "wait:monitor+>50%",
                           "wait:monitor>50ms",
                           "wait:monitor>0%"}) {
    const absl::StatusOr<Trigger> trigger = ParseTrigger(text);
    EXPECT_FALSE(trigger.ok()) << text;
    EXPECT_FALSE(HintOf(trigger.status()).empty()) << text;
  }
}

Window MakeWindow(uint64_t number, std::vector<double> cpus) {
  Window window;
  window.number = number;
  window.begin_unix_ns = number * 10'000'000'000;
  window.end_unix_ns = window.begin_unix_ns + 10'000'000'000;
  window.cpu.meta.duration_ns = 10'000'000'000;
  for (size_t i = 0; i < cpus.size(); ++i) {
    WindowProcess process;
    process.pid = static_cast<uint32_t>(i + 1);
    process.started_boot_ns = 1;
    process.comm = "p" + std::to_string(i + 1);
    process.cpu_ns[0] = static_cast<uint64_t>(cpus[i] * 1e10);
    window.processes.push_back(process);
  }
  return window;
}

TEST(TriggerWatchTest, TellsTheLongestPauseOfAWindow) {
  TriggerWatch watch(*ParseTrigger("pause>100ms"));
  Window window = MakeWindow(1, {0.1, 0.1});
  for (const uint64_t ms : {90, 120, 132, 110}) {
    WindowPause pause;
    pause.process = 1;
    pause.requested_unix_ns = 1'000 + ms;
    pause.pause_ns = ms * 1'000'000;
    pause.suspend_ns = 1'000'000;
    pause.kind = "blocking";
    pause.generation = 2;
    window.pauses.push_back(pause);
  }
  const std::optional<TriggerHit> hit = watch.Observe(window);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->begin_unix_ns, 1'132u);
  EXPECT_EQ(hit->end_unix_ns, 132'001'132u);
  EXPECT_EQ(hit->pid, 2u);
  EXPECT_EQ(hit->value, "a pause of 132.0 ms (gen2 blocking)");
  window.pauses.resize(1);
  EXPECT_FALSE(watch.Observe(window));
}

TEST(TriggerWatchTest, WaitsOfTheNamedKindsAddUp) {
  TriggerWatch watch(*ParseTrigger("wait:monitor+lock>150% for 20s"));
  const auto window = [](uint64_t number, double threads) {
    Window made = MakeWindow(number, {0.1, 0.1});
    made.processes[1].waits.by_kind[static_cast<size_t>(WaitKind::kMonitor)] = static_cast<uint64_t>(threads * 1e10);
    made.processes[1].waits.by_kind[static_cast<size_t>(WaitKind::kLock)] = 10'000'000'000;
    made.processes[1].waits.by_kind[static_cast<size_t>(WaitKind::kIdle)] = 900'000'000'000;
    return made;
  };
  EXPECT_FALSE(watch.Observe(window(1, 1)));
  const std::optional<TriggerHit> hit = watch.Observe(window(2, 1));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->pid, 2u);
  EXPECT_EQ(hit->value, "2.0 threads waited (monitor, lock)");
  EXPECT_FALSE(watch.Observe(window(3, 0.4))) << "what is idle does not count";
}

TEST(TriggerWatchTest, ADelayNamesItsCulprit) {
  TriggerWatch watch(*ParseTrigger("suspend-delay>20ms"));
  Window window = MakeWindow(1, {0.1});
  WindowPause pause;
  pause.pause_ns = 500'000'000;
  pause.suspend_ns = 19'000'000;
  pause.kind = "other";
  window.pauses.push_back(pause);
  EXPECT_FALSE(watch.Observe(window));
  window.pauses[0].suspend_ns = 25'000'000;
  window.pauses[0].culprits = {{"Shop.Spin", 7, 25'000'000, 3}};
  const std::optional<TriggerHit> hit = watch.Observe(window);
  ASSERT_TRUE(hit);
  EXPECT_NE(hit->value.find("delayed by Shop.Spin"), std::string::npos) << hit->value;
}

TEST(TriggerWatchTest, CpuMustLastAndIsAcceptedOnce) {
  TriggerWatch watch(*ParseTrigger("cpu>80% for 20s"));
  EXPECT_FALSE(watch.Observe(MakeWindow(1, {0.9, 0.1})));
  EXPECT_FALSE(watch.Observe(MakeWindow(2, {0.7, 0.1})));  // a window below: anew
  EXPECT_FALSE(watch.Observe(MakeWindow(3, {0.9, 0.1})));
  const std::optional<TriggerHit> hit = watch.Observe(MakeWindow(4, {0.95, 0.1}));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->pid, 1u);
  EXPECT_EQ(hit->value, "95% of a CPU");
  watch.Accept(*hit);
  EXPECT_FALSE(watch.Observe(MakeWindow(5, {0.95, 0.1})));  // goes on
  EXPECT_FALSE(watch.Observe(MakeWindow(6, {0.1, 1.5})));
  EXPECT_EQ(watch.Observe(MakeWindow(7, {0.1, 1.5}))->pid, 2u);
  EXPECT_FALSE(watch.Observe(MakeWindow(8, {0.9})));
  EXPECT_TRUE(watch.Observe(MakeWindow(9, {0.9})));  // again, after it was below
}

TEST(TriggerWatchTest, TheShortRestOfARunHasNoRates) {
  TriggerWatch watch(*ParseTrigger("cpu>80%"));
  Window window = MakeWindow(1, {0});
  window.processes[0].cpu_ns[0] = 52'000'000;  // one sample
  window.cpu.meta.duration_ns = 30'000'000;
  EXPECT_FALSE(watch.Observe(window));
  window.cpu.meta.duration_ns = Window::kShortestNs;
  EXPECT_FALSE(watch.Observe(window));
  window.processes[0].cpu_ns[0] = 900'000'000;
  EXPECT_TRUE(watch.Observe(window)) << "a window that was cut early";
}

TEST(TriggerWatchTest, AHitThatIsNotAcceptedIsToldAgainAndIsNotNew) {
  TriggerWatch watch(*ParseTrigger("cpu>80% for 20s"));
  EXPECT_FALSE(watch.Observe(MakeWindow(1, {0.9})));
  for (uint64_t number = 2; number < 10; ++number) {
    const std::optional<TriggerHit> hit = watch.Observe(MakeWindow(number, {0.9}));
    ASSERT_TRUE(hit) << number;
    EXPECT_EQ(hit->end_unix_ns, (number + 1) * 10'000'000'000);
    EXPECT_EQ(hit->is_new, number == 2) << number;
  }
  EXPECT_FALSE(watch.Observe(MakeWindow(10, {0.5})));
  EXPECT_FALSE(watch.Observe(MakeWindow(11, {0.9})));
  const std::optional<TriggerHit> later = watch.Observe(MakeWindow(12, {0.9}));
  ASSERT_TRUE(later);
  EXPECT_TRUE(later->is_new) << "it was below";
}

TEST(TriggerWatchTest, BothOfTwoProcessesAreToldTheWorseOneFirst) {
  TriggerWatch watch(*ParseTrigger("cpu>80%"));
  const std::optional<TriggerHit> first = watch.Observe(MakeWindow(1, {0.9, 1.5}));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->pid, 2u);
  watch.Accept(*first);
  const std::optional<TriggerHit> second = watch.Observe(MakeWindow(2, {0.9, 1.5}));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->pid, 1u);
  EXPECT_TRUE(second->is_new);
  watch.Accept(*second);
  EXPECT_FALSE(watch.Observe(MakeWindow(3, {0.9, 1.5})));
}

TEST(TriggerWatchTest, AllocationsAreOfAProcessAndAcceptedOnce) {
  TriggerWatch watch(*ParseTrigger("alloc>500MB/s"));
  Window window = MakeWindow(1, {0.5, 0.1});
  window.processes[0].allocated_bytes = 5'000'000'000;
  window.processes[1].allocated_bytes = 4'999'999'999;
  EXPECT_FALSE(watch.Observe(window)) << "not more";
  window = MakeWindow(2, {0.5, 0.1});
  window.processes[1].allocated_bytes = 6'543'000'000;
  const std::optional<TriggerHit> hit = watch.Observe(window);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->pid, 2u);
  EXPECT_EQ(hit->begin_unix_ns, window.end_unix_ns);
  EXPECT_EQ(hit->end_unix_ns, window.end_unix_ns);
  EXPECT_EQ(hit->value, "654.3 MB/s allocated");
  watch.Accept(*hit);
  window.number = 3;
  EXPECT_FALSE(watch.Observe(window)) << "it goes on";
}

}  // namespace
}  // namespace clrsampler
