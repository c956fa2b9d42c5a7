#include "store/history.h"

#include <atomic>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "status/status.h"
#include "store/history_file.h"
#include "store/history_readers.h"
#include "store/history_writer.h"

namespace clrsampler {
namespace {

constexpr uint64_t kMinBytes = uint64_t{1} << 20;

class StoredHistory final : public History {
 public:
  StoredHistory(HistoryFile file, const HistoryLimits& limits, std::function<void(const std::string&)> said)
      : file_(std::move(file)), limits_(limits), said_(std::move(said)), readers_(file_) {}

  // A damaged file is set aside once. A new one that is damaged at once is the disk's fault, and an error.
  absl::Status Start() {
    absl::Status status = OpenWriter();
    if (absl::IsDataLoss(status)) status = BeginAnew(status);
    return status;
  }

  absl::Status Append(const Window& window) override {
    return Write([&](HistoryWriter& writer) { return writer.Append(window); });
  }

  absl::StatusOr<bool> Maintain(uint64_t now_unix_ns) override {
    bool more = false;
    RETURN_IF_ERROR(Write([&](HistoryWriter& writer) {
      const absl::StatusOr<bool> done = writer.Maintain(now_unix_ns);
      more = done.ok() && *done;
      return done.status();
    }));
    return more;
  }

  absl::StatusOr<HistorySpan> Span() override {
    absl::StatusOr<HistorySpan> span = readers_.Ask<HistorySpan>([](HistoryReader& reader) { return reader.Span(); });
    if (span.ok()) {
      span->bytes = file_.bytes();
      span->dictionary_bytes = dictionary_bytes_;
      span->damaged_parts = readers_.damaged_parts() + damaged_in_writing_;
    }
    return span;
  }
  absl::StatusOr<ProfileModel> Profile(const HistorySelection& selection, ProfileView view) override {
    return readers_.Ask<ProfileModel>([&](HistoryReader& reader) { return reader.Profile(selection, view); });
  }
  absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection& selection, TimelineBy by, size_t max_steps,
                                                size_t max_series) override {
    return readers_.Ask<clrsampler::Timeline>(
        [&](HistoryReader& reader) { return reader.Timeline(selection, by, max_steps, max_series); });
  }
  absl::StatusOr<HistoryLanes> Lanes(const HistorySelection& selection, const LaneQuestion& question) override {
    return readers_.Ask<HistoryLanes>([&](HistoryReader& reader) { return reader.Lanes(selection, question); });
  }
  absl::StatusOr<HistoryPauses> Pauses(const HistorySelection& selection, size_t limit) override {
    return readers_.Ask<HistoryPauses>([&](HistoryReader& reader) { return reader.Pauses(selection, limit); });
  }
  absl::StatusOr<HistoryMethods> Methods(const HistorySelection& selection, size_t limit) override {
    return readers_.Ask<HistoryMethods>([&](HistoryReader& reader) { return reader.Methods(selection, limit); });
  }
  absl::StatusOr<HistoryHealth> Health(uint64_t from_unix_ns, uint64_t to_unix_ns) override {
    return readers_.Ask<HistoryHealth>([&](HistoryReader& reader) { return reader.Health(from_unix_ns, to_unix_ns); });
  }
  void EndQuestions() override { readers_.End(); }

 private:
  absl::Status OpenWriter() {
    ASSIGN_OR_RETURN(writer_, HistoryWriter::Open(file_, limits_));
    return absl::OkStatus();
  }

  absl::Status BeginAnew(const absl::Status& why) {
    writer_ = nullptr;
    const absl::StatusOr<std::string> aside = file_.SetAside();
    if (!aside.ok()) return Annotate(aside.status(), absl::StrCat("the history is damaged (", why.message(), ")"));
    readers_.Renew();
    said_(absl::StrCat("the history is damaged (", why.message(), "): it is set aside as ", *aside,
                       ", and a new one begins"));
    return OpenWriter();
  }

  // The writer's work. If the file turns out to be damaged, the work is begun again with a new file.
  absl::Status Write(absl::FunctionRef<absl::Status(HistoryWriter&)> work) {
    if (writer_ == nullptr) RETURN_IF_ERROR(Start());  // an earlier try failed
    absl::Status status = readers_.damage_seen() ? absl::DataLossError("met by a question") : work(*writer_);
    if (absl::IsDataLoss(status)) {
      RETURN_IF_ERROR(BeginAnew(status));
      status = work(*writer_);
    }
    damaged_in_writing_ = writer_ == nullptr ? 0 : writer_->damaged_parts();
    dictionary_bytes_ = writer_ == nullptr ? 0 : writer_->dictionary_bytes();
    return status;
  }

  const HistoryFile file_;
  const HistoryLimits limits_;
  const std::function<void(const std::string&)> said_;
  HistoryReaders readers_;
  std::unique_ptr<HistoryWriter> writer_;  // nullptr: it could not be opened again
  std::atomic<uint64_t> damaged_in_writing_ = 0;
  std::atomic<uint64_t> dictionary_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<History>> History::Open(const std::string& path, const HistoryLimits& limits,
                                                       const std::function<void(const std::string&)>& said) {
  if (limits.max_bytes < kMinBytes) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("a history of at most ", limits.max_bytes, " bytes")),
                    "give it 1 MiB or more");
  }
  ASSIGN_OR_RETURN(HistoryFile file, HistoryFile::Claim(path));
  auto history = std::make_unique<StoredHistory>(std::move(file), limits, said);
  const absl::Status started = history->Start();
  if (absl::IsResourceExhausted(started)) {
    said(
        absl::StrCat("the history can't be written yet (", started.message(), "): it is tried again with each window"));
  } else {
    RETURN_IF_ERROR(started);
  }
  return history;
}

}  // namespace clrsampler
