#include "serve/window_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "unit/rounds.h"

namespace clrsampler {
namespace {

// Has always more to do, so that the writer looks for windows without a rest.
class BusyHistory : public History {
 public:
  absl::Status Append(const Window&) override {
    ++kept;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Maintain(uint64_t) override {
    ++maintained;
    return true;
  }
  absl::StatusOr<HistorySpan> Span() override { return HistorySpan(); }
  absl::StatusOr<ProfileModel> Profile(const HistorySelection&, ProfileView) override { return ProfileModel(); }
  absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection&, TimelineBy, size_t, size_t) override {
    return clrsampler::Timeline();
  }
  absl::StatusOr<HistoryLanes> Lanes(const HistorySelection&, const LaneQuestion&) override { return HistoryLanes(); }
  absl::StatusOr<HistoryPauses> Pauses(const HistorySelection&, size_t) override { return HistoryPauses(); }
  absl::StatusOr<HistoryMethods> Methods(const HistorySelection&, size_t) override { return HistoryMethods(); }
  absl::StatusOr<HistoryHealth> Health(uint64_t, uint64_t) override { return HistoryHealth(); }
  void EndQuestions() override {}

  std::atomic<int> kept = 0, maintained = 0;
};

SharedWindow Numbered(uint64_t number) {
  Window window;
  window.number = number;
  window.begin_unix_ns = number * 1'000'000'000;
  window.end_unix_ns = window.begin_unix_ns + 1'000'000'000;
  return std::make_shared<const Window>(std::move(window));
}

// A writer that asks whether this was the end only after its look fails in half of the runs.
TEST(WindowWriterTest, TheLastWindowBeforeTheEndIsKept) {
  const std::unique_ptr<Metrics> metrics = Metrics::Make({});
  const SharedWindow old = Numbered(1);
  for (int round = 0; round < Rounds(1000); ++round) {
    BusyHistory history;
    RecentWindows windows(2000);
    {
      WindowWriter writer(
          {.windows = &windows, .metrics = metrics.get(), .history = &history, .log = [](const auto&) {}});
      windows.Add(Numbered(2));
      while (history.maintained == 0) std::this_thread::yield();
      // Each look at these takes so long that the last window comes right behind one.
      for (int i = 0; i < 1000; ++i) windows.Add(old);
      windows.Add(Numbered(3));
      windows.Close();
    }
    ASSERT_EQ(history.kept, 2) << round;
  }
}

}  // namespace
}  // namespace clrsampler
