#include "cli/event_source_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/duration_option.h"
#include "cli/option_companion.h"
#include "cli/pids_option.h"
#include "cli/profile_options.h"
#include "cli/record_results.h"
#include "output/event_summary.h"
#include "output/stats_json.h"
#include "output/summary.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/event_profile.h"
#include "pipeline/event_watch.h"
#include "profile/run_model.h"
#include "runtime_events/counted_event.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The options that were given and mean something to the sampler and its probes only.
absl::Status CheckSamplerOptions(const RecordConfig& config) {
  const RecordConfig usual;
  const struct {
    const char* option;
    bool given;
  } kOptions[] = {{"--view", config.view != usual.view},
                  {"--code", config.keep_code},
                  {"--frequency", config.frequency_hz != usual.frequency_hz},
                  {"--unwind", config.unwind != usual.unwind},
                  {"--async-stacks", config.async_stacks},
                  {"--max-frames", config.max_frames != usual.max_frames},
                  {"--gap-words", config.gap_words != usual.gap_words},
                  {"--stack-words", config.stack_words != usual.stack_words},
                  {"--min-wait", config.min_wait != usual.min_wait},
                  {"--wakers", config.wakers},
                  {"--hook-budget", config.hook_budget != usual.hook_budget},
                  {"--mark-suspension", config.mark_suspension},
                  {"--no-hooks", config.no_hooks},
                  {"--try-unknown-runtime", config.try_unknown_runtime},
                  {"--ring-bytes", config.ring_bytes.has_value()},
                  {"--symbol-server", !config.symbol_servers.empty()},
                  {"--symbol-cache", !config.symbol_cache.empty()},
                  {"--symbol-cache-size", config.symbol_cache_size != usual.symbol_cache_size},
                  {"--enable-perf-map", config.perf_maps.enable},
                  {"--perf-map-cap", config.perf_maps.cap.has_value()},
                  {"--perf-map-time", config.perf_maps.time != usual.perf_maps.time},
                  {"--cri-socket", !config.cri_socket.empty()},
                  {"--verbose", config.verbose},
                  {"--save-stacks", !config.save_stacks.empty()},
                  {"--save-stream", !config.save_stream.empty()}};
  for (const auto& [option, given] : kOptions) {
    if (given)
      return BadValue(absl::StrCat("--source eventpipe has no ", option), absl::StrCat("leave ", option, " out"));
  }
  return absl::OkStatus();
}

struct EventResults {
  std::vector<ProfileOutput> outputs;
  std::optional<OutputFile> stats;
};

absl::StatusOr<EventResults> OpenResults(const RecordConfig& config, uint32_t pid) {
  absl::StatusOr<std::vector<ProfileOutput>> outputs = OpenOutputs(config, {pid}, CommOf(pid));
  RETURN_IF_ERROR(outputs.status());
  for (const ProfileOutput& output : *outputs) {
    if (!output.writer->needs_code) continue;
    return BadValue(
        absl::StrCat(output.name(), ": a .", output.writer->format, " holds machine code, which events lack"),
        "give it another extension");
  }
  ASSIGN_OR_RETURN(std::optional<OutputFile> stats, OpenStats(config));
  std::vector<ResultFile> others;
  if (stats) others.push_back({stats->name(), stats->descriptor()});
  RETURN_IF_ERROR(CheckDistinct(*outputs, std::move(others)));
  return EventResults{*std::move(outputs), std::move(stats)};
}

absl::StatusOr<EventWatchOptions> WatchOptionsOf(const RecordConfig& config, uint32_t pid, ProfileView view) {
  EventWatchOptions options;
  options.pid = pid;
  options.kinds = EventKindsOf(view);
  options.buffer_megabytes = config.event_buffer_megabytes;
  options.stacks = true;
  if (!config.duration.has_value()) return options;
  ASSIGN_OR_RETURN(options.duration_ns, ParseDurationNs("--duration", *config.duration));
  return options;
}

absl::StatusOr<ProfileModel> ModelOf(const EventProfile& profile, const EventProfileOptions& options) {
  ProfileMeta meta;
  meta.view = options.view;
  meta.unit = EventUnitOf(options.view);
  const uint64_t age_ns = SystemClock().Now().ns - profile.began().ns;
  meta.start_unix_ns = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now())) - age_ns;
  meta.start_monotonic_ns = profile.began().ns;
  meta.duration_ns = static_cast<uint64_t>(profile.account().duration_seconds * 1e9);
  meta.host = HostName();
  meta.pids = {options.stacks.pid};
  meta.creator = "clrsampler " CLRSAMPLER_VERSION;
  meta.account_json = StatsJson(profile.account());
  if (!options.keep_samples) {
    return CountedRunModel(profile.frames(), profile.stacks(), std::move(meta), profile.source_files());
  }
  return SampledRunModel(profile.frames(), profile.stacks(), profile.samples(), profile.began(), std::move(meta),
                         profile.source_files());
}

