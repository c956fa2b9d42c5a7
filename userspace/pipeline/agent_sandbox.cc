#include "pipeline/agent_sandbox.h"

#include <utility>

#include "capture/perf_events.h"
#include "capture/return_probes.h"
#include "capture/sampler.h"
#include "capture/uprobe.h"
#include "status/status.h"
#include "symbol_server/symbol_cache.h"

namespace clrsampler {

absl::StatusOr<std::vector<std::string>> EnterAgentSandbox(const RecordOptions& options, AgentNeeds needs) {
  needs.perf_maps |= options.perf_maps.everywhere;
  needs.gives_rights_up = options.keep_code;
  if (!options.symbols.servers.empty()) {
    const std::string& folder = options.symbols.cache_folder;
    needs.write_folders.push_back(folder.empty() ? SymbolCache::DefaultFolder() : folder);
  }
  needs.restricted_perf_events = PerfEventsTakeSysAdmin();
  if (EventsFor(options).any()) {
    needs.old_probes = UprobeAttachType() == 0;
    // It is tried in processes, which can't be started any more. So the answer is kept.
    (void)CheckReturnProbes();
  }
  RaiseLockedMemoryLimit();
  PreparedAgent prepared = PrepareAgent(needs);
  absl::StatusOr<std::vector<std::string>> missing = EnterSandbox(prepared.profile);
  if (!missing.ok()) {
    return WithHint(Annotate(missing.status(), "the agent can't give up its rights"),
                    "run it as a user with the capabilities that it needs: docs/operations.md");
  }
  prepared.notes.insert(prepared.notes.end(), missing->begin(), missing->end());
  return std::move(prepared.notes);
}

absl::StatusOr<std::unique_ptr<FileBroker>> StartFileBroker() {
  return FileBroker::Start([] { return EnterSandbox(FileWorkerProfile()).status(); });
}

absl::Status ShareFileBroker(RecordOptions& options) {
  ASSIGN_OR_RETURN(options.files, StartFileBroker());
  return absl::OkStatus();
}

std::shared_ptr<LineHelper> LineHelperFor(const LineOptions& lines) {
  return lines.wanted ? StartLineHelper() : nullptr;
}

std::unique_ptr<FileBroker> FileBrokerOfCommand() {
  absl::StatusOr<std::unique_ptr<FileBroker>> started = StartFileBroker();
  return started.ok() ? *std::move(started) : nullptr;
}

}  // namespace clrsampler
