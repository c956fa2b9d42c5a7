#include "output/report_methods.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "output/share.h"
#include "output/summary.h"
#include "output/wanted_weights.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kShownNames = 5;

// Frames of the method have a 1.
std::vector<uint8_t> FramesOf(const ProfileModel& model, const std::string& method) {
  std::vector<uint8_t> is(model.frames.size());
  for (size_t i = 0; i < is.size(); ++i) is[i] = model.text(model.frames[i].name) == method ? 1 : 0;
  return is;
}

uint64_t SumOf(const std::map<std::string, uint64_t>& weights) {
  uint64_t sum = 0;
  for (const auto& [name, weight] : weights) sum += weight;
  return sum;
}

std::string PlaceOf(const ProfileModel& model, const ModelFrame& frame) {
  if (frame.line == 0) return "[line not known]";
  return absl::StrCat(model.text(frame.source_file), ":", frame.line);
}

}  // namespace

absl::StatusOr<std::string> MethodNamed(const ProfileModel& model, const std::string& text) {
  std::set<absl::string_view> ends, parts;
  for (const ModelFrame& frame : model.frames) {
    const absl::string_view name = model.text(frame.name);
    if (name == text) return text;
    if (absl::EndsWith(name, text)) ends.insert(name);
    if (absl::StrContains(name, text)) parts.insert(name);
  }
  const std::set<absl::string_view>& found = ends.empty() ? parts : ends;
  if (found.size() == 1) return std::string(*found.begin());
  if (found.empty()) {
    return WithHint(absl::NotFoundError(absl::StrCat("no method of the profile is called ", PrintableText(text))),
                    "the report lists those that ran");
  }
  std::vector<std::string> shown;
  for (const absl::string_view name : found) {
    if (shown.size() < kShownNames) shown.push_back(PrintableText(name));
  }
  return WithHint(absl::InvalidArgumentError(absl::StrCat(found.size(), " methods are called ", PrintableText(text))),
                  absl::StrCat("give more of its name: ", absl::StrJoin(shown, ", ")));
}

ReportTable CallersTable(const ProfileModel& model, const std::string& method) {
  const std::vector<uint8_t> is = FramesOf(model, method);
  const std::vector<uint64_t> weights = WantedWeights(model, {});
  std::map<std::string, uint64_t> callers;
  for (NodeIndex node = 1; node < weights.size(); ++node) {
    if (weights[node] == 0) continue;
    NodeIndex outermost = kRootNode;
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      if (is[model.nodes[at].frame] != 0) outermost = at;
    }
    if (outermost == kRootNode) continue;
    const NodeIndex caller = model.nodes[outermost].parent;
    const std::string name = caller == kRootNode ? "[no caller]" : std::string(model.text(model.frame_of(caller).name));
    callers[name] += weights[node];
  }
  const uint64_t whole = SumOf(callers);
  const std::optional<double> samples = EffectiveSamples(model);
  ReportTable table{.id = "callers",
                    .title = "Callers of a method",
                    .says = {absl::StrCat("Callers of ", PrintableText(method), ", which has ",
                                          ShareText(ShareOf(whole, model.total_weight, samples)),
                                          " of the profile with what it calls.")},
                    .columns = {{"share_of_method", "share of the method"}, {"share", "share"}, {"caller", "caller"}}};
  std::vector<std::pair<std::string, uint64_t>> sorted(callers.begin(), callers.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::optional<double> of_method = samples;
  if (samples) *of_method *= ShareOf(whole, model.total_weight, {}).value;
  for (const auto& [name, weight] : sorted) {
    const Share share = ShareOf(weight, whole, of_method);
    AddRow(table,
           {{ShareCell(share), ShareCell(ShareOf(weight, model.total_weight, samples)), NameCell(name)}, share.value});
  }
  return table;
}

ReportTable LinesTable(const ProfileModel& model, const std::string& method) {
  const std::vector<uint8_t> is = FramesOf(model, method);
  const std::vector<uint64_t> weights = WantedWeights(model, {});
  struct Line {
    uint64_t self = 0, total = 0;
  };
  std::map<std::string, Line> lines;
  for (NodeIndex node = 1; node < weights.size(); ++node) {
    if (weights[node] == 0) continue;
    std::set<std::string> seen;  // a recursion counts once
    for (NodeIndex at = node; at != kRootNode; at = model.nodes[at].parent) {
      if (is[model.nodes[at].frame] == 0) continue;
      const std::string place = PlaceOf(model, model.frame_of(at));
      if (at == node) lines[place].self += weights[node];
      if (seen.insert(place).second) lines[place].total += weights[node];
    }
  }
  const std::optional<double> samples = EffectiveSamples(model);
  ReportTable table{.id = "lines",
                    .title = "Lines of a method",
                    .says = {absl::StrCat("Of ", PrintableText(method), ".")},
                    .columns = {{"self", "self"}, {"total", "with callees"}, {"line", "line"}}};
  if (!HasLines(model)) table.says.push_back("The profile has no lines: record it with --lines.");
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  for (const auto& [place, line] : sorted) {
    const Share total = ShareOf(line.total, model.total_weight, samples);
    AddRow(table, {{ShareCell(ShareOf(line.self, model.total_weight, samples)), ShareCell(total), NameCell(place)},
                   total.value});
  }
  return table;
}

}  // namespace clrsampler
