// Saves a run: passes each question on to this machine and writes down what it answers, when that is news.
#ifndef CLRSAMPLER_TAPE_SAVED_TAPE_H_
#define CLRSAMPLER_TAPE_SAVED_TAPE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "os/page_log.h"
#include "os/tape.h"
#include "os/tape_answer.h"
#include "os/unique_fd.h"
#include "tape/tape_format.h"

namespace clrsampler {

// One thread. Costs a multiple of what a run costs otherwise: 25 bytes a question and each byte of its answer, packed.
class SavedTape : public Tape {
 public:
  // An existing file keeps its content until the first iteration, which replaces it. Where Finish is not called, a new
  // file goes again, and a replaced one is emptied. Others can't read the file: it holds memory of processes.
  // `run`: what the tape's reader gets as its options.
  static absl::StatusOr<std::unique_ptr<SavedTape>> Create(const std::string& path, absl::string_view run,
                                                           uint64_t max_bytes = kMaxTapeBytes);
  ~SavedTape() override;

  std::string Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) override;
  absl::StatusOr<MappedFile> Map(const FileOnTape& file, int fd, uint64_t max_bytes) override;
  void NextIteration() override;
  bool plays() const override { return false; }
  bool ended() const override { return false; }
  int descriptor() const;  // of the file; borrowed

  // The run is over: writes what was read of files, and the end. ResourceExhausted: the tape is full, so that what came
  // later, or a part of the files, is not on it; else an error of writing.
  absl::Status Finish();

 private:
  struct Packer;
  struct Asked {
    uint32_t number;
    uint32_t iteration;
    uint32_t before;      // how often in that iteration
    uint64_t answer = 0;  // its hash
  };
  struct Watched {
    FileOnTape file;
    UniqueFd fd;
    std::shared_ptr<PageLog> log;
  };

  SavedTape(std::unique_ptr<Packer> packer, uint64_t max_bytes);
  // Answers leave a quarter of the bytes to what was read of files. Files come last, and without them a stream has no
  // names of native and precompiled code.
  static constexpr uint64_t kFilesPart = 4;

  bool FitsBesideFiles(uint64_t bytes);
  void Write(TapeWriter& record);

  const uint64_t max_bytes_;
  std::unique_ptr<Packer> packer_;
  uint64_t written_ = 0;
  bool full_ = false;  // of answers
  bool finished_ = false;
  uint32_t iteration_ = 0;
  absl::flat_hash_map<std::string, Asked> asked_;
  std::vector<Watched> files_;
  std::map<FileOnTape, size_t> file_numbers_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TAPE_SAVED_TAPE_H_
