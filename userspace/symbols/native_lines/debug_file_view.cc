#include "symbols/native_lines/debug_file_view.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "status/status.h"

namespace clrsampler {
namespace {

// The file's headers are known to lie inside of it. The other pages stay the file's, so they do not count as memory of
// this process, which is limited.
bool MakeHeadersWritable(std::span<char> file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  const uint64_t begin = header.e_shoff & ~(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) - 1);
  const uint64_t end = header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  return mprotect(file.data() + begin, end - begin, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace

absl::StatusOr<DebugFileView> DebugFileView::Map(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return ErrnoError(errno, "it can't be looked at");
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) return absl::DataLossError("it is no file with content");
  const auto size = static_cast<size_t>(status.st_size);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (map == MAP_FAILED) return ErrnoError(errno, "it can't be mapped");
  DebugFileView view({static_cast<char*>(map), size});
  view.sections_ = ListDebugSections(std::as_bytes(view.bytes()));
  if (view.sections_.empty()) return absl::DataLossError("its headers tell of no debug section");
  if (!MakeHeadersWritable(view.bytes())) return ErrnoError(errno, "its headers can't be copied");
  return view;
}

DebugFileView::~DebugFileView() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

const DebugSection* DebugFileView::Find(absl::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const auto& one) { return one.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

void DebugFileView::ShowOnly(std::span<const absl::string_view> names) {
  constexpr uint32_t kNoBytes = SHT_NOBITS;
  for (const DebugSection& section : sections_) {
    if (std::find(names.begin(), names.end(), section.name) != names.end()) continue;
    std::memcpy(bytes_.data() + section.type_at, &kNoBytes, sizeof kNoBytes);
  }
}

}  // namespace clrsampler
