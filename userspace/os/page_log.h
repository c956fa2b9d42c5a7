// The pages of a mapped file that were read.
#ifndef CLRSAMPLER_OS_PAGE_LOG_H_
#define CLRSAMPLER_OS_PAGE_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace clrsampler {

// Filled by MappedFile while views exist, also from a signal handler; read by anybody at any time.
class PageLog {
 public:
  // Runs of four pages: a stricter log would split a mapping into more pieces than the kernel allows.
  static constexpr uint64_t kRunBytes = 16 * 1024;

  explicit PageLog(uint64_t file_bytes)
      : runs_((file_bytes + kRunBytes - 1) / kRunBytes), read_(new std::atomic<bool>[runs_]()) {}

  uint64_t runs() const { return runs_; }
  void Note(uint64_t run) {
    if (run < runs_) read_[run].store(true, std::memory_order_relaxed);
  }
  bool was_read(uint64_t run) const { return run < runs_ && read_[run].load(std::memory_order_relaxed); }

 private:
  uint64_t runs_;
  std::unique_ptr<std::atomic<bool>[]> read_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_PAGE_LOG_H_
