// The command line: which command, how errors are said, exit statuses (0 done, 1 failed, 2 wrong usage).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
#include "cli/mip_command.h"
#include "cli/names_command.h"
#include "cli/pauses_command.h"
#include "cli/ps_command.h"
#include "cli/r2rmap_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/waits_command.h"
#ifdef CLRSAMPLER_SERVE  // not in a static program, which can open no library
#include "cli/serve_command.h"
#endif
#include "cli/stacks_command.h"
#include "cli/top_command.h"
#include "clr/lease_repair.h"
#include "os/heap.h"
#include "status/status.h"

namespace {

using clrsampler::kExitFailed;
using clrsampler::kExitUsage;
using clrsampler::ReportStatus;

// Profiles are read as a whole: on a small machine, or below a limit of a container, one may be too large.
void SayOutOfMemory() {
  constexpr char kText[] =
      "error: no more memory\n"
      "hint: give it more (ulimit -v, the memory limit of the container), or fewer and smaller profiles\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kExitFailed);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 may throw; that ends the program, as it should.
int main(int argc, char** argv) {
  std::set_new_handler(SayOutOfMemory);
  clrsampler::ReturnLargeBlocks();
  // Not for people: a run starts it to look after the perf maps that it switches on.
  if (argc > 1 && std::strcmp(argv[1], clrsampler::kLeaseGuardVerb) == 0) return clrsampler::RunLeaseGuard(argc, argv);

#ifdef CLRSAMPLER_SERVE
  // A parser of its own: its options may stand in a file, which is read again while it runs.
  if (argc > 1 && std::strcmp(argv[1], "serve") == 0) return clrsampler::ServeMain({argv + 2, argv + argc});
#endif

  // Commands of its own follow the word.
  if (argc > 1 && std::strcmp(argv[1], "mip") == 0) return ReportStatus(clrsampler::RunMip({argv + 2, argv + argc}));

  // What follows -- is the command's own, options and all; the parser must not look at it.
  std::vector<std::string> command;
  int own_arguments = argc;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    own_arguments = i;
    command.assign(argv + i + 1, argv + argc);
    break;
  }

  CLI::App app(
      "Samples the stacks of .NET and native processes and writes them for flame graphs.\n"
      "  clrsampler [record] [OPTIONS] [-- COMMAND...]\n"
      "  clrsampler replay FILE [OPTIONS]\n"
      "  clrsampler top [--once]\n"
#ifdef CLRSAMPLER_SERVE
      "  clrsampler serve [--config FILE]\n"
#endif
      "  clrsampler ps [--json]\n"
      "  clrsampler doctor [--pid PID] [--json]\n"
      "  clrsampler stacks --pid PID [--json]\n"
      "  clrsampler pauses --pid PID [--json]\n"
      "  clrsampler jit --pid PID [--json]\n"
      "  clrsampler allocs --pid PID [--json]\n"
      "  clrsampler wall --pid PID [--json]\n"
      "  clrsampler locks --pid PID [--json]\n"
      "  clrsampler threadpool --pid PID [--json]\n"
      "  clrsampler exceptions --pid PID [--json]\n"
      "  clrsampler events --pid PID [--kind KIND]\n"
      "  clrsampler attach --pid PID [--kind KIND]\n"
      "  clrsampler annotate METHOD FILE.json\n"
      "  clrsampler convert IN OUT\n"
      "  clrsampler merge IN... -o OUT\n"
      "  clrsampler diff BEFORE AFTER\n"
      "  clrsampler jitdump|r2rmap FILE\n"
      "  clrsampler mip COMMAND -p X.mip",
      "clrsampler");
  app.set_version_flag("--version,-V", "clrsampler " CLRSAMPLER_VERSION);
  clrsampler::RecordConfig config;
  clrsampler::DeclareRecordOptions(app, config);
  CLI::App* record = app.add_subcommand("record", "sample and write stacks (the default command)");
  clrsampler::DeclareRecordOptions(*record, config);  // the same, before or behind the word
  CLI::App* replay = app.add_subcommand("replay", "play what record --save-stream has saved, on any machine");
  clrsampler::RecordConfig replay_config;
  clrsampler::DeclareReplayOptions(*replay, replay_config);
  bool json = false;
  std::optional<uint32_t> doctor_pid;
  CLI::App* top = app.add_subcommand("top", "what is running now: processes, their methods, pauses and compilations");
  clrsampler::TopConfig top_config;
  clrsampler::DeclareTopOptions(*top, top_config);
#ifdef CLRSAMPLER_SERVE
  app.add_subcommand("serve", "sample this host all the time: history, a page, metrics for Prometheus");
#endif
  CLI::App* ps = app.add_subcommand("ps", "list the .NET processes and how well each can be profiled");
  ps->add_flag("--json", json, "as JSON");
  CLI::App* doctor = app.add_subcommand("doctor", "check whether profiling will work here; exit status 0: it will");
  doctor->add_option("--pid,-p", doctor_pid, "look at this process; without it at all .NET processes")
      ->check(CLI::Range(1u, 1u << 22))
      ->type_name("PID");
  doctor->add_flag("--json", json, "as JSON");
  std::string file;
  CLI::App* jitdump = app.add_subcommand("jitdump", "print the records of a jitdump file as text");
  jitdump->add_option("file", file, "jit-PID.dump")->required()->type_name("FILE");
  CLI::App* r2rmap = app.add_subcommand("r2rmap", "print an r2rmap file as text, or make that of a ready-to-run image");
  clrsampler::R2rMapConfig r2rmap_config;
  clrsampler::DeclareR2rMapOptions(*r2rmap, r2rmap_config);
  CLI::App* names = app.add_subcommand("names", "name code addresses of a running process, one a line");
  clrsampler::NamesConfig names_config;
  clrsampler::DeclareNamesOptions(*names, names_config);
  CLI::App* stacks = app.add_subcommand("stacks", "print where every thread of a process stands now");
  clrsampler::StacksConfig stacks_config;
  clrsampler::DeclareStacksOptions(*stacks, stacks_config);
  CLI::App* pauses =
      app.add_subcommand("pauses", "print each pause of a .NET process: what for, how long, who delayed it");
  clrsampler::PausesConfig pauses_config;
  clrsampler::DeclarePausesOptions(*pauses, pauses_config);
  CLI::App* allocs = app.add_subcommand("allocs", "what a .NET process allocates: how much, of which types, and where");
  clrsampler::AllocsConfig allocs_config;
  CLI::App* wall =
      app.add_subcommand("wall", "what the threads of a .NET process do all the time: run, or wait for what");
  clrsampler::WaitsConfig wall_config;
  clrsampler::DeclareWaitsOptions(*wall, wall_config);
  CLI::App* locks =
      app.add_subcommand("locks", "where the threads of a .NET process wait for each other, and who ends it");
  clrsampler::WaitsConfig locks_config;
  clrsampler::DeclareWaitsOptions(*locks, locks_config);
  CLI::App* pool = app.add_subcommand("threadpool",
                                      "what the workers of a .NET process's thread pool do, and whether it is starved");
  clrsampler::WaitsConfig pool_config;
  clrsampler::DeclareWaitsOptions(*pool, pool_config);
  clrsampler::DeclareAllocsOptions(*allocs, allocs_config);
  CLI::App* exceptions =
      app.add_subcommand("exceptions", "what a .NET process throws: how often, of which types, and where");
  clrsampler::ExceptionsConfig exceptions_config;
  clrsampler::DeclareExceptionsOptions(*exceptions, exceptions_config);
  CLI::App* jit = app.add_subcommand("jit", "print each method that a .NET process compiles: how long, and for whom");
  clrsampler::WatchConfig jit_config;
  clrsampler::DeclareJitOptions(*jit, jit_config);
  CLI::App* events = app.add_subcommand("events", "print what a .NET runtime tells: exceptions, threads, modules, ...");
  clrsampler::EventsConfig events_config;
  clrsampler::DeclareEventsOptions(*events, events_config);
  CLI::App* attach =
      app.add_subcommand("attach", "load a profiler library into a .NET process, and count what it says");
  clrsampler::AttachConfig attach_config;
  clrsampler::DeclareAttachOptions(*attach, attach_config);
  CLI::App* convert = app.add_subcommand("convert", "write a profile in another format, or a part of it");
  CLI::App* merge = app.add_subcommand("merge", "add profiles up");
  clrsampler::ConvertConfig convert_config;
  clrsampler::DeclareConvertOptions(*convert, convert_config);
  clrsampler::DeclareMergeOptions(*merge, convert_config);
  CLI::App* annotate = app.add_subcommand("annotate", "a method with the samples of its lines and instructions");
  clrsampler::AnnotateConfig annotate_config;
  clrsampler::DeclareAnnotateOptions(*annotate, annotate_config);
  CLI::App* diff = app.add_subcommand("diff", "compare two profiles: which methods changed by more than noise");
  clrsampler::DiffConfig diff_config;
  clrsampler::DeclareDiffOptions(*diff, diff_config);
  CLI::App* report =
      app.add_subcommand("report", "what profiles or a running process say, short enough to be read whole");
  clrsampler::ReportConfig report_config;
  clrsampler::DeclareReportOptions(*report, report_config);
  CLI::App* mcp = app.add_subcommand("mcp", "serve reports to programs, by the Model Context Protocol");
  clrsampler::McpConfig mcp_config;
  clrsampler::DeclareMcpOptions(*mcp, mcp_config);
  app.add_subcommand("mip", "make, merge and show Machine IR Profiles, which compilers and linkers use");
  app.require_subcommand(0, 1);
  // After the commands, which would all end with it.
  constexpr char kExamples[] =
      "Examples:\n"
      "  sudo clrsampler --pid 4711 -o cpu.html                   until Ctrl-C; open the page in a browser\n"
      "  sudo clrsampler --pid 4711 | flamegraph.pl > cpu.svg     folded stacks, as other tools read them\n"
      "  sudo clrsampler --pid 4711 -d 30s -o cpu.json -o cpu.pb.gz  to look at later, and for go tool pprof\n"
      "  sudo clrsampler --duration 10s -o host.html              everything on this host\n"
      "  sudo clrsampler -o start.html -- dotnet Shop.dll         from the first instruction\n"
      "  clrsampler diff before.json after.json -o diff.html      what has become slower, and what is noise\n"
      "A .NET process needs no preparation: its names are read from its runtime's memory.";
  app.footer(kExamples);
  record->footer(kExamples);

  try {
    app.parse(own_arguments, argv);
  } catch (const CLI::ParseError& error) {  // CLI11's way to report; nothing of ours throws
    if (error.get_exit_code() == 0) return app.exit(error);
    const char* hint =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)
            ? "--pid PID samples a running process, -- COMMAND starts one; clrsampler --help lists the options"
            : "clrsampler --help lists the options";
    std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), hint);
    return kExitUsage;
  }
  // Options of record before another command would have no effect.
  for (const CLI::App* chosen : app.get_subcommands()) {
    if (chosen == record) continue;
    for (const CLI::Option* option : app.parse_order()) {
      return ReportStatus(clrsampler::WithHint(
          absl::InvalidArgumentError(
              absl::StrCat(option->get_name(), " before ", chosen->get_name(), " has no effect")),
          absl::StrCat("clrsampler ", chosen->get_name(), " --help lists its options, which come after it")));
    }
  }
  if (own_arguments < argc && command.empty()) {
    return ReportStatus(clrsampler::WithHint(absl::InvalidArgumentError("no command follows --"),
                                             "write clrsampler -- dotnet Shop.dll"));
  }
  if (*top) return ReportStatus(clrsampler::RunTop(top_config));
  if (*ps) return ReportStatus(clrsampler::PrintProcesses(json));
  if (*doctor) {
    const absl::StatusOr<bool> will_work = clrsampler::PrintDoctor(doctor_pid, json);
    if (!will_work.ok()) return ReportStatus(will_work.status());
    return *will_work ? 0 : kExitFailed;
  }
  if (*jitdump) return ReportStatus(clrsampler::PrintJitdump(file));
  if (*r2rmap) return ReportStatus(clrsampler::RunR2rMap(r2rmap_config));
  if (*stacks) return ReportStatus(clrsampler::RunStacks(stacks_config));
  if (*pauses) return ReportStatus(clrsampler::RunPauses(pauses_config));
  if (*wall) return ReportStatus(clrsampler::RunWall(wall_config));
  if (*pool) return ReportStatus(clrsampler::RunThreadPool(pool_config));
  if (*locks) return ReportStatus(clrsampler::RunLocks(locks_config));
  if (*allocs) return ReportStatus(clrsampler::RunAllocs(allocs_config));
  if (*exceptions) return ReportStatus(clrsampler::RunExceptions(exceptions_config));
  if (*jit) return ReportStatus(clrsampler::RunJit(jit_config));
  if (*events) return ReportStatus(clrsampler::RunEvents(events_config));
  if (*attach) return ReportStatus(clrsampler::RunAttach(attach_config));
  if (*annotate) return ReportStatus(clrsampler::RunAnnotate(annotate_config));
  if (*diff) return ReportStatus(clrsampler::RunDiff(diff_config));
  if (*report) return ReportStatus(clrsampler::RunReport(report_config));
  if (*mcp) return ReportStatus(clrsampler::RunMcp(mcp_config));
  if (*convert || *merge) return ReportStatus(clrsampler::RunConvert(convert_config));
  if (*names) return ReportStatus(clrsampler::RunNames(names_config));
  if (*replay) return ReportStatus(clrsampler::RunRecord(replay_config));
  config.command = std::move(command);
  return ReportStatus(clrsampler::RunRecord(config));
}
