// Asks the sources in order and makes sure that every address gets a frame: a name, or the reason why there is none.
#ifndef CLRSAMPLER_SYMBOLS_SYMBOLIZER_H_
#define CLRSAMPLER_SYMBOLS_SYMBOLIZER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "process/per_process.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"
#include "symbols/name_budget.h"

namespace clrsampler {

// Main loop only. Borrows sources and table; they outlive it.
class Symbolizer {
 public:
  // With sources of lines, frames of the code that these know say their line. `notices`: is told of processes with too
  // many names; nullptr: nobody is.
  Symbolizer(std::vector<FrameSource*> sources, FrameTable& frames, std::vector<LineSource*> lines = {},
             Notices* notices = nullptr);

  // Bounds what the answers add to the table. Others who name what a process has charge it here, too.
  NameBudget& budget() { return budget_; }

  // Told of each frame of managed code that Resolve finds: of the frame without its line, and of the one with it.
  using FoundManaged = std::function<void(const FrameQuery& query, FrameId plain, FrameId frame)>;
  void SetManagedFrameObserver(FoundManaged found) { found_managed_ = std::move(found); }

  Resolution Resolve(const FrameQuery& query);

  // Shows the sources that observe a sample as soon as it has arrived.
  void Observe(const Process& process, const ObservedSample& sample);

  // Lets every polled source read what is new for the process, until each has seen everything up to `time` or stops
  // getting further. `now` is the time of the loop's iteration: within an iteration a process is read once, and again
  // when its mappings have changed. False: some source did not get that far, and the answers may lack what was written
  // last.
  bool CatchUp(const Process& process, MonotonicTime time, MonotonicTime now);

  uint64_t Generation(const Process& process) const;
  bool WantsShortIterations(MonotonicTime now) const;
  bool MayIdle() const;

 private:
  struct CaughtUp {
    MonotonicTime iteration;
    uint64_t mapping_generation = 0;
    MonotonicTime complete_until;  // of the source that is furthest behind
    bool complete = false;         // for the latest time that was asked for
  };

  Resolution ResolveAny(const FrameQuery& query);
  Resolution ResolveName(const FrameQuery& query);
  FrameId WithLine(const FrameQuery& query, FrameId plain);
  Resolution Unknown(std::string text, MonotonicTime until);

  std::vector<FrameSource*> sources_;
  std::vector<SampleObserver*> observers_;  // of sources_, as the next
  std::vector<PolledSource*> polled_;
  std::vector<LineSource*> lines_;
  FrameTable& frames_;
  NameBudget budget_;
  FoundManaged found_managed_;
  PerProcess<CaughtUp> caught_up_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SYMBOLS_SYMBOLIZER_H_
