#include "pipeline/event_watch.h"

#include <signal.h>

#include <utility>

#include "clr/diagnostics_client.h"
#include "clr/event_session.h"
#include "os/clock.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/diagnosed_target.h"
#include "pipeline/event_pump.h"
#include "pipeline/stop_events.h"
#include "process/proc_root.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

TracingRequest RequestFor(const EventWatchOptions& options) {
  const ClrEventDemand demand = DemandOf(options.kinds);
  return {.provider = std::string(kClrProvider),
          .keywords = demand.keywords,
          .level = demand.level,
          .buffer_megabytes = options.buffer_megabytes,
          .stacks = options.stacks};
}

}  // namespace

void IgnoreStopsOfTerminal() {
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) signal(number, SIG_IGN);
}

absl::StatusOr<EventWatchResult> WatchEvents(const EventWatchOptions& options, EventPump::Began began,
                                             ClrEventStream::Receiver receiver) {
  const TargetFiles files(kProcRoot, options.pid, nullptr, options.files);
  ASSIGN_OR_RETURN(const TargetIdentity target, IdentityOfTarget(options.pid, files));
  ASSIGN_OR_RETURN(StopEvents stop, StopEvents::Create());
  RecordOptions nothing_planted;
  nothing_planted.roles = false;
  AgentNeeds needs = options.needs;
  needs.perf_maps = true;  // its socket is its user's
  RETURN_IF_ERROR(EnterAgentSandbox(nothing_planted, needs).status());
  if (options.prepare) options.prepare();

  absl::StatusOr<EventSession> session = EventSession::Start([&] { return ConnectToRuntime(kProcRoot, target, files); },
                                                             RequestFor(options), SystemClock().Now());
  if (!session.ok()) return ExplainDiagnostics(session.status(), options.pid);
  const SystemClock clock;
  EventWatchResult result = EventPump(*session, stop, clock, options.duration_ns).Run(options.kinds, began, receiver);
  if (!result.ended.ok()) result.ended = ExplainDiagnostics(result.ended, options.pid);
  return result;
}

}  // namespace clrsampler
