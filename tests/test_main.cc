// The main of all unit tests. With CLRSAMPLER_REQUIRE_LIVE=1, as on CI, a test that skips has failed: what it needs is
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live.h"

namespace {

class SkipsFail : public testing::EmptyTestEventListener {
 public:
  // Before the result is printed: CTest takes a test whose text says SKIPPED for one that did not fail, whatever its
  // exit status is.
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Skipped()) ADD_FAILURE() << "it was skipped, and CLRSAMPLER_REQUIRE_LIVE=1 allows no skip";
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  // The list of listeners owns it, and tells it of a test's end before the printer.
  if (clrsampler::test_support::LiveIsRequired()) testing::UnitTest::GetInstance()->listeners().Append(new SkipsFail);
  return RUN_ALL_TESTS();
}
