// The questions to the machine and its answers: a run that is saved can be played again anywhere.
//
// All that the agent learns of the outside during a recording goes through a Tape where there is one: files of /proc,
// memory of processes, clocks, counters, what the kernel sends. Without one nothing is different (tape_answer.h).
#ifndef CLRSAMPLER_OS_TAPE_H_
#define CLRSAMPLER_OS_TAPE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/mapped_file.h"

namespace clrsampler {

// A file as of the moment it was opened: with the same numbers it has the same content.
struct FileOnTape {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  uint64_t modified_ns = 0;
  friend auto operator<=>(const FileOnTape&, const FileOnTape&) = default;
};

// One thread.
class Tape {
 public:
  virtual ~Tape() = default;

  // The answer to `question`, which names what is asked and of whom: the machine's, by `ask`, or the recorded one. The
  // same question may have another answer later.
  virtual std::string Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) = 0;

  // A view of a file's content; `fd` is the file where it was opened on this machine. NotFound: it is not on the tape.
  virtual absl::StatusOr<MappedFile> Map(const FileOnTape& file, int fd, uint64_t max_bytes) = 0;

  // An iteration of the main loop begins. Answers are kept by iteration, so that a program which asks a little more or
  // less than the one that was recorded still gets those of the same time.
  virtual void NextIteration() = 0;

  // The machine is never asked: answers are recorded ones.
  virtual bool plays() const = 0;
  // Nothing more is on a tape that plays.
  virtual bool ended() const = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_TAPE_H_
