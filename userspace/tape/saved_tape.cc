#include "tape/saved_tape.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "os/created_file.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {

// Packs on its way into the file, and keeps what is packed until the file may be written. The first error stays.
struct SavedTape::Packer {
  Packer(std::string name, UniqueFd to) : path(std::move(name)), file(std::move(to)) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
    block.resize(ZSTD_CStreamOutSize());
  }
  // From now on the file is written.
  void Begin() {
    if (std::exchange(began, true)) return;
    if (ftruncate(file.get(), 0) != 0) status = ErrnoError(errno, path);
    Write(std::exchange(waiting, ""));
  }
  void Put(absl::string_view bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    size_t left = 1;
    while (status.ok() && (in.pos < in.size || (mode == ZSTD_e_end && left != 0))) {
      ZSTD_outBuffer out{block.data(), block.size(), 0};
      left = ZSTD_compressStream2(context.get(), &out, &in, mode);
      if (ZSTD_isError(left)) {
        status = absl::InternalError(ZSTD_getErrorName(left));
      } else {
        Write(absl::string_view(block.data(), out.pos));
      }
    }
  }
  void Write(absl::string_view packed) {
    if (!began) {
      absl::StrAppend(&waiting, packed);
    } else if (status.ok()) {
      status = WriteAll(file.get(), packed);
    }
  }
  static constexpr int kLevel = 9;  // a stream is sent and kept; level 3 is a fifth larger

  const std::string path;
  UniqueFd file;
  std::unique_ptr<NewFile> made;  // nullptr: the file was there before
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::string block;
  bool began = false;
  std::string waiting = absl::StrCat(kTapeMagic, "z");
  absl::Status status;
};

SavedTape::SavedTape(std::unique_ptr<Packer> packer, uint64_t max_bytes)
    : max_bytes_(max_bytes), packer_(std::move(packer)) {}

SavedTape::~SavedTape() {
  if (finished_ || !packer_->began) return;
  // The file may be in a folder that this program can't write to any more (sandbox/sandbox.h).
  [[maybe_unused]] const int emptied = ftruncate(packer_->file.get(), 0);
}

absl::StatusOr<std::unique_ptr<SavedTape>> SavedTape::Create(const std::string& path, absl::string_view run,
                                                             uint64_t max_bytes) {
  std::unique_ptr<NewFile> made;
  absl::StatusOr<UniqueFd> opened = OpenCreated(path, CallerBySudo(), /*secret=*/true, made);
  if (!opened.ok()) return WithHint(opened.status(), "a file that can be written, in a folder that is there");
  struct stat status {};
  if (fstat(opened->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  // Now, since the sandbox of a run lets nobody change it (sandbox/sandbox.h).
  if (fchmod(opened->get(), 0600) != 0) return ErrnoError(errno, path);
  auto packer = std::make_unique<Packer>(path, *std::move(opened));
  packer->made = std::move(made);
  std::unique_ptr<SavedTape> tape(new SavedTape(std::move(packer), max_bytes));
  TapeWriter record;
  record.Put('R');
  record.PutText(run);
  tape->Write(record);
  return tape;
}

int SavedTape::descriptor() const { return packer_->file.get(); }

bool SavedTape::FitsBesideFiles(uint64_t bytes) {
  full_ |= written_ + bytes > max_bytes_ - max_bytes_ / kFilesPart;
  return !full_;
}

void SavedTape::Write(TapeWriter& record) {
  const std::string bytes = record.Take();
  written_ += bytes.size();
  packer_->Put(bytes, ZSTD_e_continue);
}

std::string SavedTape::Answer(absl::string_view question, absl::FunctionRef<std::string()> ask) {
  std::string answer = ask();
  if (full_) return answer;
  TapeWriter record;
  auto found = asked_.find(question);
  const bool is_new = found == asked_.end();
  if (is_new) {
    if (!FitsBesideFiles(question.size() + answer.size() + 64)) return answer;
    record.Put('Q');
    record.PutText(question);
    found = asked_.emplace(question, Asked{static_cast<uint32_t>(asked_.size()), iteration_, 0}).first;
  }
  Asked& asked = found->second;
  if (std::exchange(asked.iteration, iteration_) != iteration_) asked.before = 0;
  const uint32_t before = asked.before++;
  const uint64_t hash = absl::HashOf(answer);
  if (!is_new && asked.answer == hash) return answer;
  if (!FitsBesideFiles(answer.size() + 64)) return answer;
  asked.answer = hash;
  record.Put('A');
  record.Put(asked.number);
  record.Put(before);
  record.PutText(answer);
  Write(record);
  return answer;
}

absl::StatusOr<MappedFile> SavedTape::Map(const FileOnTape& file, int fd, uint64_t max_bytes) {
  if (const auto known = file_numbers_.find(file); known != file_numbers_.end()) {
    return MappedFile::MapLogged(fd, max_bytes, files_[known->second].log);
  }
  UniqueFd kept(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!kept.valid()) return ErrnoError(errno, "keeping a file for the stream");
  auto log = std::make_shared<PageLog>(file.size);
  file_numbers_.emplace(file, files_.size());
  files_.push_back({file, std::move(kept), log});
  return MappedFile::MapLogged(fd, max_bytes, std::move(log));
}

void SavedTape::NextIteration() {
  packer_->Begin();
  ++iteration_;
  if (full_) return;
  TapeWriter record;
  record.Put('T');
  Write(record);
}

absl::Status SavedTape::Finish() {
  finished_ = true;
  packer_->Begin();
  if (packer_->made != nullptr) packer_->made->Keep();
  // Each file has this, even where none of its parts has room.
  constexpr uint64_t kFileBytes = 1 + 4 * sizeof(uint64_t);
  std::string run(PageLog::kRunBytes, '\0');
  uint64_t left_out = 0;
  for (uint32_t number = 0; number < files_.size(); ++number) {
    const Watched& watched = files_[number];
    TapeWriter record;
    record.Put('F');
    for (const uint64_t value :
         {watched.file.device, watched.file.inode, watched.file.size, watched.file.modified_ns}) {
      record.Put(value);
    }
    Write(record);
    for (uint64_t i = 0; i < watched.log->runs(); ++i) {
      if (!watched.log->was_read(i)) continue;
      const uint64_t offset = i * PageLog::kRunBytes;
      const absl::StatusOr<size_t> read = ReadAt(watched.fd.get(), offset, std::as_writable_bytes(std::span(run)));
      if (!read.ok()) continue;
      if (written_ + *read + 64 + kFileBytes * (files_.size() - number - 1) > max_bytes_) {
        left_out += *read;
        continue;
      }
      record.Put('P');
      record.Put(number);
      record.Put(offset);
      record.PutText(absl::string_view(run).substr(0, *read));
      Write(record);
    }
  }
  TapeWriter end;
  if (!full_ && left_out == 0) end.Put('E');
  packer_->Put(end.Take(), ZSTD_e_end);
  RETURN_IF_ERROR(packer_->status);
  if (!full_ && left_out == 0) return absl::OkStatus();
  const std::string files = absl::StrCat(left_out, " bytes of files");
  const std::string missing = absl::StrCat(full_ ? "the rest of the run" : "", full_ && left_out > 0 ? ", and " : "",
                                           left_out > 0 ? files : "");
  return WithHint(
      absl::ResourceExhaustedError(absl::StrCat("the stream is full at ", max_bytes_, " bytes, and lacks ", missing)),
      "a shorter --duration, or --pid");
}

}  // namespace clrsampler
