#include "cli/top_command.h"

#include <malloc.h>
#include <re2/re2.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/duration_option.h"
#include "cli/pids_option.h"
#include "cli/top_screen.h"
#include "output/summary.h"
#include "output/top_text.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/recorder.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kOnceWidth = 200;
constexpr int kShownWindows = 5;  // a table is of so many intervals

absl::Status PrintOnce(const TopTable& table, const TopView& view, const TopConfig& config) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  quiet.set_case_sensitive(false);
  const RE2 filter(config.filter, quiet);
  if (!filter.ok()) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("--filter ", config.filter, ": ", filter.error())),
                    "it is an expression as in grep -E");
  }
  std::printf("%s\n", TopStateLine(table).c_str());
  uint32_t left = config.lines;
  if (!view.methods) {
    std::printf("%s\n", TopProcessHeader(kOnceWidth).c_str());
    for (const TopProcess& process : table.Processes(view.sort)) {
      if (!RE2::PartialMatch(absl::StrCat(process.comm, " ", process.container), filter)) continue;
      if (left-- == 0) break;
      std::printf("%s\n", TopProcessLine(process, kOnceWidth).c_str());
    }
    return absl::OkStatus();
  }
  const TopMethods methods = table.Methods(view.pid, view.nameless);
  std::printf("%s\n", TopMethodHeader(kOnceWidth).c_str());
  for (const MethodWeight& method : methods.methods) {
    if (!RE2::PartialMatch(method.name, filter)) continue;
    if (left-- == 0) break;
    std::printf("%s\n", TopMethodLine(method, table.seconds(), methods.total_ns, kOnceWidth).c_str());
  }
  return absl::OkStatus();
}

// Until something ends the command. A recorder without room for names is followed by another one, for the processes
// that are still there.
absl::Status RunRecorders(RecordOptions& options, std::unique_ptr<Recorder> recorder) {
  while (true) {
    RETURN_IF_ERROR(recorder->Run(nullptr));
    if (recorder->stop_signal() != 0 || recorder->wants_fresh_start() == FreshStart::kNone) return absl::OkStatus();
    recorder.reset();
    malloc_trim(0);  // what was freed stays with the process otherwise
    const bool whole_host = options.pids.empty();
    std::erase_if(options.pids, [](uint32_t pid) { return access(absl::StrCat("/proc/", pid).c_str(), F_OK) != 0; });
    if (options.pids.empty() && !whole_host) return absl::OkStatus();
    ASSIGN_OR_RETURN(recorder, Recorder::Create(options));
  }
}

}  // namespace

void DeclareTopOptions(CLI::App& app, TopConfig& config) {
  app.add_option("--pid,-p", config.pids, "processes to show, separated by commas; without it all")
      ->allow_extra_args(false)
      ->type_name("PID[,PID]");
  app.add_option("--frequency,-F", config.frequency_hz, "samples a second and CPU")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str()
      ->type_name("HZ");
  app.add_option("--interval", config.interval, "how often the table is new; it shows the last five of these")
      ->capture_default_str()
      ->type_name("TIME");
  app.add_option("--sort", config.sort, "cpu, pause, jit, pid or name")
      ->check(CLI::IsMember({"cpu", "pause", "jit", "pid", "name"}))
      ->capture_default_str()
      ->type_name("KEY");
  app.add_option("--filter", config.filter, "only processes or methods whose names fit this expression")
      ->type_name("REGEX");
  app.add_flag("--methods,-m", config.methods, "methods instead of processes");
  app.add_flag("--addresses", config.addresses,
               "functions of the runtime without a name by address and not by what they are for");
  app.add_flag("--once", config.once, "print one table after one interval, and end");
  app.add_option("--lines", config.lines, "with --once: most rows")->capture_default_str()->type_name("N");
  DeclareHookBudget(app, config.hook_budget);
}

absl::Status RunTop(const TopConfig& config) {
  RecordOptions options;
  ASSIGN_OR_RETURN(options.pids, ParsePids(config.pids));
  options.frequency_hz = config.frequency_hz;
  options.probe_cost_share = config.hook_budget / 100;
  ASSIGN_OR_RETURN(const uint64_t interval, ParseDurationNs("--interval", config.interval));
  if (interval < 200'000'000 || interval > 3'600'000'000'000) {
    return WithHint(
        absl::InvalidArgumentError(absl::StrCat("--interval ", config.interval, " is not from 200ms to 1h")),
        "2s is a good one");
  }
  TopView view;
  view.sort = *TopSortOf(config.sort);
  view.filter = config.filter;
  view.methods = config.methods;
  if (config.addresses) view.nameless = NamelessLeaves::kByAddress;
  if (options.pids.size() == 1) view.pid = options.pids.front();

  TopTable once(interval);
  std::unique_ptr<TopScreen> screen;
  WindowOptions windows;
  windows.lengths.length_ns = interval;
  windows.on_window = [&](Window window) {
    auto shared = std::make_shared<const Window>(std::move(window));
    if (screen != nullptr) {
      screen->Add(std::move(shared));
    } else if (shared->cpu.meta.duration_ns >= interval / 2) {
      once.Add(std::move(shared));
    }
  };
  windows.begins_anew = !config.once;
  options.windows = std::move(windows);
  // The window of the whole interval ends when all that it holds has been handled.
  if (config.once) options.duration_ns = interval + 200'000'000;
  RETURN_IF_ERROR(ShareFileBroker(options));  // no process can be started in the sandbox
  ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder, Recorder::Create(options));
  RETURN_IF_ERROR(EnterAgentSandbox(options, {}).status());
  if (!config.once) {
    ASSIGN_OR_RETURN(screen, TopScreen::Open(view, interval * static_cast<uint64_t>(kShownWindows)));
  }
  const absl::Status run = RunRecorders(options, std::move(recorder));
  screen.reset();
  RETURN_IF_ERROR(run);
  return config.once ? PrintOnce(once, view, config) : absl::OkStatus();
}

}  // namespace clrsampler
