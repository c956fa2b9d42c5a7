// The process that asks the container runtime.
//
// A program that may write to the runtime's socket may start containers, and is as good as root. So the agent, which
// reads what its targets say, does not get there: this process does. It opens no file, and has no capability; it is the
// user that the program was started as, whom the socket knows.
#ifndef CLRSAMPLER_CONTAINER_RUNTIME_CRI_PROCESS_H_
#define CLRSAMPLER_CONTAINER_RUNTIME_CRI_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "sandbox/answering_process.h"

namespace clrsampler {

// The agent's end. Main loop only. One stays for all recorders of a service.
class CriHelper : public AnsweringProcess {
 public:
  // False: it takes no more now, or has ended.
  virtual bool Send(absl::string_view question) = 0;
};

// This program must have one thread, and the right to make a process. A failure to load libcurl or to make
// the process is told as an answer to each question.
std::unique_ptr<CriHelper> StartCriHelper(const std::string& socket);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CONTAINER_RUNTIME_CRI_PROCESS_H_
