#include "output/html.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "output/html_page.h"
#include "output/profile_title.h"
#include "unit/output/inflated.h"

namespace clrsampler {
namespace {

using clrsampler::test_support::Inflated;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

OutputSink To(std::string& out) {
  return [&out](absl::string_view text) {
    out.append(text.data(), text.size());
    return absl::OkStatus();
  };
}

std::string Page(const ProfileModel& model) {
  std::string out;
  EXPECT_TRUE(HtmlWriter().Write(model, To(out)).ok());
  return out;
}

// The text that a browser finds in the page's data element.
std::string UnpackPage(absl::string_view page) {
  const absl::string_view mark = "id=\"profile\">";
  const size_t begin = page.find(mark) + mark.size();
  return Inflated(page.substr(begin, page.find('<', begin) - begin));
}

json Data(const ProfileModel& model) { return json::parse(UnpackPage(Page(model))); }

ThreadIndex Thread(ProfileModelBuilder& builder, uint32_t pid, uint32_t tid, absl::string_view name) {
  return builder.Thread({.pid = pid, .tid = tid, .comm = builder.String("app"), .name = builder.String(name)});
}

struct FrameText {
  absl::string_view name;
  ModelFrameKind kind = ModelFrameKind::kJit;
  absl::string_view tier = "";
};
NodeIndex Stack(ProfileModelBuilder& builder, const std::vector<FrameText>& frames) {
  NodeIndex node = kRootNode;
  for (const FrameText& frame : frames) {
    node = builder.Node(
        node,
        builder.Frame({.kind = frame.kind, .name = builder.String(frame.name), .tier = builder.String(frame.tier)}));
  }
  return node;
}

ProfileModel Built(ProfileModelBuilder& builder) {
  absl::StatusOr<ProfileModel> model = std::move(builder).Build();
  EXPECT_TRUE(model.ok());
  return *std::move(model);
}

// "main;Add 3 thread 7", one line a cell: the data read back without the program's tables.
std::vector<std::string> Lines(const json& data, absl::string_view weights = "weight") {
  std::vector<std::string> lines;
  int64_t node = -1;
  for (size_t i = 0; i < data["cells"]["step"].size(); ++i) {
    node += data["cells"]["step"][i].get<int64_t>();
    std::string stack;
    for (int64_t at = node; at >= 0; at -= data["nodes"]["up"][at].get<int64_t>()) {
      const int frame = data["nodes"]["frame"][at];
      const int name = data["frames"]["name"][frame];
      stack = data["strings"][name].get<std::string>() + (stack.empty() ? "" : ";") + stack;
    }
    const int thread = data["cells"]["thread"][i];
    lines.push_back(absl::StrCat(stack, " ", data["cells"][std::string(weights)][i].get<uint64_t>(), " thread ",
                                 data["threads"]["tid"][thread].get<uint32_t>()));
  }
  return lines;
}

TEST(HtmlTest, SumsTheSamplesOfEachStackAndThread) {
  ProfileModelBuilder builder;
  const ThreadIndex one = Thread(builder, 7, 7, "main"), two = Thread(builder, 7, 8, "worker");
  const NodeIndex main = Stack(builder, {{"main"}}), add = Stack(builder, {{"main"}, {"Add"}});
  for (uint64_t time = 0; time < 5; ++time) builder.Add({.time_ns = time, .thread = one, .stack = add});
  builder.Add({.thread = two, .stack = add, .weight = 4});
  builder.Add({.thread = one, .stack = main, .weight = 2});
  builder.Add({.thread = two, .stack = kRootNode, .weight = 3});
  const json data = Data(Built(builder));
  EXPECT_THAT(Lines(data), ElementsAre(" 3 thread 8", "main 2 thread 7", "main;Add 5 thread 7", "main;Add 4 thread 8"));
  EXPECT_EQ(data["version"], 1);
  EXPECT_EQ(data["about"]["title"], "app (7)");
  EXPECT_FALSE(data.contains("diff"));
}

// The text in an element of the page; "": no times.
absl::string_view TextOf(absl::string_view page, absl::string_view id) {
  const std::string mark = absl::StrCat("id=\"", id, "\">");
  const size_t begin = page.find(mark) + mark.size();
  return page.substr(begin, page.find('<', begin) - begin);
}

TEST(HtmlTest, TimesStandApartAndEventsGoAlong) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = Thread(builder, 7, 8, "worker"), process = Thread(builder, 7, 0, "");
  const NodeIndex stack =
      Stack(builder, {{"main", ModelFrameKind::kNative}, {"Add"}, {"[gc gen0]", ModelFrameKind::kRole}});
  builder.Add({.time_ns = 5, .thread = thread, .stack = stack});
  builder.Add({.thread = thread, .stack = stack, .weight = 4});
  const StringIndex gc = builder.String("gen0 GC"), why = builder.String("alloc"), method = builder.String("Shop.Add");
  builder.Event({1'000'000, 2'000'000, process, ModelEventKind::kPause, gc, why});
  builder.Event({4'000'000, 1'000'000, thread, ModelEventKind::kCompilation, method, why});
  const std::string page = Page(Built(builder));
  const json data = json::parse(UnpackPage(page));
  EXPECT_NE(TextOf(page, "times"), "");
  EXPECT_EQ(TextOf(page, "lanes"), "");  // those of the stacks are fine enough
  const json& times = data["times"];
  EXPECT_EQ(times["untimed"], 4);
  EXPECT_EQ(times["events"]["kind"], json({0, 2}));
  EXPECT_EQ(times["events"]["time_us"], json({1000, 3000}));
  EXPECT_EQ(times["events"]["duration_us"], json({2000, 1000}));
  EXPECT_EQ(data["strings"][times["events"]["name"][0].get<size_t>()], "gen0 GC");
  EXPECT_EQ(times["events"]["name"][1], 0);
  EXPECT_THAT(page, Not(HasSubstr("Shop.Add")));
  std::vector<std::string> lanes;
  for (const json& lane : data["frames"]["lane"]) lanes.push_back(times["lanes"][lane.get<size_t>() - 1]);
  EXPECT_THAT(lanes, ElementsAre("native", ".NET", "garbage collection"));
}

TEST(HtmlTest, WhatEndedAWaitIsInTheLaneOfTheWait) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = Thread(builder, 7, 8, "worker");
  const auto add = [&](const std::vector<FrameText>& frames) {
    builder.Add({.time_ns = 5, .thread = thread, .stack = Stack(builder, frames)});
  };
  const FrameText wait = {"[task wait]", ModelFrameKind::kMark}, waker = {"[woken by thread b]", ModelFrameKind::kMark};
  add({{"A"}, wait});
  add({{"A"}, wait, waker, {"Set"}, {"write", ModelFrameKind::kNative}});
  add({{"B"}});
  HtmlCells cells;
  ASSERT_TRUE(WriteHtmlData(
                  Built(builder), nullptr, [](absl::string_view) { return absl::OkStatus(); }, &cells)
                  .ok());
  EXPECT_EQ(cells.count, 3u);
  EXPECT_EQ(cells.lane_count, 2u) << "one that waits, and one that works";
}

