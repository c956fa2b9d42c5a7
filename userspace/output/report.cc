#include "output/report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/durations.h"
#include "output/summary.h"
#include "output/top_text.h"

namespace clrsampler {
namespace {

// A name may be a kilobyte of type arguments. The last character shows that something is cut off.
constexpr size_t kMaxNameCharacters = 160;

std::string ShortenedCell(const std::string& text) {
  if (CountCharacters(text) <= kMaxNameCharacters) return text;
  return FitWidth(text, kMaxNameCharacters - 1, false) + "…";
}

}  // namespace

size_t CountCharacters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

ReportCell NameCell(const std::string& name) {
  const std::string text = ShortenedCell(PrintableText(name));
  return {text, text, std::nullopt, true};
}

ReportCell WordCell(const std::string& word) {
  const std::string text = ShortenedCell(PrintableText(word));
  return {text, text, std::nullopt, false};
}

ReportCell CountCell(uint64_t count) { return {absl::StrCat(count), count, std::nullopt, false}; }

ReportCell ShareCell(const Share& share) { return {ShareText(share), share.value, share.error, false}; }

ReportCell DurationCell(uint64_t ns) { return {DurationText(ns), static_cast<double>(ns) / 1e9, std::nullopt, false}; }

ReportCell NumberCell(double number) { return {absl::StrFormat("%.1f", number), number, std::nullopt, false}; }

ReportCell MegabytesCell(double megabytes) {
  return {absl::StrFormat("%.1f MB", megabytes), megabytes, std::nullopt, false};
}

void AddRow(ReportTable& table, ReportRow row) {
  if (table.rows.size() == kMaxReportRows) {
    ++table.more_rows;
  } else {
    table.rows.push_back(std::move(row));
  }
}

bool LeaveOutLeast(Report& report) {
  // First rows of tables stay the longest. Other rows go before them, then sentences, and then whole tables but the
  // first one.
  ReportTable* least = nullptr;
  double tells = std::numeric_limits<double>::max();
  for (ReportTable& table : report.tables) {
    if (table.rows.size() < 2 || table.rows.back().tells * table.weight > tells) continue;
    tells = table.rows.back().tells * table.weight;
    least = &table;
  }
  if (least != nullptr) {
    least->rows.pop_back();
    ++least->more_rows;
    return true;
  }
  if (!report.tables.empty() && report.tables.front().says.size() > 2) {
    report.tables.front().says.pop_back();
    ++report.tables.front().more_says;
    return true;
  }
  if (report.tables.size() < 2) return false;
  const auto worth = [](const ReportTable& table) {
    return table.rows.empty() ? 0 : table.rows.front().tells * table.weight;
  };
  const auto gone = std::min_element(report.tables.begin() + 1, report.tables.end(),
                                     [&](const ReportTable& a, const ReportTable& b) { return worth(a) < worth(b); });
  report.more_sections.push_back(gone->title);
  report.tables.erase(gone);
  return true;
}

}  // namespace clrsampler
