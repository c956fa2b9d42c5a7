// Plays a saved run: answers are those of the machine on which it was saved, and nothing is asked of this one.
#ifndef CLRSAMPLER_TAPE_RECORDED_TAPE_H_
#define CLRSAMPLER_TAPE_RECORDED_TAPE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "os/tape.h"
#include "tape/tape_format.h"

namespace clrsampler {

// One thread.
class RecordedTape : public Tape {
 public:
  // `records`: of UnpackTape. A tape that ends early is played to its end.
  explicit RecordedTape(std::string records);

  // Files that are on another tape, as those of all streams of a runtime may be. `records`: as above.
  void AddFiles(std::string records);

  absl::string_view run() const { return content_.run; }
  bool whole() const { return content_.whole; }
  // Questions that are not on the tape: the program that plays it asks for more than the one that saved it.
  uint64_t missing() const { return missing_; }
  // The first of them; "": there is none.
  const std::string& first_missing() const { return first_missing_; }

  std::string Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) override;
  absl::StatusOr<MappedFile> Map(const FileOnTape& file, int fd, uint64_t max_bytes) override;
  void NextIteration() override { ++iteration_; }
  bool plays() const override { return true; }
  bool ended() const override { return iteration_ > content_.iterations; }

 private:
  struct Asked {
    size_t number;
    uint32_t iteration = 0;
    uint32_t before = 0;  // how often in that iteration
  };

  void Index(const TapeContent& content);
  void Miss(absl::string_view question);

  const std::string records_;
  const TapeContent content_;
  std::deque<std::pair<std::string, TapeContent>> more_;
  absl::flat_hash_map<absl::string_view, Asked> questions_;
  std::map<FileOnTape, const TapeFile*> files_;
  uint32_t iteration_ = 0;
  uint64_t missing_ = 0;
  std::string first_missing_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TAPE_RECORDED_TAPE_H_
