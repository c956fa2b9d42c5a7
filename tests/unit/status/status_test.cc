#include "status/status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "status/notices.h"

namespace clrsampler {
namespace {

TEST(StatusTest, TheNearestHintSurvivesTheWayUp) {
  const absl::Status inner = WithHint(ErrnoError(ENOENT, "/x"), "make it");
  const absl::Status outer = WithHint(Annotate(inner, "process 7"), "another hint");
  EXPECT_EQ(HintOf(outer), "make it");
  EXPECT_EQ(outer.message(), "process 7: /x: No such file or directory");
  EXPECT_EQ(outer.code(), absl::StatusCode::kNotFound);
}

TEST(StatusTest, SuccessCarriesNoHint) { EXPECT_TRUE(WithHint(absl::OkStatus(), "x").ok()); }

TEST(NoticesTest, RepetitionsAreCountedAndSaidOnce) {
  Notices notices;
  EXPECT_TRUE(notices.Add("dead", "1", "first"));
  EXPECT_FALSE(notices.Add("dead", "1", "again"));
  EXPECT_TRUE(notices.Add("dead", "2", "other"));
  EXPECT_EQ(notices.counts().at("dead"), 3u);
  EXPECT_EQ(notices.kept().size(), 2u);
}

TEST(NoticesTest, AFloodIsBounded) {
  Notices notices;
  for (int i = 0; i < 10'000; ++i) notices.Add("flood", absl::StrCat(i), "x");
  EXPECT_LE(notices.kept().size(), 101u);  // and the one that says so
  EXPECT_EQ(notices.counts().at("flood"), 10'000u);
}

}  // namespace
}  // namespace clrsampler
