#include "pipeline/library_watch.h"

#include <unistd.h>

#include <climits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/diagnostics_client.h"
#include "clr/inprocess/library_place.h"
#include "clr/inprocess/library_session.h"
#include "clr/inprocess/library_socket.h"
#include "clr/inprocess/shared_ring.h"
#include "clr/jit_files.h"
#include "formats/inprocess/record_order.h"
#include "formats/proc/environ_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/diagnosed_target.h"
#include "pipeline/stop_events.h"
#include "process/proc_root.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr char kLibraryFile[] = "libclrsampler_profiler.so";
constexpr size_t kMaxLibraryBytes = 4 << 20;
// The ring does not notify when something comes. It is looked at in this interval.
constexpr int kPollMs = 10;

std::string FolderOfThisProgram() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return program.substr(0, program.rfind('/') == std::string::npos ? 0 : program.rfind('/'));
}

absl::StatusOr<LibraryPlace> PlaceFor(uint32_t pid, const TargetFiles& files) {
  ASSIGN_OR_RETURN(const std::string path, FindLibrary());
  ASSIGN_OR_RETURN(const std::string library, ReadWholeFile(path, kMaxLibraryBytes));
  const std::string environment = files.ReadProc("environ", kMaxEnvironmentBytes).value_or(std::string());
  absl::StatusOr<LibraryPlace> place =
      LibraryPlace::Make(files, EnvironmentValue(environment, "TMPDIR").value_or(""), library);
  if (place.ok()) return place;
  return WithHint(Annotate(place.status(), absl::StrCat("process ", pid)),
                  "give its container a /tmp that can be written to, without noexec; or use events without "
                  "--with-library");
}

absl::StatusOr<LibrarySession> Attach(const LibraryWatchOptions& options, const TargetIdentity& target,
                                      const TargetFiles& files, SharedRing ring) {
  absl::StatusOr<UniqueFd> connected = ConnectToRuntime(kProcRoot, target, files);
  if (!connected.ok()) return ExplainDiagnostics(connected.status(), target.tgid);
  ASSIGN_OR_RETURN(LibraryPlace place, PlaceFor(target.tgid, files));
  return LibrarySession::Start(*std::move(connected), target.tgid, options.kinds, std::move(place), std::move(ring),
                               SystemClock().Now());
}

absl::Status GiveRightsUp() {
  RecordOptions nothing_planted;
  nothing_planted.roles = false;
  AgentNeeds needs;
  needs.perf_maps = true;  // its socket and its folders are its user's
  return EnterAgentSandbox(nothing_planted, needs).status();
}

absl::StatusOr<LibrarySession> Begin(const LibraryWatchOptions& options, SharedRing ring) {
  if (!options.socket.empty()) {
    ASSIGN_OR_RETURN(LibrarySocket socket, LibrarySocket::Listen(options.socket));
    RETURN_IF_ERROR(GiveRightsUp());
    return LibrarySession::Await(std::move(socket), options.kinds, std::move(ring));
  }
  const TargetFiles files(kProcRoot, options.pid, nullptr, options.files);
  ASSIGN_OR_RETURN(const TargetIdentity target, IdentityOfTarget(options.pid, files));
  RETURN_IF_ERROR(GiveRightsUp());
  return Attach(options, target, files, std::move(ring));
}

// How far the clock of a process is ahead of ours.
uint64_t ClockLeadOf(uint32_t pid, FileBroker* files) {
  const auto offset = [&](uint32_t of) {
    return static_cast<uint64_t>(MonotonicOffsetOf(TargetFiles(kProcRoot, of, nullptr, files)));
  };
  return offset(pid) - offset(static_cast<uint32_t>(getpid()));
}

// Until the session is over.
void Run(LibrarySession& session, RecordOrder& order, StopEvents& stop, const LibraryWatchOptions& options,
         absl::FunctionRef<void(uint32_t)> began) {
  const SystemClock clock;
  std::optional<MonotonicTime> end;
  bool met = false;
  const auto meet = [&] {
    if (met || session.tgid() == 0) return;
    met = true;
    order.SetClockLead(ClockLeadOf(session.tgid(), options.files));
    if (absl::IsNotFound(stop.WatchProcess(session.tgid()))) session.ProcessEnded();
  };
  while (!session.over()) {
    stop.Wait(kPollMs);
    meet();
    if (stop.targets_gone()) session.ProcessEnded();
    const MonotonicTime now = clock.Now();
    session.Step(now, [&](LibraryRecord record) {
      meet();
      order.Add(std::move(record));
    });
    order.GiveOut(now.ns);
    if (session.began() && !session.over() && !end.has_value()) {
      end = options.duration_ns == 0 ? MonotonicTime::Max() : MonotonicTime{now.ns + options.duration_ns};
      began(session.tgid());
    }
    if (stop.signalled() || (end.has_value() && now >= *end)) session.Stop(now);
  }
  order.Finish();
}

}  // namespace

absl::StatusOr<std::string> FindLibrary() {
  const std::string folder = FolderOfThisProgram();
  for (const char* place : {"/", "/../lib/clrsampler/"}) {
    std::string path = absl::StrCat(folder, place, kLibraryFile);
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return WithHint(
      absl::NotFoundError(absl::StrCat(kLibraryFile, " is neither beside this program nor in ", "../lib/clrsampler")),
      "install the package as a whole, or build the target clrsampler_profiler");
}

absl::StatusOr<LibraryWatchResult> WatchLibrary(const LibraryWatchOptions& options,
                                                absl::FunctionRef<void(uint32_t)> began,
                                                std::function<void(const LibraryRecord&)> receiver) {
  ASSIGN_OR_RETURN(StopEvents stop, StopEvents::Create());
  ASSIGN_OR_RETURN(SharedRing ring, SharedRing::Create(options.ring_bytes));
  ASSIGN_OR_RETURN(LibrarySession session, Begin(options, std::move(ring)));
  RecordOrder order(std::move(receiver));
  Run(session, order, stop, options, began);
  if (!session.status().ok()) return ExplainDiagnostics(session.status(), session.tgid());
  return LibraryWatchResult{session.lost(), session.left_out(), session.unread_bytes(), session.stayed()};
}

}  // namespace clrsampler
