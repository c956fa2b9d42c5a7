// The processes whose threads publish the trace and the span that they work for (OTEP 4947): finds where each thread
// has the pointer to its record, and tells the sampler.
//
// Source: open-telemetry/opentelemetry-specification, oteps/profiles/4947-thread-ctx.md. A process that exports the
// variable is served, whether or not it says in its process context that it will.
#ifndef CLRSAMPLER_PIPELINE_THREAD_CONTEXTS_H_
#define CLRSAMPLER_PIPELINE_THREAD_CONTEXTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "clr/runtime_discovery.h"
#include "clrsampler/wire.h"
#include "formats/elf/thread_variable.h"
#include "formats/profile/trace_link.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "process/process.h"
#include "process/target_memory.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "unwind/raw_stack.h"

namespace clrsampler {

// Main loop only. Borrows what it is given.
class ThreadContexts {
 public:
  struct Parts {
    ImageFiles& images;
    RuntimeDiscovery& runtimes;
    Notices& notices;
    // The memory of the process as it is now.
    std::function<absl::StatusOr<std::unique_ptr<MemoryReader>>(uint32_t pid)> open;
    std::function<absl::Status(uint32_t pid, const wire_thread_variable&)> tell;
    std::function<void(uint32_t pid)> take_back;
  };
  explicit ThreadContexts(Parts parts)
      : parts_(std::move(parts)), known_([this](ProcessKey key, Known& known) { TakeBack(key, known); }) {}

  // At a sample: looks at what a .NET process has mapped since the last look, once a second at most.
  void Observe(const Process& process, MonotonicTime time);
  // The ids that came with a sample; none, if they are not of the program that the sampler was told of.
  TraceLink LinkOf(const Process& process, const RawStack& raw) const;

  // Some process was told of.
  bool any() const { return any_; }

 private:
  struct Known {
    uint32_t exec_count = 0;
    uint64_t asked = 0;       // of the mappings, when it was last looked for a runtime
    uint64_t generation = 0;  // of the mappings that were looked at
    MonotonicTime next;
    uint32_t tries = 0;             // of an image that the loader is not done with
    std::optional<Mapping> served;  // the image whose variable is read
    MonotonicTime since;            // of samples that are read so
  };

  void Look(const Process& process, const DotNetRuntime& runtime, MonotonicTime time, Known& known);
  absl::StatusOr<ThreadPlace> PlaceIn(const Process& process, const DotNetRuntime& runtime, const Mapping& mapping,
                                      bool& exports);
  void TakeBack(ProcessKey key, Known& known);

  const Parts parts_;
  PerProcess<Known> known_;
  absl::flat_hash_map<uint32_t, ProcessKey> told_;  // by pid: whose variable the sampler has
  bool any_ = false;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_THREAD_CONTEXTS_H_