TEST(HtmlTest, AProfileWithoutTimesHasNone) {
  ProfileModelBuilder builder;
  builder.Add({.thread = Thread(builder, 1, 1, "main"), .stack = Stack(builder, {{"A"}}), .weight = 3});
  const std::string page = Page(Built(builder));
  EXPECT_EQ(TextOf(page, "times"), "");
  const json data = json::parse(UnpackPage(page));
  EXPECT_FALSE(data.contains("times"));
  EXPECT_FALSE(data["frames"].contains("lane"));
}

TEST(HtmlTest, TiersOfOneMethodAreOneFrame) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = Thread(builder, 1, 1, "");
  builder.Add({.thread = thread, .stack = Stack(builder, {{"A", ModelFrameKind::kJit, "QuickJitted"}, {"B"}})});
  builder.Add({.thread = thread, .stack = Stack(builder, {{"A", ModelFrameKind::kJit, "OptimizedTier1"}, {"B"}})});
  builder.Add({.thread = thread, .stack = Stack(builder, {{"A", ModelFrameKind::kR2r}, {"B"}})});
  const json data = Data(Built(builder));
  EXPECT_THAT(Lines(data), ElementsAre("A;B 2 thread 1", "A;B 1 thread 1"));
  EXPECT_EQ(data["strings"][data["frames"]["tier"][0].get<size_t>()], "QuickJitted, OptimizedTier1");
}

// Total with a line of its own, two kinds of another one, and none.
ProfileModel Lined() {
  ProfileModelBuilder builder;
  const ThreadIndex thread = Thread(builder, 1, 1, "main");
  const StringIndex file = builder.String("/src/Cart.cs");
  const auto add = [&](uint32_t line, uint32_t column, LineKind kind, uint64_t weight) {
    const FrameIndex frame = builder.Frame({.kind = ModelFrameKind::kJit,
                                            .line_kind = kind,
                                            .name = builder.String("Total"),
                                            .source_file = file,
                                            .line = line,
                                            .column = column});
    builder.Add({.thread = thread, .stack = builder.Node(kRootNode, frame), .weight = weight});
  };
  add(57, 9, LineKind::kExact, 1);
  add(57, 13, LineKind::kExact, 2);
  add(58, 0, LineKind::kExact, 4);
  add(58, 0, LineKind::kOptimised, 8);
  add(0, 0, LineKind::kNone, 16);
  builder.Source(file, builder.String("https://example.org/Cart.cs"), "class Cart;");
  return Built(builder);
}

