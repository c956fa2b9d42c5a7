#include "pipeline/rate_control.h"

#include <gtest/gtest.h>

#include <vector>

#include "os/clock.h"

namespace clrsampler {
namespace {

// Calls once a second.
class Host {
 public:
  explicit Host(const RateLimits& limits) : control_(limits) {}
  RateInputs inputs;
  double cpus = 0;
  uint32_t Second() {
    inputs.now.ns += kSecondNs;
    inputs.self_cpu_ns += static_cast<uint64_t>(cpus * 1e9);
    return control_.Next(inputs);
  }
  uint32_t Seconds(int seconds) {
    uint32_t hz = 0;
    for (int i = 0; i < seconds; ++i) hz = Second();
    return hz;
  }
  const RateControl& control() const { return control_; }

 private:
  RateControl control_;
};

TEST(RateControlTest, StaysAtItsRateWithoutTrouble) {
  Host host({.frequency_hz = 19, .cpus = 0.1, .memory_bytes = 300 << 20});
  host.cpus = 0.02;
  host.inputs.memory_bytes = 100 << 20;
  EXPECT_EQ(host.Seconds(600), 19u);
  EXPECT_EQ(host.control().reason(), ShedReason::kNone);
}

TEST(RateControlTest, GoesDownByStepsWhileTheRingOverflowsAndBackUpInCalm) {
  Host host({.frequency_hz = 19});
  EXPECT_EQ(host.Seconds(5), 19u);
  std::vector<uint32_t> rates;
  for (int i = 0; i < 10; ++i) {
    host.inputs.lost += 100;
    const uint32_t hz = host.Second();
    if (rates.empty() || rates.back() != hz) rates.push_back(hz);
  }
  EXPECT_EQ(rates, (std::vector<uint32_t>{9, 4, 2, 1}));
  EXPECT_EQ(host.control().reason(), ShedReason::kRing);
  EXPECT_EQ(host.Seconds(28), 1u);  // not at once
  rates.clear();
  for (int i = 0; i < 200; ++i) {
    const uint32_t hz = host.Second();
    if (rates.empty() || rates.back() != hz) rates.push_back(hz);
  }
  EXPECT_EQ(rates, (std::vector<uint32_t>{1, 2, 4, 8, 16, 19}));
  EXPECT_EQ(host.control().reason(), ShedReason::kNone);
}

TEST(RateControlTest, AFullRingAndABacklogCountBeforeAnythingIsLost) {
  Host ring({.frequency_hz = 100});
  ring.Second();
  ring.inputs.ring_fill = 0.6;
  ring.Seconds(3);
  EXPECT_LT(ring.Second(), 100u);
  Host backlog({.frequency_hz = 100});
  backlog.Second();
  backlog.inputs.queue_fill = 0.6;
  EXPECT_LT(backlog.Seconds(3), 100u);
  EXPECT_EQ(backlog.control().reason(), ShedReason::kBacklog);
}

TEST(RateControlTest, GoesDownWhileSamplesFindNoRoomToWait) {
  Host host({.frequency_hz = 19});
  EXPECT_EQ(host.Seconds(5), 19u);
  for (int i = 0; i < 3; ++i) {
    ++host.inputs.not_queued;
    host.Second();
  }
  EXPECT_LT(host.Second(), 19u);
  EXPECT_EQ(host.control().reason(), ShedReason::kBacklog);
}

TEST(RateControlTest, OneExpensiveSecondIsNoReason) {
  Host host({.frequency_hz = 19, .cpus = 0.25});
  host.cpus = 0.02;
  host.Seconds(20);
  host.cpus = 0.9;
  EXPECT_EQ(host.Second(), 19u);
  host.cpus = 0.02;
  EXPECT_EQ(host.Seconds(20), 19u);
  host.cpus = 0.5;
  EXPECT_LT(host.Seconds(10), 19u);
  EXPECT_EQ(host.control().reason(), ShedReason::kCpu);
}

TEST(RateControlTest, DoesNotSwingAtItsLimit) {
  // Half of the cost is fixed: at 19 Hz 30 %, at 9 Hz 22 %, at 4 Hz 18 %.
  Host host({.frequency_hz = 19, .cpus = 0.25});
  int changes = 0;
  uint32_t last = 19;
  for (int i = 0; i < 3600; ++i) {
    host.cpus = 0.15 + 0.15 * last / 19;
    const uint32_t hz = host.Second();
    changes += hz != last ? 1 : 0;
    last = hz;
  }
  EXPECT_EQ(last, 9u);
  EXPECT_LE(changes, 2);
}

TEST(RateControlTest, TooMuchMemoryForLongIsHelplessOnlyAtTheLowestRate) {
  Host host({.frequency_hz = 19, .memory_bytes = 100});
  host.inputs.memory_bytes = 150;
  EXPECT_EQ(host.Seconds(15), 1u);
  EXPECT_EQ(host.control().reason(), ShedReason::kMemory);
  EXPECT_FALSE(host.control().helpless());
  host.Seconds(60);
  EXPECT_TRUE(host.control().helpless());
  host.inputs.memory_bytes = 50;
  host.Second();
  EXPECT_FALSE(host.control().helpless());
}

}  // namespace
}  // namespace clrsampler
