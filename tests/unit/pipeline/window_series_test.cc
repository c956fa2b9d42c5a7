#include "pipeline/window_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/profile/profile_model.h"
#include "os/clock.h"
#include "os/tape_answer.h"
#include "unit/pipeline/played_run.h"

namespace clrsampler {
namespace {

// A stream as a service would have seen it, in windows of 200 ms, at a wall clock that a test may set.
class WindowedRun {
 public:
  explicit WindowedRun(absl::string_view stream, bool allocations = false) : run_(stream) {
    run_.tape().ChangeAll("clock", [this](absl::string_view question, std::string answer) {
      TapeReader in(answer);
      if (question == "clock") now_ns_ = in.Get<uint64_t>();
      return answer;
    });
    run_.tape().ChangeAll("wall clock", [this](absl::string_view, std::string) {
      TapeWriter out;
      out.Put(uint64_t{1'700'000'000} * kSecondNs + now_ns_ + (now_ns_ >= step_at_ns_ ? step_ns_ : 0));
      return out.Take();
    });
    WindowOptions windows;
    windows.lengths.length_ns = 200 * kMillisecondNs;
    windows.allocations = allocations;
    windows.on_window = [this](Window window) { windows_.push_back(std::move(window)); };
    windows.limits.frequency_hz = run_.options.frequency_hz;
    run_.options.windows = std::move(windows);
  }

  PlayedRun& run() { return run_; }
  const std::vector<Window>& windows() const { return windows_; }
  void StepAt(uint64_t monotonic_ns, uint64_t by_ns) {
    step_at_ns_ = monotonic_ns;
    step_ns_ = by_ns;
  }

 private:
  PlayedRun run_;
  uint64_t now_ns_ = 0, step_at_ns_ = UINT64_MAX, step_ns_ = 0;
  std::vector<Window> windows_;
};

uint64_t SamplesOf(const Window& window) {
  uint64_t samples = 0;
  for (const WindowProcess& process : window.processes) samples += process.samples;
  return samples;
}

class WindowSeriesTest : public testing::TestWithParam<const char*> {};

TEST_P(WindowSeriesTest, EachSampleIsInOneWindowAndWindowsFollowEachOther) {
  PlayedRun whole(GetParam());
  ASSERT_TRUE(whole.Play().ok());
  WindowedRun run(GetParam());
  ASSERT_TRUE(run.run().Play().ok());
  ASSERT_GE(run.windows().size(), 3u);
  uint64_t samples = 0, taken = 0;
  for (size_t i = 0; i < run.windows().size(); ++i) {
    const Window& window = run.windows()[i];
    samples += SamplesOf(window);
    taken += window.account.samples_taken;
    EXPECT_EQ(SamplesOf(window), window.account.samples_written);
    EXPECT_EQ(window.clock_jump_ns, 0);
    if (i == 0) continue;
    EXPECT_EQ(window.number, run.windows()[i - 1].number + 1);
    EXPECT_EQ(window.begin_unix_ns, run.windows()[i - 1].end_unix_ns);
    EXPECT_GT(window.end_unix_ns, window.begin_unix_ns);
  }
  EXPECT_EQ(samples, whole.account().samples_written);
  EXPECT_EQ(taken, whole.account().samples_taken);
}

INSTANTIATE_TEST_SUITE_P(Streams, WindowSeriesTest, testing::Values("steady-10", "threads-end", "dies", "ring-losses"));

TEST(WindowSeriesStreamTest, PausesBelongToTheProcessThatHadThem) {
  WindowedRun run("collections");
  ASSERT_TRUE(run.run().Play().ok());
  uint64_t pauses = 0, collections = 0;
  for (const Window& window : run.windows()) {
    pauses += window.pauses.size();
    for (const WindowPause& pause : window.pauses) {
      ASSERT_LT(pause.process, window.processes.size());
      const WindowProcess& process = window.processes[pause.process];
      EXPECT_EQ(process.pid, run.run().options.pids.front());
      EXPECT_EQ(process.runtime, "10.0.14");
      EXPECT_TRUE(process.hooked);
      // Probes are there before sampling begins, so the first window has some of before it.
      if (window.number > 1) {
        EXPECT_GE(pause.requested_unix_ns + pause.pause_ns, window.begin_unix_ns);
      }
      EXPECT_LE(pause.requested_unix_ns, window.end_unix_ns);
    }
    for (const WindowProcess& process : window.processes) {
      for (const uint64_t generation : process.collections) collections += generation;
    }
  }
  EXPECT_EQ(pauses, 3358u);
  EXPECT_EQ(collections, 3358u);
}

TEST(WindowSeriesStreamTest, AWallClockThatIsSetBackIsSaidAndNothingIsLost) {
  PlayedRun whole("steady-10");
  ASSERT_TRUE(whole.Play().ok());
  const uint64_t middle = whole.recorder().began().ns + 500 * kMillisecondNs;
  WindowedRun run("steady-10");
  run.StepAt(middle, -3600 * kSecondNs);
  ASSERT_TRUE(run.run().Play().ok());
  uint64_t samples = 0, jumps = 0;
  for (const Window& window : run.windows()) {
    samples += SamplesOf(window);
    jumps += window.clock_jump_ns != 0;
    EXPECT_GT(window.end_unix_ns, window.begin_unix_ns);
  }
  EXPECT_EQ(samples, whole.account().samples_written);
  EXPECT_EQ(jumps, 1u);
}

TEST(WindowSeriesStreamTest, AProcessThatDiesHasExitedInOneWindow) {
  WindowedRun run("dies");
  ASSERT_TRUE(run.run().Play().ok());
  uint64_t samples_after = 0;
  bool exited = false;
  for (const Window& window : run.windows()) {
    for (const WindowProcess& process : window.processes) {
      if (exited) samples_after += process.samples;
      exited |= process.exited;
    }
  }
  EXPECT_EQ(samples_after, 0u);
  EXPECT_FALSE(run.windows().empty());
}

class ClockAt : public Clock {
 public:
  MonotonicTime Now() const override { return {5 * kSecondNs}; }
};

TEST(WindowSeriesLossTest, SamplesOfAWindowThatIsLostAreNotWritten) {
  FrameTable frames;
  Notices notices;
  const ClockAt clock;
  WindowSeries series({}, frames, nullptr, 0, notices, clock, [] { return 1'700'000'000 * kSecondNs; });
  series.Begin();
  const Process process(ProcessKey{7, 1}, TargetFiles("/nonexistent", 7));
  const FrameId frame = frames.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory, "Main", "", ""});
  const std::vector<FrameId> stack(kMaxModelStackFrames + 1, frame);  // more than a model takes
  wire_cpu_sample sample{};
  sample.tgid = sample.tid = 7;
  sample.header.time_ns = 5 * kSecondNs;
  ASSERT_TRUE(
      series.builder().Add({process, sample, stack, std::nullopt, 0, PausePhase::kNone, StackEnd::kComplete, 1'000}));
  Account account;
  account.samples_taken = 3;
  account.samples_set_aside = 2;
  account.samples_written = 1;
  const Window window = series.Close({6 * kSecondNs}, std::move(account), {19});
  EXPECT_EQ(window.account.lost.at("window"), 1u);
  EXPECT_EQ(window.account.samples_written, 0u);
  EXPECT_EQ(window.account.samples_set_aside, 2u);
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_EQ(notices.kept().front().kind, "window_lost");
}

// In some of the windows the probes are gone all the time.
TEST(WindowSeriesStreamTest, AllocatedBytesOfTheWindowsAddUpToThoseThatTheAccountHas) {
  WindowedRun run("allocations", /*allocations=*/true);
  ASSERT_TRUE(run.run().Play().ok());
  uint64_t told = 0, windows = 0, in_views = 0, estimated = 0, seen = 0;
  for (const Window& window : run.windows()) {
    for (const WindowProcess& process : window.processes) {
      told += process.allocated_bytes;
      windows += process.allocated_bytes > 0;
    }
    in_views += window.allocations.total_weight;
    estimated += window.account.allocations.at("estimated_bytes");
    seen += window.account.allocations.at("bytes");
  }
  EXPECT_GT(windows, 1u);
  EXPECT_GT(told, 2 * seen);
  EXPECT_NEAR(static_cast<double>(told), static_cast<double>(estimated), 10);
  EXPECT_EQ(in_views, told);
}

}  // namespace
}  // namespace clrsampler
