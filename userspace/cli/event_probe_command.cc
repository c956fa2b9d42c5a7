#include "cli/event_probe_command.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/line_output.h"
#include "cli/watch.h"
#include "output/event_line.h"
#include "pipeline/recorder.h"
#include "runtime_events/probed_events.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The kinds that were asked for, or all kinds that probes see.
absl::StatusOr<std::vector<ClrEventKind>> KindsOf(const EventsConfig& config) {
  const std::span<const ClrEventKind> seen = ProbedEvents::AllKinds();
  std::vector<ClrEventKind> kinds;
  for (const std::string& name : config.kinds) {
    const std::optional<ClrEventKind> kind = ClrEventKindOf(name);
    if (!kind.has_value() || std::ranges::find(seen, *kind) == seen.end()) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat("--source probe does not see ", name)),
                      "--source eventpipe has it; docs/events.md says which source has which kind");
    }
    kinds.push_back(*kind);
  }
  if (kinds.empty()) kinds.assign(seen.begin(), seen.end());
  return kinds;
}

absl::Status CanWatch(Recorder& recorder, const ProbedEvents& events, uint32_t pid) {
  if (events.wants_suspensions()) RETURN_IF_ERROR(recorder.WatchesPausesOf(pid));
  if (events.wants_compilations()) RETURN_IF_ERROR(recorder.WatchesCompilationsOf(pid));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunEventProbe(const EventsConfig& config) {
  ASSIGN_OR_RETURN(const std::vector<ClrEventKind> kinds, KindsOf(config));
  WatchConfig watch;
  watch.pid = config.pid;
  watch.duration = config.duration;
  ASSIGN_OR_RETURN(RecordOptions options, WatchOptions(watch));
  LineOutput output(STDOUT_FILENO);
  std::optional<uint64_t> first_ns;
  ProbedEvents events(kinds, MappedAssemblies(config.pid), [&](const ClrEventRecord& record, absl::string_view source) {
    if (!first_ns.has_value()) first_ns = record.time_ns;
    output.Print(config.format == "json" ? EventJson(record, config.pid, source)
                                         : EventLine(record, *first_ns, source));
  });
  // Samples have no part in this.
  options.frequency_hz = 1;
  options.roles = false;
  options.only_blame = events.wants_suspensions();
  options.on_task_event = [&](const SideBandEvent& event) { events.OnTask(event); };
  if (events.wants_thread_creations()) {
    options.on_thread_created = [&](const ThreadCreation& creation) { events.OnThreadCreated(creation); };
  }
  if (events.wants_suspensions()) {
    options.on_runtime_event = [&](const RuntimeEvent& event) { events.OnRuntime(event); };
  }
  if (events.wants_compilations()) {
    options.on_compilation = [&](const NamedCompilation& named) { events.OnCompilation(named); };
  }
  return RunWatch(watch,
                  {.options = std::move(options),
                   .can_watch = [&](Recorder& recorder) { return CanWatch(recorder, events, config.pid); },
                   .summary = [](const Recorder&) { return ""; },
                   .needs_samples = false},
                  output);
}

}  // namespace clrsampler
