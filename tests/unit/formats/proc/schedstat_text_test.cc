#include "formats/proc/schedstat_text.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

TEST(SchedstatTextTest, TheThirdNumberIsHowOftenItHasGotACpu) {
  EXPECT_EQ(ArrivalsOf("1203873 90912 17\n"), 17u);
  EXPECT_EQ(ArrivalsOf("0 0 0\n"), 0u);
}

TEST(SchedstatTextTest, AnotherTextHasNone) {
  for (const char* text : {"", "5", "5 6", "5 6 ", "a b c", "5  6 7", "99999999999999999999 6 7"}) {
    EXPECT_EQ(ArrivalsOf(text), 0u) << text;
  }
}

}  // namespace
}  // namespace clrsampler
