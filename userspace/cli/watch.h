// The parts that `pauses`, `jit`, `allocs` and `exceptions` share: they print what one process does as it comes, or a
// summary at the end.
#ifndef CLRSAMPLER_CLI_WATCH_H_
#define CLRSAMPLER_CLI_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/line_output.h"
#include "formats/names/frame_text.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/record_options.h"
#include "pipeline/recorder.h"

namespace CLI {
class App;
}  // namespace CLI

namespace clrsampler {

struct WatchConfig {
  uint32_t pid = 0;
  std::optional<std::string> duration;
  NameStyle names = NameStyle::kShort;
  LineOptions lines;  // of the kinds of events that have some
  bool json = false;
};

// `json_help` says what --json prints.
void DeclareWatchOptions(CLI::App& app, WatchConfig& config, const std::string& json_help);

// The part of a recording's options that does not depend on the kind of event.
absl::StatusOr<RecordOptions> WatchOptions(const WatchConfig& config);

struct Watch {
  RecordOptions options;  // with a receiver of the events, which prints them
  std::function<absl::Status(Recorder&)> can_watch;
  std::function<std::string(const Recorder&)> summary;
  bool summary_with_json = false;  // it is what --json prints; else --json prints the events alone
  bool needs_samples = true;       // else it is no news that there were none
  AgentNeeds needs;                // of the summary
};

// That it begins, on standard error.
void SayWatching(const WatchConfig& config);

// Tells what went wrong meanwhile, on standard error. `needs_samples`: as in Watch.
void SayNotices(const Account& account, bool needs_samples);

// Until the duration is over, a signal comes or the process ends. `output` is what the receiver prints to.
absl::Status RunWatch(const WatchConfig& config, const Watch& watch, LineOutput& output);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_WATCH_H_
