#include "cli/waits_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/duration_option.h"
#include "cli/lock_words.h"
#include "cli/pool_readings.h"
#include "output/pool_summary.h"
#include "output/summary.h"
#include "output/wait_summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/recorder.h"
#include "pipeline/thread_stacks.h"
#include "status/status.h"

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

std::string Text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::ordered_json ToJson(const WaitSummary& summary, const Account& account) {
  return {{"seconds", account.duration_seconds},
          {"waited_us", summary.waited_us},
          {"running_us", summary.running_us},
          {"kinds", Rows(summary.kinds)},
          {"sites", Rows(summary.sites)}};
}

std::string ToJson(const PoolSummary& summary, double seconds) {
  nlohmann::ordered_json sites = nlohmann::ordered_json::array();
  for (const BlockedWorkers& site : summary.sites) {
    sites.push_back({{"kind", site.kind}, {"method", site.method}, {"workers", site.workers}});
  }
  nlohmann::ordered_json json = {
      {"seconds", seconds},   {"starved", summary.starved()}, {"workers", summary.workers}, {"worked", summary.running},
      {"idle", summary.idle}, {"waited", summary.blocked},    {"came", summary.came},       {"sites", sites}};
  if (!summary.starved() && summary.verdict != PoolVerdict::kNotStarved) json["starved"] = nullptr;
  if (summary.numbers) {
    json["pool"] = {{"workers", summary.numbers->workers},
                    {"min_workers", summary.numbers->min_workers},
                    {"max_workers", summary.numbers->max_workers}};
    if (summary.numbers->queued) json["pool"]["queued"] = *summary.numbers->queued;
    if (summary.numbers->working) json["pool"]["working"] = *summary.numbers->working;
    if (summary.numbers->wanted) json["pool"]["wanted"] = *summary.numbers->wanted;
  }
  return Text(json);
}

absl::StatusOr<RecordOptions> OptionsOf(const WaitsConfig& config, RecordView view) {
  absl::StatusOr<RecordOptions> options = WatchOptions(config.watch);
  if (!options.ok()) return options.status();
  ASSIGN_OR_RETURN(const uint64_t min_wait, ParseOffsetNs("--min-wait", config.min_wait));
  options->view = view;
  options->min_wait_ns = min_wait;
  return options;
}

absl::Status PrintTables(const WaitsConfig& config, RecordOptions options,
                         const std::function<std::string(const Recorder&)>& tables, AgentNeeds needs = {}) {
  LineOutput output(STDOUT_FILENO);
  return RunWatch(config.watch,
                  {.options = std::move(options),
                   .can_watch = [](Recorder&) { return absl::OkStatus(); },
                   .summary = tables,
                   .summary_with_json = true,
                   .needs_samples = false,
                   .needs = std::move(needs)},
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

absl::Status RunWall(const WaitsConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, OptionsOf(config, RecordView::kWall));
  options.wakers = true;
  return PrintTables(config, std::move(options), [&](const Recorder& recorder) {
    const WaitSummary summary = SummarizeWaits(recorder.frames(), recorder.stacks(), {});
    return config.watch.json ? Text(ToJson(summary, recorder.account()))
                             : WaitSummaryText(summary, recorder.account(), config.rows);
  });
}

absl::Status RunThreadPool(const WaitsConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, OptionsOf(config, RecordView::kWall));
  options.keep_samples = true;
  RETURN_IF_ERROR(ShareFileBroker(options));
  PoolReadings pool(config.watch.pid, options.files.get());
  return PrintTables(config, std::move(options), [&](const Recorder& recorder) {
    const double seconds = recorder.account().duration_seconds;
    const PoolSummary summary =
        SummarizePool(recorder.frames(), recorder.stacks(), recorder.samples(), recorder.began(), pool.Numbers());
    return config.watch.json ? ToJson(summary, seconds) : PoolSummaryText(summary, seconds, config.rows);
  });
}

absl::Status RunLocks(const WaitsConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, OptionsOf(config, RecordView::kOffCpu));
  options.wakers = true;
  RETURN_IF_ERROR(ShareFileBroker(options));
  const std::shared_ptr<FileBroker> files = options.files;
  const auto tables = [&](const Recorder& recorder) {
    const WaitSummary summary = SummarizeWaits(recorder.frames(), recorder.stacks(),
                                               {WaitKind::kMonitor, WaitKind::kLock, WaitKind::kSemaphore,
                                                WaitKind::kEvent, WaitKind::kTaskWait, WaitKind::kFutex});
    const absl::StatusOr<ThreadStacks> now = TakeThreadStacks(config.watch.pid, config.watch.names, {}, files.get());
    if (now.ok()) SayNoticesOf(*now);
    if (config.watch.json) {
      nlohmann::ordered_json json = ToJson(summary, recorder.account());
      AddHeldLocks(now, json);
      return Text(json);
    }
    return absl::StrCat(
        WaitSummaryText(summary, recorder.account(), config.rows), "\nat the end:\n",
        now.ok() ? HeldLocksText(*now, config.rows)
                 : absl::StrCat("the holders of locks are not known: ", PrintableText(now.status().message()), "\n"));
  };
  return PrintTables(config, std::move(options), tables, {.stops_threads = true});
}

}  // namespace clrsampler
