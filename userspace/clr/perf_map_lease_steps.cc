// The way of one process through its lease; perf_map_lease.cc has what concerns all of them.
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clr/jit_files.h"
#include "clr/perf_map_lease.h"
#include "clr/perf_map_lease_target.h"
#include "clr/perf_map_target.h"
#include "clr/runtime_facts.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kAnswerNs = 2'000 * kMillisecondNs;
// EnablePerfMap is answered when all that is compiled has been written: 8 ms for 1,000 methods.
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

bool PerfMapLeases::StepTarget(Target& target, MonotonicTime now) {
  if (target.stage == Stage::kSettled || now < target.next_try) return false;
  if (target.exchange.has_value() && !target.exchange->Step(now)) return false;
  switch (target.stage) {
    case Stage::kStarting:
      return StepStarting(target, now);
    case Stage::kAsking:
      return StepAsking(target, now);
    case Stage::kDisabling:
      return StepDisabling(target, now);
    case Stage::kEnabling:
      return StepEnabling(target, now);
    case Stage::kOn:
      return StepOn(target, now);
    case Stage::kEnding:
      return StepEnding(target, now);
    case Stage::kSettled:
      break;
  }
  return false;
}

bool PerfMapLeases::StepStarting(Target& target, MonotonicTime now) {
  if (!IsAlive(target)) return Settle(target);
  // First what costs least: most programs with compiled code that never get a socket are no .NET programs.
  if (!HasDiagnosticsSocket(options_.proc_root, target.id, target.files)) {
    if (!target.surely_dotnet || ++target.tries < kMaxLooks) return Later(target, now);
    return Refuse(target, "it has no diagnostics socket",
                  "is DOTNET_EnableDiagnostics=0 set there, or was its temporary directory cleaned?");
  }
  target.has_socket = true;
  const absl::StatusOr<std::string> directory = PerfMapDirectory(options_.proc_root, target.id.tgid);
  if (absl::IsFailedPrecondition(directory.status())) return Refuse(target, directory.status().message());
  if (!directory.ok()) return Later(target, now);
  target.directory = *directory;
  const absl::Status nobodys = CheckNobodysMap(options_.proc_root, target.id, target.files, target.directory);
  if (absl::IsAlreadyExists(nobodys)) {
    ++counters_.theirs;
    return Settle(target);
  }
  if (absl::IsFailedPrecondition(nobodys)) {
    return Refuse(target, nobodys.message(), "remove that file, if nobody needs it");
  }
  if (!nobodys.ok()) return ++target.tries < kMaxLooks ? Later(target, now) : Refuse(target, nobodys.message());
  if (!RuntimeHasStarted(options_.proc_root, target.id)) return Later(target, now);
  if (const absl::Status guarded = StartGuard(); !guarded.ok()) return Refuse(target, guarded.message());
  const absl::Status sent = Send(target, EncodeDiagnosticsRequest(DiagnosticsCommand::kProcessInfo2), kAnswerNs, now);
  if (sent.ok()) {
    target.stage = Stage::kAsking;
    return true;
  }
  if ((absl::IsUnavailable(sent) || absl::IsNotFound(sent)) && ++target.tries < kMaxLooks) return Later(target, now);
  return Refuse(target, sent.message());
}

absl::Status PerfMapLeases::StartGuard() {
  if (guard_ == nullptr) guard_ = options_.guard;
  if (guard_ != nullptr || options_.guard_program.empty()) return absl::OkStatus();
  absl::StatusOr<LeaseGuard> guard = LeaseGuard::Start(options_.guard_program, options_.directory);
  if (!guard.ok()) return guard.status();
  guard_ = std::make_shared<LeaseGuard>(*std::move(guard));
  return absl::OkStatus();
}

