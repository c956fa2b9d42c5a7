// The main of all unit tests. With CLRSAMPLER_REQUIRE_LIVE=1, as on CI, a test that skips has failed: what it needs is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

class SkipCounter : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Skipped()) return;
    ++skipped_;
    std::printf("SKIPPED %s.%s\n", info.test_suite_name(), info.name());
  }
  int skipped() const { return skipped_; }

 private:
  int skipped_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  auto* const counter = new SkipCounter;
  testing::UnitTest::GetInstance()->listeners().Append(counter);  // which owns it
  const int result = RUN_ALL_TESTS();
  const char* const required = std::getenv("CLRSAMPLER_REQUIRE_LIVE");
  if (counter->skipped() > 0 && required != nullptr && std::strcmp(required, "1") == 0) {
    std::printf("%d tests were skipped, and CLRSAMPLER_REQUIRE_LIVE=1 allows none\n", counter->skipped());
    return 1;
  }
  return result;
}
