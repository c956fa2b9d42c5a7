#include "cli/report_command.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/duration_option.h"
#include "cli/option_companion.h"
#include "cli/report_sources.h"
#include "output/report_text.h"
#include "status/status.h"

namespace clrsampler {
namespace {

absl::StatusOr<ReportInputs> Inputs(const ReportConfig& config) {
  if (config.inputs.empty() == !config.pid.has_value()) {
    return WithHint(absl::InvalidArgumentError("report needs either profiles or a process"),
                    "clrsampler report cpu.json, or clrsampler report --pid PID");
  }
  RETURN_IF_ERROR(
      CheckCompanion("--duration", config.duration != ReportConfig().duration, "--pid", config.pid.has_value()));
  ASSIGN_OR_RETURN(const uint64_t duration, ParseDurationNs("--duration", config.duration));
  if (!config.pid) return ReadReportInputs(config.inputs);
  std::fprintf(stderr, "recording process %u for %s\n", *config.pid, config.duration.c_str());
  return RecordReportInputs({.pid = *config.pid, .duration_ns = duration, .parts = kAllReportParts});
}

}  // namespace

void DeclareReportOptions(CLI::App& app, ReportConfig& config) {
  app.add_option("input", config.inputs,
                 "profiles in any format that is read; two of one view are compared, those of other views are added")
      ->type_name("FILE");
  app.add_option("--pid,-p", config.pid, "record this process now: CPU time, waits, allocations, exceptions and more")
      ->check(CLI::Range(1u, 1u << 22))
      ->type_name("PID");
  app.add_option("--duration,-d", config.duration, "how long to record")->capture_default_str()->type_name("TIME");
  app.add_option("--budget", config.budget, "characters that the report may have; rows that tell least are left out")
      ->check(CLI::Range(static_cast<uint32_t>(kMinReportBudget), 10'000'000u))
      ->capture_default_str()
      ->type_name("N");
  app.add_flag("--json", config.json, "as JSON; docs/schemas/report.schema.json has the form");
}

absl::Status RunReport(const ReportConfig& config) {
  ASSIGN_OR_RETURN(const ReportInputs inputs, Inputs(config));
  ASSIGN_OR_RETURN(Report report, WholeReport(inputs));
  const std::string text =
      config.json ? ReportJson(std::move(report), config.budget) : ReportMarkdown(std::move(report), config.budget);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace clrsampler
