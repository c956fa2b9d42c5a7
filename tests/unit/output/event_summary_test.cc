#include "output/event_summary.h"

#include <gmock/gmock.h>

namespace clrsampler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EventSummaryTest : public ::testing::Test {
 protected:
  FrameId Managed(const char* text) {
    return frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump, text, "", ""});
  }
  FrameId Type(const char* text) {
    return frames_.Intern(Frame{FrameKind::kType, NameSource::kRuntimeEvent, text, "", ""});
  }
  void Add(std::vector<FrameId> frames, uint64_t weight) {
    stacks_.Add(stacks_.Intern(stacks_.InternLabel("dotnet"), frames), weight);
  }
  std::string Text(ProfileView view, size_t rows = 5) {
    return EventSummaryText(view, frames_, stacks_, account_, rows);
  }

  FrameTable frames_;
  StackTable stacks_;
  Account account_;
};

TEST_F(EventSummaryTest, ExceptionsByTypeAndByTheMethodThatThrows) {
  Add({Managed("Main"), Managed("Shop.Take"), Type("Out\x1bOfStock")}, 30);
  Add({Managed("Main"), Managed("Shop.Take"), Type("Shop.Closed")}, 10);
  account_.duration_seconds = 2;
  const std::string text = Text(ProfileView::kExceptions, 1);
  EXPECT_THAT(text, HasSubstr("40 exceptions were thrown in 2.0 s, 20.0 a second\n"));
  EXPECT_THAT(text, HasSubstr("    15.000   75.0 %  Out?OfStock\n"));
  EXPECT_THAT(text, HasSubstr("and 1 more"));
  EXPECT_THAT(text, HasSubstr("    20.000  100.0 %  Shop.Take\n"));
}

TEST_F(EventSummaryTest, OneExceptionIsOne) {
  Add({Managed("Main"), Type("OutOfStock")}, 1);
  account_.duration_seconds = 1;
  EXPECT_THAT(Text(ProfileView::kExceptions), HasSubstr("1 exception was thrown in 1.0 s"));
}

TEST_F(EventSummaryTest, WaitsByTheMethodThatWaits) {
  Add({Managed("Main"), Managed("Shop.Add")}, 30'000'000);
  Add({Managed("Shop.Sum")}, 10'000'000);
  account_.duration_seconds = 2;
  account_.samples_written = 3;
  const std::string text = Text(ProfileView::kContention);
  EXPECT_THAT(text, HasSubstr("3 waits for locks took 0.040 s together, in 2.0 s\n"));
  EXPECT_THAT(text, HasSubstr("    15.000   75.0 %  Shop.Add\n"));
  EXPECT_THAT(text, HasSubstr("     5.000   25.0 %  Shop.Sum\n"));
  EXPECT_THAT(text, Not(HasSubstr("Main")));
}

TEST_F(EventSummaryTest, NothingIsSaidToBeNothing) {
  account_.duration_seconds = 1;
  EXPECT_THAT(Text(ProfileView::kExceptions), HasSubstr("no exception was thrown in 1.0 s"));
  EXPECT_THAT(Text(ProfileView::kContention), HasSubstr("no thread waited for a lock in 1.0 s"));
  EXPECT_THAT(Text(ProfileView::kAllocations), HasSubstr("nothing was seen to be allocated in 1.0 s"));
}

TEST_F(EventSummaryTest, LostTicksAreSaid) {
  Add({Managed("Main"), Type("string")}, 10'000'000);
  account_.duration_seconds = 1;
  account_.events = {{"lost", 0}};
  EXPECT_THAT(Text(ProfileView::kAllocations), HasSubstr("10.0 MB/s; every 100 KB of them was seen"));
  account_.events = {{"lost", 7}};
  EXPECT_THAT(Text(ProfileView::kAllocations), HasSubstr("10.0 MB/s; more were, since events were lost"));
}

}  // namespace
}  // namespace clrsampler
