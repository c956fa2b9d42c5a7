// The agent gives up what sampling does not take.
#ifndef CLRSAMPLER_PIPELINE_AGENT_SANDBOX_H_
#define CLRSAMPLER_PIPELINE_AGENT_SANDBOX_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/record_options.h"
#include "process/file_broker.h"
#include "sandbox/sandbox.h"
#include "symbols/native_lines/line_process.h"

namespace clrsampler {

// For good, before this program has a second thread. Whatever takes more rights is to be there already: the command,
// the fetching process, outputs. `needs`: what the caller adds to what the options say. The answer says, in sentences,
// what of the sandbox can't be had here.
absl::StatusOr<std::vector<std::string>> EnterAgentSandbox(const RecordOptions& options, AgentNeeds needs);

// The process that opens files of targets, in a sandbox of its own. It takes the rights that EnterAgentSandbox gives
// up.
absl::StatusOr<std::unique_ptr<FileBroker>> StartFileBroker();

// Starts it for a recorder and for what else the command reads of the target.
absl::Status ShareFileBroker(RecordOptions& options);

// The process that reads lines of native code; nullptr: nobody wants lines. Likewise.
std::shared_ptr<LineHelper> LineHelperFor(const LineOptions& lines);

// The same as StartFileBroker for a command that goes on without one, as it then waits for all file systems itself;
// nullptr.
std::unique_ptr<FileBroker> FileBrokerOfCommand();

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_AGENT_SANDBOX_H_
