#include "cli/events_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/attach_command.h"
#include "cli/duration_option.h"
#include "cli/event_probe_command.h"
#include "cli/line_output.h"
#include "cli/option_companion.h"
#include "formats/inprocess/library_events.h"
#include "formats/nettrace/clr_events.h"
#include "output/event_line.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/event_watch.h"
#include "pipeline/library_watch.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const ClrEventKind kind : AllClrEventKinds()) names.emplace_back(ClrEventName(kind));
  for (const absl::string_view name : LibraryEventNames()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

std::vector<ClrEventKind> KindsOf(const std::vector<std::string>& names) {
  std::vector<ClrEventKind> kinds;
  for (const std::string& name : names) {
    if (const std::optional<ClrEventKind> kind = ClrEventKindOf(name); kind.has_value()) kinds.push_back(*kind);
  }
  if (kinds.empty()) kinds.assign(AllClrEventKinds().begin(), AllClrEventKinds().end());
  return kinds;
}

void SayWhatIsMissing(const EventWatchResult& result, uint32_t buffer_megabytes) {
  if (result.lost > 0) {
    std::fprintf(stderr,
                 "note: %llu events were lost, since the runtime's buffer of %u MB was full\n"
                 "  hint: ask for fewer with --kind, or give more room with --buffer\n",
                 static_cast<unsigned long long>(result.lost), buffer_megabytes);
  }
  if (result.damaged > 0) {
    std::fprintf(stderr, "note: %llu events were shorter than their fields and left out\n",
                 static_cast<unsigned long long>(result.damaged));
  }
  if (result.unsorted > 0) {
    std::fprintf(stderr, "note: %llu events stand behind newer ones\n",
                 static_cast<unsigned long long>(result.unsorted));
  }
  if (result.not_taken > 0) {
    std::fprintf(stderr, "note: %llu events were not taken, since they came too long after the end\n",
                 static_cast<unsigned long long>(result.not_taken));
  }
  if (result.broke_off) std::fprintf(stderr, "note: the process ended before its last events had come\n");
}

absl::Status CheckTarget(const EventsConfig& config) {
  if (!config.library_socket.empty() && !config.with_library) {
    return WithHint(absl::InvalidArgumentError("--library-socket is for the library"), "add --with-library");
  }
  if (config.with_library && config.source == "probe") {
    return WithHint(absl::InvalidArgumentError("events come from probes or from the library, not from both"),
                    "leave --source or --with-library out");
  }
  if (config.source == "probe") {
    RETURN_IF_ERROR(CheckCompanion("--buffer", config.buffer_megabytes != EventsConfig().buffer_megabytes,
                                   "--source eventpipe", false));
  }
  if ((config.pid == 0) == config.library_socket.empty()) {
    return WithHint(absl::InvalidArgumentError("it takes one process, by --pid or by --library-socket"),
                    "clrsampler ps lists .NET processes");
  }
  return absl::OkStatus();
}

// Each source has kinds that the other one lacks.
absl::Status CheckKinds(const EventsConfig& config) {
  for (const std::string& name : config.kinds) {
    const std::optional<ClrEventKind> kind = ClrEventKindOf(name);
    const bool by_stream = !config.with_library && config.source != "probe";
    const bool comes = config.with_library ? LibraryKindsOf(name) != 0
                                           : kind.has_value() && (!by_stream || DemandOf(*kind).keywords != 0);
    if (comes) continue;
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--kind ", name, " does not come from ",
                                                            config.with_library ? "the library"
                                                            : by_stream         ? "the event stream"
                                                                                : "probes")),
                    config.with_library             ? "leave --with-library out"
                    : by_stream && kind.has_value() ? "--source probe sees it"
                                                    : "--with-library has it");
  }
  return absl::OkStatus();
}

