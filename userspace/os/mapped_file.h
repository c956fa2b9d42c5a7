// A read-only view of a file that somebody else may truncate at any moment.
#ifndef CLRSAMPLER_OS_MAPPED_FILE_H_
#define CLRSAMPLER_OS_MAPPED_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "os/page_log.h"

namespace clrsampler {

// Move-only owner of a read-only mapping. When the file shrinks under the mapping, reading past its new end would kill
// the agent with SIGBUS. So would a hole of a file on a tmpfs that is full. A process-wide handler maps zeroes over the
// page and all behind it instead and marks the view as damaged, so parsers see bytes that fail their checks. Any thread
// may read; construct and destroy on any thread.
class MappedFile {
 public:
  // At a time.
  static constexpr int kMaxViews = 16'384;

  // Maps `length` bytes from `offset` (any alignment); length 0 means to the end of the file. More than `max_bytes` is
  // an error, not a truncation. `fd` is only borrowed. Unavailable: there are kMaxViews; ask again later.
  static absl::StatusOr<MappedFile> Map(int fd, uint64_t offset, uint64_t length, uint64_t max_bytes);

  // The whole file, with a log of what is read of it: each run of pages faults at the first touch, at some 2 us.
  // Threads other than those that run our code (system calls that read the view) can't touch it first.
  static absl::StatusOr<MappedFile> MapLogged(int fd, uint64_t max_bytes, std::shared_ptr<PageLog> log);

  // Takes the pages of all views out of this process's memory. Nothing is lost: they stay in the kernel's cache as long
  // as there is room, and are mapped again where they are read. For those who read much once, and little later on.
  static void DropResidentPages();

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // True once a page was missing: what was parsed from this view may be wrong and must not be trusted.
  bool damaged() const;
  // Is kept as long as the view.
  void Keep(std::shared_ptr<void> what) { kept_ = std::move(what); }

 private:
  void Release();

  void* map_ = nullptr;  // page-aligned start of the mapping
  size_t map_size_ = 0;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int guard_slot_ = -1;
  std::shared_ptr<PageLog> log_;
  std::shared_ptr<void> kept_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_MAPPED_FILE_H_