absl::Status WriteResults(const RecordConfig& config, const EventProfile& profile, const EventProfileOptions& options,
                          const ProfileFilter& filter, EventResults& results) {
  absl::StatusOr<ProfileModel> model = ModelOf(profile, options);
  if (model.ok()) model = ApplyFilter(*std::move(model), filter);
  absl::Status written = model.status();
  for (ProfileOutput& output : results.outputs) {
    if (!model.ok()) break;
    written.Update(WriteProfile(*model, {config.annotate_source, config.quiet}, config.build_tool, output));
  }
  // The account is worth having even if the stacks could not be written.
  if (results.stats) {
    RETURN_IF_ERROR(results.stats->Write(StatsJson(profile.account())));
    RETURN_IF_ERROR(results.stats->Finish());
  }
  if (config.quiet) return written;
  constexpr size_t kRows = 5;
  HottestMethods said;
  said.instead = EventSummaryText(options.view, profile.frames(), profile.stacks(), profile.account(), kRows);
  if (written.ok()) said.more = WhatNext(results.outputs);
  std::fputs(SummaryText(profile.account(), said).c_str(), stderr);
  return written;
}

}  // namespace

absl::Status CheckEventSource(const RecordConfig& config) {
  const bool by_stream = config.source == "eventpipe";
  if (!by_stream && config.event == "contention") {
    return BadValue(absl::StrCat("--event ", config.event, " is only in the runtime's own event stream"),
                    "add --source eventpipe");
  }
  RETURN_IF_ERROR(CheckCompanion("--event-buffer",
                                 config.event_buffer_megabytes != RecordConfig().event_buffer_megabytes,
                                 "--source eventpipe", by_stream));
  if (!by_stream) return absl::OkStatus();
  if (config.event == "cpu" || config.event == "off-cpu" || config.event == "wall") {
    return BadValue("--source eventpipe has no samples of CPU time and no waits of threads",
                    "--event alloc, exception or contention says what to record");
  }
  if (!config.command.empty()) {
    return BadValue("--source eventpipe takes a process that runs, and no command",
                    "start it, then name it with --pid");
  }
  return CheckSamplerOptions(config);
}

absl::Status RunEventSource(const RecordConfig& config) {
  IgnoreStopsOfTerminal();
  ASSIGN_OR_RETURN(const std::vector<uint32_t> pids, ParsePids(config.pids));
  if (pids.size() != 1) return BadValue("--source eventpipe takes one process", "name it with --pid PID");
  ASSIGN_OR_RETURN(const ProfileFilter filter, ToFilter(config.filter));
  ASSIGN_OR_RETURN(EventResults results, OpenResults(config, pids.front()));

  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  EventProfileOptions options;
  options.view = *ProfileViewOf(config.event);
  LineOptions lines = config.lines;
  lines.wanted |= lines.source_texts;
  options.stacks = {pids.front(), config.names, lines, LineHelperFor(lines), files.get()};
  options.keep_samples = filter.thread || filter.from_ns || filter.to_ns;
  for (const ProfileOutput& output : results.outputs) options.keep_samples |= output.writer->takes_samples;
  options.buffer_megabytes = config.event_buffer_megabytes;

  ASSIGN_OR_RETURN(EventWatchOptions watch, WatchOptionsOf(config, pids.front(), options.view));
  watch.files = files.get();
  // Each image gets a file. The images are known at the end.
  watch.needs.late_outputs = std::any_of(results.outputs.begin(), results.outputs.end(),
                                         [](const ProfileOutput& output) { return !output.file; });
  std::optional<EventProfile> profile;
  watch.prepare = [&] { profile.emplace(options); };
  const auto began = [&](MonotonicTime since) {
    profile->Begin(since);
    if (config.quiet) return;
    std::fprintf(stderr, "watching process %u; %s\n", pids.front(),
                 config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
  };
  const absl::StatusOr<EventWatchResult> result =
      WatchEvents(watch, began, [&](const ClrEventRecord& record) { profile->Add(record); });
  RETURN_IF_ERROR(result.status());
  // The events that came before an error are worth having.
  if (!result->ended.ok() && (!profile || profile->account().samples_written == 0)) return result->ended;
  profile->Finish(*result);
  absl::Status written = WriteResults(config, *profile, options, filter, results);
  written.Update(result->ended);
  return written;
}

}  // namespace clrsampler
