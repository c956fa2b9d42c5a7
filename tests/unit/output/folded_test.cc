#include "output/folded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "os/own_usage.h"

namespace clrsampler {
namespace {

class FoldedWriterTest : public testing::Test {
 protected:
  FrameIndex Make(ModelFrameKind kind, absl::string_view name, absl::string_view source = "",
                  absl::string_view tier = "") {
    ModelFrame frame;
    frame.kind = kind;
    frame.name = builder_.String(name);
    frame.source = builder_.String(source);
    frame.tier = builder_.String(tier);
    return builder_.Frame(frame);
  }
  void Add(absl::string_view comm, std::vector<FrameIndex> frames, uint64_t weight, uint32_t pid = 0,
           uint32_t tid = 0) {
    ModelThread thread;
    thread.comm = builder_.String(comm);
    thread.pid = pid;
    thread.tid = tid;
    builder_.Add({.thread = builder_.Thread(thread), .stack = builder_.Stack(frames), .weight = weight});
  }
  std::string Write(WriterOptions options = {}) {
    std::string text;
    EXPECT_TRUE(FoldedWriter(options)
                    .Write(builder_.model(),
                           [&](absl::string_view piece) {
                             text.append(piece.data(), piece.size());
                             return absl::OkStatus();
                           })
                    .ok());
    return text;
  }
  ProfileModelBuilder builder_;
};

TEST_F(FoldedWriterTest, WritesSortedLinesWithKindSuffixes) {
  const FrameIndex main = Make(ModelFrameKind::kNative, "main");
  const FrameIndex jit = Make(ModelFrameKind::kJit, "Shop.Order.Total");
  const FrameIndex r2r = Make(ModelFrameKind::kR2r, "System.String.Concat");
  const FrameIndex kernel = Make(ModelFrameKind::kKernel, "do_syscall_64");
  Add("web", {main, r2r, kernel}, 2);
  Add("web", {main, jit}, 3);
  EXPECT_EQ(Write(),
            "web;main;Shop.Order.Total_[j] 3\n"
            "web;main;System.String.Concat_[j];do_syscall_64_[k] 2\n");
}

// Lines of other profilers' native code say no kind.
TEST_F(FoldedWriterTest, NativeCodeHasItsLineWhereItIsOurs) {
  ModelFrame frame;
  frame.kind = ModelFrameKind::kNative;
  frame.name = builder_.String("malloc");
  frame.line = 3301;
  frame.line_kind = LineKind::kOptimised;
  const FrameIndex ours = builder_.Frame(frame);
  frame.line_kind = LineKind::kNone;
  Add("web", {ours, builder_.Frame(frame)}, 2);
  EXPECT_EQ(Write(), "web;malloc:3301;malloc 2\n");
}

// "web-b" comes between the two sorts of lines of "web".
TEST_F(FoldedWriterTest, ProcessesAreInTheOrderOfTheirLines) {
  const FrameIndex main = Make(ModelFrameKind::kNative, "main"), work = Make(ModelFrameKind::kNative, "work");
  Add("web", {main, work}, 1, 1);
  Add("web", {}, 2, 1);
  Add("web-b", {main}, 3, 2);
  Add("web", {main}, 4, 3);
  Add("web", {}, 5, 3);
  EXPECT_EQ(Write(), "web 7\nweb-b;main 3\nweb;main 4\nweb;main;work 1\n");
}

// All processes together have 8 million nodes, which would take 260 MB.
TEST_F(FoldedWriterTest, ManyProcessesWithDeepStacksTakeTheMemoryOfOne) {
  const std::vector<FrameIndex> stack(4095, Make(ModelFrameKind::kNative, "f"));
  constexpr uint32_t kProcesses = 2000;
  for (uint32_t i = 1; i <= kProcesses; ++i) Add(absl::StrCat("web", i), stack, 1, i);
  const uint64_t before = ReadOwnMemory().resident_bytes;
  uint64_t most = 0, lines = 0;
  const OutputSink sink = [&](absl::string_view piece) {
    lines += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    most = std::max(most, ReadOwnMemory().resident_bytes);
    return absl::OkStatus();
  };
  ASSERT_TRUE(FoldedWriter().Write(builder_.model(), sink).ok());
  EXPECT_EQ(lines, kProcesses);
  EXPECT_LT(most, before + (128 << 20));
}

TEST_F(FoldedWriterTest, FramesThatReadTheSameAreOneLine) {
  // The same method named by two sources.
  const FrameIndex first = Make(ModelFrameKind::kJit, "A.B", "jitdump", "QuickJitted");
  const FrameIndex second = Make(ModelFrameKind::kR2r, "A.B", "r2r-image", "PreJIT");
  ASSERT_NE(first, second);
  const FrameIndex called = Make(ModelFrameKind::kNative, "called");
  Add("web", {first}, 1);
  Add("web", {second}, 4);
  Add("web", {first, called}, 1);
  Add("web", {second, called}, 1);
  EXPECT_EQ(Write(), "web;A.B_[j] 5\nweb;A.B_[j];called 2\n");
  EXPECT_EQ(Write({.annotate_source = true}),
            "web;A.B [jitdump]_[j] 1\nweb;A.B [jitdump]_[j];called 1\n"
            "web;A.B [r2r-image]_[j] 4\nweb;A.B [r2r-image]_[j];called 1\n");
}

TEST_F(FoldedWriterTest, HostileNamesCantForgeFramesOrCounts) {
  Add("we b;x", {Make(ModelFrameKind::kNative, "a;b\nroot 7"), Make(ModelFrameKind::kNative, "x 42")}, 1);
  const std::string text = Write();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 2);
  EXPECT_EQ(text.find("x 42"), std::string::npos) << text;
}

TEST_F(FoldedWriterTest, LinesAreInTheOrderOfTheirBytes) {
  // ' ', '(' and '-' come before ';', '<' and letters behind it.
  const char* const names[] = {"a", "a b", "a(int)", "a<int>", "ab", "a-", "b"};
  const FrameIndex leaf = Make(ModelFrameKind::kNative, "z");
  for (const char* comm : {"web", "web-1", "web2", "we"}) {
    Add(comm, {}, 1);
    for (const char* name : names) {
      Add(comm, {Make(ModelFrameKind::kNative, name)}, 1);
      for (const char* callee : names) {
        Add(comm, {Make(ModelFrameKind::kNative, name), Make(ModelFrameKind::kJit, callee)}, 2);
        Add(comm, {Make(ModelFrameKind::kNative, name), Make(ModelFrameKind::kJit, callee), leaf}, 3);
      }
    }
  }
  std::vector<std::string> stacks;
  for (const absl::string_view line : absl::StrSplit(Write(), '\n', absl::SkipEmpty())) {
    stacks.emplace_back(line.substr(0, line.rfind(' ')));
  }
  EXPECT_EQ(stacks.size(), 4u * (1 + 7 + 2 * 49));
  std::vector<std::string> sorted = stacks;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(stacks, sorted);
}

TEST_F(FoldedWriterTest, ThreadsOfAProcessAreOne) {
  const FrameIndex main = Make(ModelFrameKind::kNative, "main");
  Add("web", {main}, 1, 7, 7);
  Add("web", {main}, 1, 7, 8);
  Add("web", {main}, 1, 9, 9);
  Add("", {main}, 1, 10, 10);
  EXPECT_EQ(Write(), "process;main 1\nweb;main 3\n");
  builder_.meta().whole_host = true;
  EXPECT_EQ(Write(), "process-10;main 1\nweb-7;main 2\nweb-9;main 1\n");
}

TEST_F(FoldedWriterTest, NothingWithoutSamples) {
  builder_.Stack(std::vector<FrameIndex>{Make(ModelFrameKind::kNative, "main")});
  EXPECT_EQ(Write(), "");
}

TEST_F(FoldedWriterTest, AFailingSinkEndsTheWriting) {
  Add("web", {Make(ModelFrameKind::kNative, "main")}, 1);
  EXPECT_EQ(FoldedWriter()
                .Write(builder_.model(), [](absl::string_view) { return absl::ResourceExhaustedError("full"); })
                .code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(FoldedWriterTest, ADifferenceHasBothCountsTheFirstNormalised) {
  const FrameIndex main = Make(ModelFrameKind::kNative, "main"), work = Make(ModelFrameKind::kJit, "Work");
  Add("web", {main}, 1);
  Add("web", {main, work}, 3);
  ProfileModelBuilder after;
  ModelThread thread;
  thread.comm = after.String("web");
  ModelFrame frame;
  frame.name = after.String("main");
  after.Add({.thread = after.Thread(thread), .stack = after.Node(kRootNode, after.Frame(frame)), .weight = 8});
  const ProfileDiff diff = *DiffProfiles(builder_.model(), after.model(), DiffBasis::kShare);
  std::string text;
  EXPECT_TRUE(WriteFoldedDiff(diff, [&](absl::string_view piece) {
                text.append(piece.data(), piece.size());
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(text, "web;main 2 8\nweb;main;Work_[j] 6 0\n");
}

}  // namespace
}  // namespace clrsampler
