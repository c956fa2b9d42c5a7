#include "output/runtime_tables.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "output/durations.h"
#include "output/pause_summary.h"
#include "profile/library_methods.h"

namespace clrsampler {
namespace {

using Json = nlohmann::json;
using Sums = std::map<std::string, RuntimeSum>;

// A tenth of the time in pauses is as much as a report can be about; a tenth of a CPU that compiles, likewise.
constexpr double kMuch = 0.1;
constexpr absl::string_view kOthers = "[others]";

// The nearest of the program's own methods that it was compiled for, else the nearest method.
std::string CallerOf(const NamedCompilation& named) {
  const auto own = std::find_if(named.callers.begin(), named.callers.end(),
                                [](const std::string& caller) { return !IsOfLibraries(caller); });
  if (own != named.callers.end()) return *own;
  return named.callers.empty() ? "[stack not taken]" : named.callers.front();
}

Json SumsJson(const Sums& sums) {
  Json rows = Json::array();
  for (const auto& [name, sum] : sums) {
    rows.push_back(Json::array({name, sum.count, sum.total_ns, sum.longest_ns, sum.other_ns}));
  }
  return rows;
}

bool ReadSums(const Json& json, const char* key, Sums& sums) {
  const auto rows = json.find(key);
  if (rows == json.end() || !rows->is_array()) return false;
  for (const Json& row : *rows) {
    if (!row.is_array() || row.size() != 5 || !row[0].is_string()) return false;
    for (size_t i = 1; i < 5; ++i) {
      if (!row[i].is_number_unsigned()) return false;
    }
    sums[row[0].get<std::string>()] = {row[1].get<uint64_t>(), row[2].get<uint64_t>(), row[3].get<uint64_t>(),
                                       row[4].get<uint64_t>()};
  }
  return true;
}

std::vector<std::pair<std::string, RuntimeSum>> LongestFirst(const Sums& sums) {
  std::vector<std::pair<std::string, RuntimeSum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  return sorted;
}

uint64_t Sum(uint64_t a, uint64_t b) { return a + std::min(b, std::numeric_limits<uint64_t>::max() - a); }

RuntimeSum Together(const Sums& sums) {
  RuntimeSum all;
  for (const auto& [name, sum] : sums) {
    all.count = Sum(all.count, sum.count);
    all.total_ns = Sum(all.total_ns, sum.total_ns);
    all.other_ns = Sum(all.other_ns, sum.other_ns);
    all.longest_ns = std::max(all.longest_ns, sum.longest_ns);
  }
  return all;
}

double Part(uint64_t ns, uint64_t whole_ns) {
  return static_cast<double>(ns) / static_cast<double>(std::max<uint64_t>(whole_ns, 1));
}

double WeightOf(uint64_t ns, double seconds) {
  return seconds > 0 ? std::clamp(static_cast<double>(ns) / 1e9 / seconds / kMuch, 0.05, 1.0) : 0.05;
}

// Rows of a name with number, sum and longest.
ReportTable SumTable(const Sums& sums, const std::string& id, const std::string& title, const std::string& name,
                     double weight) {
  ReportTable table{.id = id,
                    .title = title,
                    .columns = {{"seconds", "time"}, {"count", "number"}, {"longest_seconds", "longest"}, {name, name}},
                    .weight = weight};
  const uint64_t whole = Together(sums).total_ns;
  for (const auto& [key, sum] : LongestFirst(sums)) {
    AddRow(table, {{DurationCell(sum.total_ns), CountCell(sum.count), DurationCell(sum.longest_ns), NameCell(key)},
                   Part(sum.total_ns, whole)});
  }
  return table;
}

}  // namespace

void RuntimeSum::Add(uint64_t ns) {
  ++count;
  total_ns = Sum(total_ns, ns);
  longest_ns = std::max(longest_ns, ns);
}

RuntimeSum& RuntimeTables::SumOf(Sums& sums, const std::string& name) {
  const bool room = sums.size() < kMaxNames || sums.contains(name);
  return sums[room ? name : std::string(kOthers)];
}

void RuntimeTables::Add(const Pause& pause, std::span<const Culprit> culprits) {
  RuntimeSum& sum = SumOf(pauses_, PausePurpose(pause));
  sum.Add(pause.pause_ns());
  sum.other_ns = Sum(sum.other_ns, pause.suspend_ns());
  for (const Culprit& culprit : culprits) AddDelay(culprit.method, culprit.delay_ns);
}

void RuntimeTables::Add(const NamedCompilation& named) {
  const uint64_t ns = named.compilation.own_ns();
  SumOf(tiers_, named.compilation.result != 0 ? "refused" : named.tier).Add(ns);
  SumOf(callers_, CallerOf(named)).Add(ns);
  SumOf(methods_, named.method).Add(ns);
}

void RuntimeTables::AddPause(const std::string& purpose, uint64_t pause_ns) {
  SumOf(pauses_, purpose).Add(pause_ns);
  knows_stops_ = false;
}

void RuntimeTables::AddDelay(const std::string& method, uint64_t delay_ns) { SumOf(culprits_, method).Add(delay_ns); }

void RuntimeTables::AddCompilation(const std::string& method, const std::string& tier, uint64_t own_ns) {
  SumOf(tiers_, tier.empty() ? "unknown" : tier).Add(own_ns);
  SumOf(methods_, method).Add(own_ns);
  knows_callers_ = false;
}

std::string RuntimeTables::ToJson() const {
  const Json json = {{"pauses", SumsJson(pauses_)},
                     {"culprits", SumsJson(culprits_)},
                     {"tiers", SumsJson(tiers_)},
                     {"callers", SumsJson(callers_)},
                     {"methods", SumsJson(methods_)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RuntimeTables> RuntimeTables::FromJson(absl::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  RuntimeTables tables;
  if (!json.is_object() || !ReadSums(json, "pauses", tables.pauses_) || !ReadSums(json, "culprits", tables.culprits_) ||
      !ReadSums(json, "tiers", tables.tiers_) || !ReadSums(json, "callers", tables.callers_) ||
      !ReadSums(json, "methods", tables.methods_)) {
    return absl::InvalidArgumentError("the record of pauses and compilations can't be read");
  }
  return tables;
}

ReportTable RuntimeTables::PauseTable(double seconds) const {
  const RuntimeSum all = Together(pauses_);
  ReportTable table{.id = "pauses",
                    .title = "Pauses of the runtime",
                    .columns = {{"seconds", "time"}, {"count", "number"}, {"longest_seconds", "longest"}},
                    .weight = WeightOf(all.total_ns, seconds)};
  if (knows_stops_) table.columns.push_back({"stopping_seconds", "until threads stood"});
  table.columns.push_back({"purpose", "for"});
  if (all.count == 0) {
    table.says.push_back("No pause was seen.");
    return table;
  }
  table.says.push_back(
      absl::StrFormat("%d pause%s took %s", all.count, all.count == 1 ? "" : "s", DurationText(all.total_ns)));
  if (seconds > 0) {
    absl::StrAppendFormat(&table.says.back(), " of %.1f s (%.1f %%)", seconds,
                          static_cast<double>(all.total_ns) / 1e7 / seconds);
  }
  table.says.back() +=
      knows_stops_ ? absl::StrFormat(", of which %s to stop the threads.", DurationText(all.other_ns)) : ".";
  for (const auto& [purpose, sum] : LongestFirst(pauses_)) {
    ReportRow row{{DurationCell(sum.total_ns), CountCell(sum.count), DurationCell(sum.longest_ns)},
                  Part(sum.total_ns, all.total_ns)};
    if (knows_stops_) row.cells.push_back(DurationCell(sum.other_ns));
    row.cells.push_back(WordCell(purpose));
    AddRow(table, std::move(row));
  }
  return table;
}

std::vector<ReportTable> RuntimeTables::Pauses(double seconds) const {
  ReportTable table = PauseTable(seconds);
  // Events may be of a recording that saw no delays.
  if (pauses_.empty() || (culprits_.empty() && !knows_stops_)) return {std::move(table)};
  ReportTable culprits =
      SumTable(culprits_, "pause_culprits", "Methods that delayed the pauses", "method", table.weight);
  if (culprits.rows.empty()) culprits.says.push_back("Nothing was seen to run while threads were asked to stop.");
  return {std::move(table), std::move(culprits)};
}

std::vector<ReportTable> RuntimeTables::Compilations(double seconds) const {
  const RuntimeSum all = Together(tiers_);
  const double weight = WeightOf(all.total_ns, seconds);
  std::vector<ReportTable> tables;
  if (knows_callers_) {
    tables.push_back(
        SumTable(callers_, "compilation_callers", "Compilation: for which methods of the program", "method", weight));
  }
  if (all.count > 0 || tables.empty()) {
    tables.push_back(
        SumTable(methods_, "compiled_methods", "Compilation: methods that were compiled", "method", 0.5 * weight));
  }
  if (all.count > 0) {
    tables.push_back(SumTable(tiers_, "compilation_tiers", "Compilation: tiers", "tier", 0.3 * weight));
  }
  std::string& says = tables.front().says.emplace_back("Nothing was compiled.");
  if (all.count > 0)
    says =
        absl::StrFormat("%d compilation%s took %s", all.count, all.count == 1 ? "" : "s", DurationText(all.total_ns));
  if (all.count > 0 && seconds > 0) {
    absl::StrAppendFormat(&says, ", %.1f %% of one CPU", static_cast<double>(all.total_ns) / 1e7 / seconds);
  }
  if (all.count > 0) says += ".";
  return tables;
}

}  // namespace clrsampler
