#include "cli/ps_command.h"

#include <memory>

#include "cli/exit_status.h"
#include "inspect/inspect_text.h"
#include "inspect/process_list.h"
#include "pipeline/agent_sandbox.h"
#include "status/status.h"

namespace clrsampler {

absl::Status PrintProcesses(bool json) {
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  const absl::StatusOr<ProcessList> list = ProcessInspector("/proc", files.get()).All();
  if (!list.ok()) return WithHint(Annotate(list.status(), "cannot list processes"), "mount /proc");
  return PrintAll(json ? ProcessListJson(*list) : ProcessTableText(*list));
}

}  // namespace clrsampler
