#include "status/thread_checker.h"

#include <gtest/gtest.h>

#include <thread>

namespace clrsampler {
namespace {

void CheckOnAnotherThread(const ThreadChecker& checker) {
  std::thread([&checker] { checker.Check(); }).join();
}

TEST(ThreadChecker, OneThreadMayCallAsOftenAsItLikes) {
  const ThreadChecker checker;
  checker.Check();
  checker.Check();
}

TEST(ThreadChecker, TheFirstCallSaysWhichThreadItIs) {
  const ThreadChecker checker;
  CheckOnAnotherThread(checker);
}

TEST(ThreadChecker, ACopyBelongsToNoThreadYet) {
  const ThreadChecker checker;
  checker.Check();
  const ThreadChecker copy = checker;
  CheckOnAnotherThread(copy);
}

#ifdef NDEBUG
struct Counter {
  int count = 0;
  [[no_unique_address]] ThreadChecker main_loop;
};
static_assert(sizeof(Counter) == sizeof(int), "it costs nothing where nothing is checked");

TEST(ThreadChecker, NothingIsCheckedWithoutAssertions) {
  const ThreadChecker checker;
  checker.Check();
  CheckOnAnotherThread(checker);
}
#else
TEST(ThreadCheckerDeathTest, ASecondThreadEndsTheProgramWithThePlaceOfTheCall) {
  const ThreadChecker checker;
  checker.Check();
  EXPECT_DEATH(CheckOnAnotherThread(checker), "thread_checker_test.cc:[0-9]+: .* was called on a second thread");
}
#endif

}  // namespace
}  // namespace clrsampler
