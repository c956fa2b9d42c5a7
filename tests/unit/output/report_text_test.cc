#include "output/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::Not;

ReportTable TableOf(const std::string& id, size_t rows, double weight) {
  ReportTable table{.id = id,
                    .title = absl::StrCat("Table ", id),
                    .columns = {{"share", "share"}, {"name", "name"}},
                    .weight = weight};
  for (size_t i = 0; i < rows; ++i) {
    const Share share{1.0 / static_cast<double>(i + 1), 0.02};
    AddRow(table, {{ShareCell(share), NameCell(absl::StrCat("Shop.Order.", id, i))}, share.value});
  }
  return table;
}

Report Two() {
  Report report{.title = "clrsampler report: cpu.json"};
  report.tables.push_back({.id = "coverage", .title = "Coverage", .says = {"one", "two", "three", "four"}});
  report.tables.push_back(TableOf("much", 25, 1));
  report.tables.push_back(TableOf("little", 25, 0.1));
  return report;
}

TEST(ReportTextTest, WithRoomEverythingIsThere) {
  const std::string text = ReportMarkdown(Two(), 100'000);
  EXPECT_THAT(text, HasSubstr("# clrsampler report: cpu.json\n\n## Coverage\n"));
  EXPECT_THAT(text, HasSubstr("|share|name|\n|-|-|\n|100 % ± 2|`Shop.Order.much0`|\n|50 % ± 2|`Shop.Order.much1`|\n"));
  EXPECT_THAT(text, HasSubstr("`Shop.Order.little24`"));
  EXPECT_THAT(text, Not(HasSubstr("more row")));
}

TEST(ReportTextTest, RowsOfTheLeastTellingTableGoFirstAndAreCounted) {
  const std::string text = ReportMarkdown(Two(), 1400);
  EXPECT_LE(CountCharacters(text), 1400);
  EXPECT_GT(CountCharacters(text), 1200);
  EXPECT_THAT(text, HasSubstr("`Shop.Order.much9`"));
  EXPECT_THAT(text, HasSubstr("`Shop.Order.little0`"));
  EXPECT_THAT(text, HasSubstr(" more rows.\n"));
  size_t shown = 0;
  for (size_t at = text.find("Shop.Order.little"); at != std::string::npos;
       at = text.find("Shop.Order.little", at + 1)) {
    ++shown;
  }
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", 25 - shown, " more rows.\n")));
}

TEST(ReportTextTest, EveryBudgetIsKeptAndCoverageStays) {
  for (size_t budget = 250; budget < 4000; budget += 50) {
    const std::string text = ReportMarkdown(Two(), budget);
    EXPECT_LE(CountCharacters(text), budget);
    EXPECT_THAT(text, HasSubstr("## Coverage\n\none\n"));
    const std::string json = ReportJson(Two(), budget + 300);
    EXPECT_LE(CountCharacters(json), budget + 300);
  }
}

TEST(ReportTextTest, TablesThatGoAreNamed) {
  const std::string text = ReportMarkdown(Two(), 180);
  EXPECT_THAT(text, HasSubstr("Left out for the budget: "));
  EXPECT_THAT(text, HasSubstr("Table little"));
  EXPECT_THAT(text, HasSubstr("2 more notes.\n"));
}

TEST(ReportTextTest, RowsBeyondTheLimitOfATableAreCounted) {
  EXPECT_EQ(TableOf("many", kMaxReportRows + 12, 1).more_rows, 12);
}

TEST(ReportTextTest, NamesOfTargetsCanNotBreakTheTable) {
  Report report{.title = "t"};
  report.tables.push_back({.id = "a", .title = "A", .columns = {{"name", "name"}}});
  AddRow(report.tables[0], {{NameCell("a|b`c\n## d")}, 1});
  const std::string text = ReportMarkdown(report, 1000);
  EXPECT_THAT(text, HasSubstr("|`` a\\|b`c"));
  EXPECT_THAT(text, Not(HasSubstr("\n## d")));
  AddRow(report.tables[0], {{NameCell("a``*b*`")}, 1});
  EXPECT_THAT(ReportMarkdown(report, 1000), HasSubstr("|``` a``*b*` ```|"));
}

TEST(ReportTextTest, JsonHasTheSameRowsWithNumbers) {
  const nlohmann::json json = nlohmann::json::parse(ReportJson(Two(), 100'000));
  ASSERT_EQ(json["sections"].size(), 3);
  const nlohmann::json& row = json["sections"][1]["rows"][1];
  EXPECT_DOUBLE_EQ(row["share"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(row["share_error"].get<double>(), 0.02);
  EXPECT_EQ(row["name"], "Shop.Order.much1");
}

TEST(ReportTextTest, LongNamesEndInAnEllipsis) {
  const ReportCell cell = NameCell(std::string(1000, 'x'));
  EXPECT_EQ(CountCharacters(cell.text), 160);
  EXPECT_TRUE(cell.text.ends_with("…"));
}

}  // namespace
}  // namespace clrsampler
