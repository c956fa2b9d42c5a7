#include "cli/waits_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/duration_option.h"
#include "output/wait_summary.h"
#include "pipeline/recorder.h"

namespace clrsampler {
namespace {

nlohmann::ordered_json Rows(const std::vector<WaitSite>& sites) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const WaitSite& site : sites) {
    nlohmann::ordered_json row = {{"kind", site.kind}, {"us", site.microseconds}};
    if (!site.method.empty()) row["method"] = site.method;
    if (!site.waker.empty()) row["waker"] = site.waker;
    json.push_back(std::move(row));
  }
  return json;
}

std::string Json(const WaitSummary& summary, const Account& account) {
  const nlohmann::ordered_json json = {{"seconds", account.duration_seconds},
                                       {"waited_us", summary.waited_us},
                                       {"running_us", summary.running_us},
                                       {"kinds", Rows(summary.kinds)},
                                       {"sites", Rows(summary.sites)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status Run(const WaitsConfig& config, RecordView view, const std::vector<WaitKind>& only) {
  absl::StatusOr<RecordOptions> options = WatchOptions(config.watch);
  if (!options.ok()) return options.status();
  const absl::StatusOr<uint64_t> min_wait = ParseOffsetNs("--min-wait", config.min_wait);
  if (!min_wait.ok()) return min_wait.status();
  options->view = view;
  options->min_wait_ns = *min_wait;
  options->wakers = true;
  if (view == RecordView::kOffCpu) options->frequency_hz = 1;  // samples have no part in this
  LineOutput output(STDOUT_FILENO);
  return RunWatch(config.watch,
                  {.options = *std::move(options),
                   .can_watch = [](Recorder&) { return absl::OkStatus(); },
                   .summary =
                       [&](const Recorder& recorder) {
                         const WaitSummary summary = SummarizeWaits(recorder.frames(), recorder.stacks(), only);
                         return config.watch.json ? Json(summary, recorder.account())
                                                  : WaitSummaryText(summary, recorder.account(), config.rows);
                       },
                   .summary_with_json = true,
                   .needs_samples = false},
                  output);
}

}  // namespace

void DeclareWaitsOptions(CLI::App& app, WaitsConfig& config) {
  DeclareWatchOptions(app, config.watch, "the tables as one object; docs/waits.md has the fields");
  app.add_option("--min-wait", config.min_wait, "shorter waits are added up and have no stack")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--rows", config.rows, "so many methods at most")->capture_default_str()->type_name("N");
}

absl::Status RunWall(const WaitsConfig& config) { return Run(config, RecordView::kWall, {}); }

absl::Status RunLocks(const WaitsConfig& config) {
  return Run(config, RecordView::kOffCpu,
             {WaitKind::kMonitor, WaitKind::kLock, WaitKind::kSemaphore, WaitKind::kEvent, WaitKind::kTaskWait,
              WaitKind::kFutex});
}

}  // namespace clrsampler
