#include "profile/pause_detail.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(absl::string_view detail) {
  std::vector<std::string> texts;
  for (const PauseDelay& delay : PauseDelaysOf(detail)) {
    texts.push_back(absl::StrCat(delay.method, " ", delay.delay_ns));
  }
  return texts;
}

TEST(PauseDetailTest, DelaysAreReadAsTheyWereWritten) {
  const std::vector<Culprit> culprits = {{.method = "Shop.Cart.Sum", .tid = 12, .delay_ns = 2'000'000},
                                         {.method = "Shop.Cart.Add(int; long)", .tid = 13, .delay_ns = 61'000'500'000}};
  EXPECT_EQ(PauseDetail(1, culprits),
            "induced; Shop.Cart.Sum ran on for 2ms; Shop.Cart.Add(int; long) ran on for 1m1.0005s");
  for (const std::optional<uint32_t> reason : {std::optional<uint32_t>(), std::optional<uint32_t>(1)}) {
    EXPECT_THAT(Texts(PauseDetail(reason, culprits)),
                ElementsAre("Shop.Cart.Sum 2000000", "Shop.Cart.Add(int; long) 61000500000"));
  }
  EXPECT_THAT(Texts(PauseDetail(1, {})), IsEmpty());
}

TEST(PauseDetailTest, OtherTextHasNoDelays) {
  for (const char* text : {"", "induced", "; ", " ran on for 2ms", "A ran on for ", "A ran on for -2ms",
                           "A ran on for inf", "A ran on for 200h", "A ran on for 2", "A ran on for 2ms and more"}) {
    EXPECT_THAT(Texts(text), IsEmpty()) << text;
  }
  EXPECT_THAT(Texts("A ran on for 2us; B ran on for no time; C ran on for 3us"), ElementsAre("A 2000"));
}

}  // namespace
}  // namespace clrsampler
