// A saved run of tests/testdata/streams, played by the whole pipeline: no root, no kernel, no .NET.
#ifndef CLRSAMPLER_TESTS_UNIT_PIPELINE_PLAYED_RUN_H_
#define CLRSAMPLER_TESTS_UNIT_PIPELINE_PLAYED_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/recorder.h"
#include "tape/recorded_tape.h"

namespace clrsampler {

// The unpacked records of a stream, or of the images of a runtime; the latter are read once for all tests of a program.
std::string StreamRecords(absl::string_view file);
// The images that the stream needs: "10.0.14", or "native".
std::string ImagesOf(absl::string_view stream);

// Passes a tape on, with other answers to some questions.
class EditedTape : public Tape {
 public:
  using Edit = std::function<std::string(absl::string_view question, std::string answer)>;

  explicit EditedTape(Tape& tape) : tape_(tape) {}
  // The number of all questions that begin so.
  void ChangeAll(std::string beginning, Edit edit) { edits_.emplace_back(std::move(beginning), std::move(edit)); }

  std::string Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) override;
  absl::StatusOr<MappedFile> Map(const FileOnTape& file, int fd, uint64_t max_bytes) override {
    return tape_.Map(file, fd, max_bytes);
  }
  void NextIteration() override { tape_.NextIteration(); }
  bool plays() const override { return true; }
  bool ended() const override { return tape_.ended(); }

 private:
  Tape& tape_;
  std::vector<std::pair<std::string, Edit>> edits_;
};

class PlayedRun {
 public:
  // A stream by its name. Fails the test where it can't be read.
  explicit PlayedRun(absl::string_view stream);

  RecordOptions options;  // of the recording; may be changed before Play
  RecordedTape& recorded() { return *recorded_; }
  EditedTape& tape() { return *edited_; }

  absl::Status Play(const std::function<void(const RecordProgress&)>& progress = nullptr);
  Recorder& recorder() { return *recorder_; }
  const Account& account() const { return recorder_->account(); }
  std::string Folded() const;

 private:
  std::unique_ptr<RecordedTape> recorded_;
  std::unique_ptr<EditedTape> edited_;
  std::unique_ptr<Recorder> recorder_;
};

// The folded text that the recording itself wrote when the stream was saved.
std::string FoldedOf(absl::string_view stream);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_PIPELINE_PLAYED_RUN_H_
