#include "formats/profile/profile_model.h"

#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FrameIndex Named(ProfileModelBuilder& builder, absl::string_view name) {
  ModelFrame frame;
  frame.name = builder.String(name);
  return builder.Frame(frame);
}

TEST(ProfileModelTest, StacksShareTheirRoots) {
  ProfileModelBuilder builder;
  const FrameIndex main = Named(builder, "Main"), work = Named(builder, "Work"), rest = Named(builder, "Rest");
  const NodeIndex worked = builder.Stack(std::vector<FrameIndex>{main, work});
  const NodeIndex rested = builder.Stack(std::vector<FrameIndex>{main, rest});
  EXPECT_EQ(worked, builder.Node(builder.Node(kRootNode, main), work));
  const ProfileModel model = *std::move(builder).Build();
  EXPECT_EQ(model.nodes.size(), 4u);  // the root, Main, Work, Rest
  EXPECT_EQ(model.nodes[worked].parent, model.nodes[rested].parent);
  EXPECT_EQ(model.text(model.frame_of(rested).name), "Rest");
}

TEST(ProfileModelTest, EqualTextsFramesAndThreadsAreOne) {
  ProfileModelBuilder builder;
  EXPECT_EQ(builder.String(""), 0u);
  EXPECT_EQ(builder.String("Main"), builder.String("Main"));
  EXPECT_EQ(Named(builder, "Main"), Named(builder, "Main"));
  ModelFrame jitted;
  jitted.name = builder.String("Main");
  jitted.kind = ModelFrameKind::kJit;
  EXPECT_NE(builder.Frame(jitted), Named(builder, "Main"));
  ModelThread thread;
  thread.pid = 1;
  EXPECT_EQ(builder.Thread(thread), builder.Thread(thread));
  thread.tid = 2;
  EXPECT_EQ(builder.Thread(thread), 1u);
}

TEST(ProfileModelTest, AMethodHasOneFrameForEachOfItsLines) {
  ProfileModelBuilder builder;
  ModelFrame frame;
  frame.name = builder.String("Total");
  frame.source_file = builder.String("/src/Cart.cs");
  std::vector<FrameIndex> frames = {builder.Frame(frame)};
  for (const auto& [line, column, kind] :
       {std::tuple{57u, 0u, LineKind::kExact}, std::tuple{58u, 0u, LineKind::kExact},
        std::tuple{58u, 9u, LineKind::kExact}, std::tuple{58u, 9u, LineKind::kOptimised}}) {
    frame.line = line;
    frame.column = column;
    frame.line_kind = kind;
    frames.push_back(builder.Frame(frame));
    EXPECT_EQ(builder.Frame(frame), frames.back());
  }
  EXPECT_THAT(frames, ElementsAre(0, 1, 2, 3, 4));
}

TEST(ProfileModelTest, WhatIsSaidOfASourceAddsUpAndTheFirstWordCounts) {
  ProfileModelBuilder builder;
  const StringIndex cart = builder.String("/src/Cart.cs"), shop = builder.String("/src/Shop.cs");
  const StringIndex url = builder.String("https://example.org/Cart.cs");
  EXPECT_TRUE(builder.Source(cart, 0, "class Cart;"));
  EXPECT_TRUE(builder.Source(shop, 0, ""));
  EXPECT_TRUE(builder.Source(cart, url, "class Other;"));
  EXPECT_TRUE(builder.Source(0, url, ""));  // of no file
  const ProfileModel model = *std::move(builder).Build();
  EXPECT_THAT(model.sources, ElementsAre(ModelSource{cart, url, "class Cart;"}, ModelSource{shop, 0, ""}));
}

TEST(ProfileModelTest, ATextThatIsTooLargeIsLeftOutAndItsFileStays) {
  ProfileModelBuilder builder;
  EXPECT_FALSE(builder.Source(builder.String("huge.cs"), 0, std::string(kMaxSourceTextBytes + 1, 'a')));
  const std::string largest(kMaxSourceTextBytes, 'a');
  for (size_t i = 0; i < kMaxSourceTextsBytes / kMaxSourceTextBytes; ++i) {
    EXPECT_TRUE(builder.Source(builder.String(absl::StrCat(i, ".cs")), 0, largest));
  }
  EXPECT_FALSE(builder.Source(builder.String("one_more.cs"), 0, "x"));
  const ProfileModel model = *std::move(builder).Build();
  EXPECT_EQ(model.sources.size(), 2 + kMaxSourceTextsBytes / kMaxSourceTextBytes);
  EXPECT_EQ(model.sources.front().text, "");
  EXPECT_EQ(model.sources.back().text, "");
}

