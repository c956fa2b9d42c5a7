#include "runtime_events/thread_creation_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr ProcessKey kCreator{41, 7}, kOtherCreator{42, 7};

class ThreadCreationWatchTest : public testing::Test {
 protected:
  ThreadCreationWatchTest()
      : watch_(
            [this](const ThreadCreation& creation) {
              told_.push_back(absl::StrCat(creation.time.ns, " ", creation.creator, ">", creation.created, " ",
                                           absl::StrJoin(creation.stack, ";"), " in ", creation.method));
            },
            frames_) {}

  FrameId Managed(const char* text, NameSource source = NameSource::kRuntimeMemory) {
    return frames_.Intern(Frame{FrameKind::kJit, source, text, "Shop", ""});
  }
  FrameId Native(const char* text) {
    return frames_.Intern(Frame{FrameKind::kNative, NameSource::kElfSymbols, text, "libcoreclr.so", ""});
  }
  void Create(uint64_t time, uint32_t creator, uint32_t created, bool has_stack = true, ProcessKey key = kCreator) {
    wire_thread thread{};
    thread.header = {sizeof thread, WIRE_THREAD, 0, time};
    thread.tid = creator;
    thread.created_tid = created;
    thread.has_stack = has_stack ? 1 : 0;
    watch_.Handle(key, thread);
  }
  void Stack(uint64_t time, uint32_t creator, const std::vector<FrameId>& frames) {
    wire_cpu_sample sample{};
    sample.header = {sizeof sample, WIRE_THREAD_STACK, 0, time};
    sample.tid = creator;
    watch_.HandleStack(kCreator, sample, frames);
  }

  FrameTable frames_;
  std::vector<std::string> told_;
  ThreadCreationWatch watch_;
};

TEST_F(ThreadCreationWatchTest, SaysTheMethodThatMakesTheThreadAndNotTheLibrarysOwn) {
  Create(10, 1, 5);
  EXPECT_THAT(told_, IsEmpty());
  Stack(10, 1,
        {Managed("Shop.Main"), Managed("Shop.Pool.Grow"), Managed("System.Threading.Thread.Start"), Native("clone")});
  EXPECT_THAT(told_,
              ElementsAre("10 1>5 Shop.Main;Shop.Pool.Grow;System.Threading.Thread.Start;clone in Shop.Pool.Grow"));
}

TEST_F(ThreadCreationWatchTest, AThreadOfTheRuntimesOwnHasNoMethod) {
  Create(10, 1, 5);
  Stack(10, 1, {Native("start_thread"), Managed("[jit]", NameSource::kNone), Native("clone")});
  EXPECT_THAT(told_, ElementsAre("10 1>5 start_thread;[jit];clone in "));
}

TEST_F(ThreadCreationWatchTest, IsToldWithoutAStackWhereNoneWasTaken) {
  Create(10, 1, 5, /*has_stack=*/false);
  EXPECT_THAT(told_, ElementsAre("10 1>5  in "));
}

TEST_F(ThreadCreationWatchTest, AStackThatDoesNotComeHoldsUpNothing) {
  Create(10, 1, 5);
  Create(20, 1, 6);
  Stack(10, 1, {Managed("Shop.Late")});  // of another time than the one that waits
  Stack(20, 1, {Managed("Shop.Main")});
  EXPECT_THAT(told_, ElementsAre("10 1>5  in ", "20 1>6 Shop.Main in Shop.Main"));
}

TEST_F(ThreadCreationWatchTest, AStackThatIsLostIsNotWaitedForWhenItsTimeIsOver) {
  Create(10, 1, 5);
  Create(11, 2, 6, true, kOtherCreator);
  Create(12, 3, 7);
  watch_.Reach({12});
  EXPECT_THAT(told_, UnorderedElementsAre("10 1>5  in ", "11 2>6  in "));
  Stack(12, 3, {Managed("Shop.Main")});
  EXPECT_EQ(told_.back(), "12 3>7 Shop.Main in Shop.Main");
  watch_.Reach(MonotonicTime::Max());
  EXPECT_EQ(told_.size(), 3u);
}

}  // namespace
}  // namespace clrsampler
