// A report: what profiles of a program say, as tables that are short enough to be read whole. The value that the texts
// of `clrsampler report` and the answers of `clrsampler mcp` are made of.
//
//   report_coverage, report_cpu, report_waits, ...   a profile -> tables
//   report_text, report_json                         tables -> text, within a budget of characters
//
// Values, without locks.
#ifndef CLRSAMPLER_OUTPUT_REPORT_H_
#define CLRSAMPLER_OUTPUT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "output/share.h"

namespace clrsampler {

// One number or name, as people and as programs read it.
struct ReportCell {
  std::string text;
  std::variant<std::string, double, uint64_t> value;
  std::optional<double> error;  // standard error, in the unit of the value
  bool is_code = false;         // a name of the program
};
ReportCell NameCell(const std::string& name);  // of code; made printable
ReportCell WordCell(const std::string& word);  // made printable
ReportCell CountCell(uint64_t count);
ReportCell ShareCell(const Share& share);    // the value is a fraction: 0.31
ReportCell DurationCell(uint64_t ns);        // the value is in seconds
ReportCell NumberCell(double number);        // with one decimal
ReportCell MegabytesCell(double megabytes);  // likewise

struct ReportColumn {
  std::string key;  // of the value in JSON; its error has "_error" behind that
  std::string title;
};

struct ReportRow {
  std::vector<ReportCell> cells;  // one for each column
  double tells = 0;               // how much of what the table is about: from 0 to 1
};

struct ReportTable {
  std::string id;                 // in JSON
  std::string title;              // for people
  std::vector<std::string> says;  // sentences in front of the table
  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;  // most telling first
  uint64_t more_rows = 0;       // that are left out
  uint64_t more_says = 0;       // likewise
  double weight = 1;            // how much its rows tell beside those of other tables
};

struct Report {
  std::string title;
  std::vector<ReportTable> tables;         // in the order in which they are read; what they rest on comes first
  std::vector<std::string> more_sections;  // titles of tables that are left out whole
};

// So many rows of a table are kept at most, whatever the budget.
inline constexpr size_t kMaxReportRows = 30;
// Adds a row, or counts it among those that are left out.
void AddRow(ReportTable& table, ReportRow row);

// Leaves out one row, or one sentence, of what tells least. False: nothing is left that could go.
bool LeaveOutLeast(Report& report);

// Characters of UTF-8 text.
size_t CountCharacters(const std::string& text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_H_