TEST(HtmlTest, LinesAreNodesOfOneFrame) {
  const json data = Data(Lined());
  EXPECT_EQ(data["frames"]["name"].size(), 1u);
  EXPECT_EQ(data["nodes"]["frame"], json({0, 0, 0, 0}));
  EXPECT_EQ(data["nodes"]["line"], json({1, 2, 3, 0}));
  EXPECT_EQ(data["lines"]["line"], json({57, 58, 58}));
  EXPECT_EQ(data["lines"]["kind"], json({1, 1, 2}));
  EXPECT_EQ(data["cells"]["weight"], json({3, 4, 8, 16}));
  const auto text = [&](const json& index) { return data["strings"][index.get<size_t>()]; };
  EXPECT_EQ(text(data["lines"]["file"][2]), "/src/Cart.cs");
  EXPECT_EQ(text(data["sources"]["file"][0]), "/src/Cart.cs");
  EXPECT_EQ(text(data["sources"]["url"][0]), "https://example.org/Cart.cs");
  EXPECT_EQ(data["sources"]["text"], json({"class Cart;"}));
}

TEST(HtmlTest, MachineCodeHasARowForEachInstruction) {
  ProfileModelBuilder builder;
  const NodeIndex stack = Stack(builder, {{"main"}, {"Total", ModelFrameKind::kJit, "OptimizedTier1"}});
  builder.Add({.thread = Thread(builder, 7, 7, "main"), .stack = stack});
  const StringIndex file = builder.String("/src/Cart.cs");
  ModelCode code{.frame = builder.model().nodes[stack].frame, .pid = 7, .address = 0x1000};
  code.bytes = "\x55\x48\x8b\xec\xc3";
  code.lines = {{1, file, 57, 0}, {4, 0, 0, 0}};
  code.self = {{1, 2}, {2, 3}};
  ModelCode idle = code;
  idle.self.clear();
  builder.Code(code);
  builder.Code(idle);
  const json data = Data(Built(builder));
  ASSERT_EQ(data["code"].size(), 1u);
  const json& body = data["code"][0];
  EXPECT_EQ(data["strings"][data["frames"]["name"][body["frame"].get<size_t>()].get<size_t>()], "Total");
  EXPECT_EQ(body["what"], "OptimizedTier1, x86-64, 5 bytes at 1000 in process 7");
  EXPECT_EQ(body["files"], json({"/src/Cart.cs"}));
  EXPECT_EQ(body["offset"], json({0, 1, 4}));
  EXPECT_EQ(body["text"], json({"push rbp", "mov rbp, rsp", "ret"}));
  EXPECT_EQ(body["file"], json({0, 1, 0}));
  EXPECT_EQ(body["line"], json({0, 57, 0}));
  EXPECT_EQ(body["self"], json({0, 5, 0}));
}

TEST(HtmlTest, AComparisonHasNoLines) {
  const ProfileModel before = Lined(), after = Lined();
  const ProfileDiff diff = *DiffProfiles(before, after, DiffBasis::kShare);
  std::string page;
  ASSERT_TRUE(WriteHtmlDiff(after, {before, diff}, To(page)).ok());
  const json data = json::parse(UnpackPage(page));
  EXPECT_EQ(data["nodes"]["frame"], json::array({0}));
  EXPECT_FALSE(data.contains("lines"));
  EXPECT_FALSE(data.contains("sources"));
  EXPECT_FALSE(data["nodes"].contains("line"));
}

TEST(HtmlTest, NamesAreInertAndUtf8) {
  ProfileModelBuilder builder;
  const std::string hostile = "</script><script>alert(1)</script>\"\\\n\xff\xc3";
  builder.Add({.thread = Thread(builder, 1, 1, hostile), .stack = Stack(builder, {{hostile}})});
  builder.meta().account_json = "{\"x\": 1}}, \"version\": 9";
  const std::string page = Page(Built(builder));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)")));
  const json data = json::parse(UnpackPage(page));
  EXPECT_EQ(data["version"], 1);
  EXPECT_EQ(data["account"], "{\"x\": 1}}, \"version\": 9");
  EXPECT_EQ(data["strings"][data["frames"]["name"][0].get<size_t>()],
            "</script><script>alert(1)</script>\"\\\n\uFFFD\uFFFD");
}

