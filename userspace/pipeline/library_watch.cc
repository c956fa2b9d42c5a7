#include "pipeline/library_watch.h"

#include <unistd.h>

#include <climits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clr/diagnostics_client.h"
#include "clr/inprocess/library_place.h"
#include "clr/inprocess/library_session.h"
#include "clr/inprocess/shared_ring.h"
#include "clr/target_environment.h"
#include "formats/inprocess/record_order.h"
#include "formats/proc/environ_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "pipeline/agent_sandbox.h"
#include "pipeline/diagnosed_target.h"
#include "pipeline/stop_events.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kProc = "/proc";
constexpr char kLibraryFile[] = "libclrsampler_profiler.so";
constexpr size_t kMaxLibraryBytes = 4 << 20;
// The ring says nothing when something comes: it is looked at so often.
constexpr int kTurnMs = 10;

std::string FolderOfThisProgram() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return program.substr(0, program.rfind('/') == std::string::npos ? 0 : program.rfind('/'));
}

absl::StatusOr<LibraryPlace> PlaceFor(const LibraryWatchOptions& options, const TargetFiles& files) {
  std::string path = options.library;
  if (path.empty()) {
    absl::StatusOr<std::string> found = FindLibrary();
    RETURN_IF_ERROR(found.status());
    path = *std::move(found);
  }
  const absl::StatusOr<std::string> library = ReadWholeFile(path, kMaxLibraryBytes);
  RETURN_IF_ERROR(library.status());
  const std::string environment = ReadEnvironment(kProc, options.pid).value_or(std::string());
  absl::StatusOr<LibraryPlace> place =
      LibraryPlace::Make(files, EnvironmentValue(environment, "TMPDIR").value_or(""), *library);
  if (place.ok()) return place;
  return WithHint(Annotate(place.status(), absl::StrCat("process ", options.pid)),
                  "give its container a /tmp that can be written to, without noexec; or use events without "
                  "--with-library");
}

// Until the session is over.
void Run(LibrarySession& session, RecordOrder& order, StopEvents& stop, uint64_t duration_ns,
         absl::FunctionRef<void()> began) {
  const SystemClock clock;
  std::optional<MonotonicTime> end;
  while (!session.over()) {
    stop.Wait(kTurnMs);
    const MonotonicTime now = clock.Now();
    session.Step(now, [&](LibraryRecord record) { order.Add(std::move(record)); });
    order.GiveOut(now.ns);
    if (session.began() && !session.over() && !end.has_value()) {
      end = duration_ns == 0 ? MonotonicTime::Max() : MonotonicTime{now.ns + duration_ns};
      began();
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

absl::StatusOr<LibraryWatchResult> WatchLibrary(const LibraryWatchOptions& options, absl::FunctionRef<void()> began,
                                                std::function<void(const LibraryRecord&)> receiver) {
  const TargetFiles files(kProc, options.pid, nullptr, options.files);
  const absl::StatusOr<TargetIdentity> target = IdentityOfTarget(options.pid, files);
  RETURN_IF_ERROR(target.status());
  absl::StatusOr<StopEvents> stop = StopEvents::Create();
  RETURN_IF_ERROR(stop.status());
  absl::StatusOr<SharedRing> ring = SharedRing::Create(options.ring_bytes);
  RETURN_IF_ERROR(ring.status());
  RecordOptions nothing_planted;
  nothing_planted.roles = false;
  AgentNeeds needs;
  needs.perf_maps = true;  // its socket and its folders are its user's
  RETURN_IF_ERROR(EnterAgentSandbox(nothing_planted, needs).status());

  absl::StatusOr<UniqueFd> connected = ConnectToRuntime(kProc, *target, files);
  if (!connected.ok()) return ExplainDiagnostics(connected.status(), options.pid);
  absl::StatusOr<LibraryPlace> place = PlaceFor(options, files);
  RETURN_IF_ERROR(place.status());
  absl::StatusOr<LibrarySession> session = LibrarySession::Start(
      *std::move(connected), options.pid, options.kinds, *std::move(place), *std::move(ring), SystemClock().Now());
  RETURN_IF_ERROR(session.status());
  RecordOrder order(std::move(receiver));
  Run(*session, order, *stop, options.duration_ns, began);
  if (!session->status().ok()) return ExplainDiagnostics(session->status(), options.pid);
  return LibraryWatchResult{session->lost(), session->stayed()};
}

}  // namespace clrsampler
