#include "cli/ps_command.h"

#include <unistd.h>

#include <memory>

#include "inspect/inspect_text.h"
#include "inspect/process_list.h"
#include "os/file_io.h"
#include "pipeline/agent_sandbox.h"
#include "status/status.h"

namespace clrsampler {

absl::Status PrintProcesses(bool json) {
  const std::unique_ptr<FileBroker> files = FileBrokerOfCommand();
  const absl::StatusOr<ProcessList> list = ProcessInspector("/proc", files.get()).All();
  if (!list.ok()) return WithHint(Annotate(list.status(), "cannot list processes"), "mount /proc");
  return WriteAll(STDOUT_FILENO, json ? ProcessListJson(*list) : ProcessTableText(*list));
}

}  // namespace clrsampler