TEST(HtmlTest, ThePageAllowsNothingButItsOwnScriptAndStyle) {
  const absl::string_view page = HtmlPage();
  EXPECT_EQ(page.find("@PROFILE@"), page.rfind("@PROFILE@"));
  const absl::string_view mark = "http-equiv=\"Content-Security-Policy\" content=\"";
  const size_t begin = page.find(mark) + mark.size();
  const std::string policy(page.substr(begin, page.find('"', begin) - begin));
  EXPECT_THAT(absl::StrSplit(policy, "; "), ::testing::Contains("default-src 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
}

TEST(HtmlTest, AnEmptyProfileIsAPageAsWell) {
  ProfileModelBuilder builder;
  const json data = Data(Built(builder));
  EXPECT_THAT(Lines(data), ElementsAre());
  EXPECT_EQ(data["about"]["title"], "no samples");
}

TEST(HtmlTest, AComparisonHasBothWeightsOfEachStack) {
  ProfileModelBuilder before_builder, after_builder;
  const ThreadIndex before_thread = Thread(before_builder, 5, 6, "main");
  before_builder.Add({.thread = before_thread, .stack = Stack(before_builder, {{"gone"}}), .weight = 90});
  before_builder.Add({.thread = before_thread, .stack = Stack(before_builder, {{"main"}, {"Add"}}), .weight = 100});
  const ThreadIndex after_thread = Thread(after_builder, 7, 8, "main");
  after_builder.Add({.thread = after_thread, .stack = Stack(after_builder, {{"main"}, {"Add"}}), .weight = 200});
  after_builder.Add({.thread = after_thread, .stack = Stack(after_builder, {{"main"}, {"New"}}), .weight = 10});
  const ProfileModel before = Built(before_builder), after = Built(after_builder);
  std::string page;
  const absl::StatusOr<ProfileDiff> diff = DiffProfiles(before, after, DiffBasis::kShare);
  ASSERT_TRUE(diff.ok());
  ASSERT_TRUE(WriteHtmlDiff(after, {before, *diff}, To(page)).ok());
  const json data = json::parse(UnpackPage(page));
  EXPECT_THAT(Lines(data, "weight"), ElementsAre("main;Add 200 thread 0", "main;New 10 thread 0", "gone 0 thread 0"));
  EXPECT_THAT(Lines(data, "before"), ElementsAre("main;Add 100 thread 0", "main;New 0 thread 0", "gone 90 thread 0"));
  EXPECT_NEAR(data["diff"]["scale"].get<double>(), 210.0 / 190.0, 1e-9);
  EXPECT_EQ(data["diff"]["all"], 400);
  EXPECT_EQ(data["diff"]["tested"], true);
  EXPECT_EQ(data["frames"]["noise_self"].size(), data["frames"]["name"].size());
  EXPECT_EQ(data["frames"]["noise_total"].size(), data["frames"]["name"].size());
  // From 90 of 190 to none is told from chance.
  const double least = std::min_element(diff->methods.begin(), diff->methods.end(), [](const auto& a, const auto& b) {
                         return (a.self.significant ? a.self.errors : 1e9) < (b.self.significant ? b.self.errors : 1e9);
                       })->self.errors;
  ASSERT_GT(least, 2);
  EXPECT_NEAR(data["diff"]["self"].get<double>(), least, 0.01);
}

TEST(HtmlTest, LargeDataStreamsWhole) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = Thread(builder, 1, 1, "");
  uint64_t state = 1;
  for (int i = 0; i < 50'000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    builder.Add({.thread = thread, .stack = Stack(builder, {{absl::StrCat(absl::Hex(state))}})});
  }
  const json data = Data(Built(builder));
  EXPECT_EQ(data["frames"]["name"].size(), 50'000);
  EXPECT_EQ(Lines(data).size(), 50'000);
}

TEST(HtmlTest, ASinkThatFailsEndsTheWriting) {
  ProfileModelBuilder builder;
  const ProfileModel model = Built(builder);
  for (int good = 0; good < 3; ++good) {
    int left = good;
    const absl::Status status = HtmlWriter().Write(
        model, [&](absl::string_view) { return left-- > 0 ? absl::OkStatus() : absl::DataLossError("full"); });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  }
}

TEST(ProfileTitleTest, SaysWhatWasRecorded) {
  ProfileModelBuilder builder;
  builder.Add({.thread = builder.Thread({.pid = 4711, .comm = builder.String("Shop.Api")}), .weight = 5});
  builder.Add({.thread = builder.Thread({.pid = 4712, .comm = builder.String("other")})});
  ProfileModel model = Built(builder);
  EXPECT_EQ(ProfileTitle(model), "Shop.Api (4711) and 1 other");
  model.meta.whole_host = true;
  model.meta.host = "web-3";
  EXPECT_EQ(ProfileTitle(model), "web-3: 2 processes");
  model.meta.command = "dotnet run";
  EXPECT_EQ(ProfileTitle(model), "dotnet run");
  model.meta.command = std::string(119, 'x') + "\u00fc and more";
  EXPECT_EQ(ProfileTitle(model), std::string(119, 'x') + "\u2026");
}

}  // namespace
}  // namespace clrsampler
