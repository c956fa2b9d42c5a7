// The way of one process through its lease. perf_map_lease.cc has the parts that concern all processes.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clr/jit_files.h"
#include "clr/perf_map/perf_map_lease.h"
#include "clr/perf_map/perf_map_lease_state.h"
#include "clr/perf_map/perf_map_target.h"
#include "clr/runtime_facts.h"
#include "os/clock.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kAnswerNs = 2'000 * kMillisecondNs;
// EnablePerfMap is answered after all compiled methods have been written: 8 ms for 1,000 methods.
constexpr uint64_t kEnableNs = 10'000 * kMillisecondNs;
constexpr uint64_t kLookNs = 200 * kMillisecondNs;  // at a map that is on
constexpr uint64_t kLongestWaitNs = 5'000 * kMillisecondNs;
constexpr uint64_t kLongestWaitDotnetNs = 1'000 * kMillisecondNs;
constexpr int kMaxAnswers = 4;  // bad ones, or none
constexpr int kMaxLooks = 18;   // for what should be there: some 8 s

bool PerfMapCanHang(absl::string_view version) {
  const std::optional<RuntimeVersion> known = VersionFromProductVersion(version);
  return known.has_value() && HasDefect(*known, DefectKind::kPerfMapDeadlock);
}

}  // namespace

bool PerfMapLeases::StepProcess(ProcessState& state, MonotonicTime now) {
  if (state.stage == Stage::kSettled || now < state.next_try) return false;
  if (state.exchange.has_value() && !state.exchange->Step(now)) return false;
  switch (state.stage) {
    case Stage::kStarting:
      return StepStarting(state, now);
    case Stage::kAsking:
      return StepAsking(state, now);
    case Stage::kDisabling:
      return StepDisabling(state, now);
    case Stage::kEnabling:
      return StepEnabling(state, now);
    case Stage::kOn:
      return StepOn(state, now);
    case Stage::kEnding:
      return StepEnding(state, now);
    case Stage::kSettled:
      break;
  }
  return false;
}

bool PerfMapLeases::StepStarting(ProcessState& state, MonotonicTime now) {
  if (!IsAlive(state)) return Settle(state);
  // The cheapest test comes first: most programs with compiled code that never get a socket are no .NET programs.
  if (!HasDiagnosticsSocket(options_.proc_root, state.id, state.files)) {
    if (!state.surely_dotnet || ++state.tries < kMaxLooks) return Later(state, now);
    return Refuse(state, "it has no diagnostics socket",
                  "is DOTNET_EnableDiagnostics=0 set there, or was its temporary directory cleaned?");
  }
  state.has_socket = true;
  const absl::StatusOr<std::string> directory = PerfMapDirectory(state.files);
  if (absl::IsFailedPrecondition(directory.status())) return Refuse(state, directory.status().message());
  if (!directory.ok()) return Later(state, now);
  state.directory = *directory;
  const absl::Status nobodys = CheckNobodysMap(options_.proc_root, state.id, state.files, state.directory);
  if (absl::IsAlreadyExists(nobodys)) {
    ++counters_.theirs;
    return Settle(state);
  }
  if (absl::IsFailedPrecondition(nobodys)) {
    return Refuse(state, nobodys.message(), "remove that file, if nobody needs it");
  }
  if (!nobodys.ok()) return ++state.tries < kMaxLooks ? Later(state, now) : Refuse(state, nobodys.message());
  if (!RuntimeHasStarted(options_.proc_root, state.id)) return Later(state, now);
  if (const absl::Status guarded = StartGuard(); !guarded.ok()) return Refuse(state, guarded.message());
  const absl::Status sent = Send(state, EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo2), kAnswerNs, now);
  if (sent.ok()) {
    state.stage = Stage::kAsking;
    return true;
  }
  if ((absl::IsUnavailable(sent) || absl::IsNotFound(sent)) && ++state.tries < kMaxLooks) return Later(state, now);
  return Refuse(state, sent.message());
}

