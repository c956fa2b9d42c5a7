#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/allocs_command.h"
#include "cli/annotate_command.h"
#include "cli/attach_command.h"
#include "cli/convert_command.h"
#include "cli/diff_command.h"
#include "cli/doctor_command.h"
#include "cli/events_command.h"
#include "cli/exceptions_command.h"
#include "cli/exit_status.h"
#include "cli/inspect_command.h"
#include "cli/jit_command.h"
#include "cli/mcp_command.h"
#include "cli/names_command.h"
#include "cli/pauses_command.h"
#include "cli/ps_command.h"
#include "cli/r2rmap_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/stacks_command.h"
#include "cli/top_command.h"
#include "cli/waits_command.h"

namespace clrsampler {
namespace {

// A command whose options fill a Config.
template <typename Config>
Command Of(const char* name, const char* summary, void (*declare)(CLI::App&, Config&),
           absl::Status (*run)(const Config&)) {
  return {name, summary, [declare, run](CLI::App& app) -> std::function<int()> {
            const auto config = std::make_shared<Config>();
            declare(app, *config);
            return [config, run] { return ReportStatus(run(*config)); };
          }};
}

struct PsConfig {
  bool json = false;
};
void DeclarePsOptions(CLI::App& app, PsConfig& config) { app.add_flag("--json", config.json, "as JSON"); }
absl::Status RunPs(const PsConfig& config) { return PrintProcesses(config.json); }

struct JitdumpConfig {
  std::string file;
};
void DeclareJitdumpOptions(CLI::App& app, JitdumpConfig& config) {
  app.add_option("file", config.file, "jit-PID.dump")->required()->type_name("FILE");
}
absl::Status RunJitdump(const JitdumpConfig& config) { return PrintJitdump(config.file); }

// Its exit status says what it found.
std::function<int()> DeclareDoctor(CLI::App& app) {
  struct Config {
    std::optional<uint32_t> pid;
    bool json = false;
  };
  const auto config = std::make_shared<Config>();
  app.add_option("--pid,-p", config->pid, "look at this process; without it at all .NET processes")
      ->check(CLI::Range(1u, 1u << 22))
      ->type_name("PID");
  app.add_flag("--json", config->json, "as JSON");
  return [config] {
    const absl::StatusOr<bool> will_work = PrintDoctor(config->pid, config->json);
    if (!will_work.ok()) return ReportStatus(will_work.status());
    return *will_work ? 0 : kExitFailed;
  };
}

#ifdef CLRSAMPLER_SERVE  // not in a static program, which can open no library
// Named for --help; it has a parser of its own.
std::function<int()> DeclareServe(CLI::App&) {
  return [] { return kExitUsage; };
}
#endif

}  // namespace

std::vector<Command> Commands() {
  return {
      Of("replay", "play what record --save-stream has saved, on any machine", DeclareReplayOptions, RunRecord),
      Of("top", "show what runs now: processes, their methods, pauses and compilations", DeclareTopOptions, RunTop),
#ifdef CLRSAMPLER_SERVE
      {"serve", "sample this host all the time: history, a page, metrics for Prometheus", DeclareServe},
#endif
      Of("ps", "list the .NET processes and how well each can be profiled", DeclarePsOptions, RunPs),
      {"doctor", "check whether profiling will work here; exit status 0: it will", DeclareDoctor},
      Of("jitdump", "print the records of a jitdump file as text", DeclareJitdumpOptions, RunJitdump),
      Of("r2rmap", "print an r2rmap file as text, or make that of a ready-to-run image", DeclareR2rMapOptions,
         RunR2rMap),
      Of("names", "name code addresses of a running process, one a line", DeclareNamesOptions, RunNames),
      Of("stacks", "print where every thread of a process stands now", DeclareStacksOptions, RunStacks),
      Of("pauses", "print each pause of a .NET process: what for, how long, and which thread delayed it",
         DeclarePausesOptions, RunPauses),
      Of("allocs", "show what a .NET process allocates: how much, of which types, and where", DeclareAllocsOptions,
         RunAllocs),
      Of("wall", "show what the threads of a .NET process do all the time: run, or wait for what", DeclareWaitsOptions,
         RunWall),
      Of("locks", "show where the threads of a .NET process wait for each other, and which thread ends it",
         DeclareWaitsOptions, RunLocks),
      Of("threadpool", "show what the workers of a .NET process's thread pool do, and whether it is starved",
         DeclareWaitsOptions, RunThreadPool),
      Of("exceptions", "show what a .NET process throws: how often, of which types, and where",
         DeclareExceptionsOptions, RunExceptions),
      Of("jit", "print each method that a .NET process compiles: how long, and for whom", DeclareJitOptions, RunJit),
      Of("events", "print what a .NET runtime tells: exceptions, threads, modules, ...", DeclareEventsOptions,
         RunEvents),
      Of("attach", "load a profiler library into a .NET process, and count what it says", DeclareAttachOptions,
         RunAttach),
      Of("convert", "write a profile in another format, or a part of it", DeclareConvertOptions, RunConvert),
      Of("merge", "add profiles up", DeclareMergeOptions, RunConvert),
      Of("annotate", "show a method with the samples of its lines and instructions", DeclareAnnotateOptions,
         RunAnnotate),
      Of("diff", "compare two profiles: which methods changed by more than noise", DeclareDiffOptions, RunDiff),
      Of("report", "sum up profiles or a running process, short enough to be read whole", DeclareReportOptions,
         RunReport),
      Of("mcp", "serve reports to programs, by the Model Context Protocol", DeclareMcpOptions, RunMcp),
  };
}

}  // namespace clrsampler
