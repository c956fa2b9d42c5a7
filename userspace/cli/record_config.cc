#include "cli/record_config.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cri_socket_option.h"
#include "cli/duration_option.h"
#include "cli/option_companion.h"
#include "cli/pids_option.h"
#include "cli/ring_option.h"
#include "cli/size_option.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::Status SetTarget(const RecordConfig& config, RecordOptions& options) {
  auto pids = ParsePids(config.pids);
  if (!pids.ok()) return pids.status();
  options.pids = *std::move(pids);
  options.command = config.command;
  if (options.pids.empty() || options.command.empty()) return absl::OkStatus();
  return BadValue("--pid and a command exclude each other", "profile a running process, or start one after --");
}

// Numbers with units.
absl::Status SetAmounts(const RecordConfig& config, RecordOptions& options) {
  if (config.duration.has_value()) {
    auto duration = ParseDurationNs("--duration", *config.duration);
    if (!duration.ok()) return duration.status();
    options.duration_ns = *duration;
  }
  if (config.ring_bytes.has_value()) {
    auto bytes = ParseRingBytes(*config.ring_bytes);
    if (!bytes.ok()) return bytes.status();
    options.ring_bytes = *bytes;
  }
  auto min_wait = ParseOffsetNs("--min-wait", config.min_wait);
  if (!min_wait.ok()) return min_wait.status();
  options.min_wait_ns = *min_wait;
  return absl::OkStatus();
}

// Where names come from.
absl::Status SetSymbols(const RecordConfig& config, RecordOptions& options) {
  for (const std::string& text : config.symbol_servers) {
    ASSIGN_OR_RETURN(SymbolServerUrl server, ParseSymbolServerUrl(text));
    options.symbols.servers.push_back(std::move(server));
  }
  options.symbols.cache_folder = config.symbol_cache;
  auto cache_bytes = ParseSizeBytes("--symbol-cache-size", config.symbol_cache_size, uint64_t{1} << 20,
                                    uint64_t{1} << 40, "write it as 500MiB or 8GiB; from 1MiB to 1024GiB");
  if (!cache_bytes.ok()) return cache_bytes.status();
  options.symbols.cache.max_bytes = *cache_bytes;
  const PerfMapConfig usual;
  const bool maps = config.perf_maps.enable;
  RETURN_IF_ERROR(CheckCompanion("--perf-map-cap", config.perf_maps.cap.has_value(), "--enable-perf-map", maps));
  RETURN_IF_ERROR(CheckCompanion("--perf-map-time", config.perf_maps.time != usual.time, "--enable-perf-map", maps));
  ASSIGN_OR_RETURN(options.perf_maps, ParsePerfMaps(config.perf_maps));
  options.names = config.names;
  options.try_unknown_runtime = config.try_unknown_runtime;
  options.lines = config.lines;
  options.keep_code = config.keep_code;
  options.lines.wanted |= options.lines.source_texts || options.keep_code;
  return absl::OkStatus();
}

// Words of --event and --view that name a view. "cpu" of either leaves the choice to the other.
struct ViewWord {
  absl::string_view word;
  RecordView view;
};
constexpr ViewWord kViewWords[] = {{"alloc", RecordView::kAllocations},
                                   {"off-cpu", RecordView::kOffCpu},
                                   {"wall", RecordView::kWall},
                                   {"exception", RecordView::kExceptions},
                                   {"pause", RecordView::kPause},
                                   {"suspend-delay", RecordView::kSuspendDelay},
                                   {"jit", RecordView::kJit}};

absl::Status SetUnwinding(const RecordConfig& config, RecordOptions& options) {
  options.unwind_data = config.unwind == "tables";
  options.max_frames = config.max_frames;
  options.gap_words = config.gap_words;
  options.stack_words = config.stack_words;
  options.async_stacks = config.async_stacks;
  if (options.async_stacks && !options.unwind_data) {
    return BadValue("--async-stacks needs --unwind tables", "leave --unwind out");
  }
  if (options.async_stacks && config.no_hooks) {
    return BadValue("--async-stacks must know when collections move objects, and --no-hooks hides that",
                    "leave --no-hooks out");
  }
  return absl::OkStatus();
}

// An event that is no CPU time has its own view; --view chooses among those of CPU time.
RecordView ViewOf(const RecordConfig& config) {
  for (const absl::string_view word : {config.event, config.view}) {
    for (const ViewWord& view : kViewWords) {
      if (word == view.word) return view.view;
    }
  }
  return RecordView::kCpu;
}

absl::Status CheckWaits(const RecordConfig& config, RecordView view) {
  if (HasWaits(view)) return absl::OkStatus();
  for (const auto& [option, given] :
       {std::pair("--wakers", config.wakers), std::pair("--min-wait", config.min_wait != RecordConfig().min_wait)}) {
    if (!given) continue;
    return BadValue(absl::StrCat(option, " is for waits of threads, which are not recorded"),
                    absl::StrCat("add --event off-cpu or --event wall, or leave ", option, " out"));
  }
  return absl::OkStatus();
}

// Some events are told by probes of the runtime only.
absl::Status CheckHooks(const RecordConfig& config, RecordView view) {
  if (!config.no_hooks) return absl::OkStatus();
  const bool by_probes = view == RecordView::kAllocations || view == RecordView::kExceptions ||
                         view == RecordView::kPause || view == RecordView::kSuspendDelay || view == RecordView::kJit;
  const std::string asked_for = config.mark_suspension  ? "--mark-suspension"
                                : !by_probes            ? ""
                                : config.event != "cpu" ? absl::StrCat("--event ", config.event)
                                                        : absl::StrCat("--view ", config.view);
  if (asked_for.empty()) return absl::OkStatus();
  return BadValue(absl::StrCat(asked_for, " needs probes in the runtime, and --no-hooks plants none"),
                  absl::StrCat("leave one of --no-hooks and ", asked_for, " out"));
}

}  // namespace

absl::Status BadValue(absl::string_view what, absl::string_view hint) {
  return WithHint(absl::InvalidArgumentError(what), hint);
}

absl::StatusOr<RecordOptions> ToOptions(const RecordConfig& config) {
  constexpr size_t kSavedStacks = 500;
  RecordOptions options;
  RETURN_IF_ERROR(SetTarget(config, options));
  RETURN_IF_ERROR(SetAmounts(config, options));
  RETURN_IF_ERROR(SetSymbols(config, options));
  RETURN_IF_ERROR(SetUnwinding(config, options));
  ASSIGN_OR_RETURN(options.cri_socket, ParseCriSocket(config.cri_socket));
  options.view = ViewOf(config);
  RETURN_IF_ERROR(CheckWaits(config, options.view));
  RETURN_IF_ERROR(CheckHooks(config, options.view));
  options.roles = !config.no_hooks;
  options.probe_cost_share = config.hook_budget / 100;
  options.wakers = config.wakers;
  options.only_blame = options.view == RecordView::kSuspendDelay;
  options.mark_suspension = config.mark_suspension;
  options.frequency_hz = config.frequency_hz;
  if (!config.save_stacks.empty()) options.keep_stacks = kSavedStacks;
  return options;
}

}  // namespace clrsampler
