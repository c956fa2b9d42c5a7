#include "output/report_events.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "output/account_numbers.h"
#include "output/exception_summary.h"
#include "output/own_methods.h"
#include "output/seen_share.h"
#include "output/share.h"
#include "output/wait_parts.h"
#include "output/wanted_weights.h"
#include "profile/model_tables.h"

namespace clrsampler {
namespace {

constexpr size_t kFramesEach = 3;
// The rates from which events begin to take a share of a program's time.
constexpr double kManyMegabytesASecond = 200;
constexpr double kManyExceptionsASecond = 200;

double SecondsOf(const ProfileModel& model) { return static_cast<double>(model.meta.recorded_ns()) / 1e9; }

double Rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// The share of it that probes saw, and where the rest is known from. Empty: all, or the file does not say.
std::string SeenText(const ProfileModel& model, const char* group, const char* seen_key, const char* estimated_key) {
  const AccountNumbers account(model);
  const SeenShare share = SeenShareOf(account.Count(group, estimated_key), account.Count(group, seen_key),
                                      account.Count(group, "counted_bytes"));
  if (share.all()) return "";
  std::string text = absl::StrFormat("Probes saw %.0f %% of that", share.seen);
  if (share.counted > 0) absl::StrAppendFormat(&text, ", and the runtime counted %.0f %%", share.counted);
  if (share.estimated > 0) absl::StrAppend(&text, "; the rest is estimated by CPU time");
  return text + ".";
}

void Say(const std::string& sentence, ReportTable& table) {
  if (!sentence.empty()) table.says.push_back(sentence);
}

using NameWeights = std::vector<std::pair<absl::string_view, uint64_t>>;

// By the leaf, which is a type in these profiles.
NameWeights ByLeaf(const ProfileModel& model) {
  const std::vector<uint64_t> weights = WantedWeights(model, {});
  absl::flat_hash_map<absl::string_view, uint64_t> sums;
  for (NodeIndex node = 1; node < weights.size(); ++node) {
    if (weights[node] > 0) sums[model.text(model.frame_of(node).name)] += weights[node];
  }
  NameWeights sorted(sums.begin(), sums.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return sorted;
}

ReportTable TypeTable(const ProfileModel& model, double weight) {
  const std::optional<double> samples = EffectiveSamples(model);
  ReportTable table{.id = "allocated_types",
                    .title = "Allocations: types",
                    .columns = {{"megabytes_a_second", "MB/s"}, {"share", "share"}, {"type", "type"}},
                    .weight = weight};
  for (const auto& [type, bytes] : ByLeaf(model)) {
    const Share share = ShareOf(bytes, model.total_weight, samples);
    AddRow(table, {{NumberCell(Rate(static_cast<double>(bytes) / 1e6, SecondsOf(model))), ShareCell(share),
                    NameCell(std::string(type))},
                   share.value});
  }
  return table;
}

bool HasCode(const FrameTable& frames, const ThrowingStack& stack) {
  return std::any_of(stack.frames.begin(), stack.frames.end(),
                     [&](FrameId id) { return frames.at(id).kind != FrameKind::kMark; });
}

// "Shop.Order.Total ← Shop.Cart.Sum"
std::string PlaceText(const FrameTable& frames, const ThrowingStack& stack) {
  std::string text;
  for (const FrameId id : stack.frames) absl::StrAppend(&text, text.empty() ? "" : " ← ", frames.at(id).text);
  return text;
}

}  // namespace

std::vector<ReportTable> AllocationTables(const ProfileModel& model) {
  const double megabytes = static_cast<double>(model.total_weight) / 1e6;
  const double rate = Rate(megabytes, SecondsOf(model));
  const double weight = std::clamp(rate / kManyMegabytesASecond, 0.05, 1.0);
  ReportTable methods{.id = "allocating_methods",
                      .title = "Allocations: methods of the program",
                      .columns = {{"megabytes_a_second", "MB/s"},
                                  {"share", "share"},
                                  {"method", "method"},
                                  {"mostly", "mostly of type"}},
                      .weight = weight};
  methods.says.push_back(model.total_weight == 0
                             ? "Nothing was seen to be allocated: the collector tells of each 100 KB."
                             : absl::StrFormat("%.1f MB were allocated, %.1f MB/s.", megabytes, rate));
  Say(SeenText(model, "allocations", "bytes", "estimated_bytes"), methods);
  const std::optional<double> samples = EffectiveSamples(model);
  for (const OwnWeight& method : OwnMethods(model, {}, OwnMostly::kType)) {
    const Share share = ShareOf(method.weight, model.total_weight, samples);
    AddRow(methods, {{NumberCell(Rate(static_cast<double>(method.weight) / 1e6, SecondsOf(model))), ShareCell(share),
                      NameCell(method.name), method.mostly.empty() ? WordCell("unknown") : NameCell(method.mostly)},
                     share.value});
  }
  if (model.total_weight == 0) return {std::move(methods)};
  return {std::move(methods), TypeTable(model, weight * 0.8)};
}

absl::StatusOr<std::vector<ReportTable>> ExceptionTables(const ProfileModel& model) {
  ModelTables tables;
  if (absl::Status filled = tables.Fill(model); !filled.ok()) return filled;
  const double rate = Rate(static_cast<double>(model.total_weight), SecondsOf(model));
  ReportTable table{
      .id = "exceptions",
      .title = "Exceptions",
      .columns = {{"per_second", "a second"}, {"share", "share"}, {"type", "type"}, {"thrown_at", "thrown at"}},
      .weight = std::clamp(rate / kManyExceptionsASecond, 0.05, 1.0)};
  if (model.total_weight == 0) {
    table.says.push_back("No exception was thrown.");
    return std::vector<ReportTable>{std::move(table)};
  }
  table.says.push_back(absl::StrFormat("%d exceptions were thrown, %.1f a second.", model.total_weight, rate));
  Say(SeenText(model, "exceptions", "thrown", "estimated"), table);
  const std::optional<double> samples = EffectiveSamples(model);
  uint64_t without_stack = 0;
  for (const ThrowingStack& stack :
       ThrowingStacks(tables.frames(), tables.stacks(), tables.stacks().size(), kFramesEach)) {
    if (!HasCode(tables.frames(), stack)) {
      without_stack += stack.count;
      continue;
    }
    const Share share = ShareOf(stack.count, model.total_weight, samples);
    AddRow(table, {{NumberCell(Rate(static_cast<double>(stack.count), SecondsOf(model))), ShareCell(share),
                    NameCell(stack.type), NameCell(PlaceText(tables.frames(), stack))},
                   share.value});
  }
  if (without_stack > 0) {
    Say(ShareText(ShareOf(without_stack, model.total_weight, std::nullopt)) + " of them have no stack.", table);
  }
  return std::vector<ReportTable>{std::move(table)};
}

}  // namespace clrsampler
