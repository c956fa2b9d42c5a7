#include "container_runtime/container_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MonotonicTime At(double seconds) { return {static_cast<uint64_t>(1000 * kSecondNs + seconds * kSecondNs)}; }

class FakeHelper : public CriHelper {
 public:
  bool Send(absl::string_view question) override {
    if (!takes) return false;
    asked.push_back(*ParseCriQuestion(question));
    return true;
  }
  std::optional<std::string> Receive() override {
    if (answers.empty()) return std::nullopt;
    std::string text = answers.back();
    answers.pop_back();
    return text;
  }
  void WaitMs(int) override {}
  bool ended() const override { return has_ended; }

  void Answer(CriResult result, const std::string& text = "") {
    CriAnswer answer{asked.back().number, result, text, "a hint", {}};
    if (result == CriResult::kKnown) {
      answer.failure.clear();
      answer.labels.Set(LabelKey::kKubernetesPod, text);
    }
    answers.push_back(CriAnswerText(answer));
  }

  std::vector<CriQuestion> asked;
  std::vector<std::string> answers;
  bool takes = true, has_ended = false;
};

class ContainerNamesTest : public testing::Test {
 protected:
  static std::string Path(char digit) { return absl::StrCat("/kubepods/pod7/", std::string(64, digit)); }
  std::string PodOf(char digit, double seconds) {
    return names_.Of(Path(digit), At(seconds)).Get(LabelKey::kKubernetesPod);
  }

  std::shared_ptr<FakeHelper> helper_ = std::make_shared<FakeHelper>();
  Notices notices_;
  ContainerNames names_{helper_, "/run/cri.sock", notices_};
};

TEST_F(ContainerNamesTest, AContainerIsAskedAboutOnce) {
  EXPECT_EQ(PodOf('a', 0), "");
  EXPECT_FALSE(names_.Poll(At(0)));
  ASSERT_EQ(helper_->asked.size(), 1u);
  EXPECT_THAT(helper_->asked[0].ids, ElementsAre(std::string(64, 'a')));
  helper_->Answer(CriResult::kKnown, "shop-1");
  EXPECT_TRUE(names_.Poll(At(1)));
  for (int i = 2; i < 1000; ++i) {
    EXPECT_EQ(PodOf('a', i), "shop-1");
    EXPECT_FALSE(names_.Poll(At(i)));
  }
  EXPECT_EQ(helper_->asked.size(), 1u);
  EXPECT_FALSE(names_.waits());
}

TEST_F(ContainerNamesTest, NobodyIsAskedAboutProcessesOutside) {
  EXPECT_TRUE(names_.Of("/system.slice/shop.service", At(0)).empty());
  names_.Poll(At(0));
  EXPECT_TRUE(helper_->asked.empty());
}

TEST_F(ContainerNamesTest, OneThatIsNotKnownIsAskedAboutSomeTimesAndNoMore) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(PodOf('a', i), "");
    const size_t before = helper_->asked.size();
    names_.Poll(At(i));
    if (helper_->asked.size() > before) helper_->Answer(CriResult::kUnknown);
  }
  EXPECT_EQ(helper_->asked.size(), static_cast<size_t>(ContainerNames::kTries));
  EXPECT_TRUE(notices_.kept().empty()) << "containers of others are no failure";
}

TEST_F(ContainerNamesTest, NonsenseIsSaidAndNotAskedForEver) {
  for (int i = 0; i < 100; ++i) {
    PodOf('a', i);
    const size_t before = helper_->asked.size();
    names_.Poll(At(i));
    if (helper_->asked.size() > before) helper_->Answer(CriResult::kBad, "it is drunk");
  }
  EXPECT_EQ(helper_->asked.size(), static_cast<size_t>(ContainerNames::kTries));
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_EQ(notices_.kept()[0].message,
            "the container runtime at /run/cri.sock does not name a container: it is drunk");
  EXPECT_EQ(notices_.kept()[0].hint, "a hint");
  EXPECT_EQ(notices_.counts().at("container_runtime"), static_cast<uint64_t>(ContainerNames::kTries));
}

