#include "unit/pipeline/played_run.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/file_io.h"
#include "output/folded.h"
#include "profile/run_model.h"
#include "status/status.h"
#include "tape/run_json.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

constexpr size_t kMaxFileBytes = 64 << 20;

std::string Contents(absl::string_view file) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile(TestData(absl::StrCat("streams/", file)), kMaxFileBytes);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

}  // namespace

std::string StreamRecords(absl::string_view file) {
  static auto& images = *new std::map<std::string, std::string>;
  const bool kept = absl::EndsWith(file, ".images");
  if (kept) {
    if (const auto known = images.find(std::string(file)); known != images.end()) return known->second;
  }
  const absl::StatusOr<std::string> records = UnpackTape(Contents(file));
  EXPECT_TRUE(records.ok()) << file << ": " << records.status();
  if (kept && records.ok()) images.emplace(file, *records);
  return records.value_or("");
}

std::string ImagesOf(absl::string_view stream) {
  if (stream == "steady-8") return "8.0.30";
  if (stream == "steady-9") return "9.0.19";
  const bool native = stream == "threads-end" || stream == "exec-and-fork" || stream == "hundred-short";
  return native ? "native" : "10.0.14";
}

std::string EditedTape::Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) {
  std::string answer = tape_.Answer(question, ask);
  for (const auto& [beginning, edit] : edits_) {
    if (absl::StartsWith(question, beginning)) answer = edit(question, std::move(answer));
  }
  return answer;
}

PlayedRun::PlayedRun(absl::string_view stream)
    : recorded_(std::make_unique<RecordedTape>(StreamRecords(absl::StrCat(stream, ".stream")))),
      edited_(std::make_unique<EditedTape>(*recorded_)) {
  recorded_->AddFiles(StreamRecords(absl::StrCat(ImagesOf(stream), ".images")));
  absl::StatusOr<RecordOptions> of_run = ParseRunJson(recorded_->run());
  EXPECT_TRUE(of_run.ok()) << of_run.status();
  if (of_run.ok()) options = *std::move(of_run);
}

absl::Status PlayedRun::Play(const std::function<void(const RecordProgress&)>& progress) {
  options.tape = edited_.get();
  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Create(options);
  RETURN_IF_ERROR(recorder.status());
  recorder_ = *std::move(recorder);
  return recorder_->Run(progress);
}

std::string PlayedRun::Folded() const {
  ProfileMeta meta;
  meta.whole_host = options.pids.empty() && options.command.empty();
  const absl::StatusOr<ProfileModel> model = CountedRunModel(recorder_->frames(), recorder_->stacks(), std::move(meta));
  EXPECT_TRUE(model.ok()) << model.status();
  std::string text;
  if (model.ok()) {
    EXPECT_TRUE(FoldedWriter()
                    .Write(*model,
                           [&](absl::string_view part) {
                             absl::StrAppend(&text, part);
                             return absl::OkStatus();
                           })
                    .ok());
  }
  return text;
}

std::string FoldedOf(absl::string_view stream) { return Contents(absl::StrCat(stream, ".folded")); }

}  // namespace clrsampler
