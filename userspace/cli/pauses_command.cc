#include "cli/pauses_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "output/pause_summary.h"
#include "output/summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::string ToJson(const ObservedPause& observed) {
  const Pause& pause = observed.pause;
  nlohmann::ordered_json json = {{"time_ns", pause.requested.ns},
                                 {"pid", observed.process.tgid},
                                 {"reason", std::string(SuspendReasonText(pause.reason))}};
  if (pause.generation) json["generation"] = *pause.generation;
  json["kind"] = std::string(PauseKindText(pause.kind));
  json["induced"] = pause.induced;
  json["suspend_ns"] = pause.suspend_ns();
  json["pause_ns"] = pause.pause_ns();
  json["thread"] = pause.tid;
  json["culprits"] = nlohmann::ordered_json::array();
  for (const Culprit& culprit : observed.culprits) {
    json["culprits"].push_back({{"method", culprit.method}, {"tid", culprit.tid}, {"delay_ns", culprit.delay_ns}});
  }
  json["thread_name"] = pause.comm;
  if (pause.resumed) json["resumed_ns"] = pause.resumed->ns - pause.requested.ns;
  if (pause.gc_index) json["gc_index"] = *pause.gc_index;
  if (pause.gc_reason) json["gc_reason"] = std::string(GcReasonText(pause.gc_reason));
  if (pause.younger) {
    json["younger"] = {{"generation", pause.younger->generation},
                       {"gc_index", pause.younger->index},
                       {"gc_reason", std::string(GcReasonText(pause.younger->reason))}};
  }
  if (pause.aborted > 0) json["aborted"] = pause.aborted;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void DeclarePausesOptions(CLI::App& app, PausesConfig& config) {
  DeclareWatchOptions(app, config.watch, "one pause a line, without the summary; docs/pauses.md has the fields");
  app.add_option("--frequency,-F", config.frequency_hz, "samples a second and CPU, to find who delays a pause")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("HZ");
}

absl::Status RunPauses(const PausesConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, WatchOptions(config.watch));
  options.frequency_hz = config.frequency_hz;
  options.only_blame = true;
  PauseSummary summary;
  LineOutput output(STDOUT_FILENO);
  options.on_pause = [&](const ObservedPause& observed) {
    summary.Add(observed.pause);
    output.Print(config.watch.json ? ToJson(observed) : PauseLine(observed.pause, summary.first_request()));
    if (config.watch.json) return;
    for (const Culprit& culprit : observed.culprits) {
      output.Print(absl::StrCat("            delayed ", DurationText(culprit.delay_ns), " by ",
                                PrintableText(culprit.method), " (thread ", culprit.tid, ")"));
    }
  };
  return RunWatch(
      config.watch,
      {.options = std::move(options),
       .can_watch = [&](Recorder& recorder) { return recorder.WatchesPausesOf(config.watch.pid); },
       .summary = [&](const Recorder& recorder) { return summary.Text(recorder.account().duration_seconds); }},
      output);
}

}  // namespace clrsampler
