#include "cli/allocs_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "output/allocation_summary.h"
#include "pipeline/recorder.h"

namespace clrsampler {
namespace {

nlohmann::ordered_json Rows(const std::vector<AllocatedBytes>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const AllocatedBytes& row : rows) json.push_back({{"name", row.name}, {"bytes", row.bytes}});
  return json;
}

std::string Json(const AllocationSummary& summary, const Account& account) {
  const auto seen = account.allocations.find("bytes");
  const nlohmann::ordered_json json = {{"seconds", account.duration_seconds},
                                       {"bytes", summary.bytes},
                                       {"bytes_seen", seen == account.allocations.end() ? uint64_t{0} : seen->second},
                                       {"types", Rows(summary.types)},
                                       {"methods", Rows(summary.methods)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void DeclareAllocsOptions(CLI::App& app, AllocsConfig& config) {
  DeclareWatchOptions(app, config.watch, "the tables as one object; docs/allocations.md has the fields");
  DeclareHookBudget(app, config.hook_budget);
  app.add_option("--rows", config.rows, "so many types and methods at most")->capture_default_str()->type_name("N");
}

absl::Status RunAllocs(const AllocsConfig& config) {
  absl::StatusOr<RecordOptions> options = WatchOptions(config.watch);
  if (!options.ok()) return options.status();
  options->frequency_hz = 1;  // samples have no part in this
  options->view = RecordView::kAllocations;
  options->hook_share = config.hook_budget / 100;
  LineOutput output(STDOUT_FILENO);
  return RunWatch(config.watch,
                  {.options = *std::move(options),
                   .can_watch = [&](Recorder& recorder) { return recorder.WatchesAllocationsOf(config.watch.pid); },
                   .summary =
                       [&](const Recorder& recorder) {
                         const AllocationSummary summary = SummarizeAllocations(recorder.frames(), recorder.stacks());
                         return config.watch.json ? Json(summary, recorder.account())
                                                  : AllocationSummaryText(summary, recorder.account(), config.rows);
                       },
                   .summary_with_json = true,
                   .needs_samples = false},
                  output);
}

}  // namespace clrsampler
