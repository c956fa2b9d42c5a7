#include "cli/annotate_command.h"

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "cli/duration_option.h"
#include "cli/option_companion.h"
#include "cli/profile_options.h"
#include "cli/report_recording.h"
#include "disassembly/disassembler.h"
#include "output/annotated_method.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::StatusOr<ProfileModel> Record(uint32_t pid, uint64_t duration_ns) {
  ASSIGN_OR_RETURN(ReportRecording recording,
                   RecordForReport({.pid = pid, .duration_ns = duration_ns, .parts = {ReportPart::kCode}}));
  return std::move(recording.models.front());
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
  if (config.input.empty() != config.pid.has_value()) {
    return WithHint(absl::InvalidArgumentError("annotate needs either a profile or a process"),
                    "clrsampler annotate METHOD cpu.json, or clrsampler annotate METHOD --pid PID");
  }
  RETURN_IF_ERROR(
      CheckCompanion("--duration", config.duration != AnnotateConfig().duration, "--pid", config.pid.has_value()));
  ASSIGN_OR_RETURN(const uint64_t duration_ns, ParseDurationNs("--duration", config.duration));
  ASSIGN_OR_RETURN(const ProfileModel model,
                   config.pid ? Record(*config.pid, duration_ns) : ReadProfileFile(config.input));
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
