// All .NET processes of the host, as `clrsampler ps` and `clrsampler doctor` list them.
#ifndef CLRSAMPLER_INSPECT_PROCESS_LIST_H_
#define CLRSAMPLER_INSPECT_PROCESS_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clr/memory/memory_methods.h"
#include "clr/runtime_discovery.h"
#include "inspect/process_facts.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "status/notices.h"
#include "symbols/frame.h"

namespace clrsampler {

struct ProcessList {
  std::vector<ProcessFacts> dotnet;  // by pid; those that can't be read but have the runtime's threads too
  uint64_t others = 0;               // processes without .NET; kernel threads are not counted
  uint64_t unreadable = 0;           // closed to us, and nothing about them looks like .NET
  std::string how_to_read;           // what helps, where there are such
};

// One look around: make one, ask, throw it away.
class ProcessInspector {
 public:
  // `broker`: as TargetFiles'; outlives it.
  explicit ProcessInspector(std::string proc_root, FileBroker* broker = nullptr)
      : proc_root_(std::move(proc_root)),
        broker_(broker),
        table_(proc_root_, clock_, nullptr, broker),
        runtimes_(images_, RuntimeDiscovery::CacheBy::kMapping),
        memory_({}, runtimes_, images_, frames_, notices_, clock_) {}

  absl::StatusOr<ProcessList> All();
  // One process, .NET or not. NotFound: there is none of that number.
  absl::StatusOr<ProcessFacts> One(uint32_t pid);

 private:
  // False: it is gone, or a kernel thread. Facts that take longer, because files are opened by the dozen, are looked at
  // on demand.
  bool Read(uint32_t pid, bool thoroughly, ProcessFacts& facts);

  const std::string proc_root_;
  FileBroker* const broker_;
  SystemClock clock_;
  ImageFiles images_;
  ProcessTable table_;
  RuntimeDiscovery runtimes_;
  // The parts that a recording would name with.
  FrameTable frames_;
  Notices notices_;
  MemoryMethods memory_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_INSPECT_PROCESS_LIST_H_
