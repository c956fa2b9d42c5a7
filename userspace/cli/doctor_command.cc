#include "cli/doctor_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "inspect/host_checks.h"
#include "inspect/host_facts.h"
#include "inspect/inspect_text.h"
#include "inspect/process_checks.h"
#include "inspect/process_list.h"
#include "pipeline/agent_sandbox.h"
#include "status/status.h"

namespace clrsampler {

absl::StatusOr<bool> PrintDoctor(std::optional<uint32_t> pid, bool json) {
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  ProcessInspector inspector("/proc", files.get());
  std::vector<ProcessFacts> processes;
  if (pid.has_value()) {
    ASSIGN_OR_RETURN(ProcessFacts process, inspector.One(*pid));
    processes.push_back(std::move(process));
  } else {
    absl::StatusOr<ProcessList> list = inspector.All();
    if (!list.ok()) return WithHint(Annotate(list.status(), "cannot list processes"), "mount /proc");
    processes = std::move(list->dotnet);
  }
  DoctorReport report;
  report.host = CheckHost(ReadHostFacts("/proc", "/sys"));
  report.will_work = !AnyFails(report.host);
  for (const ProcessFacts& facts : processes) {
    report.processes.push_back({facts.pid, facts.comm, CheckProcess(facts)});
    if (pid.has_value() && AnyFails(report.processes.back().findings)) report.will_work = false;
  }
  RETURN_IF_ERROR(PrintAll(json ? DoctorJson(report) : DoctorText(report)));
  return report.will_work;
}

}  // namespace clrsampler
