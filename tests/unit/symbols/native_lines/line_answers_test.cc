#include "symbols/native_lines/line_answers.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

// Keeps the questions, and says what a test wants.
class FakeHelper : public LineHelper {
 public:
  bool Send(absl::string_view question, int file) override {
    if (full) return false;
    EXPECT_GE(file, 0);
    asked.push_back(*ParseLineQuestion(question));
    return true;
  }
  std::optional<std::string> Receive() override {
    if (said.empty()) return std::nullopt;
    std::string first = std::move(said.front());
    said.pop_front();
    return first;
  }
  void WaitMs(int) override {
    ++waits;
    if (on_wait) on_wait();
  }
  bool ended() const override { return gone; }
  void End() override { gone = true; }

  // Each address has the line of its number.
  void AnswerAll() {
    for (const LineQuestion& question : asked) {
      LineAnswer answer{question.number, "", {}};
      for (const uint64_t address : question.addresses) {
        answer.lines.push_back({"/src/a.c", static_cast<uint32_t>(address), false});
      }
      said.push_back(LineAnswerBytes(answer));
    }
    asked.clear();
  }

  std::vector<LineQuestion> asked;
  std::deque<std::string> said;
  std::function<void()> on_wait;
  bool full = false, gone = false;
  int waits = 0;
};

class LineAnswersTest : public testing::Test {
 protected:
  uint64_t Open(const char* path = "/bin/x") {
    return answers_.AddFile(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), path).value_or(0);
  }
  // The line of an address, 0: none.
  uint32_t Line(uint64_t file, uint64_t address) {
    const std::optional<SourcePlace> place = answers_.Get(file, address);
    return place ? place->line : 0;
  }
  bool Said(const char* part) {
    for (const Notice& notice : notices_.kept()) {
      if (absl::StrContains(notice.message, part)) return true;
    }
    return false;
  }

  Notices notices_;
  std::shared_ptr<FakeHelper> helper_ = std::make_shared<FakeHelper>();
  LineAnswers answers_{helper_, notices_};
};

TEST_F(LineAnswersTest, WhatWasAskedForIsThereWhenItHasBeenAnswered) {
  const uint64_t file = Open();
  answers_.Ask(file, 57, {kMillisecondNs});
  answers_.Ask(file, 58, {kMillisecondNs});
  answers_.Poll({2 * kMillisecondNs});
  ASSERT_EQ(helper_->asked.size(), 1u) << "one question for both";
  EXPECT_EQ(helper_->asked[0].addresses, (std::vector<uint64_t>{57, 58}));
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_EQ(answers_.Get(file, 57), (SourcePlace{"/src/a.c", 57, 0, LineKind::kOptimised}));
  EXPECT_EQ(Line(file, 58), 58u);
  answers_.Poll({4 * kMillisecondNs});
  EXPECT_TRUE(helper_->asked.empty()) << "what is known is not asked again";
  EXPECT_EQ(answers_.generation(), 0u) << "no frame went without it";
  EXPECT_EQ(answers_.counters().late, 0u);
  EXPECT_EQ(answers_.counters().found, 2u);
}

TEST_F(LineAnswersTest, SamplesWaitForAnswersButNotForLong) {
  const uint64_t file = Open();
  EXPECT_EQ(answers_.AnsweredUntil(), MonotonicTime::Max());
  answers_.Ask(file, 57, {100 * kMillisecondNs});
  answers_.Ask(file, 58, {90 * kMillisecondNs});
  answers_.Poll({110 * kMillisecondNs});
  EXPECT_LT(answers_.AnsweredUntil(), MonotonicTime{90 * kMillisecondNs});
  answers_.Poll({90 * kMillisecondNs + LineAnswers::kMaxHoldNs + 1});
  EXPECT_EQ(answers_.AnsweredUntil(), MonotonicTime::Max());
}

