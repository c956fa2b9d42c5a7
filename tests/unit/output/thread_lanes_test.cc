#include "output/thread_lanes.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;

struct Profile {
  ThreadIndex Thread(uint32_t pid, uint32_t tid) { return builder.Thread({.pid = pid, .tid = tid}); }
  void Sample(ThreadIndex thread, uint64_t time_ns) { builder.Add({.time_ns = time_ns, .thread = thread}); }
  void Event(ThreadIndex thread) { builder.Event({.time_ns = 1, .thread = thread}); }
  // Each lane as "PID/TID: times of samples, number of events".
  std::vector<std::string> Lanes() {
    const ProfileModel model = *std::move(builder).Build();
    const ThreadLanes lanes(model);
    std::vector<std::string> texts;
    for (const ThreadLane& lane : lanes.lanes()) {
      const ModelThread& thread = model.threads[lane.thread];
      texts.push_back(absl::StrCat(thread.pid, "/", thread.tid, ":"));
      for (const uint32_t row : lane.rows) absl::StrAppend(&texts.back(), " ", lanes.TimeOf(row));
      absl::StrAppend(&texts.back(), ", ", lane.events.size());
    }
    return texts;
  }
  ProfileModelBuilder builder;
};

TEST(ThreadLanesTest, TheMainThreadIsFirstAndTimesAscend) {
  Profile profile;
  profile.builder.meta().duration_ns = 900;
  const ThreadIndex worker = profile.Thread(10, 9), main = profile.Thread(10, 10), other = profile.Thread(7, 8);
  for (const uint64_t time_ns : {kNoTime, uint64_t{30}, uint64_t{20}}) profile.Sample(worker, time_ns);
  profile.Sample(main, 5);
  profile.Sample(other, 6);
  EXPECT_THAT(profile.Lanes(), ElementsAre("7/8: 6, 0", "10/10: 5, 0", "10/9: 20 30 900, 0"));
}

TEST(ThreadLanesTest, EventsOfTheProcessAreWithItsFirstThread) {
  Profile profile;
  const ThreadIndex whole = profile.Thread(10, 0), worker = profile.Thread(10, 12), main = profile.Thread(10, 10);
  profile.Event(whole);
  profile.Event(whole);
  profile.Event(worker);
  profile.Sample(worker, 3);
  profile.Sample(main, 4);
  EXPECT_THAT(profile.Lanes(), ElementsAre("10/10: 4, 2", "10/12: 3, 1"));
}

TEST(ThreadLanesTest, AThreadThatHasEventsUnderAnotherNameHasOneLane) {
  Profile profile;
  const ThreadIndex sampled = profile.Thread(10, 12);
  const ThreadIndex named = profile.builder.Thread({.pid = 10, .tid = 12, .name = profile.builder.String("worker")});
  profile.Sample(sampled, 3);
  profile.Event(named);
  profile.Event(profile.Thread(11, 0));
  EXPECT_THAT(profile.Lanes(), ElementsAre("10/12: 3, 1", "11/0:, 1"));
}

TEST(ThreadLanesTest, WhatConcernsAllThreadsIsBehindTheMainThread) {
  Profile profile;
  const ThreadIndex whole = profile.Thread(10, 0), main = profile.Thread(10, 10);
  profile.Sample(whole, 2);
  profile.Event(whole);
  profile.Sample(main, 4);
  EXPECT_THAT(profile.Lanes(), ElementsAre("10/10: 4, 1", "10/0: 2, 0"));
}

TEST(ThreadLanesTest, OneLaneLeadsItsProcess) {
  ProfileModelBuilder builder;
  const StringIndex env = builder.String("env"), sh = builder.String("sh");
  for (const ModelThread& thread :
       {ModelThread{.pid = 10, .tid = 0}, ModelThread{.pid = 10, .tid = 10, .comm = env},
        ModelThread{.pid = 10, .tid = 10, .comm = sh}, ModelThread{.comm = env}, ModelThread{.comm = sh}}) {
    builder.Add({.thread = builder.Thread(thread)});
  }
  const ProfileModel model = *std::move(builder).Build();
  std::vector<std::string> leads;
  const ThreadLanes lanes(model);
  for (const ThreadLane& lane : lanes.lanes()) {
    const ModelThread& thread = model.threads[lane.thread];
    if (lane.leads) leads.push_back(absl::StrCat(thread.pid, " ", model.text(thread.comm)));
  }
  EXPECT_THAT(leads, ElementsAre("0 env", "0 sh", "10 env"));
}

}  // namespace
}  // namespace clrsampler