bool PerfMapLeases::StepAsking(Target& target, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(target.exchange, std::nullopt);
  if (exchange.status().ok() && exchange.error().has_value()) {
    return Refuse(target, DiagnosticsErrorText(*exchange.error()));
  }
  const absl::StatusOr<RuntimeProcessInfo> info =
      exchange.status().ok() ? ParseRuntimeProcessInfo(DiagnosticsCommand::kProcessInfo2, exchange.payload())
                             : absl::StatusOr<RuntimeProcessInfo>(exchange.status());
  if (!info.ok()) {
    if (++target.bad_answers >= kMaxAnswers) return Refuse(target, info.status().message());
    target.stage = Stage::kStarting;
    return Later(target, now);
  }
  if (info->pid != target.id.namespace_pid) {
    return Refuse(target, absl::StrCat("its runtime says that it is process ", info->pid));
  }
  int major = 0;
  const std::string& version = info->runtime_version;
  if (!absl::SimpleAtoi(absl::string_view(version).substr(0, version.find('.')), &major) || major < 8) {
    return Refuse(target, "only .NET 8 and newer can switch a perf map on while they run",
                  "start it with DOTNET_PerfMapEnabled=3");
  }
  if (PerfMapCanHang(version)) {
    notices_.Add("perf_map_can_hang", version,
                 absl::StrCat("a defect of .NET ", version, " can hang a process for good while it writes a perf map"),
                 "update the runtime to 10.0.10 or newer");
  }
  // Asked again: another tool may have been faster.
  if (!CheckNobodysMap(options_.proc_root, target.id, target.files, target.directory).ok() || !IsAlive(target)) {
    target.stage = Stage::kStarting;
    return true;
  }
  const absl::Status acquired = Acquire(target);
  if (absl::IsAlreadyExists(acquired) || absl::IsUnavailable(acquired)) {  // another run's, or being repaired
    target.stage = Stage::kStarting;
    return Later(target, now);
  }
  if (!acquired.ok()) return Refuse(target, acquired.message(), HintOf(acquired));
  const absl::Status sent = Send(target, EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap), kAnswerNs, now);
  if (!sent.ok()) return Refuse(target, sent.message());
  target.stage = Stage::kDisabling;
  return true;
}

absl::Status PerfMapLeases::Acquire(Target& target) {
  if (guard_ != nullptr) RETURN_IF_ERROR(guard_->Ready());
  const absl::StatusOr<LeaseRecord> record =
      DescribeLease(options_.proc_root, target.id, target.files, target.directory);
  if (!record.ok()) return record.status();
  absl::StatusOr<Lease> lease = store_->Create(*record);
  if (!lease.ok()) return lease.status();
  target.lease.emplace(*std::move(lease));
  return absl::OkStatus();
}

// Enabling while on would add a second dump to the file, so off comes first. Here it is off already, as far as can be
// seen.
bool PerfMapLeases::StepDisabling(Target& target, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(target.exchange, std::nullopt);
  if (!exchange.status().ok()) return Refuse(target, exchange.status().message());
  if (exchange.error().has_value()) return Refuse(target, DiagnosticsErrorText(*exchange.error()));
  const absl::Status sent = Send(target, EncodeEnablePerfMap(PerfMapKind::kPerfMap), kEnableNs, now);
  if (!sent.ok()) return Refuse(target, sent.message());
  target.stage = Stage::kEnabling;
  return true;
}

bool PerfMapLeases::StepEnabling(Target& target, MonotonicTime now) {
  const DiagnosticsExchange exchange = *std::exchange(target.exchange, std::nullopt);
  absl::Status status = exchange.status();
  if (status.ok() && exchange.error().has_value())
    status = absl::InternalError(DiagnosticsErrorText(*exchange.error()));
  if (status.ok()) {
    for (const LeasedFile& file : FindLeasedFiles(target.lease->record(), target.files)) {
      if (const absl::Status added = target.lease->AddFile(file); !added.ok()) status = added;
    }
    const std::string path = absl::StrCat(target.directory, "/", PerfMapFileNames(target.id.namespace_pid)[0]);
    absl::StatusOr<OpenedFile> map = target.files.OpenRuntimeFile(path);
    if (status.ok() && !map.ok()) status = Annotate(map.status(), "its runtime wrote no perf map");
    if (map.ok()) target.map = std::move(map->fd);
  }
  if (!status.ok()) {
    // Whatever it did: it may be on.
    ++counters_.refused;
    notices_.Add("perf_map_not_enabled", target.who,
                 absl::StrCat("no perf map could be switched on in ", target.who, ": ", status.message()));
    BeginEnding(target);
    return true;
  }
  ++counters_.enabled;
  target.on_since = now;
  target.stage = Stage::kOn;
  target.next_try = now;
  return true;
}

