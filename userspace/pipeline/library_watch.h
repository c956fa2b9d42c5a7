// The events of one .NET process by the profiler library, which is put into it and taken out again.
#ifndef CLRSAMPLER_PIPELINE_LIBRARY_WATCH_H_
#define CLRSAMPLER_PIPELINE_LIBRARY_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "formats/inprocess/ring_reader.h"
#include "process/file_broker.h"

namespace clrsampler {

struct LibraryWatchOptions {
  uint32_t pid = 0;
  uint64_t kinds = 0;            // bits of InprocessKindBit
  uint64_t duration_ns = 0;      // from when the library is there; 0: until a signal comes or the process ends
  size_t ring_bytes = 16 << 20;  // a power of two; at most kMaxInprocessCapacity
  // Where to wait for a program that is started with the library, instead of loading it into `pid`; empty: nowhere.
  std::string socket;
  FileBroker* files = nullptr;  // as TargetFiles'; outlives the call
};

struct LibraryWatchResult {
  uint64_t lost = 0;          // records that had no room in the ring
  uint64_t left_out = 0;      // methods without their maps, since a module was unloaded meanwhile
  uint64_t unread_bytes = 0;  // of records behind one that the process began and never finished
  bool stayed = false;        // the runtime has not unloaded the library, which sends nothing any more
};

// libclrsampler_profiler.so beside this program, as after a build, or in ../lib/clrsampler, as after an installation.
// NotFound: in neither.
absl::StatusOr<std::string> FindLibrary();

// `began` is called with the process's number when the library is there, and `receiver` for each record, in the order
// of their times as far as they come within kHoldNs of each other. An error is a sentence with a hint. Once a process:
// it gives rights up.
absl::StatusOr<LibraryWatchResult> WatchLibrary(const LibraryWatchOptions& options,
                                                absl::FunctionRef<void(uint32_t)> began,
                                                std::function<void(const LibraryRecord&)> receiver);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_LIBRARY_WATCH_H_