TEST_F(ContainerNamesTest, ARuntimeThatIsDownIsAskedLessAndLess) {
  PodOf('a', 0);
  for (int i = 0; i < 3600; ++i) {
    const size_t before = helper_->asked.size();
    names_.Poll(At(i));
    if (helper_->asked.size() > before) helper_->Answer(CriResult::kUnreachable, "no such file");
  }
  // After 1, 2, 4, ... 256 and then each 300 seconds.
  EXPECT_GE(helper_->asked.size(), 15u);
  EXPECT_LE(helper_->asked.size(), 21u);
  EXPECT_EQ(notices_.kept().size(), 1u);
  for (int i = 3600; i < 4000; ++i) {
    const size_t before = helper_->asked.size();
    names_.Poll(At(i));
    if (helper_->asked.size() > before) helper_->Answer(CriResult::kKnown, "shop-1");
  }
  EXPECT_EQ(PodOf('a', 4000), "shop-1");
}

TEST_F(ContainerNamesTest, FewQuestionsAreUnderWay) {
  for (char digit = '0'; digit <= '9'; ++digit) PodOf(digit, 0);
  for (char digit = 'a'; digit <= 'f'; ++digit) PodOf(digit, 0);
  for (int i = 0; i < 100; ++i) names_.Of(absl::StrCat("/x/", std::string(60, 'a'), 1000 + i), At(0));
  names_.Poll(At(0));
  names_.Poll(At(1));
  EXPECT_EQ(helper_->asked.size(), ContainerNames::kMaxQuestions);
}

TEST_F(ContainerNamesTest, ThereIsRoomForSoManyAndUnusedOnesMakeRoom) {
  const auto path = [](size_t i) { return absl::StrCat("/x/", std::string(58, 'a'), 100'000 + i); };
  double now = 0;
  for (size_t i = 0; i < ContainerNames::kMaxContainers; ++i) {
    names_.Of(path(i), At(now));
    names_.Poll(At(now));
    helper_->Answer(CriResult::kKnown, "p");
    names_.Poll(At(now));
  }
  PodOf('a', now += 1);
  EXPECT_EQ(notices_.counts().at("container_names_full"), 1u);
  PodOf('a', now += 120);
  EXPECT_EQ(notices_.counts().at("container_names_full"), 1u);
  names_.Poll(At(now));
  helper_->Answer(CriResult::kKnown, "shop-1");
  names_.Poll(At(now));
  EXPECT_EQ(PodOf('a', now), "shop-1");
}

TEST_F(ContainerNamesTest, AnswersToOthersAreNotTaken) {
  PodOf('a', 0);
  names_.Poll(At(0));
  CriAnswer foreign{helper_->asked[0].number + 7, CriResult::kKnown, "", "", {}};
  foreign.labels.Set(LabelKey::kKubernetesPod, "wrong");
  helper_->answers = {CriAnswerText(foreign), "rubbish", ""};
  EXPECT_FALSE(names_.Poll(At(1)));
  EXPECT_EQ(PodOf('a', 1), "");
}

TEST_F(ContainerNamesTest, AQuestionThatCanNotBeSentIsKept) {
  helper_->takes = false;
  PodOf('a', 0);
  names_.Poll(At(0));
  helper_->takes = true;
  names_.Poll(At(1));
  EXPECT_EQ(helper_->asked.size(), 1u);
}

TEST_F(ContainerNamesTest, TheEndOfTheProcessIsSaidOnce) {
  PodOf('a', 0);
  helper_->has_ended = true;
  for (int i = 0; i < 10; ++i) names_.Poll(At(i));
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_EQ(notices_.kept()[0].kind, "container_runtime_ended");
  EXPECT_FALSE(names_.waits());
  EXPECT_EQ(PodOf('b', 11), "");
}

}  // namespace
}  // namespace clrsampler