TEST_F(LineAnswersTest, AFrameThatWentWithoutALineGetsOneLater) {
  const uint64_t file = Open();
  EXPECT_EQ(Line(file, 57), 0u);
  EXPECT_EQ(answers_.AnsweredUntil(), MonotonicTime::Max()) << "it is too late to wait";
  answers_.Poll({2 * kMillisecondNs});
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_EQ(answers_.generation(), 1u);
  EXPECT_EQ(answers_.counters().late, 1u);
  EXPECT_EQ(Line(file, 57), 57u);
}

TEST_F(LineAnswersTest, AReaderThatIsLostCostsItsFileAlone) {
  const uint64_t bad = Open("/bin/bad"), good = Open("/bin/good");
  answers_.Ask(bad, 1, {kMillisecondNs});
  answers_.Ask(good, 57, {kMillisecondNs});
  answers_.Poll({2 * kMillisecondNs});
  ASSERT_EQ(helper_->asked.size(), 2u);
  helper_->said.push_back(ReaderLostBytes(helper_->asked[0].number));
  helper_->asked.erase(helper_->asked.begin());
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_EQ(Line(bad, 1), 0u);
  EXPECT_EQ(Line(good, 57), 57u);
  EXPECT_TRUE(Said("no lines of native code from /bin/bad: the process that read"));
  EXPECT_EQ(answers_.counters().files_failed, 1u);
  EXPECT_EQ(answers_.counters().readers_lost, 1u);
  EXPECT_EQ(Line(bad, 2), 0u);
  answers_.Poll({4 * kMillisecondNs});
  EXPECT_TRUE(helper_->asked.empty()) << "it is not read again";
  EXPECT_EQ(answers_.AnsweredUntil(), MonotonicTime::Max());
}

TEST_F(LineAnswersTest, AReaderThatIsLostBetweenQuestionsCostsNothing) {
  const uint64_t file = Open();
  answers_.Ask(file, 57, {kMillisecondNs});
  answers_.Poll({2 * kMillisecondNs});
  helper_->said.push_back(ReaderLostBytes(0));
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_EQ(Line(file, 57), 57u);
  EXPECT_TRUE(notices_.kept().empty());
}

TEST_F(LineAnswersTest, AFileThatCanNotBeReadIsSaidOnce) {
  const uint64_t file = Open("/bin/bad");
  answers_.Ask(file, 1, {kMillisecondNs});
  answers_.Poll({2 * kMillisecondNs});
  helper_->said.push_back(LineAnswerBytes({helper_->asked[0].number, "invalid DWARF", {}}));
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_TRUE(Said("no lines of native code from /bin/bad: invalid DWARF"));
  EXPECT_EQ(notices_.counts().at("native_lines_unreadable"), 1u);
}

TEST_F(LineAnswersTest, BytesThatAreNoAnswerCostTheFile) {
  const uint64_t file = Open("/bin/bad");
  answers_.Ask(file, 1, {kMillisecondNs});
  answers_.Poll({2 * kMillisecondNs});
  std::string bytes = LineAnswerBytes({helper_->asked[0].number, "", {}});  // of no address
  helper_->said = {"", "rubbish", LineAnswerBytes({4711, "", {{"/a", 1, false}}}), bytes};
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_TRUE(Said("gave no answer"));
  EXPECT_EQ(Line(file, 1), 0u);
}

TEST_F(LineAnswersTest, AHelperThatIsGoneOrSilentIsGivenUp) {
  for (const bool silent : {false, true}) {
    const auto helper = std::make_shared<FakeHelper>();
    Notices notices;
    LineAnswers answers(helper, notices);
    const uint64_t file = *answers.AddFile(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)), "/bin/x");
    answers.Ask(file, 1, {kMillisecondNs});
    answers.Poll({2 * kMillisecondNs});
    EXPECT_TRUE(notices.kept().empty());
    helper->gone = !silent;
    answers.Poll({2 * kMillisecondNs + LineAnswers::kMaxSilenceNs + 1});
    ASSERT_EQ(notices.kept().size(), 1u);
    EXPECT_EQ(notices.kept()[0].kind, "native_lines_off");
    EXPECT_TRUE(helper->gone) << "it was ended";
    EXPECT_EQ(answers.AnsweredUntil(), MonotonicTime::Max());
    answers.Ask(file, 2, {kMillisecondNs});
    answers.Poll({3 * kMillisecondNs});
    EXPECT_EQ(helper->asked.size(), 1u);
    EXPECT_EQ(notices.kept().size(), 1u);
  }
}

