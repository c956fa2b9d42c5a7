#include "cli/events_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/duration_option.h"
#include "cli/event_probe_command.h"
#include "cli/line_output.h"
#include "formats/nettrace/clr_events.h"
#include "output/event_line.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/event_watch.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const ClrEventKind kind : AllClrEventKinds()) names.emplace_back(ClrEventName(kind));
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
  if (result.broke_off) std::fprintf(stderr, "note: the process ended before its last events had come\n");
}

}  // namespace

void DeclareEventsOptions(CLI::App& app, EventsConfig& config) {
  app.add_option("--pid,-p", config.pid, "the process")->required()->check(CLI::Range(1u, 1u << 22))->type_name("PID");
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
  app.add_option("--buffer", config.buffer_megabytes, "what the runtime may keep until it is taken, in its own memory")
      ->check(CLI::Range(1, 1024))
      ->type_name("MB")
      ->capture_default_str();
}

absl::Status RunEvents(const EventsConfig& config) {
  if (config.source == "probe") return RunEventProbe(config);
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  EventWatchOptions options;
  options.files = files.get();
  options.pid = config.pid;
  options.kinds = KindsOf(config.kinds);
  for (const ClrEventKind kind : options.kinds) {
    if (DemandOf(kind).keywords != 0 || config.kinds.empty()) continue;
    return WithHint(absl::InvalidArgumentError(absl::StrCat("no runtime sends ", ClrEventName(kind))),
                    "--source probe sees it");
  }
  options.buffer_megabytes = config.buffer_megabytes;
  if (config.duration.has_value()) {
    const absl::StatusOr<uint64_t> duration = ParseDurationNs("--duration", *config.duration);
    if (!duration.ok()) return duration.status();
    options.duration_ns = *duration;
  }
  LineOutput output(STDOUT_FILENO);
  std::optional<uint64_t> first_ns;
  const auto began = [&] {
    std::fprintf(stderr, "watching process %u; %s\n", config.pid,
                 config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
  };
  const absl::StatusOr<EventWatchResult> result = WatchEvents(options, began, [&](const ClrEventRecord& record) {
    if (!first_ns.has_value()) first_ns = record.time_ns;
    output.Print(config.format == "json" ? EventJson(record, config.pid, config.source) : EventLine(record, *first_ns));
  });
  if (absl::Status finished = output.Finish(); !finished.ok()) return finished;
  SayLeftOut(output);
  if (!result.ok()) return result.status();
  SayWhatIsMissing(*result, config.buffer_megabytes);
  return absl::OkStatus();
}

}  // namespace clrsampler
