#include "cli/jit_command.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/lines_option.h"
#include "output/jit_summary.h"
#include "status/status.h"

namespace clrsampler {
namespace {

std::string ToJson(const NamedCompilation& named) {
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
  if (named.place.line != 0) {
    json["file"] = named.place.file;
    json["line"] = named.place.line;
  }
  if (compilation.result != 0) json["refused"] = compilation.result;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void DeclareJitOptions(CLI::App& app, WatchConfig& config) {
  DeclareWatchOptions(app, config, "one compilation a line, without the summary; docs/jit.md has the fields");
  DeclareLines(app, config.lines);
}

absl::Status RunJit(const WatchConfig& config) {
  ASSIGN_OR_RETURN(RecordOptions options, WatchOptions(config));
  options.view = RecordView::kJit;
  JitSummary summary;
  LineOutput output(STDOUT_FILENO);
  options.on_compilation = [&](const NamedCompilation& named) {
    summary.Add(named);
    output.Print(config.json ? ToJson(named) : CompilationLine(named, summary.first()));
  };
  return RunWatch(
      config,
      {.options = std::move(options),
       .can_watch = [&](Recorder& recorder) { return recorder.WatchesCompilationsOf(config.pid); },
       .summary = [&](const Recorder& recorder) { return summary.Text(recorder.account().duration_seconds); },
       .needs_samples = false},
      output);
}

}  // namespace clrsampler
