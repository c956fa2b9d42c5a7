// The thread pool of one running process, read from its memory whenever that is asked for.
#ifndef CLRSAMPLER_PIPELINE_POOL_WATCH_H_
#define CLRSAMPLER_PIPELINE_POOL_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "clr/memory/memory_methods.h"
#include "clr/memory/pool_reader.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "process/file_broker.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"

namespace clrsampler {

// Main loop only. The first reading opens what the later ones need.
class PoolWatch {
 public:
  // `files` is asked for us where a file or memory may keep its reader waiting; nullptr: nobody is. Borrowed.
  PoolWatch(uint32_t pid, FileBroker* files);

  // nullopt: the process has no pool that can be read, or none yet.
  std::optional<PoolState> Read();

 private:
  const uint32_t pid_;
  SystemClock clock_;
  Notices notices_;
  FrameTable frames_;
  ImageFiles images_;
  ProcessTable table_;
  RuntimeDiscovery runtimes_;
  MemoryMethods memory_;
  std::unique_ptr<PoolReader> reader_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_POOL_WATCH_H_