bool PerfMapLeases::StepOn(Target& target, MonotonicTime now) {
  target.next_try = {now.ns + kLookNs};
  if (!IsAlive(target)) {
    RemoveAll(target);
    return false;
  }
  if (now.ns - target.on_since.ns > options_.cap_ns) {
    ++counters_.over_cap;
    notices_.Add("perf_map_time", target.who,
                 absl::StrCat("the perf map of ", target.who, " was on for ", options_.cap_ns / 1'000'000'000,
                              " seconds and was switched off; code that it compiles from here on has no name"),
                 "--perf-map-time 8h lets it stay on for longer");
    BeginEnding(target);
    return true;
  }
  struct stat status {};
  if (fstat(target.map.get(), &status) != 0) return false;
  if (static_cast<uint64_t>(status.st_size) > options_.cap_bytes) {
    ++counters_.over_cap;
    notices_.Add("perf_map_cap", target.who,
                 absl::StrCat("the perf map of ", target.who, " grew beyond ", options_.cap_bytes,
                              " bytes and was switched off; code that it compiles from here on has no name"),
                 "--perf-map-cap 256MiB lets it grow further");
    BeginEnding(target);
    return true;
  }
  if (target.files.StateOfFile(status.st_dev, status.st_ino, target.map_descriptor) != OpenFileState::kNotOpen) {
    return false;
  }
  notices_.Add("perf_map_ended", target.who,
               absl::StrCat("another tool switched the perf map of ", target.who,
                            " off; code that it compiles from here on has no name"));
  RemoveAll(target);
  return false;
}

void PerfMapLeases::BeginEnding(Target& target) {
  if (target.stage == Stage::kEnding) return;
  target.exchange.reset();  // a request under way is handled before the one that follows
  target.stage = Stage::kEnding;
  target.next_try = MonotonicTime::Min();
  target.wait_ns = kFirstLeaseWaitNs;
}

bool PerfMapLeases::StepEnding(Target& target, MonotonicTime now) {
  if (target.exchange.has_value()) {
    const DiagnosticsExchange exchange = *std::exchange(target.exchange, std::nullopt);
    if (exchange.status().ok() && !exchange.error().has_value()) {
      // Open again: somebody else has switched it on in the meantime.
      if (HasMapOpen(options_.proc_root, target.id) == MapOpen::kYes) return Settle(target);
      RemoveAll(target);
      return true;
    }
    return Later(target, now);
  }
  if (!IsAlive(target)) {
    RemoveAll(target);
    return true;
  }
  // It has called exec, and the new program has a map of its own.
  if (EnvironmentEnablesMap(options_.proc_root, target.id.tgid)) return Settle(target);
  const absl::Status sent = Send(target, EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap), kAnswerNs, now);
  if (sent.ok()) return true;
  if (absl::IsNotFound(sent) && HasNoRuntime(options_.proc_root, target.id)) {
    RemoveAll(target);
    return true;
  }
  return Later(target, now);
}

absl::Status PerfMapLeases::Send(Target& target, std::string request, uint64_t patience_ns, MonotonicTime now) {
  absl::StatusOr<UniqueFd> connection = ConnectToRuntime(options_.proc_root, target.id, target.files);
  if (!connection.ok()) return connection.status();
  target.exchange.emplace(*std::move(connection), std::move(request), MonotonicTime{now.ns + patience_ns});
  target.exchange->Step(now);
  return absl::OkStatus();
}

void PerfMapLeases::RemoveAll(Target& target) {
  const absl::Status removed = RemoveLeasedFiles(target.lease->record(), target.files);
  if (!removed.ok()) {
    notices_.Add("perf_map_left", target.who,
                 absl::StrCat("a perf map of ", target.who, " could not be removed: ", removed.message()));
  }
  ++counters_.ended;
  Settle(target);
}

// Nothing of ours is on in the target, or will be.
bool PerfMapLeases::Settle(Target& target) {
  target.stage = Stage::kSettled;
  target.exchange.reset();
  target.map.reset();
  if (target.lease.has_value()) target.lease->Remove();
  target.lease.reset();
  return false;
}

bool PerfMapLeases::Refuse(Target& target, absl::string_view reason, absl::string_view hint) {
  ++counters_.refused;
  notices_.Add("perf_map_not_enabled", target.who,
               absl::StrCat("no perf map is switched on in ", target.who, ": ", reason), hint);
  return Settle(target);
}

bool PerfMapLeases::Later(Target& target, MonotonicTime now) {
  target.next_try = {now.ns + target.wait_ns};
  // Waiting for a start is cheap where the start is near, and may be for ever where there is no .NET runtime.
  const uint64_t longest_ns = target.surely_dotnet ? kLongestWaitDotnetNs : kLongestWaitNs;
  if (target.stage == Stage::kStarting) target.wait_ns = std::min(target.wait_ns * 5 / 4, longest_ns);
  return false;
}

}  // namespace clrsampler
