#include "process/image_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "os/digest.h"
#include "os/tape_answer.h"
#include "process/own_vdso.h"
#include "status/status.h"

namespace clrsampler {

namespace {

uint64_t NsOf(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kSecondNs + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

bool IsSameFile(const ImageFile& a, const ImageFile& b) {
  constexpr size_t kPage = 4096;
  if (a.inode != b.inode || a.size != b.size || a.modified_ns != b.modified_ns) return false;
  if (a.device == b.device) return true;
  if (a.changed_ns != b.changed_ns) return false;
  const std::span<const std::byte> first = a.bytes().first(std::min(kPage, a.bytes().size()));
  const std::span<const std::byte> second = b.bytes().first(std::min(kPage, b.bytes().size()));
  return a.overlay && b.overlay && std::equal(first.begin(), first.end(), second.begin(), second.end());
}

std::string IdentityText(const ImageFile& file) {
  return absl::StrCat(file.device, ":", file.inode, ":", file.size, ":", file.modified_ns, ":", file.changed_ns);
}

std::weak_ptr<const ImageFile>& ImageFiles::SlotOf(const Identity& identity) {
  if (by_identity_.size() >= purge_at_) {
    absl::erase_if(by_identity_, [](const auto& entry) { return entry.second.expired(); });
    purge_at_ = 2 * by_identity_.size() + 64;
  }
  return by_identity_[identity];
}

absl::StatusOr<std::shared_ptr<const ImageFile>> ImageFiles::Share(absl::StatusOr<OpenedFile> opened,
                                                                   absl::string_view path) {
  if (!opened.ok()) return opened.status();
  const struct stat& status = opened->status;
  const Identity identity{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), NsOf(status.st_mtim),
                          NsOf(status.st_ctim)};
  // The server of a FUSE file system says what it likes about its files, also below an overlay. The numbers of such
  // devices are used again. Only root mounts network file systems.
  const bool is_shared = !opened->may_wait || (!opened->fuse && !opened->overlay);
  if (is_shared) {
    if (std::shared_ptr<const ImageFile> shared = SlotOf(identity).lock()) return shared;
  }
  absl::StatusOr<MappedFile> content = opened->Map(kMaxImageBytes);
  if (!content.ok()) return Annotate(content.status(), path);
  auto file = std::make_shared<ImageFile>();
  file->path = std::string(path);
  file->device = identity.device;
  file->inode = identity.inode;
  file->size = identity.size;
  file->modified_ns = identity.modified_ns;
  file->changed_ns = opened->metacopy ? 0 : identity.changed_ns;
  file->overlay = opened->on_overlay();
  file->content = *std::move(content);
  if (is_shared) SlotOf(identity) = file;
  return std::shared_ptr<const ImageFile>(std::move(file));
}

ImageFiles::Result ImageFiles::Remembered(const Process& process, absl::string_view key, absl::string_view path,
                                          absl::FunctionRef<absl::StatusOr<OpenedFile>()> open) {
  main_loop_.Check();
  OfProcess& known = by_process_.Of(process);
  const auto found = known.answers.find(key);
  if (found != known.answers.end()) {
    const Known& answer = found->second;
    if (answer.again == MonotonicTime::Max() || clock_.Now() < answer.again) return answer.result;
    known.answers.erase(found);  // a failure
  }
  if (known.files >= kMaxFilesPerProcess) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": process ", process.key.tgid, " has more than ", kMaxFilesPerProcess, " image files"));
  }
  Result result = Share(open(), path);
  Remember(known, key, result);
  return result;
}

void ImageFiles::Remember(OfProcess& known, absl::string_view key, const Result& result) {
  if (result.ok()) {
    ++known.files;
  } else if (known.failures() >= kMaxFailuresPerProcess) {
    absl::erase_if(known.answers, [](const auto& entry) { return !entry.second.result.ok(); });
  }
  Known answer{result};
  // As of the end of the try, which may have taken long.
  if (absl::IsUnavailable(result.status())) answer.again.ns = clock_.Now().ns + kAskAgainNs;
  known.answers.try_emplace(key, std::move(answer));
}

ImageFiles::Result ImageFiles::Get(const Process& process, const Mapping& mapping) {
  // The inode is part of the key: after an upgrade in place the same path can be mapped with two contents.
  const std::string key =
      absl::StrCat(mapping.path, "\n", mapping.inode, "\n", mapping.device_major, ":", mapping.device_minor);
  return Remembered(process, key, mapping.path, [&] { return process.files.OpenMapping(mapping); });
}

ImageFiles::Result ImageFiles::GetByPath(const Process& process, absl::string_view path) {
  return Remembered(process, path, path, [&] { return process.files.OpenImage(path); });
}

ImageFiles::Result ImageFiles::GetOnce(const Process& process, absl::string_view path) {
  main_loop_.Check();
  return Share(process.files.OpenImage(path), path);
}

absl::StatusOr<std::shared_ptr<const ImageFile>> ImageFiles::GetOnHost(const Process& process,
                                                                       const std::string& path) {
  main_loop_.Check();
  return Share(process.files.OpenOnHost(path), path);
}

std::string ImageFiles::HashOf(const ImageFile& file) {
  main_loop_.Check();
  if (tape_ != nullptr) return "";
  if (!file.hash) file.hash = HeadTailLengthHash(file.bytes());
  return file.content.damaged() ? "" : *file.hash;
}

std::span<const std::byte> ImageFiles::Vdso() {
  main_loop_.Check();
  if (!vdso_) vdso_ = Taped(tape_, OwnVdso, "vdso");
  return *vdso_;
}

}  // namespace clrsampler
