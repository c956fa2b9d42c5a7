// Reads what /proc and the files of a process say about its perf map: whether its runtime is up, whether somebody else
// has switched a map on, where it lies, and which files are ours.
//
// Everything here reads, under limits; only RemoveLeasedFiles changes something. In doubt the answer is the one that
// leaves a target alone.
#ifndef CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_TARGET_H_
#define CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clr/diagnostics_client.h"
#include "clr/perf_map/lease_record.h"
#include "process/target_files.h"

namespace clrsampler {

// Whether EnablePerfMap can be sent without harm. A runtime answers on its socket long before its code manager and its
// application domain exist, and EnablePerfMap then crashes it (dotnet/runtime#122472, #123438; fixed in some 10.0 by
// #124208, not in 8.0 and 9.0). ProcessInfo is no witness: it names the entry assembly even of a runtime that waits at
// its start (measured on 8.0.30, 9.0.19, 10.0.12 and 10.0.14 with DOTNET_DefaultDiagnosticPortSuspend=1). The thread
// ".NET Finalizer" is: the runtime makes it near the end of its start, because threads need an application domain, and
// after the code manager; a waiting runtime does not have it (same four). An age of one second is asked for besides.
// Works for every deployment form, and for runtimes that a native program hosts.
bool RuntimeHasStarted(absl::string_view proc_root, const TargetIdentity& target);
inline constexpr uint64_t kMinAgeNs = 1'000'000'000;

// Where the runtime would put its perf map: DOTNET_PerfMapJitDumpPath or /tmp. An error for a directory that can't be
// found again.
absl::StatusOr<std::string> PerfMapDirectory(const TargetFiles& files);

// Ok: nobody has a perf map or jitdump in this process. AlreadyExists: the target's user or another tool has one on,
// which names its methods as well. FailedPrecondition: a file stands in the way (written by this process before, a
// link, another user's); a phrase for a notice. Unavailable: can't be told. But for Ok the process is not to be
// touched.
absl::Status CheckNobodysMap(absl::string_view proc_root, const TargetIdentity& target, const TargetFiles& files,
                             absl::string_view directory);

// Whether its environment switches a map on from the start.
bool EnvironmentEnablesMap(const TargetFiles& files);

// Whether the process has a file open whose name is that of a perf map or jitdump of its own.
enum class MapOpen { kYes, kNo, kUnknown };
MapOpen HasMapOpen(absl::string_view proc_root, const TargetIdentity& target);

// Whether no runtime writes a map in a process without a diagnostics server either. After exec the map's descriptor
// stays open, and nobody writes to it.
bool HasNoRuntime(absl::string_view proc_root, const TargetIdentity& target);

// The record of a lease on this process, without files. Our own numbers come from `proc_root`/self.
absl::StatusOr<LeaseRecord> DescribeLease(absl::string_view proc_root, const TargetIdentity& target,
                                          const TargetFiles& files, absl::string_view directory);

// The files that the runtime writes for us: regular, of the target's user, not older than the lease.
std::vector<LeasedFile> FindLeasedFiles(const LeaseRecord& record, const TargetFiles& files);

// Removes them: those that the record names by their inode, or, where none was recorded, those that FindLeasedFiles
// accepts. Others that stand there under the same name are left. An error when one of ours could not be removed.
absl::Status RemoveLeasedFiles(const LeaseRecord& record, const TargetFiles& files);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_PERF_MAP_PERF_MAP_TARGET_H_
