// Says of translated code of emulated .NET programs what it is. It has no name: only the emulator knows which
// instructions of the program a piece of translated code stands for.
#ifndef CLRSAMPLER_CLR_EMULATED_CODE_H_
#define CLRSAMPLER_CLR_EMULATED_CODE_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "process/per_process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame.h"
#include "symbols/frame_source.h"

namespace clrsampler {

// Asked after all others. Main loop only.
class EmulatedCode : public FrameSource {
 public:
  // Borrows everything; all outlive it.
  EmulatedCode(RuntimeDiscovery& runtimes, FrameTable& frames, Notices& notices, const Clock& clock)
      : runtimes_(runtimes), frames_(frames), notices_(notices), clock_(clock) {}

  std::optional<Resolution> Resolve(const FrameQuery& query) override;
  uint64_t Generation(ProcessKey key) const override;

 private:
  struct ProcessState {
    std::optional<FrameId> frame;  // absent: no emulated program, as far as is known
    uint64_t seen_mappings = 0;    // generation of the last look
    MonotonicTime next_look = MonotonicTime::Min();
  };
  void ReadRegions(const Process& process, ProcessState& state);

  RuntimeDiscovery& runtimes_;
  FrameTable& frames_;
  Notices& notices_;
  const Clock& clock_;
  PerProcess<ProcessState> states_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_EMULATED_CODE_H_
