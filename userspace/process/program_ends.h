// The announcement that the program of a process is over.
#ifndef CLRSAMPLER_PROCESS_PROGRAM_ENDS_H_
#define CLRSAMPLER_PROCESS_PROGRAM_ENDS_H_

#include <vector>

#include "process/process_key.h"
#include "status/thread_checker.h"

namespace clrsampler {

// One for each ProcessTable. Main loop only.
class ProgramEnds {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // May add and remove listeners. One that is added now hears of the next end.
    virtual void OnProgramEnd(ProcessKey key) = 0;
  };

  // `listener` stays until it is removed, and does not move.
  void Add(Listener& listener);
  void Remove(Listener& listener);

  // The process has ended, or runs another program by exec. Listeners hear of it in the order in which they were added.
  void Announce(ProcessKey key);

 private:
  std::vector<Listener*> listeners_;  // nullptr: was removed during an announcement
  int announcing_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_PROCESS_PROGRAM_ENDS_H_
