#include "output/firefox_profile.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/profile/gzip.h"
#include "unit/output/made_up_profile.h"
#include "unit/output/small_profile.h"

namespace clrsampler {
namespace {

using test_support::MadeUpProfile;
using test_support::SmallProfile;
using test_support::WeightsOfThreads;
using ::testing::ElementsAre;
using Json = nlohmann::json;

Json Written(const ProfileModel& model) {
  std::string bytes;
  const absl::Status written = FirefoxProfileWriter().Write(model, [&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  EXPECT_TRUE(written.ok()) << written;
  return Json::parse(*Gunzip(bytes, 64 << 20));
}

std::string Text(const Json& profile, const Json& index) {
  return profile["shared"]["stringArray"][index.get<size_t>()];
}

// Names from the outermost one, as a reader of the format follows its tables.
std::string Stack(const Json& profile, Json stack) {
  const Json& shared = profile["shared"];
  std::string text;
  for (; !stack.is_null(); stack = shared["stackTable"]["prefix"][stack.get<size_t>()]) {
    const size_t frame = shared["stackTable"]["frame"][stack.get<size_t>()];
    const size_t function = shared["frameTable"]["func"][frame];
    text = absl::StrCat(";", Text(profile, shared["funcTable"]["name"][function]), text);
  }
  return text;
}

TEST(FirefoxProfileTest, EveryColumnHasAsManyEntriesAsItsTable) {
  const Json profile = Written(MadeUpProfile({.lines = true}));
  std::vector<const Json*> tables;
  for (const auto& [name, table] : profile["shared"].items()) {
    if (name != "stringArray") tables.push_back(&table);
  }
  for (const Json& thread : profile["threads"]) {
    tables.push_back(&thread["samples"]);
    tables.push_back(&thread["markers"]);
  }
  for (const Json* table : tables) {
    for (const auto& [name, column] : table->items()) {
      if (!column.is_array()) continue;
      EXPECT_EQ(column.size(), (*table)["length"].get<size_t>()) << name;
    }
  }
}

TEST(FirefoxProfileTest, EachLaneHasItsThreadsStacksInTheOrderOfTheirTimes) {
  const ProfileModel model = MadeUpProfile();
  std::map<std::string, uint64_t> theirs;
  const Json profile = Written(model);
  for (const Json& thread : profile["threads"]) {
    const Json& samples = thread["samples"];
    double last = 0;
    for (size_t i = 0; i < samples["length"].get<size_t>(); ++i) {
      EXPECT_GE(samples["time"][i].get<double>(), last);
      last = samples["time"][i];
      theirs[absl::StrCat(thread["pid"].get<std::string>(), "/", thread["tid"].get<int>(),
                          Stack(profile, samples["stack"][i]))] += samples["weight"][i].get<uint64_t>();
    }
  }
  EXPECT_EQ(theirs, WeightsOfThreads(model));
}

TEST(FirefoxProfileTest, ThreadsAreBusyForWhatTheirSamplesStandFor) {
  const Json profile = Written(MadeUpProfile());
  for (const Json& delta : profile["threads"][0]["samples"]["threadCPUDelta"]) EXPECT_EQ(delta, 10101010);
}

struct FirefoxProfile : SmallProfile {
  Json Write() { return Written(Build()); }
};

TEST(FirefoxProfileTest, WhatConcernsTheProcessIsInTheLaneOfItsMainThread) {
  FirefoxProfile small;
  small.builder.Add(
      {.time_ns = 1'000'000, .thread = small.worker, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  small.builder.Add({.time_ns = 2'000'000, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  small.builder.Event({.time_ns = 1'500'000,
                       .duration_ns = 250'000,
                       .thread = small.whole,
                       .kind = ModelEventKind::kPause,
                       .name = small.builder.String("blocking gen2"),
                       .detail = small.builder.String("induced")});
  small.builder.Event({.time_ns = 500'000,
                       .duration_ns = 100'000,
                       .thread = small.worker,
                       .kind = ModelEventKind::kCompilation,
                       .name = small.builder.String("Shop.Cart.Total")});
  const Json profile = small.Write();
  ASSERT_EQ(profile["threads"].size(), 2u);
  const Json& main = profile["threads"][0];
  const Json& worker = profile["threads"][1];
  EXPECT_EQ(main["isMainThread"], true);
  EXPECT_EQ(main["name"], "web");
  EXPECT_EQ(worker["name"], "worker");
  EXPECT_EQ(main["markers"]["startTime"], Json({1.5}));
  EXPECT_EQ(main["markers"]["endTime"], Json({1.75}));
  EXPECT_EQ(Text(profile, main["markers"]["name"][0]), "pause");
  EXPECT_EQ(main["markers"]["data"][0], Json({{"type", "pause"}, {"what", "blocking gen2"}, {"detail", "induced"}}));
  EXPECT_EQ(worker["markers"]["data"][0]["what"], "Shop.Cart.Total");
}

TEST(FirefoxProfileTest, EachProcessHasOneMainThreadAndAPidOfItsOwn) {
  FirefoxProfile small;
  const StringIndex other = small.builder.String("other");
  const ThreadIndex nameless = small.builder.Thread({});
  for (const ThreadIndex thread : {small.whole, small.main, nameless, small.builder.Thread({.comm = other})}) {
    small.builder.Add({.time_ns = 1, .thread = thread, .stack = small.Stack({{ModelFrameKind::kJit, "A"}})});
  }
  const Json profile = small.Write();
  std::map<std::string, int> lanes, mains;
  for (const Json& thread : profile["threads"]) {
    ++lanes[thread["pid"]];
    mains[thread["pid"]] += thread["isMainThread"].get<bool>() ? 1 : 0;
  }
  ASSERT_EQ(lanes.size(), 3u);
  EXPECT_EQ(lanes["unknown-1"], 1);
  EXPECT_EQ(lanes["unknown-2"], 1);
  for (const auto& [pid, count] : mains) EXPECT_EQ(count, 1) << pid;
}

TEST(FirefoxProfileTest, AThreadWithEventsAloneHasALane) {
  FirefoxProfile small;
  small.builder.Event({.thread = small.whole, .kind = ModelEventKind::kCollection});
  const Json profile = small.Write();
  ASSERT_EQ(profile["threads"].size(), 1u);
  EXPECT_EQ(profile["threads"][0]["markers"]["phase"], Json::array({0})) << "it has no duration";
}

TEST(FirefoxProfileTest, SamplesWithoutATimeStandAtTheEnd) {
  FirefoxProfile small;
  small.builder.Add({.thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "late"}})});
  small.builder.Add(
      {.time_ns = 1'000'000, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "timed"}})});
  const Json profile = small.Write();
  const Json& samples = profile["threads"][0]["samples"];
  EXPECT_EQ(samples["time"], Json({1.0, 9.0}));
  EXPECT_EQ(Stack(profile, samples["stack"][1]), ";late");
}

TEST(FirefoxProfileTest, WaitsWeighTheirMilliseconds) {
  FirefoxProfile small;
  small.builder.meta().view = ProfileView::kOffCpu;
  small.builder.meta().unit = WeightUnit::kMicroseconds;
  small.builder.Add({.time_ns = 1,
                     .thread = small.main,
                     .stack = small.Stack({{ModelFrameKind::kMark, "[sleep]"}}),
                     .weight = 20'005});
  const Json profile = small.Write();
  const Json& samples = profile["threads"][0]["samples"];
  EXPECT_EQ(samples["weightType"], "tracing-ms");
  EXPECT_EQ(samples["weight"], Json({20.005}));
  EXPECT_FALSE(samples.contains("threadCPUDelta"));
}

// "name type what detail begin-end", in the order of the file; "-" where it is a moment.
std::vector<std::string> MarkerTexts(const Json& profile, const Json& lane) {
  std::vector<std::string> texts;
  const Json& markers = lane["markers"];
  for (size_t i = 0; i < markers["length"]; ++i) {
    const Json& data = markers["data"][i];
    const auto text = [&](const char* key) { return data[key].get<std::string>(); };
    texts.push_back(absl::StrCat(Text(profile, markers["name"][i]), "|", text("type"), "|", text("what"), "|",
                                 text("detail"), "|", markers["startTime"][i].dump(), "-",
                                 markers["endTime"][i].is_null() ? "" : markers["endTime"][i].dump()));
  }
  return texts;
}

TEST(FirefoxProfileTest, WaitsAreMarkersOfTheirKind) {
  FirefoxProfile small;
  small.builder.meta().view = ProfileView::kOffCpu;
  small.builder.meta().unit = WeightUnit::kMicroseconds;
  const auto wait = [&](uint64_t time_ns, uint64_t us, const std::string& mark) {
    small.builder.Add({.time_ns = time_ns,
                       .thread = small.worker,
                       .stack = small.Stack({{ModelFrameKind::kJit, "Shop.Stock.Reserve"},
                                             {ModelFrameKind::kKernel, "schedule"},
                                             {ModelFrameKind::kMark, mark},
                                             {ModelFrameKind::kMark, "[woken by thread b]"},
                                             {ModelFrameKind::kJit, "Shop.Stock.Release"}}),
                       .weight = us});
  };
  wait(3'000'000, 1000, "[idle]");
  wait(1'000'000, 1500, "[monitor]");
  wait(5'000'000, 2000, "[sleep]");
  wait(6'000'000, 500, "[sleep]");
  // A sum of short waits has no time.
  small.builder.Add({.thread = small.worker, .stack = small.Stack({{ModelFrameKind::kMark, "[sleep]"}}), .weight = 7});
  const Json profile = small.Write();
  EXPECT_THAT(MarkerTexts(profile, profile["threads"][0]),
              ElementsAre("monitor|wait|Shop.Stock.Reserve||1.0-2.5", "idle|wait|Shop.Stock.Reserve||3.0-4.0",
                          "sleep|wait|Shop.Stock.Reserve|stands for 2.00 ms|5.0-6.0",
                          "sleep|wait|Shop.Stock.Reserve||6.0-6.5"));
}

TEST(FirefoxProfileTest, AllocationsAndExceptionsAreMarkersWithTheirType) {
  for (const ProfileView view : {ProfileView::kAllocations, ProfileView::kExceptions}) {
    FirefoxProfile small;
    small.builder.meta().view = view;
    small.builder.Add(
        {.time_ns = 1'000'000,
         .thread = small.main,
         .stack = small.Stack({{ModelFrameKind::kJit, "Shop.Export"}, {ModelFrameKind::kType, "Shop.Line"}}),
         .weight = 24});
    small.builder.Add(
        {.time_ns = 2'000'000, .thread = small.main, .stack = small.Stack({{ModelFrameKind::kJit, "Shop.Export"}})});
    const Json profile = small.Write();
    if (view == ProfileView::kAllocations) {
      EXPECT_THAT(MarkerTexts(profile, profile["threads"][0]),
                  ElementsAre("allocation|allocation|Shop.Line|24 bytes|1.0-", "allocation|allocation||1 bytes|2.0-"));
    } else {
      EXPECT_THAT(MarkerTexts(profile, profile["threads"][0]),
                  ElementsAre("exception|exception|Shop.Line|24 times|1.0-", "exception|exception|||2.0-"));
    }
  }
}

TEST(FirefoxProfileTest, FramesSayWhatKindOfWorkTheyAre) {
  FirefoxProfile small;
  small.builder.Add({.thread = small.main,
                     .stack = small.Stack({{ModelFrameKind::kR2r, "Start"},
                                           {ModelFrameKind::kJit, "Work"},
                                           {ModelFrameKind::kNative, "memcpy"},
                                           {ModelFrameKind::kKernel, "schedule"},
                                           {ModelFrameKind::kRole, "[gc gen1 blocking]"},
                                           {ModelFrameKind::kRole, "[jit]"},
                                           {ModelFrameKind::kMark, "[truncated]"},
                                           {ModelFrameKind::kType, "System.String"},
                                           {ModelFrameKind::kMark, "[task wait]"}})});
  small.builder.Add({.thread = small.main, .stack = small.Stack({{ModelFrameKind::kMark, "[idle]"}})});
  const Json profile = small.Write();
  std::vector<std::string> words;
  for (const Json& category : profile["shared"]["frameTable"]["category"]) {
    words.push_back(category.is_null()
                        ? "of its caller"
                        : profile["meta"]["categories"][category.get<size_t>()]["name"].get<std::string>());
  }
  EXPECT_THAT(words, ElementsAre("precompiled .NET", ".NET", "native", "kernel", "garbage collection", "JIT compiler",
                                 "of its caller", "of its caller", "waiting", "idle"));
}

// A frame of the waker may be one of the thread that waits, too.
TEST(FirefoxProfileTest, WhatEndedAWaitIsOfTheWaitsKind) {
  FirefoxProfile small;
  small.builder.Add({.thread = small.main,
                     .stack = small.Stack({{ModelFrameKind::kJit, "Work"},
                                           {ModelFrameKind::kMark, "[task wait]"},
                                           {ModelFrameKind::kMark, "[woken by thread b]"},
                                           {ModelFrameKind::kJit, "Work"},
                                           {ModelFrameKind::kNative, "write"}})});
  const Json profile = small.Write();
  const Json& shared = profile["shared"];
  const Json& stack = profile["threads"][0]["samples"]["stack"][0];
  EXPECT_EQ(Stack(profile, stack), ";Work;[task wait];[woken by thread b];Work;write");
  std::vector<std::string> words;
  for (Json at = stack; !at.is_null(); at = shared["stackTable"]["prefix"][at.get<size_t>()]) {
    const Json& category =
        shared["frameTable"]["category"][shared["stackTable"]["frame"][at.get<size_t>()].get<size_t>()];
    words.push_back(category.is_null()
                        ? "of its caller"
                        : profile["meta"]["categories"][category.get<size_t>()]["name"].get<std::string>());
  }
  EXPECT_THAT(words, ElementsAre("of its caller", "of its caller", "of its caller", "waiting", ".NET"));
}

}  // namespace
}  // namespace clrsampler
