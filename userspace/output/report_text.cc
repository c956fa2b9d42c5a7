#include "output/report_text.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace clrsampler {
namespace {

// A pipe ends a cell even in a code span. As many backticks as began a span end it, so it begins with more than its
// text has in a row.
std::string CellText(const ReportCell& cell) {
  if (cell.text.empty()) return "";
  std::string text = absl::StrReplaceAll(cell.text, {{"|", "\\|"}});
  if (!cell.is_code) return text;
  size_t most = 0, run = 0;
  for (const char c : text) most = std::max(most, run = c == '`' ? run + 1 : 0);
  const std::string fence(most + 1, '`');
  return most == 0 ? absl::StrCat(fence, text, fence) : absl::StrCat(fence, " ", text, " ", fence);
}

void AddTable(const ReportTable& table, std::string& text) {
  absl::StrAppend(&text, "\n## ", table.title, "\n");
  for (const std::string& sentence : table.says) absl::StrAppend(&text, "\n", sentence, "\n");
  if (table.more_says > 0) absl::StrAppend(&text, "\n", table.more_says, " more notes.\n");
  if (!table.rows.empty()) {
    absl::StrAppend(&text, "\n|");
    for (const ReportColumn& column : table.columns) absl::StrAppend(&text, column.title, "|");
    absl::StrAppend(&text, "\n|");
    for (size_t i = 0; i < table.columns.size(); ++i) absl::StrAppend(&text, "-|");
    absl::StrAppend(&text, "\n");
    for (const ReportRow& row : table.rows) {
      absl::StrAppend(&text, "|");
      for (const ReportCell& cell : row.cells) absl::StrAppend(&text, CellText(cell), "|");
      absl::StrAppend(&text, "\n");
    }
  }
  if (table.more_rows > 0) {
    absl::StrAppend(&text, "\n", table.more_rows, table.more_rows == 1 ? " more row.\n" : " more rows.\n");
  }
}

std::string Markdown(const Report& report) {
  std::string text = absl::StrCat("# ", report.title, "\n");
  for (const ReportTable& table : report.tables) AddTable(table, text);
  if (!report.more_sections.empty()) {
    absl::StrAppend(&text, "\nLeft out for the budget: ", absl::StrJoin(report.more_sections, ", "), ".\n");
  }
  return text;
}

using Object = nlohmann::ordered_json;

Object RowObject(const ReportTable& table, const ReportRow& row) {
  Object object = Object::object();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& key = table.columns[i].key;
    std::visit([&](const auto& value) { object[key] = value; }, row.cells[i].value);
    if (row.cells[i].error) object[key + "_error"] = *row.cells[i].error;
  }
  return object;
}

std::string JsonOf(const Report& report) {
  Object json = {{"title", report.title}, {"sections", Object::array()}, {"left_out", report.more_sections}};
  for (const ReportTable& table : report.tables) {
    Object rows = Object::array();
    for (const ReportRow& row : table.rows) rows.push_back(RowObject(table, row));
    json["sections"].push_back({{"id", table.id},
                                {"title", table.title},
                                {"says", table.says},
                                {"rows", std::move(rows)},
                                {"more_rows", table.more_rows},
                                {"more_says", table.more_says}});
  }
  return json.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n";
}

std::string Fit(Report report, size_t budget, const std::function<std::string(const Report&)>& write) {
  while (true) {
    std::string text = write(report);
    const size_t characters = CountCharacters(text);
    if (characters <= budget || !LeaveOutLeast(report)) return text;
    // Far from the limit many rows go at once. The note about them takes less room than they did.
    const auto rows = [&] {
      size_t all = 0;
      for (const ReportTable& table : report.tables) all += table.rows.size();
      return all;
    };
    for (size_t i = (characters - budget) * rows() / (2 * characters); i > 0 && rows() > report.tables.size(); --i) {
      LeaveOutLeast(report);
    }
  }
}

}  // namespace

std::string ReportMarkdown(Report report, size_t budget) { return Fit(std::move(report), budget, Markdown); }

std::string ReportJson(Report report, size_t budget) { return Fit(std::move(report), budget, JsonOf); }

}  // namespace clrsampler