absl::Status PerfMapLeases::StartGuard() {
  if (guard_ == nullptr) guard_ = options_.guard;
  if (guard_ != nullptr || options_.guard_program.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(LeaseGuard guard, LeaseGuard::Start(options_.guard_program, options_.directory));
  guard_ = std::make_shared<LeaseGuard>(std::move(guard));
  return absl::OkStatus();
}

bool PerfMapLeases::StepAsking(ProcessState& state, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(state.exchange, std::nullopt);
  if (exchange.status().ok() && exchange.error().has_value()) {
    return Refuse(state, DiagnosticsErrorText(*exchange.error()));
  }
  const absl::StatusOr<RuntimeProcessInfo> info =
      exchange.status().ok() ? ParseRuntimeProcessInfo(DiagnosticsCommand::kProcessInfo2, exchange.payload())
                             : absl::StatusOr<RuntimeProcessInfo>(exchange.status());
  if (!info.ok()) {
    if (++state.bad_answers >= kMaxAnswers) return Refuse(state, info.status().message());
    state.stage = Stage::kStarting;
    return Later(state, now);
  }
  if (info->pid != state.id.namespace_pid) {
    return Refuse(state, absl::StrCat("its runtime says that it is process ", info->pid));
  }
  int major = 0;
  const std::string& version = info->runtime_version;
  if (!absl::SimpleAtoi(absl::string_view(version).substr(0, version.find('.')), &major) || major < 8) {
    return Refuse(state, "only .NET 8 and newer can switch a perf map on while they run",
                  "start it with DOTNET_PerfMapEnabled=3");
  }
  if (PerfMapCanHang(version)) {
    notices_.Add("perf_map_can_hang", version,
                 absl::StrCat("a defect of .NET ", version, " can hang a process for good while it writes a perf map"),
                 "update the runtime to 10.0.10 or newer");
  }
  // Asked again: another tool may have been faster.
  if (!CheckNobodysMap(options_.proc_root, state.id, state.files, state.directory).ok() || !IsAlive(state)) {
    state.stage = Stage::kStarting;
    return true;
  }
  const absl::Status acquired = Acquire(state);
  if (absl::IsAlreadyExists(acquired) || absl::IsUnavailable(acquired)) {  // another run's, or being repaired
    state.stage = Stage::kStarting;
    return Later(state, now);
  }
  if (!acquired.ok()) return Refuse(state, acquired.message(), HintOf(acquired));
  const absl::Status sent = Send(state, EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap), kAnswerNs, now);
  if (!sent.ok()) return Refuse(state, sent.message());
  state.stage = Stage::kDisabling;
  return true;
}

absl::Status PerfMapLeases::Acquire(ProcessState& state) {
  if (guard_ != nullptr) RETURN_IF_ERROR(guard_->Ready());
  ASSIGN_OR_RETURN(const LeaseRecord record, DescribeLease(options_.proc_root, state.id, state.files, state.directory));
  ASSIGN_OR_RETURN(Lease lease, store_->Create(record));
  state.lease.emplace(std::move(lease));
  return absl::OkStatus();
}

// Enabling while on would add a second dump to the file, so off comes first. Here it is off already, as far as can be
// seen.
bool PerfMapLeases::StepDisabling(ProcessState& state, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(state.exchange, std::nullopt);
  if (!exchange.status().ok()) return Refuse(state, exchange.status().message());
  if (exchange.error().has_value()) return Refuse(state, DiagnosticsErrorText(*exchange.error()));
  const absl::Status sent = Send(state, EncodeEnablePerfMap(PerfMapKind::kPerfMap), kEnableNs, now);
  if (!sent.ok()) return Refuse(state, sent.message());
  state.stage = Stage::kEnabling;
  return true;
}

bool PerfMapLeases::StepEnabling(ProcessState& state, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(state.exchange, std::nullopt);
  absl::Status status = exchange.status();
  if (status.ok() && exchange.error().has_value())
    status = absl::InternalError(DiagnosticsErrorText(*exchange.error()));
  if (status.ok()) {
    for (const LeasedFile& file : FindLeasedFiles(state.lease->record(), state.files)) {
      if (const absl::Status added = state.lease->AddFile(file); !added.ok()) status = added;
    }
    const std::string path = absl::StrCat(state.directory, "/", PerfMapFileNames(state.id.namespace_pid)[0]);
    absl::StatusOr<OpenedFile> map = state.files.OpenRuntimeFile(path);
    if (status.ok() && !map.ok()) status = Annotate(map.status(), "its runtime wrote no perf map");
    if (map.ok()) state.map = *std::move(map);
  }
  if (!status.ok()) {
    // Whatever the answer was, the map may be on.
    ++counters_.refused;
    notices_.Add("perf_map_not_enabled", state.who,
                 absl::StrCat("no perf map could be switched on in ", state.who, ": ", status.message()));
    BeginEnding(state);
    return true;
  }
  ++counters_.enabled;
  state.on_since = now;
  state.stage = Stage::kOn;
  state.next_try = now;
  return true;
}

