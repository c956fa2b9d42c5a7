#include "pipeline/event_watch.h"

#include <signal.h>

#include <optional>
#include <utility>

#include "clr/diagnostics_client.h"
#include "clr/event_session.h"
#include "os/clock.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/diagnosed_target.h"
#include "pipeline/stop_events.h"
#include "process/proc_root.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The interval of looks while a request is under way, and at other times, when arriving data wakes the loop.
constexpr int kRequestMs = 20;
constexpr int kIdleMs = 200;

TracingRequest RequestFor(const EventWatchOptions& options) {
  const ClrEventDemand demand = DemandOf(options.kinds);
  return {.provider = std::string(kClrProvider),
          .keywords = demand.keywords,
          .level = demand.level,
          .buffer_megabytes = options.buffer_megabytes,
          .stacks = options.stacks};
}

// Until the session is over.
void Run(EventSession& session, ClrEventStream& stream, StopEvents& stop, uint64_t duration_ns,
         absl::FunctionRef<void()> began) {
  const SystemClock clock;
  const auto take = [&](std::span<const std::byte> bytes) {
    if (absl::Status taken = stream.Take(bytes); !taken.ok()) session.Abandon(std::move(taken));
  };
  std::optional<MonotonicTime> end;
  bool stopping = false;
  while (!session.over()) {
    stop.Wait(session.began() && !stopping ? kIdleMs : kRequestMs);
    const MonotonicTime now = clock.Now();
    session.Step(now, take);
    if (session.began() && !session.over() && !end.has_value()) {
      end = duration_ns == 0 ? MonotonicTime::Max() : MonotonicTime{now.ns + duration_ns};
      if (absl::Status watched = stop.WatchReadable(session.fd()); !watched.ok()) session.Abandon(std::move(watched));
      began();
    }
    if (!stopping && (stop.signalled() || (end.has_value() && now >= *end))) {
      session.Stop(now);
      stopping = true;
    }
  }
}

}  // namespace

void IgnoreStopsOfTerminal() {
  for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) signal(number, SIG_IGN);
}

absl::StatusOr<EventWatchResult> WatchEvents(const EventWatchOptions& options, absl::FunctionRef<void()> began,
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
  ClrEventStream stream(options.kinds, std::move(receiver));
  Run(*session, stream, stop, options.duration_ns, began);
  const absl::Status finished = stream.Finish();
  if (!session->status().ok()) return ExplainDiagnostics(session->status(), options.pid);
  return EventWatchResult{stream.lost(), stream.damaged(), stream.unsorted(), !finished.ok()};
}

}  // namespace clrsampler