void SayThatItWatches(const EventsConfig& config, uint32_t pid) {
  std::fprintf(stderr, "watching process %u; %s\n", pid,
               config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
}

absl::Status RunSession(const EventsConfig& config, uint64_t duration_ns, LineOutput& output) {
  IgnoreStopsOfTerminal();
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  EventWatchOptions options;
  options.files = files.get();
  options.pid = config.pid;
  options.kinds = KindsOf(config.kinds);
  options.buffer_megabytes = config.buffer_megabytes;
  options.duration_ns = duration_ns;
  std::optional<uint64_t> first_ns;
  const absl::StatusOr<EventWatchResult> result = WatchEvents(
      options, [&](MonotonicTime /*since*/) { SayThatItWatches(config, config.pid); },
      [&](const ClrEventRecord& record) {
        if (!first_ns.has_value()) first_ns = record.time_ns;
        output.Print(config.format == "json" ? EventJson(record, config.pid, config.source)
                                             : EventLine(record, *first_ns));
      });
  RETURN_IF_ERROR(result.status());
  SayWhatIsMissing(*result, config.buffer_megabytes);
  return result->ended;
}

absl::Status RunLibrary(const EventsConfig& config, uint64_t duration_ns, LineOutput& output) {
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  LibraryWatchOptions options;
  options.files = files.get();
  options.pid = config.pid;
  options.kinds = LibraryKindsFor(config.kinds, !config.library_socket.empty());
  options.duration_ns = duration_ns;
  options.ring_bytes = std::bit_ceil(size_t{config.buffer_megabytes} << 20);
  options.socket = config.library_socket;
  if (!options.socket.empty()) std::fprintf(stderr, "waiting at %s\n", options.socket.c_str());
  std::optional<uint64_t> first_ns;
  uint32_t pid = config.pid;
  const auto began = [&](uint32_t number) {
    pid = number;
    SayThatItWatches(config, pid);
  };
  const absl::StatusOr<LibraryWatchResult> result = WatchLibrary(options, began, [&](const LibraryRecord& record) {
    if (!first_ns.has_value()) first_ns = record.time_ns;
    output.Print(config.format == "json" ? EventJson(record, pid) : EventLine(record, *first_ns));
  });
  if (result.ok()) SayWhatTheLibraryMissed(*result);
  return result.status();
}

}  // namespace

void DeclareEventsOptions(CLI::App& app, EventsConfig& config) {
  app.add_option("--pid,-p", config.pid, "the process")->check(CLI::Range(1u, 1u << 22))->type_name("PID");
  DeclareDuration(app, config.duration);
  app.add_option("--format", config.format, "text, or json: one object a line; docs/events.md has the fields")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--kind", config.kinds,
                 "only these, with commas between them: ThreadCreated, ExceptionThrown, ...; all without it")
      ->delimiter(',')
      ->check(CLI::IsMember(KindNames()))
      ->type_name("KIND");
  app.add_option(
         "--source", config.source,
         "eventpipe: the runtime's own event stream; probe: seen from outside, as root; docs/events.md says which\n"
         "source has which kind")
      ->check(CLI::IsMember({"eventpipe", "probe"}))
      ->capture_default_str();
  app.add_flag("--with-library", config.with_library,
               "load a profiler library into the process, and have the events from there; docs/notifications.md");
  app.add_option("--library-socket", config.library_socket,
                 "with --with-library, instead of --pid: wait here for a program that is started with the library")
      ->type_name("PATH");
  app.add_option("--buffer", config.buffer_megabytes,
                 "how much the runtime may keep in its own memory until it is taken")
      ->check(CLI::Range(1, 1024))
      ->type_name("MB")
      ->capture_default_str();
}

absl::Status RunEvents(const EventsConfig& config) {
  RETURN_IF_ERROR(CheckTarget(config));
  RETURN_IF_ERROR(CheckKinds(config));
  uint64_t duration_ns = 0;
  if (config.source == "probe") return RunEventProbe(config);
  if (config.duration.has_value()) {
    ASSIGN_OR_RETURN(duration_ns, ParseDurationNs("--duration", *config.duration));
  }
  LineOutput output(STDOUT_FILENO);
  absl::Status watched =
      config.with_library ? RunLibrary(config, duration_ns, output) : RunSession(config, duration_ns, output);
  if (absl::Status finished = output.Finish(); !finished.ok()) return finished;
  SayLeftOut(output);
  return watched;
}

}  // namespace clrsampler
