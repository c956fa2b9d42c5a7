#include "process/hung_places.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace clrsampler {
namespace {

bool Never(uint64_t) { return false; }
bool Always(uint64_t) { return true; }

TEST(HungPlacesTest, AFolderThatHungStandsForAllBelowItAndForNothingElse) {
  HungPlaces places;
  const MonotonicTime now{5 * kSecondNs};
  places.NoteHang(PlaceOf(1000, 7, "/mnt/share/app"), 1, now);
  EXPECT_FALSE(places.MayAsk(PlaceOf(1000, 7, "/mnt/share/app"), now, Never));
  EXPECT_FALSE(places.MayAsk(PlaceOf(1000, 7, "/mnt/share/lib/a.so"), now, Never));
  EXPECT_TRUE(places.MayAsk(PlaceOf(1000, 7, "/mnt/shared/app"), now, Never));
  EXPECT_TRUE(places.MayAsk(PlaceOf(1000, 7, "/mnt/app"), now, Never));
  EXPECT_TRUE(places.MayAsk("device 0:7", now, Never));
}

TEST(HungPlacesTest, AUserOrNamespaceTakesAFolderFromNobodyElse) {
  HungPlaces places;
  const MonotonicTime now{5 * kSecondNs};
  places.NoteHang(PlaceOf(1000, 7, "/tmp/app"), 1, now);
  EXPECT_TRUE(places.MayAsk(PlaceOf(0, 7, "/tmp/perf-1.map"), now, Never));
  EXPECT_TRUE(places.MayAsk(PlaceOf(1000, 8, "/tmp/perf-1.map"), now, Never));
  EXPECT_FALSE(places.MayAsk(PlaceOf(1000, 7, "/tmp/perf-1.map"), now, Never));
}

TEST(HungPlacesTest, IsAskedAgainAfterARestThatDoublesUpToAMinute) {
  HungPlaces places;
  MonotonicTime now{5 * kSecondNs};
  uint64_t rest = HungPlaces::kFirstRestNs;
  for (int i = 0; i < 10; ++i) {
    places.NoteHang("x:/a", 1, now);
    EXPECT_FALSE(places.MayAsk("x:/a", {now.ns + rest - 1}, Never));
    EXPECT_TRUE(places.MayAsk("x:/a", {now.ns + rest}, Never));
    now.ns += rest;
    rest = std::min(2 * rest, HungPlaces::kLongestRestNs);
  }
  places.NoteAnswer("x:/a");
  EXPECT_TRUE(places.MayAsk("x:/a", now, Always));
}

TEST(HungPlacesTest, IsNotAskedWhileTheLastWorkerStillWaitsThere) {
  HungPlaces places;
  places.NoteHang("x:/a", 3, {kSecondNs});
  EXPECT_FALSE(places.MayAsk("x:/a", {3600 * kSecondNs}, Always));
  EXPECT_TRUE(places.MayAsk("x:/a", {3600 * kSecondNs}, [](uint64_t worker) { return worker != 3; }));
}

TEST(HungPlacesTest, ManyHangsAtOnceCostLittleMoreThanAFew) {
  HungPlaces places;
  MonotonicTime now{5 * kSecondNs};
  uint64_t waited = 0;
  for (int i = 0; i < 20; ++i) {
    waited += places.PatienceNs(250 * kMillisecondNs, now);
    now.ns += 10 * kMillisecondNs;
    places.NoteHang(std::to_string(i), 1, now);
  }
  EXPECT_LT(waited, 800 * kMillisecondNs);
  EXPECT_EQ(places.PatienceNs(250 * kMillisecondNs, {now.ns + HungPlaces::kForgiveNs}), 250 * kMillisecondNs);
}

TEST(HungPlacesTest, WaitsForACpuHaveABudget) {
  HungPlaces places;
  MonotonicTime now{5 * kSecondNs};
  const uint64_t step = 20 * kMillisecondNs;
  uint64_t waited = 0;
  for (; places.TakeCpuWait(step, now) && waited <= 2 * HungPlaces::kMostCpuWaitNs; now.ns += step) waited += step;
  // Some comes back meanwhile.
  EXPECT_GE(waited, HungPlaces::kMostCpuWaitNs);
  EXPECT_LE(waited, HungPlaces::kMostCpuWaitNs * 11 / 10);
  EXPECT_FALSE(places.TakeCpuWait(step, now));
  now.ns += HungPlaces::kCpuWaitPart * step;
  EXPECT_TRUE(places.TakeCpuWait(step, now));
  EXPECT_FALSE(places.TakeCpuWait(step, now));
  now.ns += 3600 * kSecondNs;
  EXPECT_TRUE(places.TakeCpuWait(HungPlaces::kMostCpuWaitNs, now));
  EXPECT_FALSE(places.TakeCpuWait(step, now));
}

TEST(HungPlacesTest, IsBounded) {
  HungPlaces places;
  for (int i = 0; i < 5000; ++i) places.NoteHang(std::to_string(i), 1, {static_cast<uint64_t>(i) * kMillisecondNs});
  EXPECT_EQ(places.size(), HungPlaces::kMaxPlaces);
  EXPECT_FALSE(places.MayAsk("4999", {5000 * kMillisecondNs}, Never));
}

}  // namespace
}  // namespace clrsampler
