#include "symbols/resolver.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

// Gets `step` further with each poll, up to `limit`.
class LaggingSource : public FrameSource {
 public:
  std::optional<Resolution> Resolve(const FrameQuery&) override { return std::nullopt; }
  uint64_t Generation(ProcessKey) const override { return 1; }
  void Poll(const Process&, MonotonicTime) override {
    ++polls;
    seen.ns = std::min(seen.ns + step, limit);
  }
  MonotonicTime CompleteUntil(ProcessKey) const override { return seen; }
  void Forget(ProcessKey) override {}

  MonotonicTime seen{0};
  uint64_t step = 100;
  uint64_t limit = 1000;
  int polls = 0;
};

class ResolverTest : public testing::Test {
 protected:
  FrameTable frames_;
  LaggingSource source_;
  Resolver resolver_{{&source_}, frames_};
  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
};

TEST_F(ResolverTest, ThatASourceHasSeenOneTimeSaysNothingOfALaterOneInTheSameTurn) {
  source_.limit = 100;
  EXPECT_TRUE(resolver_.CatchUp(process_, {50}, {5000}));
  EXPECT_FALSE(resolver_.CatchUp(process_, {200}, {5000}));
  source_.limit = 1000;
  EXPECT_TRUE(resolver_.CatchUp(process_, {200}, {5001})) << "the next turn";
}

TEST_F(ResolverTest, ASourceThatGetsFurtherIsAskedAgain) {
  EXPECT_TRUE(resolver_.CatchUp(process_, {50}, {5000}));
  EXPECT_TRUE(resolver_.CatchUp(process_, {900}, {5000}));
}

TEST_F(ResolverTest, ASourceThatIsStuckIsNotAskedAgainInItsTurn) {
  source_.limit = 100;
  EXPECT_FALSE(resolver_.CatchUp(process_, {200}, {5000}));
  const int polls = source_.polls;
  EXPECT_FALSE(resolver_.CatchUp(process_, {300}, {5000}));
  EXPECT_TRUE(resolver_.CatchUp(process_, {100}, {5000}));
  EXPECT_EQ(source_.polls, polls);
}

// Answers with what it was told.
class FixedSource : public LaggingSource {
 public:
  explicit FixedSource(std::optional<Resolution> answer) : answer_(answer) {}
  std::optional<Resolution> Resolve(const FrameQuery&) override {
    ++asked;
    return answer_;
  }
  int asked = 0;

 private:
  std::optional<Resolution> answer_;
};

class ResolverAnswerTest : public testing::Test {
 protected:
  Resolution Named(const char* text) {
    return Resolution{frames_.Intern(Frame{FrameKind::kJit, NameSource::kPerfMap, text, "", ""})};
  }
  Resolution Unnamed(const char* text, uint64_t from = 0, uint64_t until = 100) {
    return Resolution{frames_.Intern(Frame{FrameKind::kR2r, NameSource::kNone, text, "", ""}), {from}, {until}};
  }
  Resolution Ask(std::vector<std::optional<Resolution>> answers) {
    sources_.clear();
    std::vector<FrameSource*> borrowed;
    for (const auto& answer : answers) {
      sources_.push_back(std::make_unique<FixedSource>(answer));
      borrowed.push_back(sources_.back().get());
    }
    Resolver resolver(borrowed, frames_);
    const Process process{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
    return resolver.Resolve({process, nullptr, 1, 1, MonotonicTime{50}});
  }
  std::string TextOf(const Resolution& resolution) { return frames_.at(resolution.frame).text; }

  FrameTable frames_;
  std::vector<std::unique_ptr<FixedSource>> sources_;
};

TEST_F(ResolverAnswerTest, AReasonStandsOnlyIfNobodyHasAName) {
  EXPECT_EQ(TextOf(Ask({Unnamed("[r2r: too new]"), std::nullopt, Named("A.B")})), "A.B");
  EXPECT_EQ(TextOf(Ask({Unnamed("[r2r: too new]"), std::nullopt})), "[r2r: too new]");
}

TEST_F(ResolverAnswerTest, OfTwoReasonsTheLaterOneStandsForAsLongAsBothHold) {
  const Resolution both = Ask({Unnamed("[jit: no map]", 10, 60), Unnamed("[r2r: damaged]", 20, 90)});
  EXPECT_EQ(TextOf(both), "[r2r: damaged]");
  EXPECT_EQ(both.from.ns, 20u);
  EXPECT_EQ(both.until.ns, 60u);
}

TEST_F(ResolverAnswerTest, ANameHoldsForItsOwnTime) {
  const Resolution named = Ask({Unnamed("[jit: no map]", 10, 60), Named("A.B")});
  EXPECT_EQ(named.until, MonotonicTime::Max());
}

}  // namespace
}  // namespace clrsampler
