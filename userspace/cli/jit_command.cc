#include "cli/jit_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/duration_option.h"
#include "cli/line_output.h"
#include "output/jit_summary.h"
#include "output/summary.h"
#include "pipeline/recorder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::string Json(const NamedCompilation& named) {
  const Compilation& compilation = named.compilation;
  nlohmann::ordered_json json = {{"time_ns", compilation.began.ns},
                                 {"pid", named.tgid},
                                 {"method", named.method},
                                 {"tier", named.tier},
                                 {"duration_ns", compilation.duration_ns()},
                                 {"bytes", compilation.bytes},
                                 {"thread", compilation.tid},
                                 {"own_ns", compilation.own_ns()},
                                 {"il_bytes", compilation.il_bytes},
                                 {"il_stub", named.il_stub},
                                 {"address", compilation.entry},
                                 {"name_source", std::string(NameSourceText(named.source))},
                                 {"thread_name", compilation.comm},
                                 {"callers", named.callers}};
  if (compilation.result != 0) json["refused"] = compilation.result;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void DeclareJitOptions(CLI::App& app, JitConfig& config) {
  app.add_option("--pid,-p", config.pid, "the process")->required()->type_name("PID");
  app.add_option("--duration,-d", config.duration, "stop after this time, like 30s or 2m; without it on Ctrl-C")
      ->type_name("TIME");
  app.add_option("--names", config.names, "short, full or raw")
      ->check(CLI::IsMember({"short", "full", "raw"}))
      ->capture_default_str()
      ->type_name("STYLE");
  app.add_flag("--json", config.json, "one compilation a line, without the summary; docs/jit.md has the fields");
}

absl::Status RunJit(const JitConfig& config) {
  RecordOptions options;
  options.pids = {config.pid};
  if (config.duration.has_value()) {
    const absl::StatusOr<uint64_t> duration = ParseDurationNs("--duration", *config.duration);
    if (!duration.ok()) return duration.status();
    options.duration_ns = *duration;
  }
  options.frequency_hz = 1;  // samples have no part in this
  options.view = RecordView::kJit;
  options.names = config.names == "full"  ? NameStyle::kFull
                  : config.names == "raw" ? NameStyle::kRaw
                                          : NameStyle::kShort;
  JitSummary summary;
  LineOutput output(STDOUT_FILENO);
  options.on_compilation = [&](const NamedCompilation& named) {
    summary.Add(named);
    output.Print(config.json ? Json(named) : CompilationLine(named, summary.first()));
  };
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Create(options);
  if (!recorder.ok()) return recorder.status();
  RETURN_IF_ERROR((*recorder)->WatchesCompilationsOf(config.pid));
  std::fprintf(stderr, "watching process %u; %s\n", config.pid,
               config.duration.has_value() ? absl::StrCat("for ", *config.duration).c_str() : "Ctrl-C ends");
  RETURN_IF_ERROR((*recorder)->Run(nullptr));
  const Account account = (*recorder)->account();
  recorder->reset();  // probes are gone and signals work again while a slow reader takes the rest
  if (!config.json) output.Print(absl::StripSuffix(summary.Text(account.duration_seconds), "\n"));
  RETURN_IF_ERROR(output.Finish());
  SayLeftOut(output);
  for (const Notice& notice : account.notices) {
    if (notice.kind == "no_samples") continue;
    std::fprintf(stderr, "note: %s\n", PrintableText(notice.message).c_str());
    if (!notice.hint.empty()) std::fprintf(stderr, "  hint: %s\n", PrintableText(notice.hint).c_str());
  }
  return absl::OkStatus();
}

}  // namespace clrsampler
