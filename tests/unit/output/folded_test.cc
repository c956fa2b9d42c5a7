#include "output/folded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace clrsampler {
namespace {

class FoldedWriterTest : public testing::Test {
 protected:
  FrameId Make(FrameKind kind, std::string text) {
    return frames_.Intern(Frame{kind, NameSource::kJitdump, std::move(text), "", ""});
  }
  void Add(absl::string_view label, std::vector<FrameId> frames, uint64_t count) {
    stacks_.Add(stacks_.Intern(stacks_.InternLabel(label), frames), count);
  }
  std::string Write() {
    std::string text;
    const Profile profile{frames_, stacks_, account_};
    EXPECT_TRUE(FoldedWriter()
                    .Write(profile,
                           [&](absl::string_view piece) {
                             text.append(piece.data(), piece.size());
                             return absl::OkStatus();
                           })
                    .ok());
    return text;
  }
  FrameTable frames_;
  StackTable stacks_;
  Account account_;
};

TEST_F(FoldedWriterTest, WritesSortedLinesWithKindSuffixes) {
  const FrameId main = Make(FrameKind::kNative, "main");
  const FrameId jit = Make(FrameKind::kJit, "Shop.Order.Total");
  const FrameId r2r = Make(FrameKind::kR2r, "System.String.Concat");
  const FrameId kernel = Make(FrameKind::kKernel, "do_syscall_64");
  Add("web", {main, r2r, kernel}, 2);
  Add("web", {main, jit}, 3);
  EXPECT_EQ(Write(),
            "web;main;Shop.Order.Total_[j] 3\n"
            "web;main;System.String.Concat_[j];do_syscall_64_[k] 2\n");
}

TEST_F(FoldedWriterTest, FramesThatReadTheSameAreOneLine) {
  // The same method named by two sources.
  const FrameId first = frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump, "A.B", "", "QuickJitted"});
  const FrameId second = frames_.Intern(Frame{FrameKind::kR2r, NameSource::kR2rImage, "A.B", "", "PreJIT"});
  ASSERT_NE(first, second);
  Add("web", {first}, 1);
  Add("web", {second}, 4);
  EXPECT_EQ(Write(), "web;A.B_[j] 5\n");
}

TEST_F(FoldedWriterTest, HostileNamesCantForgeFramesOrCounts) {
  Add("we b;x", {Make(FrameKind::kNative, "a;b\nroot 7"), Make(FrameKind::kNative, "x 42")}, 1);
  const std::string text = Write();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), ';'), 2);
  EXPECT_EQ(text.find("x 42"), std::string::npos) << text;
}

TEST_F(FoldedWriterTest, StacksThatWereNeverCountedAreNotWritten) {
  stacks_.Intern(stacks_.InternLabel("web"), {});
  EXPECT_EQ(Write(), "");
}

TEST_F(FoldedWriterTest, AFailingSinkEndsTheWriting) {
  Add("web", {Make(FrameKind::kNative, "main")}, 1);
  const Profile profile{frames_, stacks_, account_};
  EXPECT_EQ(
      FoldedWriter().Write(profile, [](absl::string_view) { return absl::ResourceExhaustedError("full"); }).code(),
      absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace clrsampler
