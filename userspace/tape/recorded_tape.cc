#include "tape/recorded_tape.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {

RecordedTape::RecordedTape(std::string records) : records_(std::move(records)), content_(ParseTape(records_)) {
  for (size_t i = 0; i < content_.questions.size(); ++i) questions_.emplace(content_.questions[i].text, Asked{i});
  Index(content_);
}

void RecordedTape::AddFiles(std::string records) {
  auto& [kept, content] = more_.emplace_back(std::move(records), TapeContent());
  content = ParseTape(kept);
  Index(content);
}

void RecordedTape::Index(const TapeContent& content) {
  for (const TapeFile& file : content.files) files_.emplace(file.file, &file);
}

void RecordedTape::Miss(absl::string_view question) {
  if (missing_++ == 0) first_missing_ = std::string(question);
}

namespace {

// The programs that saved the first streams did not ask these two: the mounts of a process, and the host's file at a
// path that a target names. No answer means that everything is shared, as it was then.
bool MayBeUnasked(absl::string_view question) {
  return absl::StartsWith(question, "mounts of ") ||
         (absl::StartsWith(question, "open ") && absl::StrContains(question, " host "));
}

}  // namespace

// The answer of that moment is the one of the same iteration, and of the same number of questions; else the last one
// before it. A question that comes earlier than any answer gets the first.
std::string RecordedTape::Answer(absl::string_view question, absl::FunctionRef<std::string()>) {
  const auto found = questions_.find(question);
  if (found == questions_.end() || content_.questions[found->second.number].answers.empty()) {
    if (!MayBeUnasked(question)) Miss(question);
    return "";
  }
  Asked& asked = found->second;
  if (std::exchange(asked.iteration, iteration_) != iteration_) asked.before = 0;
  const std::pair<uint32_t, uint32_t> now{iteration_, asked.before++};
  const std::vector<TapeAnswer>& answers = content_.questions[asked.number].answers;
  auto next = std::upper_bound(answers.begin(), answers.end(), now, [](const auto& time, const TapeAnswer& answer) {
    return time < std::pair(answer.iteration, answer.asked_before);
  });
  if (next != answers.begin()) --next;
  return std::string(next->bytes);
}

absl::StatusOr<MappedFile> RecordedTape::Map(const FileOnTape& file, int, uint64_t max_bytes) {
  const auto found = files_.find(file);
  if (found == files_.end()) {
    Miss(absl::StrCat("a file of ", file.size, " bytes"));
    return absl::NotFoundError("its content is not in the stream");
  }
  if (file.size > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(file.size, " bytes, more than the limit of ", max_bytes));
  }
  // Ranges that were not read at that time read as zeroes, and take no memory.
  const UniqueFd content(memfd_create("stream", MFD_CLOEXEC));
  if (!content.valid()) return ErrnoError(errno, "memfd_create");
  if (ftruncate(content.get(), static_cast<off_t>(file.size)) != 0) return ErrnoError(errno, "ftruncate");
  for (const auto& [offset, bytes] : found->second->pages) {
    if (pwrite(content.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
      return ErrnoError(errno, "pwrite");
    }
  }
  return MappedFile::Map(content.get(), 0, 0, max_bytes);
}

}  // namespace clrsampler