TEST(ProfileModelTest, AColumnIsThereFromTheFirstRowThatNeedsIt) {
  ProfileModelBuilder builder;
  const ThreadIndex thread = builder.Thread({});
  builder.Add({.thread = thread});
  EXPECT_THAT(builder.model().samples.time_ns, IsEmpty());
  EXPECT_THAT(builder.model().samples.weight, IsEmpty());
  builder.Add({.time_ns = 7, .thread = thread, .state = SampleState::kPaused, .weight = 3});
  builder.Add({.thread = thread});
  builder.Add({.thread = thread, .weight = 0});
  const ProfileModel model = *std::move(builder).Build();
  EXPECT_THAT(model.samples.time_ns, ElementsAre(kNoTime, 7, kNoTime));
  EXPECT_THAT(model.samples.state, ElementsAre(SampleState::kNone, SampleState::kPaused, SampleState::kNone));
  EXPECT_THAT(model.samples.weight, ElementsAre(1, 3, 1));
  EXPECT_EQ(model.total_weight, 5u);
}

TEST(ProfileModelTest, WeightsOfCallersHoldThoseOfWhatTheyCall) {
  ProfileModelBuilder builder;
  const FrameIndex main = Named(builder, "Main"), work = Named(builder, "Work");
  const NodeIndex outer = builder.Node(kRootNode, main), inner = builder.Node(outer, work);
  builder.Add({.stack = inner, .weight = 5});
  builder.Add({.stack = outer, .weight = 2});
  builder.Add({.stack = kRootNode, .weight = 1});
  const ProfileModel model = *std::move(builder).Build();
  const std::vector<uint64_t> self = SelfWeights(model);
  EXPECT_THAT(self, ElementsAre(1, 2, 5));
  EXPECT_THAT(TotalWeights(model, self), ElementsAre(8, 7, 5));
}

TEST(ProfileModelTest, WeightsThatDoNotFitAreAnError) {
  ProfileModelBuilder builder;
  builder.Add({.weight = kMaxTotalWeight});
  EXPECT_TRUE(builder.ok());
  builder.Add({});
  const absl::StatusOr<ProfileModel> model = std::move(builder).Build();
  EXPECT_EQ(model.status().code(), absl::StatusCode::kOutOfRange);
}

TEST(ProfileModelTest, AStackThatIsTooDeepIsAnError) {
  ProfileModelBuilder builder;
  const std::vector<FrameIndex> deepest(kMaxModelStackFrames, Named(builder, "Again"));
  const NodeIndex leaf = builder.Stack(deepest);
  EXPECT_TRUE(builder.ok());
  EXPECT_EQ(builder.Node(leaf, deepest.front()), leaf);
  EXPECT_EQ(builder.model().nodes.size(), kMaxModelStackFrames + 1);
  EXPECT_THAT(std::string(std::move(builder).Build().status().message()), HasSubstr("more than 4096 frames"));
}

TEST(ProfileModelTest, ANameThatIsTooLongIsAnErrorAndTheFirstErrorCounts) {
  ProfileModelBuilder builder;
  builder.String(std::string(kMaxModelStringBytes, 'a'));
  EXPECT_TRUE(builder.ok());
  EXPECT_EQ(builder.String(std::string(kMaxModelStringBytes + 1, 'a')), 0u);
  builder.Fail(absl::DataLossError("later"));
  EXPECT_THAT(std::string(std::move(builder).Build().status().message()), HasSubstr("a name of 1048577 bytes"));
}

TEST(ProfileModelTest, TablesHaveTheLimitsThatTheyAreGiven) {
  const auto message_of = [](const ModelLimits& limits, int samples, int frames) {
    ProfileModelBuilder builder(limits);
    for (int i = 0; i < samples; ++i) {
      ModelFrame frame;
      frame.name = builder.String(std::string(1, static_cast<char>('a' + i % frames)));
      builder.Add({.thread = builder.Thread({}), .stack = builder.Node(kRootNode, builder.Frame(frame))});
    }
    return std::string((std::move(builder).Build()).status().message());
  };
  EXPECT_EQ(message_of({.samples = 9, .nodes = 4, .frames = 4}, 9, 3), "");
  EXPECT_EQ(message_of({.samples = 8, .nodes = 4, .frames = 4}, 9, 3), "more than 8 samples");
  EXPECT_EQ(message_of({.samples = 9, .nodes = 3, .frames = 4}, 9, 3), "more than 3 frames in distinct stacks");
  EXPECT_EQ(message_of({.samples = 9, .nodes = 4, .frames = 3}, 9, 3), "more than 3 names");

  ProfileModelBuilder builder(ModelLimits{.frames = 2});
  builder.Source(1, 0, "");  // the builder looks into no string
  builder.Source(2, 0, "");
  EXPECT_TRUE(builder.ok());
  builder.Source(3, 0, "");
  EXPECT_EQ(std::move(builder).Build().status().message(), "more than 2 files of source text");
}

