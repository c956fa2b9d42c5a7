#include "output/nested_slices.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr SliceStep::Kind kBegin = SliceStep::Kind::kBegin, kEnd = SliceStep::Kind::kEnd,
                          kInstant = SliceStep::Kind::kInstant;

using Steps = std::vector<SliceStep>;
using Slices = std::vector<TimeSlice>;

TEST(NestSlicesTest, NothingNeedsNoTrack) { EXPECT_THAT(NestSlices({}), IsEmpty()); }

TEST(NestSlicesTest, ASliceInsideAnotherOneEndsFirst) {
  EXPECT_THAT(NestSlices(Slices{{20, 30}, {10, 40}}),
              ElementsAre(Steps{{kBegin, 1, 10}, {kBegin, 0, 20}, {kEnd, 0, 30}, {kEnd, 1, 40}}));
}

TEST(NestSlicesTest, OfTwoThatBeginTogetherTheLongerOneIsOutside) {
  EXPECT_THAT(NestSlices(Slices{{10, 20}, {10, 40}, {10, 20}}),
              ElementsAre(Steps{
                  {kBegin, 1, 10}, {kBegin, 0, 10}, {kBegin, 2, 10}, {kEnd, 2, 20}, {kEnd, 0, 20}, {kEnd, 1, 40}}));
}

TEST(NestSlicesTest, AnEndComesBeforeABeginningAtTheSameTime) {
  EXPECT_THAT(NestSlices(Slices{{10, 20}, {20, 30}}),
              ElementsAre(Steps{{kBegin, 0, 10}, {kEnd, 0, 20}, {kBegin, 1, 20}, {kEnd, 1, 30}}));
}

TEST(NestSlicesTest, OnesThatCrossAreOnTwoTracks) {
  EXPECT_THAT(NestSlices(Slices{{10, 30}, {20, 40}, {50, 60}}),
              ElementsAre(Steps{{kBegin, 0, 10}, {kEnd, 0, 30}, {kBegin, 2, 50}, {kEnd, 2, 60}},
                          Steps{{kBegin, 1, 20}, {kEnd, 1, 40}}));
}

TEST(NestSlicesTest, WhatHasNoDurationIsAnInstant) {
  EXPECT_THAT(NestSlices(Slices{{10, 30}, {20, 20}}),
              ElementsAre(Steps{{kBegin, 0, 10}, {kInstant, 1, 20}, {kEnd, 0, 30}}));
}

TEST(NestSlicesTest, TracksAreLimited) {
  Slices slices;
  for (uint64_t i = 0; i < 2 * kMaxSliceTracks; ++i) slices.push_back({i, 1000 + i});
  const std::vector<Steps> tracks = NestSlices(slices);
  ASSERT_THAT(tracks, SizeIs(kMaxSliceTracks));
  EXPECT_THAT(tracks[0], SizeIs(2 + kMaxSliceTracks)) << "instants stand for the others";
}

TEST(NestSlicesTest, RandomSlicesAreThereOnceAndNest) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Slices slices;
    for (size_t i = 0; i < 12; ++i) {
      const uint64_t begin_ns = random() % 50;
      slices.push_back({begin_ns, begin_ns + random() % 20});
    }
    std::map<size_t, uint64_t> durations;
    for (const Steps& steps : NestSlices(slices)) {
      std::vector<size_t> open;
      uint64_t last_ns = 0;
      for (const SliceStep& step : steps) {
        EXPECT_GE(step.time_ns, last_ns);
        last_ns = step.time_ns;
        if (step.kind == kEnd) {
          ASSERT_FALSE(open.empty());
          EXPECT_EQ(open.back(), step.slice);
          open.pop_back();
          durations[step.slice] += step.time_ns;
          continue;
        }
        EXPECT_EQ(durations.count(step.slice), 0u);
        EXPECT_EQ(step.time_ns, slices[step.slice].begin_ns);
        durations[step.slice] = step.kind == kBegin ? 0 - step.time_ns : 0;
        if (step.kind == kBegin) open.push_back(step.slice);
      }
      EXPECT_THAT(open, IsEmpty());
    }
    ASSERT_THAT(durations, SizeIs(slices.size()));
    for (const auto& [slice, ns] : durations) EXPECT_EQ(ns, slices[slice].end_ns - slices[slice].begin_ns);
  }
}

}  // namespace
}  // namespace clrsampler
