// Unwind data of precompiled code: of dlls, of composite images and of single-file programs, as clr/r2r_methods.h finds
// them. Unwind data and code are taken from the image's file, which outlives the process. Images that are in no file,
// of compressed single-file programs, are read from the process when a sample meets them.
#ifndef CLRSAMPLER_UNWIND_DATA_R2R_UNWIND_DATA_H_
#define CLRSAMPLER_UNWIND_DATA_R2R_UNWIND_DATA_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "clr/r2r_memory_images.h"
#include "clr/r2r_methods.h"
#include "process/per_process.h"
#include "process/process.h"
#include "status/thread_checker.h"
#include "symbols/frame_source.h"
#include "unwind/code_finder.h"

namespace clrsampler {

struct R2rUnwindCounters {
  uint64_t functions = 0;   // read, each once per process
  uint64_t damaged = 0;     // unwind data that could not be parsed
  uint64_t unreadable = 0;  // in memory that could not be read
};

// Main loop only.
class R2rUnwindData {
 public:
  // Borrows `methods`. Without `read_memory` only images in files have unwind data.
  explicit R2rUnwindData(R2rMethods* methods, ReadMemory read_memory = {});

  // kManaged, kStub (in an image's code, but in no function) or kUnknown. Holds as long as the mapping does.
  CodeAt At(const FrameQuery& query);
  // To be called when a sample arrives, while its process is still there. `process` is as of the last handled event.
  void Observe(const Process& process, const ObservedSample& sample);

  const R2rUnwindCounters& counters() const { return counters_; }
  size_t heap_bytes() const;

 private:
  struct Known {
    std::weak_ptr<const void> content;                // of the image
    uint32_t index = 0;                               // of the function
    std::shared_ptr<const ManagedFunction> function;  // nullptr: its unwind data is damaged
  };
  struct ProcessState {
    absl::flat_hash_map<uint64_t, Known> functions;  // by begin
    uint64_t copied_bytes = 0;
  };

  CodeAt OnArm64(const FrameQuery& query, const R2rMethods::Code& code);
  std::shared_ptr<const ManagedFunction> FromFile(const R2rMethods::Code& code);
  std::shared_ptr<const ManagedFunction> FromMemory(const Process& process, const R2rMethods::Code& code,
                                                    ProcessState& known, bool& unreadable);

  R2rMethods* methods_;
  ReadMemory read_memory_;
  PerProcess<ProcessState> states_;
  R2rUnwindCounters counters_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_UNWIND_DATA_R2R_UNWIND_DATA_H_
