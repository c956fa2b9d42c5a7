#include "os/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// The handler can only use memory that is never freed and atomics, hence a fixed table. An image is mapped once for all
// processes; composites of 200 components are the largest users. The kernel allows 65,530 mappings (vm.max_map_count).
constexpr int kMaxViews = MappedFile::kMaxViews;
struct View {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: free
  std::atomic<bool> damaged{false};
  std::atomic<PageLog*> log{nullptr};
};
View views[kMaxViews];
std::mutex views_mutex;  // Map and Release may meet from the main loop and the image worker; the handler never takes it
struct sigaction previous_action, previous_segment_action;
uintptr_t page_bytes;

View* ViewAt(uintptr_t address) {
  for (View& view : views) {
    if (address >= view.begin.load(std::memory_order_relaxed) && address < view.end.load(std::memory_order_acquire)) {
      return &view;
    }
  }
  return nullptr;
}

bool ShowZeroes(uintptr_t begin, uintptr_t end) {
  void* const map = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  return mmap(map, end - begin, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void OnBusError(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (View* view = ViewAt(address)) {
    // One mapping takes the rest of the view. A mapping for each page would reach the kernel's limit on mappings
    // (vm.max_map_count) in a file with many holes. A view of huge pages can be replaced as a whole only.
    const uintptr_t end = view->end.load(std::memory_order_relaxed);
    if (ShowZeroes(address & ~(page_bytes - 1), end) || ShowZeroes(view->begin.load(std::memory_order_relaxed), end)) {
      view->damaged.store(true, std::memory_order_relaxed);
      return;
    }
  }
  // The fault is not ours, so it kills the process as it would have.
  sigaction(SIGBUS, &previous_action, nullptr);
}

// The first touch of a run of a logged view.
void OnSegmentFault(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (View* view = ViewAt(address)) {
    const uintptr_t begin = view->begin.load(std::memory_order_relaxed),
                    end = view->end.load(std::memory_order_relaxed);
    if (PageLog* log = view->log.load(std::memory_order_relaxed)) {
      const uint64_t run = (address - begin) / PageLog::kRunBytes;
      const uintptr_t first = begin + run * PageLog::kRunBytes;
      log->Note(run);
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      if (mprotect(reinterpret_cast<void*>(first), std::min<uint64_t>(PageLog::kRunBytes, end - first), PROT_READ) ==
          0) {
        return;
      }
      // Too many pieces: from here on all of it counts as read.
      if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) == 0) {  // NOLINT(performance-no-int-to-ptr)
        for (uint64_t i = 0; i < log->runs(); ++i) log->Note(i);
        return;
      }
    }
  }
  sigaction(SIGSEGV, &previous_segment_action, nullptr);
}

void InstallHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::MapLogged(int fd, uint64_t max_bytes, std::shared_ptr<PageLog> log) {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = OnSegmentFault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous_segment_action);
  });
  absl::StatusOr<MappedFile> file = Map(fd, 0, 0, max_bytes);
  if (!file.ok() || file->map_ == nullptr) return file;
  views[file->guard_slot_].log.store(log.get(), std::memory_order_relaxed);
  file->log_ = std::move(log);
  if (mprotect(file->map_, file->map_size_, PROT_NONE) != 0) return ErrnoError(errno, "mprotect");
  return file;
}

absl::StatusOr<MappedFile> MappedFile::Map(int fd, uint64_t offset, uint64_t length, uint64_t max_bytes) {
  InstallHandler();
  struct stat status {};
  if (fstat(fd, &status) != 0) return ErrnoError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return absl::FailedPreconditionError("not a regular file");
  const uint64_t file_bytes = static_cast<uint64_t>(status.st_size);
  if (offset > file_bytes)
    return absl::OutOfRangeError(absl::StrCat("offset ", offset, " is behind the end of the file"));
  if (length == 0) length = file_bytes - offset;
  if (length > file_bytes - offset) return absl::OutOfRangeError("the range ends behind the end of the file");
  if (length > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(length, " bytes, more than the limit of ", max_bytes));
  }
  MappedFile file;
  if (length == 0) return file;
  const uint64_t skew = offset % page_bytes;
  // The mapping is shared, though nobody writes. The kernel puts the breakpoints of uprobes, ours or another tool's,
  // into every private mapping of the file that could be executed (valid_vma, kernel/events/uprobes.c). A private
  // mapping would then read them.
  void* map = mmap(nullptr, length + skew, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset - skew));
  if (map == MAP_FAILED) return ErrnoError(errno, "mmap");
  file.map_ = map;
  file.map_size_ = length + skew;
  file.data_ = static_cast<const std::byte*>(map) + skew;
  file.size_ = length;
  std::lock_guard<std::mutex> lock(views_mutex);
  for (int slot = 0; slot < kMaxViews; ++slot) {
    if (views[slot].end.load(std::memory_order_relaxed) != 0) continue;
    views[slot].damaged.store(false, std::memory_order_relaxed);
    views[slot].log.store(nullptr, std::memory_order_relaxed);
    views[slot].begin.store(reinterpret_cast<uintptr_t>(map), std::memory_order_relaxed);
    views[slot].end.store(reinterpret_cast<uintptr_t>(map) + file.map_size_, std::memory_order_release);
    file.guard_slot_ = slot;
    return file;
  }
  // Views go with the processes that they are of.
  return absl::UnavailableError("too many files are mapped at the moment");
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    Release();
    map_ = std::exchange(other.map_, nullptr);
    map_size_ = std::exchange(other.map_size_, 0);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    guard_slot_ = std::exchange(other.guard_slot_, -1);
    log_ = std::move(other.log_);
    kept_ = std::move(other.kept_);
  }
  return *this;
}

MappedFile::~MappedFile() { Release(); }

bool MappedFile::damaged() const {
  return guard_slot_ >= 0 && views[guard_slot_].damaged.load(std::memory_order_relaxed);
}

void MappedFile::Release() {
  if (map_ == nullptr) return;
  // This comes first: another mapping may get the addresses at once.
  if (guard_slot_ >= 0) {
    std::lock_guard<std::mutex> lock(views_mutex);
    views[guard_slot_].end.store(0, std::memory_order_release);
    guard_slot_ = -1;
  }
  munmap(std::exchange(map_, nullptr), map_size_);
}

void MappedFile::DropResidentPages() {
  std::lock_guard<std::mutex> lock(views_mutex);
  for (const View& view : views) {
    const uintptr_t begin = view.begin.load(std::memory_order_relaxed), end = view.end.load(std::memory_order_relaxed);
    if (end != 0)
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
  }
}

}  // namespace clrsampler
