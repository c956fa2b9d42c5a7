#include "profile/labels_by_pid.h"

#include <gtest/gtest.h>

#include <vector>

#include "profile/account.h"

namespace clrsampler {
namespace {

ProcessAccount Named(uint32_t pid, const std::string& service) {
  ProcessAccount process;
  process.pid = pid;
  process.labels.Set(LabelKey::kServiceName, service);
  return process;
}

TEST(LabelsByPidTest, AReusedPidHasNoLabelsUnlessTheyAreTheSame) {
  const auto labels =
      LabelsByPid(std::vector{Named(1, "shop"), Named(2, "shop"), Named(2, "other"), Named(3, "a"), Named(3, "a"),
                              Named(4, ""), Named(5, "x"), Named(5, ""), Named(2, "shop")});
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels.at(1).service(), "shop");
  EXPECT_EQ(labels.at(3).service(), "a");
}

}  // namespace
}  // namespace clrsampler
