#include "process/per_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/process.h"
#include "process/program_ends.h"
#include "process/target_files.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointee;

class PerProcessTest : public ::testing::Test {
 protected:
  Process Make(uint32_t tgid) const {
    Process process({tgid, 1}, TargetFiles("/nonexistent", tgid));
    process.ends = ends_;
    return process;
  }

  const std::shared_ptr<ProgramEnds> ends_ = std::make_shared<ProgramEnds>();
  const Process shop_ = Make(1), web_ = Make(2);
};

TEST_F(PerProcessTest, AStateIsMadeAtTheFirstCallAndStaysWhereItIs) {
  PerProcess<int> states;
  EXPECT_EQ(states.Find(shop_.key), nullptr);
  int& state = states.Of(shop_);
  state = 5;
  for (uint32_t tgid = 3; tgid < 1000; ++tgid) states.Of(Make(tgid)) = 7;
  EXPECT_EQ(&states.Of(shop_), &state);
  EXPECT_THAT(states.Find(shop_.key), Pointee(5));
}

TEST_F(PerProcessTest, AStateGoesWithTheProgramAndOthersStay) {
  std::vector<std::string> gone;
  PerProcess<std::string> states(
      [&](ProcessKey key, std::string& state) { gone.push_back(std::to_string(key.tgid) + state); });
  states.Of(shop_) = "cart";
  states.Of(web_) = "page";
  ends_->Announce(shop_.key);
  EXPECT_EQ(states.Find(shop_.key), nullptr);
  EXPECT_THAT(states.Find(web_.key), Pointee(std::string("page")));
  EXPECT_THAT(gone, ElementsAre("1cart"));
  ends_->Announce(shop_.key);
  EXPECT_THAT(gone, ElementsAre("1cart")) << "nothing was kept that could go";
  EXPECT_THAT(states.Of(shop_), IsEmpty()) << "it runs another program, of which nothing is known";
}

TEST_F(PerProcessTest, AStateHasLeftWhenItsEndIsHeardOf) {
  PerProcess<int>* map = nullptr;
  std::optional<bool> found;
  PerProcess<int> states([&](ProcessKey key, int&) { found = map->Find(key) != nullptr; });
  map = &states;
  states.Of(shop_) = 1;
  states.End(shop_.key);
  EXPECT_EQ(found, false);
}

TEST_F(PerProcessTest, AMapMayGoBeforeTheTableAndAfterIt) {
  auto first = std::make_unique<PerProcess<int>>();
  first->Of(shop_) = 1;
  first.reset();
  ends_->Announce(shop_.key);

  PerProcess<int> second;
  {
    const Process alone({3, 1}, TargetFiles("/nonexistent", 3));
    second.Of(alone) = 1;
    alone.ends->Announce(alone.key);
    EXPECT_EQ(second.Find(alone.key), nullptr);
  }
}

// A source of names owns others, which go with what one process has of them.
TEST_F(PerProcessTest, MapsMayComeAndGoWhileAnEndIsAnnounced) {
  int heard = 0;
  auto inner = std::make_unique<PerProcess<int>>([&](ProcessKey, int&) { ++heard; });
  PerProcess<int> late([&](ProcessKey, int&) { ++heard; });
  PerProcess<int> outer([&](ProcessKey, int&) {
    inner.reset();
    late.Of(shop_) = 3;
  });
  outer.Of(shop_) = 1;
  inner->Of(shop_) = 2;
  ends_->Announce(shop_.key);
  EXPECT_EQ(heard, 0) << "one was gone, and the other came when the announcement was under way";
  EXPECT_THAT(late.Find(shop_.key), Pointee(3));
  ends_->Announce(shop_.key);
  EXPECT_EQ(heard, 1);
}

}  // namespace
}  // namespace clrsampler
