#include "profile/run_model.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "process/process.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunModelTest : public testing::Test {
 protected:
  RunModelTest() {
    main_ = frames_.Intern(Frame{FrameKind::kNative, NameSource::kElfSymbols, "main", "app", ""});
    jit_ = frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump, "Shop.Order.Total", "Shop", "OptimizedTier1"});
    nameless_ = frames_.Intern(Frame{FrameKind::kR2r, NameSource::kNone, "[why]", "", ""});
    web_ = stacks_.InternLabel("web");
    worked_ = stacks_.Intern(web_, std::vector<FrameId>{main_, jit_});
    lost_ = stacks_.Intern(web_, std::vector<FrameId>{main_, nameless_});
  }
  // "web/12 main;Shop.Order.Total" -> weight
  static std::map<std::string, uint64_t> Weights(const ProfileModel& model) {
    std::map<std::string, uint64_t> weights;
    for (size_t row = 0; row < model.samples.size(); ++row) {
      const ModelThread& thread = model.threads[model.samples.thread[row]];
      std::string path;
      for (NodeIndex node = model.samples.stack[row]; node != kRootNode; node = model.nodes[node].parent) {
        path = absl::StrCat(";", model.text(model.frame_of(node).name), path);
      }
      weights[absl::StrCat(model.text(thread.comm), "/", thread.tid, path)] += model.samples.weight_of(row);
    }
    return weights;
  }

  FrameTable frames_;
  StackTable stacks_;
  LabelId web_;
  FrameId main_, jit_, nameless_;
  StackId worked_, lost_;
};

TEST_F(RunModelTest, CountedStacksKeepTheirCountsAndLabels) {
  stacks_.Add(worked_, 3);
  stacks_.Add(lost_, 1);
  stacks_.Intern(web_, std::vector<FrameId>{jit_});  // never counted
  ProfileMeta meta;
  meta.host = "build7";
  const ProfileModel model = *CountedRunModel(frames_, stacks_, meta);
  EXPECT_EQ(Weights(model),
            (std::map<std::string, uint64_t>{{"web/0;main;Shop.Order.Total", 3}, {"web/0;main;[why]", 1}}));
  EXPECT_EQ(model.meta.host, "build7");
  EXPECT_THAT(model.samples.time_ns, IsEmpty());
  const ModelFrame& jit = model.frame_of(model.samples.stack[0]);
  EXPECT_EQ(jit.kind, ModelFrameKind::kJit);
  EXPECT_EQ(model.text(jit.source), "jitdump");
  EXPECT_EQ(model.text(jit.module), "Shop");
  EXPECT_EQ(model.text(jit.tier), "OptimizedTier1");
  EXPECT_EQ(model.text(model.frame_of(model.samples.stack[1]).source), "");
}

TEST_F(RunModelTest, SamplesKeepTimeThreadAndState) {
  SampleLog log;
  const SampleLog::Thread first{10, 11, "web", "worker", "c0ffee"}, second{10, 12, "web", "gc", "c0ffee"};
  log.Add(first, {1000}, worked_, SampleState::kNone, 1);
  log.Add(second, {1010}, lost_, SampleState::kPaused, 1);
  log.Add(first, {990}, worked_, SampleState::kNone, 7);  // under way when the run began
  const ProfileModel model = *SampledRunModel(frames_, stacks_, log, {1000}, {});
  EXPECT_THAT(model.samples.time_ns, ElementsAre(0, 10, 0));
  EXPECT_THAT(model.samples.weight, ElementsAre(1, 1, 7));
  EXPECT_THAT(model.samples.state, ElementsAre(SampleState::kNone, SampleState::kPaused, SampleState::kNone));
  EXPECT_THAT(model.samples.thread, ElementsAre(0, 1, 0));
  EXPECT_EQ(model.threads[1].pid, 10u);
  EXPECT_EQ(model.threads[1].tid, 12u);
  EXPECT_EQ(model.text(model.threads[1].name), "gc");
  EXPECT_EQ(model.text(model.threads[1].container_id), "c0ffee");
}

TEST_F(RunModelTest, BeyondTheLimitSamplesAreCountedWithoutTime) {
  SampleLog log(2);
  const SampleLog::Thread thread{10, 11, "web", "worker", ""};
  for (uint64_t i = 0; i < 10; ++i) log.Add(thread, {i}, i % 2 == 0 ? worked_ : lost_, SampleState::kNone, 1);
  EXPECT_EQ(log.untimed(), 8u);
  const ProfileModel model = *SampledRunModel(frames_, stacks_, log, {0}, {});
  EXPECT_EQ(model.samples.size(), 4u);  // two with time, and the two stacks of the others
  EXPECT_THAT(model.samples.time_ns, ElementsAre(0, 1, kNoTime, kNoTime));
  EXPECT_EQ(Weights(model),
            (std::map<std::string, uint64_t>{{"web/11;main;Shop.Order.Total", 5}, {"web/11;main;[why]", 5}}));
}

TEST_F(RunModelTest, SamplesFollowStacksWhoseFramesGotNames) {
  SampleLog log(1);
  const SampleLog::Thread thread{10, 11, "web", "worker", ""};
  log.Add(thread, {1}, lost_, SampleState::kNone, 1);
  log.Add(thread, {2}, lost_, SampleState::kNone, 1);
  log.Add(thread, {3}, worked_, SampleState::kNone, 1);
  // The two stacks become one.
  log.ReplaceStacks(stacks_.ReplaceFrames({{nameless_, jit_}}));
  EXPECT_EQ(stacks_.size(), 1u);
  EXPECT_EQ(Weights(*SampledRunModel(frames_, stacks_, log, {0}, {})),
            (std::map<std::string, uint64_t>{{"web/11;main;Shop.Order.Total", 3}}));
}

TEST_F(RunModelTest, CodeComesWithItsUnwindData) {
  stacks_.Add(worked_, 1);
  const Process process(ProcessKey{7, 1}, TargetFiles("/nonexistent", 7));
  CodeBody body{0x1000, std::make_shared<const std::string>("abcdefgh"), ElfMachine::kX64, {}, {}};
  body.unwind = {{0, 5, "body"}, {6, 8, "funclet"}};
  CodeLog code;
  code.Note(FrameQuery{process, nullptr, 0x1002, 0x1002, {5}}, jit_, jit_, body);
  const auto model = SampledRunModel(frames_, stacks_, SampleLog(), {0}, {}, SourceFiles(), &code);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->code.size(), 1u);
  EXPECT_EQ(model->code[0].bytes, "abcdefgh");
  EXPECT_THAT(model->code[0].unwind, ElementsAre(ModelUnwind{0, 5, "body"}, ModelUnwind{6, 8, "funclet"}));
}

}  // namespace
}  // namespace clrsampler
