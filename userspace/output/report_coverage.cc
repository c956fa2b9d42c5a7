#include "output/report_coverage.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "output/share.h"
#include "output/summary.h"

namespace clrsampler {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownProcesses = 4;
constexpr size_t kShownReasons = 3;

// The account in a file may be anything.
const Json& At(const Json& json, const char* key) {
  static const Json nothing;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() || !json.is_object() ? nothing : *found;
}

uint64_t Number(const Json& json) { return json.is_number_unsigned() ? json.get<uint64_t>() : 0; }

std::string Text(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

uint64_t SumOf(const Json& counts) {
  uint64_t sum = 0;
  for (const Json& count : counts) sum += Number(count);
  return sum;
}

std::string ProcessesText(const ProfileModel& model) {
  std::map<std::string, uint64_t> weights;
  for (size_t row = 0; row < model.samples.size(); ++row) {
    const ModelThread& thread = model.threads[model.samples.thread[row]];
    std::string name(model.text(thread.comm));
    if (thread.pid != 0) absl::StrAppend(&name, " ", thread.pid);
    weights[name] += model.samples.weight_of(row);
  }
  std::vector<std::pair<std::string, uint64_t>> sorted(weights.begin(), weights.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> shown;
  for (const auto& [name, weight] : sorted) {
    if (shown.size() == kShownProcesses) break;
    shown.push_back(sorted.size() == 1 ? name
                                       : absl::StrCat(name, " ", ShareText(ShareOf(weight, model.total_weight, {}))));
  }
  std::string text = absl::StrJoin(shown, ", ");
  if (sorted.size() > shown.size()) absl::StrAppend(&text, ", ", sorted.size() - shown.size(), " more");
  return text.empty() ? "none" : text;
}

std::string WeightText(const ProfileModel& model) {
  const auto weight = static_cast<double>(model.total_weight);
  switch (model.meta.unit) {
    case WeightUnit::kBytes:
      return absl::StrFormat("%.1f MB", weight / 1e6);
    case WeightUnit::kMicroseconds:
      return absl::StrFormat("%.2f s", weight / 1e6);
    case WeightUnit::kNanoseconds:
      return absl::StrFormat("%.2f s", weight / 1e9);
    case WeightUnit::kSamples:
      break;
  }
  return absl::StrCat(model.total_weight, model.meta.view == ProfileView::kExceptions ? " exceptions" : " samples");
}

// Frames with a name, of all; nullopt: the file does not say.
std::optional<Share> Named(const Json& frames) {
  uint64_t named = 0, unnamed = 0;
  for (const char* kind : {"managed", "native", "kernel"}) {
    named += Number(At(At(frames, kind), "named"));
    unnamed += Number(At(At(frames, kind), "unnamed"));
  }
  if (named + unnamed == 0) return std::nullopt;
  return ShareOf(named, named + unnamed, {});
}

ReportRow RowOf(const ReportSource& source, const Json& account) {
  const ProfileModel& model = *source.model;
  ReportRow row{.tells = 1e6};
  const bool known = account.is_object();
  const std::optional<Share> named = Named(At(account, "frames"));
  row.cells = {WordCell(source.name),
               WordCell(std::string(ProfileViewText(model.meta.view))),
               WordCell(WeightText(model)),
               model.meta.recorded_ns() == 0
                   ? WordCell("unknown")
                   : WordCell(absl::StrFormat("%.1f s", static_cast<double>(model.meta.recorded_ns()) / 1e9)),
               known ? CountCell(SumOf(At(At(account, "samples"), "lost"))) : WordCell("unknown"),
               named ? ShareCell(*named) : WordCell("unknown"),
               WordCell(ProcessesText(model))};
  return row;
}

void AddReasons(const std::string& name, const Json& reasons, std::vector<std::string>& says) {
  std::vector<std::pair<uint64_t, std::string>> sorted;
  if (reasons.is_object()) {
    for (const auto& [reason, count] : reasons.items()) sorted.emplace_back(Number(count), reason);
  }
  if (sorted.empty()) return;
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<std::string> shown;
  for (const auto& [count, reason] : sorted) {
    if (shown.size() == kShownReasons) break;
    shown.push_back(absl::StrCat("`", PrintableText(reason), "` ", count));
  }
  says.push_back(absl::StrCat(name, ": frames without a name: ", absl::StrJoin(shown, ", "),
                              sorted.size() > shown.size() ? ", and others." : "."));
}

}  // namespace

ReportTable CoverageTable(std::span<const ReportSource> sources) {
  ReportTable table{.id = "coverage",
                    .title = "Coverage",
                    .columns = {{"profile", "profile"},
                                {"view", "view"},
                                {"recorded", "recorded"},
                                {"duration", "in"},
                                {"lost", "lost"},
                                {"named", "frames named"},
                                {"processes", "processes"}}};
  std::set<std::string> said;  // a notice of several recordings stands once
  std::vector<std::string> notices;
  for (const ReportSource& source : sources) {
    const Json account = Json::parse(source.model->meta.account_json, nullptr, false);
    AddRow(table, RowOf(source, account));
    for (const Json& notice : At(account, "notices")) {
      const std::string message = PrintableText(Text(At(notice, "message")));
      if (Text(At(notice, "kind")) != "no_samples" && said.insert(message).second) notices.push_back(message + ".");
    }
    const Json& lost = At(At(account, "samples"), "lost");
    for (const auto& [reason, count] : lost.items()) {
      if (Number(count) > 0) {
        table.says.push_back(absl::StrCat(source.name, ": ", Number(count), " lost: ", PrintableText(reason), "."));
      }
    }
    AddReasons(source.name, At(At(account, "frames"), "unnamed_reasons"), table.says);
  }
  table.says.insert(
      table.says.begin(),
      "Shares of samples have their standard error behind ±; other numbers are counted or measured whole.");
  table.says.insert(table.says.end(), notices.begin(), notices.end());
  return table;
}

}  // namespace clrsampler