bool PerfMapLeases::StepOn(ProcessState& state, MonotonicTime now) {
  state.next_try = {now.ns + kLookNs};
  if (!IsAlive(state)) {
    RemoveAll(state);
    return false;
  }
  if (now.ns - state.on_since.ns > options_.cap_ns) {
    ++counters_.over_cap;
    notices_.Add("perf_map_time", state.who,
                 absl::StrCat("the perf map of ", state.who, " was on for ", options_.cap_ns / 1'000'000'000,
                              " seconds and was switched off; code that it compiles from here on has no name"),
                 "--perf-map-time 8h lets it stay on for longer");
    BeginEnding(state);
    return true;
  }
  const absl::StatusOr<struct stat> status = state.map.StatusNow();
  if (!status.ok()) return false;  // where its file system does not answer, the time alone ends it
  if (static_cast<uint64_t>(status->st_size) > options_.cap_bytes) {
    ++counters_.over_cap;
    notices_.Add("perf_map_cap", state.who,
                 absl::StrCat("the perf map of ", state.who, " grew beyond ", options_.cap_bytes,
                              " bytes and was switched off; code that it compiles from here on has no name"),
                 "--perf-map-cap 256MiB lets it grow further");
    BeginEnding(state);
    return true;
  }
  if (state.files.StateOfFile(status->st_dev, status->st_ino, state.map_descriptor) != OpenFileState::kNotOpen) {
    return false;
  }
  notices_.Add("perf_map_ended", state.who,
               absl::StrCat("another tool switched the perf map of ", state.who,
                            " off; code that it compiles from here on has no name"));
  RemoveAll(state);
  return false;
}

void PerfMapLeases::BeginEnding(ProcessState& state) {
  if (state.stage == Stage::kEnding) return;
  state.exchange.reset();  // a request under way is handled before the one that follows
  state.stage = Stage::kEnding;
  state.next_try = MonotonicTime::Min();
  state.wait_ns = kFirstLeaseWaitNs;
}

bool PerfMapLeases::StepEnding(ProcessState& state, MonotonicTime now) {
  if (state.exchange.has_value()) {
    const DiagnosticsExchange exchange = *std::exchange(state.exchange, std::nullopt);
    if (exchange.status().ok() && !exchange.error().has_value()) {
      // Open again: somebody else has switched it on in the meantime.
      if (HasMapOpen(options_.proc_root, state.id) == MapOpen::kYes) return Settle(state);
      RemoveAll(state);
      return true;
    }
    return Later(state, now);
  }
  if (!IsAlive(state)) {
    RemoveAll(state);
    return true;
  }
  // It has called exec, and the new program has a map of its own.
  if (EnvironmentEnablesMap(state.files)) return Settle(state);
  const absl::Status sent = Send(state, EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap), kAnswerNs, now);
  if (sent.ok()) return true;
  if (absl::IsNotFound(sent) && HasNoRuntime(options_.proc_root, state.id)) {
    RemoveAll(state);
    return true;
  }
  return Later(state, now);
}

absl::Status PerfMapLeases::Send(ProcessState& state, std::string request, uint64_t patience_ns, MonotonicTime now) {
  ASSIGN_OR_RETURN(UniqueFd connection, ConnectToRuntime(options_.proc_root, state.id, state.files));
  state.exchange.emplace(std::move(connection), std::move(request), MonotonicTime{now.ns + patience_ns});
  state.exchange->Step(now);
  return absl::OkStatus();
}

void PerfMapLeases::RemoveAll(ProcessState& state) {
  const absl::Status removed = RemoveLeasedFiles(state.lease->record(), state.files);
  if (!removed.ok()) {
    notices_.Add("perf_map_left", state.who,
                 absl::StrCat("a perf map of ", state.who, " could not be removed: ", removed.message()));
  }
  ++counters_.ended;
  Settle(state);
}

// No map of ours is on in the target, or will be.
bool PerfMapLeases::Settle(ProcessState& state) {
  state.stage = Stage::kSettled;
  state.exchange.reset();
  state.map = OpenedFile();
  if (state.lease.has_value()) state.lease->Remove();
  state.lease.reset();
  return false;
}

bool PerfMapLeases::Refuse(ProcessState& state, absl::string_view reason, absl::string_view hint) {
  ++counters_.refused;
  notices_.Add("perf_map_not_enabled", state.who,
               absl::StrCat("no perf map is switched on in ", state.who, ": ", reason), hint);
  return Settle(state);
}

bool PerfMapLeases::Later(ProcessState& state, MonotonicTime now) {
  state.next_try = {now.ns + state.wait_ns};
  // Waiting for a start is cheap where the start is near. It may take for ever where there is no .NET runtime.
  const uint64_t longest_ns = state.surely_dotnet ? kLongestWaitDotnetNs : kLongestWaitNs;
  if (state.stage == Stage::kStarting) state.wait_ns = std::min(state.wait_ns * 5 / 4, longest_ns);
  return false;
}

}  // namespace clrsampler
