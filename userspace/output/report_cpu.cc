#include "output/report_cpu.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/hot_paths.h"
#include "output/own_methods.h"
#include "output/share.h"
#include "output/wanted_weights.h"
#include "profile/method_weights.h"

namespace clrsampler {
namespace {

constexpr size_t kPathFrames = 5;      // the innermost ones are shown
constexpr uint64_t kRestCounts = 100;  // code in no method of the program is listed from a hundredth of the whole on
constexpr double kPathCounts = 0.05;   // of the whole: paths with less are left out

uint64_t WeightOf(const std::vector<uint64_t>& weights) {
  return std::accumulate(weights.begin(), weights.end(), uint64_t{0});
}

absl::string_view PurposeOf(const ProfileModel& model, NodeIndex leaf) {
  absl::string_view purpose;
  for (NodeIndex at = leaf; at != kRootNode; at = model.nodes[at].parent) {
    const ModelFrame& frame = model.frame_of(at);
    if (frame.kind == ModelFrameKind::kRole) {
      const absl::string_view role = model.text(frame.name);
      if (absl::StartsWith(role, "[jit")) return "compiling methods (JIT)";
      if (absl::StartsWith(role, "[gc")) return "collecting garbage (GC)";
    }
    if (!purpose.empty() || frame.kind == ModelFrameKind::kMark || frame.kind == ModelFrameKind::kRole) continue;
    purpose = frame.kind == ModelFrameKind::kKernel    ? "kernel"
              : frame.kind == ModelFrameKind::kNative  ? "native code, the runtime's included"
              : frame.kind == ModelFrameKind::kUnknown ? "code of a kind that the file does not say"
                                                       : "managed code";
  }
  return purpose.empty() ? "stacks without a frame" : purpose;
}

ReportTable PurposeTable(const ProfileModel& model, std::span<const uint8_t> wanted, uint64_t whole,
                         std::optional<double> samples) {
  const std::vector<uint64_t> weights = WantedWeights(model, wanted);
  std::map<absl::string_view, uint64_t> sums;
  for (NodeIndex node = 0; node < weights.size(); ++node) {
    if (weights[node] > 0) sums[PurposeOf(model, node)] += weights[node];
  }
  std::vector<std::pair<absl::string_view, uint64_t>> purposes(sums.begin(), sums.end());
  std::stable_sort(purposes.begin(), purposes.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  ReportTable table{.id = "purposes", .title = "CPU time: what for", .columns = {{"share", "share"}, {"for", "for"}}};
  for (const auto& [purpose, weight] : purposes) {
    const Share share = ShareOf(weight, whole, samples);
    AddRow(table, {{ShareCell(share), WordCell(std::string(purpose))}, share.value});
  }
  return table;
}

std::string PathText(const HotPath& path) {
  std::string text = path.frames.size() > kPathFrames ? "… → " : "";
  for (size_t i = path.frames.size() - std::min(kPathFrames, path.frames.size()); i < path.frames.size(); ++i) {
    absl::StrAppend(&text, path.frames[i], i + 1 < path.frames.size() ? " → " : "");
  }
  return text;
}

ReportCell PathCell(const HotPath& path) {
  // Shortened from the root, as the leaf says more.
  HotPath shown = path;
  while (shown.frames.size() > 1 && CountCharacters(PathText(shown)) > 150) shown.frames.erase(shown.frames.begin());
  const bool cut = shown.frames.size() < path.frames.size() && shown.frames.size() <= kPathFrames;
  return NameCell(absl::StrCat(cut ? "… → " : "", PathText(shown)));
}

ReportTable PathTable(const ProfileModel& model, std::span<const uint8_t> wanted, uint64_t whole,
                      std::optional<double> samples) {
  ReportTable table{.id = "hot_paths",
                    .title = "CPU time: hot paths",
                    .columns = {{"share", "share"}, {"path", "path"}},
                    .weight = 0.5};
  for (const HotPath& path : HotPaths(model, wanted)) {
    const Share share = ShareOf(path.weight, whole, samples);
    if (share.value >= kPathCounts) AddRow(table, {{ShareCell(share), PathCell(path)}, share.value});
  }
  return table;
}

}  // namespace

ReportTable SelfTable(const ProfileModel& model, std::span<const uint8_t> wanted) {
  MethodWeights weights;
  weights.Add(model, wanted);
  const std::optional<double> samples = EffectiveSamples(model, wanted);
  ReportTable table{.id = "self",
                    .title = "CPU time: methods that ran",
                    .columns = {{"self", "self"}, {"total", "with callees"}, {"method", "method"}},
                    .weight = 0.8};
  for (const MethodWeight& method : weights.Sorted()) {
    if (method.self == 0) continue;
    const Share self = ShareOf(method.self, weights.total(), samples);
    AddRow(table, {{ShareCell(self), ShareCell(ShareOf(method.total, weights.total(), samples)), NameCell(method.name)},
                   self.value});
  }
  return table;
}

ReportTable OwnTable(const ProfileModel& model, std::span<const uint8_t> wanted, const std::string& id,
                     const std::string& title) {
  const uint64_t whole = WeightOf(WantedWeights(model, wanted));
  const std::optional<double> samples = EffectiveSamples(model, wanted);
  ReportTable table{
      .id = id, .title = title, .columns = {{"share", "share"}, {"method", "method"}, {"mostly", "mostly for"}}};
  uint64_t rest = whole;
  for (const OwnWeight& method : OwnMethods(model, wanted)) {
    const Share share = ShareOf(method.weight, whole, samples);
    const ReportCell mostly = method.mostly.empty() ? WordCell("its own code") : NameCell(method.mostly);
    AddRow(table, {{ShareCell(share), NameCell(method.name), mostly}, share.value});
    rest -= std::min(rest, method.weight);
  }
  if (rest > whole / kRestCounts) {
    table.says.push_back(absl::StrCat(ShareText(ShareOf(rest, whole, samples)), " is in no method of the program."));
  }
  return table;
}

std::vector<ReportTable> CpuTables(const ProfileModel& model, std::span<const uint8_t> wanted) {
  const uint64_t whole = WeightOf(WantedWeights(model, wanted));
  const std::optional<double> samples = EffectiveSamples(model, wanted);
  if (whole == 0) {
    return {{.id = "purposes", .title = "CPU time: what for", .says = {"No sample was taken: nothing ran."}}};
  }
  ReportTable purposes = PurposeTable(model, wanted, whole, samples);
  const double ns = model.meta.unit == WeightUnit::kSamples        ? static_cast<double>(model.meta.period_ns)
                    : model.meta.unit == WeightUnit::kMicroseconds ? 1e3
                    : model.meta.unit == WeightUnit::kNanoseconds  ? 1
                                                                   : 0;
  const double cpu_ns = ns * static_cast<double>(whole);
  const auto recorded_ns = static_cast<double>(model.meta.recorded_ns());
  if (cpu_ns > 0 && recorded_ns > 0) {
    purposes.says.push_back(absl::StrFormat("%.2f s of CPU time in %.1f s: %.2f CPUs were busy.", cpu_ns / 1e9,
                                            recorded_ns / 1e9, cpu_ns / recorded_ns));
  }
  return {std::move(purposes),
          OwnTable(model, wanted, "own_methods", "CPU time: methods of the program, with what was done for them"),
          SelfTable(model, wanted), PathTable(model, wanted, whole, samples)};
}

}  // namespace clrsampler
