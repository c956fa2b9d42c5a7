// A report as Markdown, within a budget of characters. Pure.
#ifndef CLRSAMPLER_OUTPUT_REPORT_TEXT_H_
#define CLRSAMPLER_OUTPUT_REPORT_TEXT_H_

#include <cstddef>
#include <string>

#include "output/report.h"

namespace clrsampler {

// Below this a report may be longer than its budget: what it rests on is always said.
inline constexpr size_t kMinReportBudget = 1000;

// Tables of Markdown, in UTF-8. Rows go from the ends of the tables that tell least until the rest fits; how many is
// said. Names of targets are code spans, in which nothing means anything to a reader of Markdown.
std::string ReportMarkdown(Report report, size_t budget);

// One JSON object of the form that docs/schemas/report.schema.json has, with a newline behind it; likewise.
std::string ReportJson(Report report, size_t budget);

}  // namespace clrsampler

#endif  // CLRSAMPLER_OUTPUT_REPORT_TEXT_H_