TEST(ProfileModelTest, MachineCodeIsKeptWithinItsBounds) {
  ProfileModelBuilder builder;
  ModelCode code{.frame = builder.Frame({}), .bytes = "\x90\xc3", .lines = {{0, 0, 7}}, .self = {{0, 0}, {1, 5}}};
  EXPECT_TRUE(builder.Code(code));
  ModelCode empty = code, large = code;
  empty.bytes.clear();
  large.bytes.assign(kMaxCodeBodyBytes + 1, '\x90');
  EXPECT_FALSE(builder.Code(empty));
  EXPECT_FALSE(builder.Code(large));
  const absl::StatusOr<ProfileModel> model = std::move(builder).Build();
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->code.size(), 1u);
  EXPECT_EQ(model->code[0].self, (std::vector<ModelCodeWeight>{{1, 5}}));
}

TEST(ProfileModelTest, MachineCodeThatIsNotInOrderIsAnError) {
  const auto builds = [](const ModelCode& code) {
    ProfileModelBuilder builder;
    builder.Frame({});
    builder.Code(code);
    return std::move(builder).Build().ok();
  };
  const ModelCode code{.bytes = "\x90\xc3",
                       .lines = {{0, 0, 7}, {1, 0, 8}},
                       .self = {{0, 1}, {1, 1}},
                       .unwind = {{0, 1, "\x01"}, {1, 2, "\x01"}}};
  EXPECT_TRUE(builds(code));
  ModelCode changed = code;
  changed.frame = 1;  // there is none
  EXPECT_FALSE(builds(changed));
  changed = code;
  changed.lines[1].offset = 0;
  EXPECT_FALSE(builds(changed));
  changed = code;
  changed.self[1].offset = 2;  // behind the code
  EXPECT_FALSE(builds(changed));
  for (const ModelUnwind& part : {ModelUnwind{0, 2, "\x01"}, ModelUnwind{1, 1, "\x01"}, ModelUnwind{1, 3, "\x01"},
                                  ModelUnwind{1, 2, ""}, ModelUnwind{1, 2, std::string(kMaxUnwindBytes + 1, 'x')}}) {
    changed = code;
    changed.unwind[1] = part;
    EXPECT_FALSE(builds(changed)) << part.begin << " " << part.end;
  }
}

TEST(ProfileModelTest, WordsAreReadBack) {
  for (int i = 0; i < kCodeMachineCount; ++i) {
    const auto machine = static_cast<CodeMachine>(i);
    EXPECT_EQ(CodeMachineOf(CodeMachineText(machine)), machine);
  }
  for (int i = 0; i < kModelFrameKindCount; ++i) {
    const auto kind = static_cast<ModelFrameKind>(i);
    EXPECT_EQ(ModelFrameKindOf(ModelFrameKindText(kind)), kind);
  }
  for (int i = 0; i < kSampleStateCount; ++i) {
    const auto state = static_cast<SampleState>(i);
    EXPECT_EQ(SampleStateOf(SampleStateText(state)), state);
  }
  for (int i = 0; i < kLineKindCount; ++i) {
    const auto kind = static_cast<LineKind>(i);
    EXPECT_EQ(LineKindOf(LineKindText(kind)), kind);
  }
  for (int i = 0; i < kProfileViewCount; ++i) {
    const auto view = static_cast<ProfileView>(i);
    EXPECT_EQ(ProfileViewOf(ProfileViewText(view)), view);
  }
  EXPECT_EQ(ProfileViewOf("suspend-delay"), ProfileView::kSuspendDelay);
  EXPECT_EQ(WeightUnitOf("microseconds"), WeightUnit::kMicroseconds);
  EXPECT_EQ(ModelFrameKindOf("JIT"), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
