#include "output/report_waits.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One thread of the pool that waited for a task, for 10 s.
ProfileModel Waits(WeightUnit unit, uint64_t weight, const std::string& account = "", uint32_t tid = 8) {
  ProfileModelBuilder builder;
  builder.meta().view = ProfileView::kWall;
  builder.meta().unit = unit;
  builder.meta().duration_ns = 10'000'000'000;
  builder.meta().account_json = account;
  std::vector<FrameIndex> frames;
  for (const char* name :
       {"System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart", "Shop.Place", "[task wait]"}) {
    const ModelFrameKind kind = name[0] == '[' ? ModelFrameKind::kMark : ModelFrameKind::kJit;
    frames.push_back(builder.Frame({.kind = kind, .name = builder.String(name)}));
  }
  builder.Add({.time_ns = 1,
               .thread = builder.Thread({.pid = 7, .tid = tid}),
               .stack = builder.Stack(frames),
               .weight = weight});
  return *std::move(builder).Build();
}

// Sentences and cells of the tables, a line each.
std::string Text(const ProfileModel& model) {
  const absl::StatusOr<std::vector<ReportTable>> tables = WaitTables(model);
  if (!tables.ok()) return tables.status().ToString();
  std::string text;
  for (const ReportTable& table : *tables) {
    for (const std::string& says : table.says) absl::StrAppend(&text, says, "\n");
    for (const ReportRow& row : table.rows) {
      for (const ReportCell& cell : row.cells) absl::StrAppend(&text, "|", cell.text);
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

TEST(ReportWaitsTest, TimesAreThoseOfTheUnit) {
  for (const ProfileModel& model :
       {Waits(WeightUnit::kMicroseconds, 10'000'000), Waits(WeightUnit::kNanoseconds, 10'000'000'000)}) {
    EXPECT_THAT(Text(model), HasSubstr("|10.00 s|1.0|task wait|Shop.Place|unknown\n"));
  }
}

TEST(ReportWaitsTest, AUnitThatIsNoTimeIsAnError) {
  EXPECT_THAT(Text(Waits(WeightUnit::kBytes, 10)), HasSubstr("a profile of waits counts in bytes"));
  EXPECT_THAT(Text(Waits(WeightUnit::kSamples, 10)), HasSubstr("counts in samples, which is no time"));
}

TEST(ReportWaitsTest, TimesBeyondAllBoundsStayTheLargest) {
  const ProfileModel model = Waits(WeightUnit::kMicroseconds, uint64_t{1} << 62);
  const std::vector<ReportTable> tables = *WaitTables(model);
  ASSERT_FALSE(tables[1].rows.empty());
  EXPECT_GT(std::get<double>(tables[1].rows[0].cells[0].value), 1.8e10);
}

TEST(ReportWaitsTest, ThePoolSOwnNumbersStandBesideTheVerdict) {
  const auto text = [](const std::string& numbers) {
    return Text(Waits(WeightUnit::kMicroseconds, 10'000'000, absl::StrCat(R"({"thread_pool_numbers":)", numbers, "}")));
  };
  EXPECT_THAT(text(R"({"workers":6,"min_workers":2,"max_workers":6,"queued":130})"),
              AllOf(HasSubstr("The thread pool is starved: 1 of 1 workers wait"),
                    HasSubstr("130 work items are queued; it has all the 6 workers that it may have"),
                    HasSubstr("By its own fields the pool has 6 workers, keeps at least 2 and may have 6.\n")));
  EXPECT_THAT(text(R"({"workers":6,"min_workers":2,"max_workers":64})"),
              AllOf(HasSubstr("may have 64"), Not(HasSubstr("queued"))));
  for (const char* other : {"7", "{}", R"({"workers":6,"min_workers":2,"max_workers":0})",
                            R"({"workers":6,"min_workers":2,"max_workers":4294967296})",
                            R"({"workers":-6,"min_workers":2,"max_workers":6})"}) {
    EXPECT_THAT(text(other), AllOf(HasSubstr("The thread pool is"), Not(HasSubstr("own fields")))) << other;
  }
}

TEST(ReportWaitsTest, WithoutThreadsNothingIsSaidOfThePool) {
  EXPECT_THAT(Text(Waits(WeightUnit::kMicroseconds, 10'000'000, "", 0)),
              AllOf(HasSubstr("The profile does not tell threads apart, so nothing is known of a thread pool.\n"),
                    Not(HasSubstr("No worker"))));
}

TEST(ReportWaitsTest, WhatThePoolLetsWorkComesFromTheAccount) {
  const auto starved = [](const std::string& numbers) {
    ProfileModelBuilder builder;
    builder.meta() = Waits(WeightUnit::kMicroseconds, 1).meta;
    builder.meta().account_json = absl::StrCat(R"({"thread_pool_numbers":)", numbers, "}");
    const FrameIndex start =
        builder.Frame({.kind = ModelFrameKind::kJit,
                       .name = builder.String("System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart")});
    const FrameIndex idle = builder.Frame(
        {.kind = ModelFrameKind::kJit, .name = builder.String("System.Threading.LowLevelLifoSemaphore.WaitForSignal")});
    for (uint32_t tid : {8, 9}) {
      const FrameIndex mark =
          builder.Frame({.kind = ModelFrameKind::kMark, .name = builder.String(tid == 8 ? "[task wait]" : "[idle]")});
      const std::vector<FrameIndex> stack = tid == 8 ? std::vector{start, mark} : std::vector{start, idle, mark};
      builder.Add({.time_ns = 1,
                   .thread = builder.Thread({.pid = 7, .tid = tid}),
                   .stack = builder.Stack(stack),
                   .weight = 1'000'000});
    }
    return Text(*std::move(builder).Build());
  };
  const std::string known = R"({"workers":2,"min_workers":1,"max_workers":6,"queued":130)";
  EXPECT_THAT(starved(known + R"(,"working":1,"wanted":1})"), HasSubstr("The thread pool is starved: 1 of 2 workers"));
  EXPECT_THAT(starved(known + R"(,"working":1,"wanted":2})"), HasSubstr("The thread pool is not starved"));
  EXPECT_THAT(starved(known + R"(,"working":1,"wanted":4294967296})"), HasSubstr("The thread pool is not starved"));
  EXPECT_THAT(starved(known + "}"), HasSubstr("The thread pool is not starved"));
}

}  // namespace
}  // namespace clrsampler
