#include "output/perfetto.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "unit/output/made_up_profile.h"
#include "unit/output/read_perfetto.h"
#include "unit/output/small_profile.h"

namespace clrsampler {
namespace {

using test_support::MadeUpProfile;
using test_support::PerfettoEvent;
using test_support::PerfettoFrame;
using test_support::PerfettoSample;
using test_support::PerfettoTrace;
using test_support::PerfettoTrack;
using test_support::SmallProfile;
using test_support::WeightsOfThreads;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

struct PerfettoProfile : SmallProfile {
  PerfettoProfile() { builder.meta().start_monotonic_ns = 1'000'000'000; }
  void Wait(uint64_t time_ns, const std::string& kind, uint64_t weight) {
    builder.Add({.time_ns = time_ns,
                 .thread = worker,
                 .stack = Stack({{ModelFrameKind::kJit, "A"}, {ModelFrameKind::kMark, kind}}),
                 .weight = weight});
  }
  PerfettoTrace Write() { return PerfettoTrace(Build()); }
};

std::string Names(const std::vector<PerfettoFrame>& stack) {
  std::string text;
  for (const PerfettoFrame& frame : stack) absl::StrAppend(&text, ";", frame.name);
  return text;
}

TEST(PerfettoTest, EachThreadHasItsStacksWithTheirWeights) {
  const ProfileModel model = MadeUpProfile({.lines = true, .events = 40});
  std::map<std::string, uint64_t> theirs;
  const PerfettoTrace trace(model);
  for (const PerfettoSample& sample : trace.samples) {
    theirs[absl::StrCat(sample.pid, "/", sample.tid, Names(sample.stack))] += sample.weight;
    EXPECT_THAT(sample.followers, ElementsAre(sample.weight * model.meta.period_ns));
  }
  EXPECT_EQ(theirs, WeightsOfThreads(model, ";[no stack]"));
}

TEST(PerfettoTest, OnlyTheFirstPacketClearsTheState) {
  const PerfettoTrace trace(MadeUpProfile());
  ASSERT_GT(trace.flags.size(), 1000u);
  EXPECT_EQ(trace.flags[0], perfetto::kStateCleared);
  for (size_t i = 1; i < trace.flags.size(); ++i) EXPECT_EQ(trace.flags[i], perfetto::kNeedsState);
}

TEST(PerfettoTest, TimesAreThoseOfTheMonotonicClock) {
  const ProfileModel model = MadeUpProfile();
  const PerfettoTrace trace(model);
  EXPECT_EQ(trace.primary_clock, 3u);
  EXPECT_EQ(trace.default_clock, 3u);
  EXPECT_THAT(trace.clocks, ElementsAre(Pair(1, model.meta.start_unix_ns), Pair(3, model.meta.start_monotonic_ns)));
  std::multimap<uint64_t, uint64_t> ours, theirs;  // time, thread
  for (size_t row = 0; row < model.samples.size(); ++row) {
    ours.emplace(4'000'000'000 + model.samples.time_of(row), model.threads[model.samples.thread[row]].tid);
  }
  for (const PerfettoSample& sample : trace.samples) theirs.emplace(sample.time_ns, sample.tid);
  EXPECT_EQ(theirs, ours);
}

TEST(PerfettoTest, WithoutThatClockTimesAreWallClockTimes) {
  PerfettoProfile small;
  small.builder.meta().start_monotonic_ns = 0;
  small.builder.meta().start_unix_ns = 1'700'000'000'000'000'000;
  small.builder.Add({.time_ns = 5, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  const PerfettoTrace trace = small.Write();
  EXPECT_EQ(trace.primary_clock, 1u);
  EXPECT_THAT(trace.clocks, ElementsAre(Pair(1, 1'700'000'000'000'000'000)));
  EXPECT_EQ(trace.samples.at(0).time_ns, 1'700'000'000'000'000'005u);
}

TEST(PerfettoTest, WithoutAnyClockTimesAreThoseOfTheFile) {
  PerfettoProfile small;
  small.builder.meta().start_monotonic_ns = 0;
  small.builder.Add({.time_ns = 5, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  const PerfettoTrace trace = small.Write();
  EXPECT_EQ(trace.primary_clock, 11u);
  EXPECT_EQ(trace.samples.at(0).time_ns, 5u);
}

TEST(PerfettoTest, SamplesWithoutATimeStandAtTheEnd) {
  PerfettoProfile small;
  small.builder.Add({.thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "late"}}), .weight = 7});
  small.builder.Add(
      {.time_ns = 1'000'000, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "timed"}})});
  const PerfettoTrace trace = small.Write();
  ASSERT_THAT(trace.samples, SizeIs(2));
  EXPECT_EQ(Names(trace.samples[0].stack), ";timed");
  EXPECT_EQ(trace.samples[1].time_ns, 1'009'000'000u);
  EXPECT_EQ(trace.samples[1].weight, 7u);
}

TEST(PerfettoTest, TimesBeyondWhatTheFormatHoldsStandAtItsEnd) {
  PerfettoProfile small;
  small.builder.Add(
      {.time_ns = kNoTime - 1, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  EXPECT_EQ(small.Write().samples.at(0).time_ns, uint64_t{INT64_MAX});
}

TEST(PerfettoTest, AStackWithoutFramesSaysSo) {
  PerfettoProfile small;
  small.builder.Add({.time_ns = 5, .thread = small.main});
  EXPECT_EQ(Names(small.Write().samples.at(0).stack), ";[no stack]");
}

TEST(PerfettoTest, TracksHaveTheNamesOfProcessesAndThreads) {
  PerfettoProfile small;
  const ThreadIndex boxed = small.builder.Thread({.pid = 20,
                                                  .tid = 21,
                                                  .comm = small.builder.String("api"),
                                                  .container_id = small.builder.String("0123456789abcdef")});
  for (const ThreadIndex thread : {small.worker, boxed}) {
    small.builder.Add({.time_ns = 5, .thread = thread, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  }
  std::vector<std::string> texts;
  const PerfettoTrace trace = small.Write();
  for (const auto& [number, track] : trace.tracks) {
    texts.push_back(absl::StrCat(track.pid, "/", track.tid, " ", track.process, track.thread, " ", track.label));
  }
  EXPECT_THAT(texts, ElementsAre("10/0 web ", "10/12 worker ", "20/0 api container 0123456789abcdef", "20/21 api "));
}

TEST(PerfettoTest, ProcessesOfUnknownNumbersAreApart) {
  PerfettoProfile small;
  for (const char* comm : {"one", "two", "one"}) {
    small.builder.Add({.time_ns = 5,
                       .thread = small.builder.Thread({.comm = small.builder.String(comm)}),
                       .stack = small.Stack({{ModelFrameKind::kJit, comm}})});
  }
  const PerfettoTrace trace = small.Write();
  std::map<int32_t, std::string> names;
  for (const auto& [number, track] : trace.tracks) names[track.pid] = track.process;
  EXPECT_THAT(names, ElementsAre(Pair(1, "one"), Pair(2, "two")));
  for (const PerfettoSample& sample : trace.samples) {
    EXPECT_EQ(";" + names[static_cast<int32_t>(sample.pid)], Names(sample.stack));
    EXPECT_EQ(sample.tid, 0u);
  }
}

TEST(PerfettoTest, PausesAreOfTheProcessAndCompilationsOfTheirThread) {
  PerfettoProfile small;
  small.builder.Event({.time_ns = 1'500'000,
                       .duration_ns = 250'000,
                       .thread = small.whole,
                       .kind = ModelEventKind::kPause,
                       .name = small.builder.String("blocking gen2"),
                       .detail = small.builder.String("induced")});
  small.builder.Event({.time_ns = 1'700'000, .thread = small.whole, .kind = ModelEventKind::kCollection});
  small.builder.Event({.time_ns = 500'000,
                       .duration_ns = 100'000,
                       .thread = small.worker,
                       .kind = ModelEventKind::kCompilation,
                       .name = small.builder.String("Shop.Cart.Total"),
                       .detail = small.builder.String("OptimizedTier1")});
  const PerfettoTrace trace = small.Write();
  std::vector<std::string> texts;
  for (const PerfettoEvent& event : trace.events) {
    const PerfettoTrack& track = trace.tracks.at(event.track);
    const PerfettoTrack& place = track.parent == 0 ? track : trace.tracks.at(track.parent);
    texts.push_back(absl::StrCat(place.pid, "/", place.tid, " ", track.name, " ", event.time_ns, " ", event.type, " ",
                                 event.category, " ", event.name));
    for (const auto& [key, value] : event.annotations) absl::StrAppend(&texts.back(), " ", key, "=", value);
  }
  EXPECT_THAT(texts,
              ::testing::UnorderedElementsAre(
                  "10/0 pauses and collections 1001500000 1 pause blocking gen2 reason=induced",
                  "10/0 pauses and collections 1001700000 3 collection ", "10/0 pauses and collections 1001750000 2  ",
                  "10/12  1000500000 1 compilation Shop.Cart.Total tier=OptimizedTier1", "10/12  1000600000 2  "));
}

TEST(PerfettoTest, WaitsAreSlicesOfTheirKind) {
  PerfettoProfile small;
  small.builder.meta().view = ProfileView::kOffCpu;
  small.builder.meta().unit = WeightUnit::kMicroseconds;
  small.Wait(1'000'000, "[sleep]", 2000);
  small.Wait(3'000'000, "[task wait]", 5000);
  small.Wait(4'000'000, "[waits shorter than 1ms]", 9);
  const PerfettoTrace trace = small.Write();
  EXPECT_THAT(trace.counters, ElementsAre("off-cpu/us"));
  EXPECT_EQ(trace.samples.at(0).weight, 2000u);
  EXPECT_THAT(trace.samples.at(0).followers, IsEmpty());
  std::vector<std::string> texts;
  for (const PerfettoEvent& event : trace.events) {
    EXPECT_EQ(trace.tracks.at(event.track).name, "waits");
    texts.push_back(absl::StrCat(event.time_ns, " ", event.type, " ", event.name, " ", event.frames));
    for (const auto& [key, value] : event.annotations) absl::StrAppend(&texts.back(), " ", key, "=", value);
  }
  EXPECT_THAT(texts, ElementsAre("1001000000 1 sleep 2", "1003000000 2  0",
                                 "1003000000 1 task wait 2 stands_for_ns=5000000", "1004000000 2  0"))
      << "the second one would reach beyond the thread's next sample";
}

TEST(PerfettoTest, FramesSayWhatTheyAre) {
  PerfettoProfile small;
  const FrameIndex native = small.builder.Frame({.kind = ModelFrameKind::kNative,
                                                 .name = small.builder.String("memcpy"),
                                                 .module = small.builder.String("libc.so.6"),
                                                 .module_path = small.builder.String("/lib/libc.so.6"),
                                                 .build_id = small.builder.String("c0ffee00"),
                                                 .address = 0x1230});
  const FrameIndex jit = small.builder.Frame({.kind = ModelFrameKind::kJit,
                                              .name = small.builder.String("Shop.Total"),
                                              .module = small.builder.String("Shop")});
  const FrameIndex line = small.builder.Frame({.kind = ModelFrameKind::kJit,
                                               .line_kind = LineKind::kExact,
                                               .name = small.builder.String("Shop.Add"),
                                               .module = small.builder.String("Shop"),
                                               .source_file = small.builder.String("/src/Shop.cs"),
                                               .line = 57});
  const FrameIndex wrong = small.builder.Frame({.kind = ModelFrameKind::kNative,
                                                .name = small.builder.String("f"),
                                                .module = small.builder.String("x.so"),
                                                .build_id = small.builder.String("no build id")});
  small.builder.Add({.thread = small.main, .stack = small.builder.Stack(std::vector{jit, line, native, wrong})});
  const PerfettoTrace trace = small.Write();
  std::vector<std::string> texts;
  for (const PerfettoFrame& frame : trace.samples.at(0).stack) {
    texts.push_back(absl::StrCat(frame.name, " ", frame.kind, " ", frame.has_mapping ? frame.mapping : "-", " ",
                                 frame.place, " ", frame.build_id.size(), " ", frame.source, ":", frame.line));
  }
  EXPECT_THAT(texts, ElementsAre("Shop.Total 4 [jit] Shop 0 0 :0", "Shop.Add 4 - 0 0 /src/Shop.cs:57",
                                 "memcpy 1 /lib/libc.so.6 4656 4 :0", "f 1 x.so 0 0 :0"));
  EXPECT_EQ(trace.samples[0].stack[2].build_id, std::string("\xC0\xFF\xEE\x00", 4));
}

TEST(PerfettoTest, WordsOfOtherKindsAreOurs) {
  PerfettoProfile small;
  small.builder.Add({.thread = small.main,
                     .stack = small.Stack({{ModelFrameKind::kR2r, "Start"},
                                           {ModelFrameKind::kKernel, "schedule"},
                                           {ModelFrameKind::kRole, "[gc gen1 blocking]"},
                                           {ModelFrameKind::kRole, "[jit]"},
                                           {ModelFrameKind::kMark, "[idle]"},
                                           {ModelFrameKind::kMark, "[truncated]"},
                                           {ModelFrameKind::kUnknown, "f"}})});
  std::vector<std::string> texts;
  const PerfettoTrace trace = small.Write();
  for (const PerfettoFrame& frame : trace.samples.at(0).stack) {
    texts.push_back(absl::StrCat(frame.kind, frame.kind_text));
  }
  EXPECT_THAT(texts, ElementsAre("0precompiled .NET", "2", "5", "0JIT compiler", "0idle", "0mark", "0"));
}

TEST(PerfettoTest, TheTraceSaysWhatItIs) {
  const PerfettoTrace trace(MadeUpProfile());
  EXPECT_THAT(trace.attributes,
              ElementsAre(Pair("command", "dotnet Shop.dll --fast"), Pair("creator", "clrsampler 0.1.0"),
                          Pair("duration_ns", "12500000000"), Pair("host", "build7"), Pair("period_ns", "10101010"),
                          Pair("unit", "samples"), Pair("view", "cpu")));
  EXPECT_THAT(trace.counters, ElementsAre("samples/9", "CPU time/1"));
}

}  // namespace
}  // namespace clrsampler
