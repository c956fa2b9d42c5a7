#include "symbols/native_lines/native_lines.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "os/unique_fd.h"

namespace clrsampler {
namespace {

bool IsSame(const struct stat& status, const ImageFile& file) {
  return S_ISREG(status.st_mode) && status.st_dev == file.device && status.st_ino == file.inode &&
         static_cast<uint64_t>(status.st_size) == file.size;
}

UniqueFd Same(absl::StatusOr<OpenedFile> opened, const ImageFile& file) {
  // A question that may wait has no descriptor to read from.
  if (!opened.ok() || opened->may_wait || !IsSame(opened->status, file)) return UniqueFd();
  return std::move(opened->fd);
}

// The file that symbols are read from. Images are mapped, and their descriptors closed. Another file may lie under the
// same path by now, and is not meant.
UniqueFd OpenAgain(const Process& process, const Mapping& mapping, const ElfSymbolsSource::LinePlace& place) {
  const ImageFile& file = *place.file;
  if (place.fetched) {
    UniqueFd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    return fd.valid() && fstat(fd.get(), &status) == 0 && IsSame(status, file) ? std::move(fd) : UniqueFd();
  }
  if (UniqueFd fd = Same(process.files.OpenMapping(mapping), file); fd.valid()) return fd;
  if (UniqueFd fd = Same(process.files.OpenOnHost(file.path), file); fd.valid()) return fd;
  return Same(process.files.OpenImage(file.path), file);
}

}  // namespace

std::optional<uint64_t> NativeLines::FileNumber(const Process& process, const Mapping& mapping,
                                                const ElfSymbolsSource::LinePlace& place) {
  const auto known = files_.find(place.file.get());
  if (known != files_.end() && !known->second.image.expired()) return known->second.number;
  if (files_.size() >= LineAnswers::kMaxFiles) DropUnused();
  asked_.Of(process);
  UniqueFd fd = OpenAgain(process, mapping, place);
  File file{place.file, std::nullopt};
  if (fd.valid()) file.number = answers_.AddFile(std::move(fd), place.file->path);
  return (files_[place.file.get()] = std::move(file)).number;
}

void NativeLines::DropUnused() {
  main_loop_.Check();
  absl::erase_if(files_, [this](const auto& entry) {
    const File& file = entry.second;
    if (!file.image.expired()) return false;
    if (file.number) answers_.DropFile(*file.number);
    return true;
  });
}

void NativeLines::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  for (const uint64_t address : sample.addresses) {
    const Mapping* const mapping = process.mappings.Find(address);
    if (mapping == nullptr) continue;
    const std::optional<ElfSymbolsSource::LinePlace> place = elf_.LinePlaceOf(process, *mapping, address);
    if (!place) continue;
    if (const auto number = FileNumber(process, *mapping, *place)) {
      answers_.Ask(*number, place->address.value, sample.time);
    }
  }
}

std::optional<SourcePlace> NativeLines::PlaceOf(const FrameQuery& query) {
  main_loop_.Check();
  if (query.mapping == nullptr) return std::nullopt;
  const auto place = elf_.LinePlaceOf(query.process, *query.mapping, query.lookup_address);
  if (!place) return std::nullopt;
  const std::optional<uint64_t> number = FileNumber(query.process, *query.mapping, *place);
  return number ? answers_.Get(*number, place->address.value) : std::nullopt;
}

}  // namespace clrsampler
