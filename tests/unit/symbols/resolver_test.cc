#include "symbols/resolver.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace clrsampler
