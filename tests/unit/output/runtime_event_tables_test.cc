#include "output/runtime_event_tables.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "os/clock.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RuntimeEventTablesTest : public testing::Test {
 protected:
  RuntimeEventTablesTest() { builder_.meta().duration_ns = 10'000 * kMillisecondNs; }
  void Add(ModelEventKind kind, uint64_t time_ns, uint64_t duration_ns, const std::string& name,
           const std::string& detail, uint32_t tid = 8) {
    builder_.Event({.time_ns = time_ns,
                    .duration_ns = duration_ns,
                    .thread = builder_.Thread({.pid = 7, .tid = tid}),
                    .kind = kind,
                    .name = builder_.String(name),
                    .detail = builder_.String(detail)});
  }
  std::string Text() {
    std::string text;
    for (const ReportTable& table : RuntimeEventTables(*std::move(builder_).Build())) {
      absl::StrAppend(&text, "## ", table.id, "\n");
      for (const std::string& says : table.says) absl::StrAppend(&text, says, "\n");
      for (const ReportRow& row : table.rows) {
        EXPECT_EQ(row.cells.size(), table.columns.size());
        for (const ReportCell& cell : row.cells) absl::StrAppend(&text, "|", cell.text);
        absl::StrAppend(&text, "\n");
      }
    }
    return text;
  }

  ProfileModelBuilder builder_;
};

TEST_F(RuntimeEventTablesTest, PausesHaveWhatDelayedThem) {
  Add(ModelEventKind::kPause, 1 * kMillisecondNs, 20 * kMillisecondNs, "blocking gen2",
      "induced; Shop.Cache.Rebuild ran on for 15ms");
  Add(ModelEventKind::kPause, 90 * kMillisecondNs, 10 * kMillisecondNs, "blocking gen2", "induced");
  Add(ModelEventKind::kPause, 70 * kMillisecondNs, 10 * kMillisecondNs, "rejit", "");
  Add(ModelEventKind::kCollection, 80 * kMillisecondNs, 0, "background gen2 ended", "");
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("3 pauses took 40.0 ms of 10.0 s (0.4 %).\n1 collection in the background ended.\n"));
  EXPECT_THAT(text, HasSubstr("|30.0 ms|2|20.0 ms|blocking gen2\n|10.0 ms|1|10.0 ms|rejit\n"));
  EXPECT_THAT(text, HasSubstr("|15.0 ms|1|15.0 ms|Shop.Cache.Rebuild\n"));
  EXPECT_THAT(text, HasSubstr("Nothing was compiled.\n"));
}

TEST_F(RuntimeEventTablesTest, ACompilationInsideAnotherCountsOnce) {
  Add(ModelEventKind::kCompilation, 10 * kMillisecondNs, 10 * kMillisecondNs, "Shop.Outer", "Tier0");
  Add(ModelEventKind::kCompilation, 12 * kMillisecondNs, 4 * kMillisecondNs, "Shop.Inner", "Tier0");
  Add(ModelEventKind::kCompilation, 17 * kMillisecondNs, 1 * kMillisecondNs, "Shop.Inner", "OptimizedTier1");
  Add(ModelEventKind::kCompilation, 12 * kMillisecondNs, 3 * kMillisecondNs, "Shop.Beside", "", 9);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("No pause was seen.\n"));
  EXPECT_THAT(text, HasSubstr("4 compilations took 13.0 ms, 0.1 % of one CPU.\n"));
  EXPECT_THAT(text, HasSubstr("|5.00 ms|2|4.00 ms|Shop.Inner\n|5.00 ms|1|5.00 ms|Shop.Outer\n"));
  EXPECT_THAT(text, HasSubstr("|9.00 ms|2|5.00 ms|Tier0\n|3.00 ms|1|3.00 ms|unknown\n"));
  EXPECT_THAT(text, Not(HasSubstr("compilation_callers")));
}

TEST_F(RuntimeEventTablesTest, SumsOfAnyTimesStayTheLargest) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < 2; ++i) {
    Add(ModelEventKind::kPause, kMost, kMost, "rejit", "");
    Add(ModelEventKind::kCompilation, kMost - 1, kMost, "A", "Tier0");
  }
  const std::vector<ReportTable> tables = RuntimeEventTables(*std::move(builder_).Build());
  EXPECT_DOUBLE_EQ(std::get<double>(tables.front().rows.front().cells[0].value), static_cast<double>(kMost) / 1e9);
}

TEST_F(RuntimeEventTablesTest, WithoutEventsTheCommandIsNamed) {
  EXPECT_THAT(Text(), HasSubstr("The profile has neither pauses nor compilations. `clrsampler record"));
}

}  // namespace
}  // namespace clrsampler
