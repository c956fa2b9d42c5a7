#include "capture/perf_events.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Opens /dev/null in place of events, or fails as told.
class FakeCpus {
 public:
  int Open(int cpu) {
    opened.push_back(cpu);
    const auto error = errors.find(cpu);
    return error == errors.end() ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -error->second;
  }
  CpuEvents::Open opener() {
    return [this](int cpu) { return Open(cpu); };
  }
  std::vector<int> opened;
  std::map<int, int> errors;
};

absl::Status Follow(CpuEvents& events, std::vector<int> online, bool all_or_nothing) {
  return events.Follow(online, all_or_nothing);
}

TEST(CpuEventsTest, OpensOnlyWhatArrivedAndClosesWhatWent) {
  FakeCpus cpus;
  CpuEvents events(cpus.opener(), "sampling");
  ASSERT_TRUE(Follow(events, {0, 1}, true).ok());
  cpus.opened.clear();
  std::vector<int> closed;
  const std::vector<int> online = {0, 2};
  ASSERT_TRUE(events.Follow(online, false, {}, [&](int cpu) { closed.push_back(cpu); }).ok());
  EXPECT_THAT(cpus.opened, ElementsAre(2));
  EXPECT_THAT(closed, ElementsAre(1));
  EXPECT_THAT(events.cpus(), ElementsAre(0, 2));
  EXPECT_GE(events.events().at(2).get(), 0);
}

TEST(CpuEventsTest, OpensAnewWhatHasStopped) {
  FakeCpus cpus;
  CpuEvents events(cpus.opener(), "sampling");
  ASSERT_TRUE(Follow(events, {0, 1, 2}, true).ok());
  cpus.opened.clear();
  std::vector<int> closed;
  const std::vector<int> online = {0, 1, 3}, stopped = {1, 2};
  ASSERT_TRUE(events.Follow(online, false, stopped, [&](int cpu) { closed.push_back(cpu); }).ok());
  EXPECT_THAT(closed, ElementsAre(1, 2));
  EXPECT_THAT(cpus.opened, ElementsAre(1, 3));
  EXPECT_THAT(events.cpus(), ElementsAre(0, 1, 3));
}

TEST(CpuEventsTest, SkipsACpuThatWentOfflineMeanwhileAndTriesItAgain) {
  FakeCpus cpus;
  cpus.errors[1] = ENODEV;
  CpuEvents events(cpus.opener(), "sampling");
  ASSERT_TRUE(Follow(events, {0, 1}, true).ok());
  EXPECT_THAT(events.cpus(), ElementsAre(0));
  cpus.errors.clear();
  ASSERT_TRUE(Follow(events, {0, 1}, false).ok());
  EXPECT_THAT(events.cpus(), ElementsAre(0, 1));
}

TEST(CpuEventsTest, AllOrNothingLeavesNothingBehind) {
  FakeCpus cpus;
  cpus.errors[1] = EACCES;
  CpuEvents events(cpus.opener(), "sampling");
  const absl::Status status = Follow(events, {0, 1}, true);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("sampling"));
  EXPECT_THAT(HintOf(status), HasSubstr("CAP_PERFMON"));
  EXPECT_THAT(events.cpus(), IsEmpty());
}

TEST(CpuEventsTest, DuringTheRunAFailureIsSaidAndTheOthersGoOn) {
  FakeCpus cpus;
  CpuEvents events(cpus.opener(), "sampling");
  ASSERT_TRUE(Follow(events, {0}, true).ok());
  cpus.errors[1] = EMFILE;
  EXPECT_THAT(HintOf(Follow(events, {0, 1}, false)), HasSubstr("ulimit -n"));
  EXPECT_FALSE(Follow(events, {0, 1}, false).ok()) << "until it works";
  EXPECT_THAT(events.cpus(), ElementsAre(0));
  cpus.errors.clear();
  EXPECT_TRUE(Follow(events, {0, 1}, false).ok());
  EXPECT_THAT(events.cpus(), ElementsAre(0, 1));
}

TEST(CpuEventsTest, NoCpuAtAllIsAnError) {
  FakeCpus cpus;
  cpus.errors[0] = ENODEV;
  CpuEvents events(cpus.opener(), "sampling");
  EXPECT_FALSE(Follow(events, {0}, true).ok());
}

TEST(PerfOpenErrorTest, NamesTheCure) {
  EXPECT_THAT(HintOf(PerfOpenError(EPERM, "x")), HasSubstr("kernel.perf_event_paranoid is "));
  EXPECT_THAT(HintOf(PerfOpenError(EMFILE, "x")), HasSubstr("ulimit -n"));
  EXPECT_THAT(HintOf(PerfOpenError(ENOENT, "x")), HasSubstr("CONFIG_PERF_EVENTS"));
}

}  // namespace
}  // namespace clrsampler
