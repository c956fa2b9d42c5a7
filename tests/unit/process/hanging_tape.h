// A file system that does not answer for a time.
#ifndef CLRSAMPLER_TESTS_UNIT_PROCESS_HANGING_TAPE_H_
#define CLRSAMPLER_TESTS_UNIT_PROCESS_HANGING_TAPE_H_

#include <string>

#include "absl/strings/match.h"
#include "os/tape.h"
#include "os/tape_answer.h"

namespace clrsampler {

// Asks the machine, except for files while `hangs`.
class HangingTape : public Tape {
 public:
  bool hangs = true;
  int opens = 0;  // how often a file was to be opened

  std::string Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) override {
    if (!absl::StartsWith(question, "open ")) return ask();
    ++opens;
    if (!hangs) return ask();
    TapeWriter out;
    TapeCodec<absl::Status>::Write(absl::UnavailableError("its file system does not answer"), out);
    return out.Take();
  }
  absl::StatusOr<MappedFile> Map(const FileOnTape&, int fd, uint64_t max_bytes) override {
    return MappedFile::Map(fd, 0, 0, max_bytes);
  }
  void NextIteration() override {}
  bool plays() const override { return false; }
  bool ended() const override { return false; }
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_PROCESS_HANGING_TAPE_H_
