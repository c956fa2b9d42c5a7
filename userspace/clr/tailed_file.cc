#include "clr/tailed_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "status/status.h"

namespace clrsampler {

TailCounters& TailCounters::operator+=(const TailCounters& more) {
  read_bytes += more.read_bytes;
  records += more.records;
  bad_records += more.bad_records;
  glued_lines += more.glued_lines;
  torn_tails += more.torn_tails;
  resets += more.resets;
  return *this;
}

absl::StatusOr<TailedFile::Change> TailedFile::Poll(Opener open, MonotonicTime now, bool may_reopen) {
  main_loop_.Check();
  if (!is_open()) {
    ASSIGN_OR_RETURN(OpenedFile file, open());
    return Adopt(std::move(file), now, Change::kOpened);
  }
  RETURN_IF_ERROR(file_.Refresh());
  const uint64_t size = static_cast<uint64_t>(file_.status.st_size);
  const bool removed = file_.status.st_nlink == 0;
  if (size < size_) {
    size_ = size;
    last_growth_ = now;
    first_count_ = 0;
    return Change::kReset;
  }
  if (size > size_) {
    size_ = size;
    last_growth_ = now;
    ASSIGN_OR_RETURN(const bool rewritten, IsRewritten());
    if (!rewritten) return Change::kGrown;
    first_count_ = 0;
    return Change::kReset;
  }
  if (!may_reopen || (!removed && now.ns - last_path_check_.ns < kPathCheckNs)) return Change::kNone;
  last_path_check_ = now;
  absl::StatusOr<OpenedFile> other = open();
  // Removed or out of reach: the descriptor still shows all that was written.
  if (!other.ok()) return Change::kNone;
  if (other->status.st_ino == file_.status.st_ino && other->status.st_dev == file_.status.st_dev) return Change::kNone;
  return Adopt(*std::move(other), now, Change::kReset);
}

TailedFile::Change TailedFile::Adopt(OpenedFile file, MonotonicTime now, Change change) {
  file_ = std::move(file);
  size_ = static_cast<uint64_t>(std::max<off_t>(file_.status.st_size, 0));
  last_growth_ = last_path_check_ = now;
  first_count_ = 0;
  return change;
}

absl::StatusOr<bool> TailedFile::IsRewritten() {
  if (first_count_ == 0) return false;
  std::array<std::byte, sizeof first_bytes_> now_there;
  ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(0, std::span(now_there).first(first_count_)));
  return got != first_count_ || std::memcmp(now_there.data(), first_bytes_.data(), first_count_) != 0;
}

void TailedFile::Remember(std::span<const std::byte> first_bytes) {
  main_loop_.Check();
  first_count_ = std::min(first_bytes.size(), first_bytes_.size());
  std::copy_n(first_bytes.begin(), first_count_, first_bytes_.begin());
}

std::optional<TailedFile::Change> TailedFile::PollFor(TailState state, Opener open, MonotonicTime now, bool may_reopen,
                                                      absl::Status& status, MonotonicTime& complete_until) {
  main_loop_.Check();
  const absl::StatusOr<Change> change = Poll(open, now, may_reopen);
  if (change.ok()) return *change;
  if (state == TailState::kMissing) {
    status = change.status();
  } else {
    complete_until = now;  // nothing more will be seen
  }
  return std::nullopt;
}

absl::StatusOr<size_t> TailedFile::Read(uint64_t offset, std::span<std::byte> buffer) {
  main_loop_.Check();
  if (offset >= size_) return size_t{0};
  return file_.ReadAt(offset, buffer.first(std::min<uint64_t>(buffer.size(), size_ - offset)));
}

uint64_t TailedFile::modified_ns() const {
  return static_cast<uint64_t>(file_.status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(file_.status.st_mtim.tv_nsec);
}

}  // namespace clrsampler
