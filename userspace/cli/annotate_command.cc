#include "cli/annotate_command.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/duration_option.h"
#include "cli/profile_options.h"
#include "disassembly/disassembler.h"
#include "os/unique_fd.h"
#include "output/annotated_method.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The program records in a process of its own. The process that has rights reads no result, and the one that reads it
// has none.
absl::StatusOr<ProfileModel> Record(uint32_t pid, const std::string& duration) {
  const UniqueFd file(memfd_create("clrsampler-annotate", 0));
  if (file.get() < 0) return ErrnoError(errno, "making a file in memory");
  const std::string path = absl::StrCat("/proc/self/fd/", file.get());
  const std::string pid_text = absl::StrCat(pid);
  const pid_t child = fork();
  if (child < 0) return ErrnoError(errno, "starting the recording");
  if (child == 0) {
    execl("/proc/self/exe", "clrsampler", "record", "--pid", pid_text.c_str(), "--duration", duration.c_str(), "--code",
          "--embed-source", "--quiet", "--format", "json", "--output", path.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "waiting for the recording");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return WithHint(absl::AbortedError(absl::StrCat("process ", pid, " could not be recorded")),
                    absl::StrCat("clrsampler doctor --pid ", pid, " says what is in the way"));
  }
  return ReadProfileFile(path);
}

}  // namespace

void DeclareAnnotateOptions(CLI::App& app, AnnotateConfig& config) {
  app.add_option("method", config.method, "its name, the end of it, or a part that no other method has")
      ->required()
      ->type_name("METHOD");
  app.add_option("input", config.input, "a .json of record --code; - for standard input")->type_name("IN");
  app.add_option("--pid,-p", config.pid, "record this process now")->check(CLI::Range(1u, 1u << 22))->type_name("PID");
  app.add_option("--duration,-d", config.duration, "how long to record")->capture_default_str()->type_name("TIME");
  app.add_flag("--all", config.all, "bodies without a sample too");
}

absl::Status RunAnnotate(const AnnotateConfig& config) {
  signal(SIGPIPE, SIG_IGN);
  if (config.input.empty() != config.pid.has_value()) {
    return WithHint(absl::InvalidArgumentError("annotate needs either a profile or a process"),
                    "clrsampler annotate METHOD cpu.json, or clrsampler annotate METHOD --pid PID");
  }
  RETURN_IF_ERROR(ParseDurationNs("--duration", config.duration).status());
  ASSIGN_OR_RETURN(const ProfileModel model,
                   config.pid ? Record(*config.pid, config.duration) : ReadProfileFile(config.input));
  ASSIGN_OR_RETURN(const std::vector<size_t> bodies, BodiesOfMethod(model, config.method));
  const absl::StatusOr<Disassembler> disassembler = Disassembler::Open();
  RETURN_IF_ERROR(GiveUpRightsForCode(model, {}));
  if (!disassembler.ok()) SayNote(disassembler.status());
  const auto disassemble = [&](const ModelCode& code) {
    return disassembler.ok() ? disassembler->All(code.machine, code.bytes, code.address) : std::vector<Instruction>();
  };
  std::fputs(AnnotatedMethod(model, bodies, disassemble, {.all_bodies = config.all}).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace clrsampler
