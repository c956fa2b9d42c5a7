#include "cli/allocs_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "cli/duration_option.h"
#include "cli/event_buffer_option.h"
#include "output/allocation_summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/event_profile.h"
#include "pipeline/event_watch.h"
#include "pipeline/recorder.h"
#include "runtime_events/counted_event.h"
#include "status/status.h"

namespace clrsampler {
namespace {

nlohmann::ordered_json Rows(const std::vector<AllocatedBytes>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const AllocatedBytes& row : rows) json.push_back({{"name", row.name}, {"bytes", row.bytes}});
  return json;
}

std::string ToJson(const AllocationSummary& summary, const Account& account) {
  nlohmann::ordered_json json = {{"seconds", account.duration_seconds}, {"bytes", summary.bytes}};
  // Probes give estimates of the events that they do not see. Events are seen or lost.
  if (const auto lost = account.events.find("lost"); lost != account.events.end()) {
    json["bytes_seen"] = summary.bytes;
    json["bytes_counted"] = 0;
    json["events_lost"] = lost->second;
  } else {
    for (const auto& [key, name] : {std::pair("bytes_seen", "bytes"), std::pair("bytes_counted", "counted_bytes")}) {
      const auto found = account.allocations.find(name);
      json[key] = found == account.allocations.end() ? uint64_t{0} : found->second;
    }
  }
  json["types"] = Rows(summary.types);
  json["methods"] = Rows(summary.methods);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string Tables(const AllocsConfig& config, const FrameTable& frames, const StackTable& stacks,
                   const Account& account) {
  const AllocationSummary summary = SummarizeAllocations(frames, stacks);
  return config.watch.json ? ToJson(summary, account) : AllocationSummaryText(summary, account, config.rows);
}

absl::StatusOr<EventWatchOptions> StreamOptions(const AllocsConfig& config, FileBroker* files) {
  if (config.hook_budget != AllocsConfig().hook_budget) {
    return WithHint(absl::InvalidArgumentError("--source eventpipe has no --hook-budget"), "leave --hook-budget out");
  }
  EventWatchOptions options;
  options.pid = config.watch.pid;
  options.kinds = EventKindsOf(ProfileView::kAllocations);
  options.buffer_megabytes = config.event_buffer_megabytes;
  options.stacks = true;
  options.files = files;
  if (!config.watch.duration.has_value()) return options;
  ASSIGN_OR_RETURN(options.duration_ns, ParseDurationNs("--duration", *config.watch.duration));
  return options;
}

absl::Status RunByStream(const AllocsConfig& config) {
  IgnoreStopsOfTerminal();
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  ASSIGN_OR_RETURN(EventWatchOptions watch, StreamOptions(config, files.get()));
  EventProfileOptions options;
  options.view = ProfileView::kAllocations;
  options.stacks = {.pid = config.watch.pid, .names = config.watch.names, .files = files.get()};
  options.buffer_megabytes = config.event_buffer_megabytes;
  std::optional<EventProfile> profile;
  watch.prepare = [&] { profile.emplace(options); };
  const auto began = [&](MonotonicTime since) {
    profile->Begin(since);
    SayWatching(config.watch);
  };
  const absl::StatusOr<EventWatchResult> result =
      WatchEvents(watch, began, [&](const ClrEventRecord& record) { profile->Add(record); });
  RETURN_IF_ERROR(result.status());
  // The events that came before an error are worth having.
  if (!result->ended.ok() && (!profile || profile->account().samples_written == 0)) return result->ended;
  profile->Finish(*result);
  const Account& account = profile->account();
  LineOutput output(STDOUT_FILENO);
  output.Print(absl::StripSuffix(Tables(config, profile->frames(), profile->stacks(), account), "\n"));
  RETURN_IF_ERROR(output.Finish());
  SayLeftOut(output);
  SayNotices(account, /*needs_samples=*/false);
  return result->ended;
}

}  // namespace

void DeclareAllocsOptions(CLI::App& app, AllocsConfig& config) {
  DeclareWatchOptions(app, config.watch, "the tables as one object; docs/allocations.md has the fields");
  app.add_option(
         "--source", config.source,
         "probe: in the runtime, as root; eventpipe: the runtime's own event stream, as its user and without BPF")
      ->check(CLI::IsMember({"probe", "eventpipe"}))
      ->capture_default_str()
      ->type_name("SOURCE");
  DeclareEventBuffer(app, config.event_buffer_megabytes);
  DeclareHookBudget(app, config.hook_budget);
  app.add_option("--rows", config.rows, "so many types and methods at most")->capture_default_str()->type_name("N");
}

absl::Status RunAllocs(const AllocsConfig& config) {
  if (config.source == "eventpipe") return RunByStream(config);
  ASSIGN_OR_RETURN(RecordOptions options, WatchOptions(config.watch));
  options.view = RecordView::kAllocations;
  options.probe_cost_share = config.hook_budget / 100;
  LineOutput output(STDOUT_FILENO);
  return RunWatch(config.watch,
                  {.options = std::move(options),
                   .can_watch = [&](Recorder& recorder) { return recorder.WatchesAllocationsOf(config.watch.pid); },
                   .summary =
                       [&](const Recorder& recorder) {
                         return Tables(config, recorder.frames(), recorder.stacks(), recorder.account());
                       },
                   .summary_with_json = true,
                   .needs_samples = false},
                  output);
}

}  // namespace clrsampler
