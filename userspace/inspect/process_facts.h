// The facts about one process from outside, for ps and doctor: its runtime, its container, and where names can come
// from. Nothing is changed in the process and nothing is asked of it.
#ifndef CLRSAMPLER_INSPECT_PROCESS_FACTS_H_
#define CLRSAMPLER_INSPECT_PROCESS_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clr/runtime_discovery.h"
#include "formats/labels/process_labels.h"
#include "inspect/pool_facts.h"
#include "process/container.h"
#include "process/image_files.h"
#include "process/process.h"

namespace clrsampler {

enum class GcFlavour : uint8_t { kUnknown, kWorkstation, kServer };
absl::string_view GcFlavourText(GcFlavour flavour);  // "workstation"

// Names of threads can be read of every process, also of one that is closed to us otherwise.
struct ThreadFacts {
  bool runtime_threads = false;    // some thread is called ".NET ...", as CoreCLR calls its own since .NET 6
  bool server_gc_threads = false;  // ".NET Server GC": one for each heap, made before the first managed instruction
};

struct DirectoryFacts {
  std::string path;     // in the mount namespace of the process
  absl::Status status;  // why it can't be looked at; NotFound: it is not there
  bool read_only = false;
  bool writable = true;  // by the process's user, as far as owner and mode say
  uint64_t free_bytes = 0;
};

// A file that the runtime writes for profilers.
struct NameFileFacts {
  std::string path;
  bool exists = false;  // and belongs to the process's user or root
  bool live = false;    // the process has it open
  uint64_t bytes = 0;
};

struct EnvironmentFacts {
  bool readable = false;
  std::optional<uint32_t> perf_map_enabled;  // DOTNET_PerfMapEnabled and so on; nullopt: not set
  std::optional<uint32_t> enable_diagnostics;
  std::optional<uint32_t> enable_diagnostics_ipc;
  std::optional<uint32_t> ready_to_run;
  std::string temporary_directory = "/tmp";  // TMPDIR
  std::string profiler;                      // library or id of a profiler that CORECLR_ENABLE_PROFILING=1 loads
};

// The native images of a process, as stacks are unwound through them.
struct UnwindFacts {
  struct Image {
    std::string path;
    std::string reason;
  };
  struct Extent {
    std::string path;
    uint64_t code_bytes = 0;     // of its executable sections
    uint64_t covered_bytes = 0;  // of them with unwind data
    bool by_code = false;        // which is made from its instructions
  };
  uint64_t images = 0;          // that were opened
  std::vector<Image> unusable;  // without unwind data that can be used; each path once
  std::vector<Extent> extents;  // of the others
};

// Whether `clrsampler pauses`, `allocs` and `exceptions` find the places in the runtime that they need; else why not.
struct HookFacts {
  absl::Status pauses;       // without them nothing of a pause is seen
  absl::Status collections;  // without them generations and kinds are not
  absl::Status allocations;
  absl::Status exceptions;
};

struct ProcessFacts {
  uint32_t pid = 0;
  uint32_t namespace_pid = 0;
  uint32_t uid = 0;
  uint32_t tracer_pid = 0;  // a debugger; 0: none
  std::string comm;
  std::string executable;
  absl::Status readable;  // why its mappings can't be read, and what helps
  ThreadFacts threads;
  std::optional<DotNetRuntime> runtime;
  GcFlavour gc = GcFlavour::kUnknown;
  Container container;
  ProcessLabels labels;
  EnvironmentFacts environment;
  DirectoryFacts perf_map_directory;
  NameFileFacts perf_map;
  bool perf_map_is_ours = false;  // a clrsampler that runs has switched it on: --enable-perf-map
  NameFileFacts jitdump;
  std::string socket_path;  // where the diagnostics socket has to be
  absl::Status socket = absl::NotFoundError("not looked for");
  absl::Status memory;                // of a .NET process: MemoryMethods::Try
  bool has_symbols = false;           // the image with the runtime has a symbol table, or a debug file that was found
  std::optional<UnwindFacts> unwind;  // nullopt: not looked at
  std::optional<HookFacts> hooks;     // likewise
  std::optional<PoolFacts> pool;      // likewise, or there is none that can be read
  double age_seconds = 0;

  bool is_dotnet() const { return runtime.has_value() || (!readable.ok() && threads.runtime_threads); }
};

// Tells the user of an agent with these capabilities how to read a process that is closed to it.
absl::string_view HowToRead(uint64_t capabilities);

ThreadFacts ReadThreads(const std::string& proc_root, uint32_t pid);

// Opens every image that is mapped to be executed.
UnwindFacts ReadUnwindFacts(const Process& process, ImageFiles& images);

// Looks through the image of the runtime: some 30 ms.
HookFacts ReadHookFacts(const Process& process, const DotNetRuntime& runtime, ImageFiles& images);

// Everything but the mappings, which `process` has, and its memory; `facts.runtime` is set already. Main loop only: it
// opens files.
void ReadRuntimeSurroundings(const std::string& proc_root, const Process& process, ImageFiles& images,
                             ProcessFacts& facts);

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_PROCESS_FACTS_H_
