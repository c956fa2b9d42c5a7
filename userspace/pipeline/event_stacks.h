// Names the stacks of events that a process's runtime sends: by the sources of a recording, but without its events of
// the kernel. So mappings that have come since are read anew when a stack meets one.
#ifndef CLRSAMPLER_PIPELINE_EVENT_STACKS_H_
#define CLRSAMPLER_PIPELINE_EVENT_STACKS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/runtime_discovery.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "pipeline/source_order.h"
#include "process/file_broker.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/symbolizer.h"

namespace clrsampler {

struct EventStacksOptions {
  uint32_t pid = 0;
  NameStyle names = NameStyle::kShort;
  LineOptions lines = {};
  std::shared_ptr<LineHelper> line_helper = nullptr;  // nullptr: native code has no lines
  FileBroker* files = nullptr;                        // as TargetFiles'; outlives this
};

// Main loop only.
class EventStacks {
 public:
  // Runtimes walk no further.
  static constexpr size_t kMostFrames = 100;

  // Reads the process and its runtime, so that the first event need not wait for that.
  explicit EventStacks(const EventStacksOptions& options);

  // `addresses`: return addresses, innermost first. Gives frames outermost first, valid until the next call. Events
  // come in the order of their times.
  std::span<const FrameId> Name(std::span<const uint64_t> addresses, MonotonicTime time);

  const Process& process() const { return process_; }
  FrameTable& frames() { return frames_; }
  const FrameTable& frames() const { return frames_; }
  const Sources& sources() const { return sources_; }
  Notices& notices() { return notices_; }
  const Clock& clock() const { return clock_; }
  std::string RuntimeVersion();  // "10.0.12"; empty: none was found

 private:
  static constexpr size_t kMaxNamed = 64 * 1024;  // addresses: 4 MB

  struct NamedAddress {
    Resolution answer;
    uint64_t generation = 0;
  };

  Resolution Resolve(uint64_t lookup_address, MonotonicTime time, uint64_t generation);
  void ReadNewMappings(MonotonicTime now);

  SystemClock clock_;
  Notices notices_;
  FrameTable frames_;
  ImageFiles images_;
  FileBrokerReports files_;
  ProcessTable table_;
  RuntimeDiscovery discovery_;
  Sources sources_;
  Symbolizer symbolizer_;
  Process& process_;
  MonotonicTime iteration_;
  MonotonicTime next_read_;                            // of mappings
  absl::flat_hash_map<uint64_t, NamedAddress> named_;  // by lookup address
  std::vector<uint64_t> lookup_;                       // leaf first
  std::vector<FrameId> stack_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_EVENT_STACKS_H_