TEST_F(LineAnswersTest, ThatNoneCanBeHadIsSaidWithItsHint) {
  helper_->said.push_back(NoAnswersBytes({"libdw is not installed", "apt-get install libdw1"}));
  Open();
  answers_.Poll({kMillisecondNs});
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_EQ(notices_.kept()[0].message, "native code has no lines from here on: libdw is not installed");
  EXPECT_EQ(notices_.kept()[0].hint, "apt-get install libdw1");
}

TEST_F(LineAnswersTest, QuestionsAreBounded) {
  const uint64_t file = Open();
  for (uint64_t address = 1; address <= LineAnswers::kMaxQueued + 100; ++address)
    answers_.Ask(file, address, {kMillisecondNs});
  EXPECT_EQ(answers_.counters().addresses, LineAnswers::kMaxQueued);
  answers_.Poll({2 * kMillisecondNs});
  EXPECT_EQ(helper_->asked.size(), LineAnswers::kMaxOutstanding);
  helper_->full = true;
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  EXPECT_TRUE(helper_->asked.empty());
  helper_->full = false;
  while (answers_.AnsweredUntil() != MonotonicTime::Max()) {
    answers_.Poll({4 * kMillisecondNs});
    helper_->AnswerAll();
  }
  EXPECT_EQ(answers_.generation(), 1u) << "what was not taken is asked for again";
  EXPECT_EQ(Line(file, 57), 57u);
}

TEST_F(LineAnswersTest, OpenFilesAreBounded) {
  std::vector<uint64_t> files;
  for (size_t i = 0; i < LineAnswers::kMaxFiles; ++i) files.push_back(Open());
  EXPECT_EQ(Open(), 0u);
  EXPECT_TRUE(Said("debug information of 128 files is open"));
  answers_.DropFile(files[0]);
  EXPECT_NE(Open(), 0u);
}

TEST_F(LineAnswersTest, WhatIsKnownIsBounded) {
  const uint64_t file = Open();
  for (uint64_t address = 1; address <= LineAnswers::kMaxKnown + 1; ++address) {
    answers_.Ask(file, address, {kMillisecondNs});
    if (address % 512 == 0) {
      answers_.Poll({2 * kMillisecondNs});
      helper_->AnswerAll();
    }
  }
  answers_.Poll({3 * kMillisecondNs});
  helper_->AnswerAll();
  answers_.Poll({3 * kMillisecondNs});
  const uint64_t asked = answers_.counters().addresses;
  EXPECT_EQ(Line(file, LineAnswers::kMaxKnown + 1), LineAnswers::kMaxKnown + 1);
  Line(file, 1);
  EXPECT_EQ(answers_.counters().addresses, asked + 1) << "it was forgotten";
}

TEST_F(LineAnswersTest, AwaitEndsWithTheLastAnswerOrItsLimit) {
  FakeClock clock;
  const uint64_t file = Open();
  helper_->on_wait = [&] {
    clock.Advance(10 * kMillisecondNs);
    if (helper_->waits == 3) helper_->AnswerAll();
  };
  answers_.Ask(file, 57, {kMillisecondNs});
  answers_.Await(1000 * kMillisecondNs, clock);
  EXPECT_EQ(helper_->waits, 3);
  EXPECT_EQ(Line(file, 57), 57u);
  answers_.Ask(file, 58, {kMillisecondNs});
  answers_.Await(100 * kMillisecondNs, clock);
  EXPECT_EQ(helper_->waits, 13) << "100 ms of waits of 10 ms";
}

}  // namespace
}  // namespace clrsampler
