// The command line: chooses the command, prints errors and sets the exit status (0 done, 1 failed, 2 wrong usage).
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/mip_command.h"
#include "cli/record_command.h"
#ifdef CLRSAMPLER_SERVE  // not in a static program, which can open no library
#include "cli/serve_command.h"
#endif
#include "cli/usage.h"
#include "clr/perf_map/lease_repair.h"
#include "os/heap.h"
#include "os/standard_descriptors.h"
#include "status/status.h"

namespace {

using clrsampler::kExitFailed;
using clrsampler::ReportStatus;

// Profiles are read as a whole: on a small machine, or below a limit of a container, one may be too large.
void SayOutOfMemory() {
  constexpr char kText[] =
      "error: no more memory\n"
      "hint: give it more (ulimit -v, the memory limit of the container), or fewer and smaller profiles\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(kExitFailed);
}

constexpr char kDescription[] =
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
    "  clrsampler report FILE...|--pid PID\n"
    "  clrsampler mcp\n"
    "  clrsampler jitdump|r2rmap FILE\n"
    "  clrsampler mip COMMAND -p X.mip";

constexpr char kExamples[] =
    "Examples:\n"
    "  sudo clrsampler --pid 4711 -o cpu.html                   until Ctrl-C; open the page in a browser\n"
    "  sudo clrsampler --pid 4711 | flamegraph.pl > cpu.svg     folded stacks, as other tools read them\n"
    "  sudo clrsampler --pid 4711 -d 30s -o cpu.json -o cpu.pb.gz  to look at later, and for go tool pprof\n"
    "  sudo clrsampler --duration 10s -o host.html              everything on this host\n"
    "  sudo clrsampler -o start.html -- dotnet Shop.dll         from the first instruction\n"
    "  clrsampler diff before.json after.json -o diff.html      what has become slower, and what is noise\n"
    "A .NET process needs no preparation: its names are read from its runtime's memory.";

// Everything that follows -- is the command's own, options included. The parser must not look at it.
struct Arguments {
  int own = 0;                       // number of arguments that are for the parser
  std::vector<std::string> command;  // behind --
  bool has_command = false;
};

Arguments Divide(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) return {i, {argv + i + 1, argv + argc}, true};
  }
  return {argc, {}, false};
}

int RunCommandLine(int argc, char** argv) {
  Arguments arguments = Divide(argc, argv);
  CLI::App app(kDescription, "clrsampler");
  app.set_version_flag("--version,-V", "clrsampler " CLRSAMPLER_VERSION);
  clrsampler::RecordConfig config;
  clrsampler::DeclareRecordOptions(app, config);
  CLI::App* record = app.add_subcommand("record", "sample and write stacks (the default command)");
  clrsampler::DeclareRecordOptions(*record, config);  // the same options, before or behind the word
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands;
  for (const clrsampler::Command& command : clrsampler::Commands()) {
    CLI::App* parser = app.add_subcommand(command.name, command.summary);
    commands.emplace_back(parser, command.declare(*parser));
  }
  app.add_subcommand("mip", "make, merge and show Machine IR Profiles, which compilers and linkers use");
  app.require_subcommand(0, 1);
  // The footer is set after the commands, which would all end with it otherwise.
  app.footer(kExamples);
  record->footer(kExamples);

  try {
    app.parse(arguments.own, argv);
  } catch (const CLI::ParseError& error) {  // CLI11's way to report; nothing of ours throws
    return error.get_exit_code() == 0 ? app.exit(error) : ReportStatus(clrsampler::WrongUsage(app, record, error));
  }
  if (const absl::Status placed = clrsampler::CheckPlaces(app, record, arguments.has_command); !placed.ok()) {
    return ReportStatus(placed);
  }
  if (arguments.has_command && arguments.command.empty()) {
    return ReportStatus(clrsampler::WithHint(absl::InvalidArgumentError("no command follows --"),
                                             "write clrsampler -- dotnet Shop.dll"));
  }
  for (const auto& [parser, run] : commands) {
    if (*parser) return run();
  }
  config.command = std::move(arguments.command);
  return ReportStatus(clrsampler::RunRecord(config));
}

int Run(int argc, char** argv) {
  const absl::string_view word = argc > 1 ? argv[1] : "";
  // This command is not for people. A run starts it to look after the perf maps that it switches on.
  if (word == clrsampler::kLeaseGuardVerb) return clrsampler::RunLeaseGuard(argc, argv);
#ifdef CLRSAMPLER_SERVE
  // This command has a parser of its own: its options may stand in a file, which is read again while it runs.
  if (word == "serve") return clrsampler::ServeMain({argv + 2, argv + argc});
#endif
  // Commands of its own follow the word.
  if (word == "mip") return ReportStatus(clrsampler::RunMip({argv + 2, argv + argc}));
  return RunCommandLine(argc, argv);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): CLI11 may throw; that ends the program, as it should.
int main(int argc, char** argv) {
  if (!clrsampler::HoldStandardDescriptors()) {
    return ReportStatus(clrsampler::WithHint(
        absl::FailedPreconditionError("a standard descriptor is closed, and /dev/null can't take its place"),
        "start it with standard input, output and error"));
  }
  std::set_new_handler(SayOutOfMemory);
  // A reader that leaves early (head) must not kill a run between sampling and clean-up. It is an error like others.
  signal(SIGPIPE, SIG_IGN);
  clrsampler::ReturnLargeBlocks();
  const int status = Run(argc, argv);
  const int written = ReportStatus(clrsampler::FinishOutput(stdout));
  return status == clrsampler::kExitDone ? written : status;
}
