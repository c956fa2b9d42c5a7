#include "cli/watch.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/duration_option.h"
#include "cli/names_option.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {

void DeclareWatchOptions(CLI::App& app, WatchConfig& config, const std::string& json_help) {
  app.add_option("--pid,-p", config.pid, "the process")->required()->type_name("PID");
  DeclareDuration(app, config.duration);
  DeclareNames(app, config.names);
  app.add_flag("--json", config.json, json_help);
}

absl::StatusOr<RecordOptions> WatchOptions(const WatchConfig& config) {
  RecordOptions options;
  options.pids = {config.pid};
  if (config.duration.has_value()) {
    ASSIGN_OR_RETURN(options.duration_ns, ParseDurationNs("--duration", *config.duration));
  }
  options.names = config.names;
  options.lines = config.lines;
  return options;
}

void SayWatching(const WatchConfig& config) {
  std::fprintf(stderr, "watching process %u; %s\n", config.pid,
               config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
}

void SayNotices(const Account& account, bool needs_samples) {
  for (const Notice& notice : account.notices) {
    if (notice.kind == "no_samples" && !needs_samples) continue;
    std::fprintf(stderr, "note: %s\n", PrintableText(notice.message).c_str());
    if (!notice.hint.empty()) std::fprintf(stderr, "  hint: %s\n", PrintableText(notice.hint).c_str());
  }
}

absl::Status RunWatch(const WatchConfig& config, const Watch& watch, LineOutput& output) {
  ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder, Recorder::Create(watch.options));
  RETURN_IF_ERROR(watch.can_watch(*recorder));
  RETURN_IF_ERROR(EnterAgentSandbox(watch.options, watch.needs).status());
  SayWatching(config);
  RETURN_IF_ERROR(recorder->Run(nullptr));
  const Account account = recorder->account();
  const std::string summary = config.json && !watch.summary_with_json ? "" : watch.summary(*recorder);
  recorder.reset();  // probes are gone and signals work again while a slow reader takes the rest
  if (!summary.empty()) output.Print(absl::StripSuffix(summary, "\n"));
  RETURN_IF_ERROR(output.Finish());
  SayLeftOut(output);
  SayNotices(account, watch.needs_samples);
  return absl::OkStatus();
}

}  // namespace clrsampler
