// Where a process keeps its jitdump and perf map, and whether a file that lies there is its own.
//
// The runtime names the files by its innermost pid and puts them into /tmp of its mount namespace, or into the
// directory in DOTNET_PerfMapJitDumpPath (dotnet/runtime:src/coreclr/vm/perfmap.cpp). It never removes them, so a file
// of an earlier process of the same pid may lie there. All of this reads /proc, under limits; a process that is gone
// gives empty answers.
#ifndef CLRSAMPLER_CLR_JIT_FILES_H_
#define CLRSAMPLER_CLR_JIT_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "process/process.h"

namespace clrsampler {

// Directory of the jitdump when `mapping` is the one page that its writer maps for perf's sake
// ("…/jit-PID.dump", executable, never executed); nullopt for any other mapping.
std::optional<std::string> JitdumpMarkerDirectory(const Mapping& mapping, uint32_t namespace_pid);

// DOTNET_PerfMapJitDumpPath (or COMPlus_…) in the environment that the process was started with; nullopt when not set
// or not an absolute path.
std::optional<std::string> PerfMapDirectoryOfEnvironment(const TargetFiles& files);

// When a process began, by the clocks that its files carry. Both may be earlier than the truth, never later.
struct ProcessStart {
  MonotonicTime monotonic;
  uint64_t realtime_ns = 0;
};

// From /proc/PID/stat, which counts in ticks of CLOCK_BOOTTIME; for a process that is gone from the time it was first
// seen.
ProcessStart StartOf(const Process& process, MonotonicTime now);

// The difference that the process's time namespace adds to CLOCK_MONOTONIC (time_namespaces(7)); 0 without one.
int64_t MonotonicOffsetOf(const TargetFiles& files);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_JIT_FILES_H_
