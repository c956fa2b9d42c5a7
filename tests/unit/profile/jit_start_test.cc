#include "profile/jit_start.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace clrsampler {
namespace {

constexpr uint64_t kNow = 1'000'000'000'000;
using Words = std::array<__u64, WIRE_START_WORDS>;

// As on .NET 10: the first place is something else's.
Words Second(uint64_t began) { return {0x7f00'1234, 3, 0, began}; }

class JitStartTest : public testing::Test {
 protected:
  // `count` compilations a millisecond apart, each called 4 us after the word's time.
  void See(int count, uint64_t gap = 4'000) {
    for (int i = 0; i < count; ++i) {
      at_ += 1'000'000;
      start_.Compare(Second(at_ - gap), {at_});
    }
  }

  JitStart start_;
  uint64_t at_ = kNow;
};

TEST_F(JitStartTest, IsBelievedAfterManyThatAgree) {
  See(63);
  EXPECT_FALSE(start_.proven());
  EXPECT_EQ(start_.Of(Second(kNow), {kNow + 10}), std::nullopt);
  See(1);
  ASSERT_TRUE(start_.proven());
  // The call comes some microseconds after the time that is noted.
  EXPECT_EQ(start_.Of(Second(at_), {at_ + 500'000})->ns, at_ + 4'000);
  // A compilation does not begin after its end.
  EXPECT_EQ(start_.Of(Second(at_), {at_ + 1'000})->ns, at_ + 1'000);
}

TEST_F(JitStartTest, NoTimeThatCanBeIsNone) {
  See(64);
  EXPECT_EQ(start_.Of(Second(at_ + 1), {at_}), std::nullopt) << "later than its end";
  EXPECT_EQ(start_.Of(Second(0), {at_}), std::nullopt) << "could not be read";
  EXPECT_EQ(start_.Of(Second(0x7f00'1234), {at_}), std::nullopt) << "an address";
}

TEST_F(JitStartTest, ThreadsThatWaitBeforeTheCallProveNothingAndNotTheContrary) {
  See(30);
  See(4, 20'000'000);
  See(30);
  EXPECT_TRUE(start_.proven());
  JitStart often;
  for (int i = 0; i < 200; ++i)
    often.Compare(Second(kNow + i * 100'000'000ull), {kNow + i * 100'000'000ull + 20'000'000});
  EXPECT_FALSE(often.proven());
}

TEST_F(JitStartTest, ATimeAfterTheCallDisproves) {
  See(63);
  start_.Compare(Second(at_ + 1), {at_});
  See(63);
  EXPECT_FALSE(start_.proven()) << "in a row";
  See(1);
  EXPECT_TRUE(start_.proven());
  start_.Compare(Second(at_ + 1), {at_});
  EXPECT_FALSE(start_.proven());
  See(500);
  EXPECT_FALSE(start_.proven()) << "what was wrong once after its proof is not asked again";
}

TEST_F(JitStartTest, TheEndOfTheCompilationBeforeIsNotTheBeginning) {
  // Both lie next to each other; in a storm the one comes a moment before the other.
  for (int i = 0; i < 500; ++i) {
    at_ += 100'000;
    start_.Compare(Words{0, 0, at_ - 4'000, at_ - 9'000}, {at_});
  }
  EXPECT_FALSE(start_.proven());
}

TEST_F(JitStartTest, EitherPlace) {
  for (int i = 0; i < 64; ++i) {
    at_ += 1'000'000;
    // .NET 8: the word at the second place is a time of long ago, left by another call.
    start_.Compare(Words{0, at_ - 2'000, 5, kNow - 60'000'000'000}, {at_});
  }
  ASSERT_TRUE(start_.proven());
  EXPECT_EQ(start_.Of(Words{0, at_, 5, 7}, {at_ + 500'000})->ns, at_ + 2'000);
}

}  // namespace
}  // namespace clrsampler
