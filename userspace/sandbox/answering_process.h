// The common part of helper processes that answer questions, as the agent sees them.
#ifndef CLRSAMPLER_SANDBOX_ANSWERING_PROCESS_H_
#define CLRSAMPLER_SANDBOX_ANSWERING_PROCESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "status/thread_checker.h"

namespace clrsampler {

// The agent's end. Main loop only.
class AnsweringProcess {
 public:
  virtual ~AnsweringProcess() = default;
  // nullopt: nothing has come. Does not wait.
  virtual std::optional<std::string> Receive() = 0;
  // Waits until something has come or it has ended, for so long at most.
  virtual void WaitMs(int milliseconds) = 0;
  virtual bool ended() const = 0;

  // The next number of a question. All users of one process share it, so that no answer is taken for another's.
  uint64_t NextNumber() {
    main_loop_.Check();
    return ++last_number_;
  }

 private:
  uint64_t last_number_ = 0;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_SANDBOX_ANSWERING_PROCESS_H_
