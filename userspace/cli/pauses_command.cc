#include "cli/pauses_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/duration_option.h"
#include "cli/line_output.h"
#include "output/pause_summary.h"
#include "output/summary.h"
#include "pipeline/recorder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::string Json(const ObservedPause& observed) {
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
  app.add_option("--pid,-p", config.pid, "the process")->required()->type_name("PID");
  app.add_option("--duration,-d", config.duration, "stop after this time, like 30s or 2m; without it on Ctrl-C")
      ->type_name("TIME");
  app.add_option("--frequency,-F", config.frequency_hz, "samples a second and CPU, to find who delays a pause")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("HZ");
  app.add_option("--names", config.names, "short, full or raw")
      ->check(CLI::IsMember({"short", "full", "raw"}))
      ->capture_default_str()
      ->type_name("STYLE");
  app.add_flag("--json", config.json, "one pause a line, without the summary; docs/pauses.md has the fields");
}

absl::Status RunPauses(const PausesConfig& config) {
  RecordOptions options;
  options.pids = {config.pid};
  if (config.duration.has_value()) {
    const absl::StatusOr<uint64_t> duration = ParseDurationNs("--duration", *config.duration);
    if (!duration.ok()) return duration.status();
    options.duration_ns = *duration;
  }
  options.frequency_hz = config.frequency_hz;
  options.names = config.names == "full"  ? NameStyle::kFull
                  : config.names == "raw" ? NameStyle::kRaw
                                          : NameStyle::kShort;
  options.only_blame = true;
  PauseSummary summary;
  LineOutput output(STDOUT_FILENO);
  options.on_pause = [&](const ObservedPause& observed) {
    summary.Add(observed.pause);
    output.Print(config.json ? Json(observed) : PauseLine(observed.pause, summary.first_request()));
    if (config.json) return;
    for (const Culprit& culprit : observed.culprits) {
      output.Print(absl::StrCat("            delayed ", DurationText(culprit.delay_ns), " by ",
                                PrintableText(culprit.method), " (thread ", culprit.tid, ")"));
    }
  };
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Create(options);
  if (!recorder.ok()) return recorder.status();
  RETURN_IF_ERROR((*recorder)->WatchesPausesOf(config.pid));
  std::fprintf(stderr, "watching process %u; %s\n", config.pid,
               config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
  RETURN_IF_ERROR((*recorder)->Run(nullptr));
  const Account account = (*recorder)->account();
  recorder->reset();  // probes are gone and signals work again while a slow reader takes the rest
  if (!config.json) output.Print(absl::StripSuffix(summary.Text(account.duration_seconds), "\n"));
  RETURN_IF_ERROR(output.Finish());
  SayLeftOut(output);
  for (const Notice& notice : account.notices) {
    std::fprintf(stderr, "note: %s\n", PrintableText(notice.message).c_str());
    if (!notice.hint.empty()) std::fprintf(stderr, "  hint: %s\n", PrintableText(notice.hint).c_str());
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
