// Everything that is decoded of all PDBs together: a bounded number of bytes on the heap, of which the least recently
// used go.
#ifndef CLRSAMPLER_CLR_LINES_LINE_MEMORY_H_
#define CLRSAMPLER_CLR_LINES_LINE_MEMORY_H_

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Main loop only. Outlives its parts, and what Keep gives out.
class LineMemory {
 public:
  // `serve` may take 64 MB for lines, and the allocator loses some of it between parts of all sizes (lines_bench).
  static constexpr size_t kMaxBytes = 32 << 20;

  // Something that can be decoded again.
  class Part {
   public:
    explicit Part(LineMemory& memory) : memory_(memory), place_(memory.by_use_.insert(memory.by_use_.end(), this)) {}
    virtual ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    size_t heap_bytes() const { return bytes_; }

   protected:
    // The part has just been used, and takes so many bytes now. Where all of them take too much, others are freed.
    void Used(size_t bytes);

   private:
    friend class LineMemory;
    virtual void Free() = 0;  // all that it holds

    LineMemory& memory_;
    size_t bytes_ = 0;
    std::list<Part*>::iterator place_;
  };

  explicit LineMemory(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // A copy that stays until the last owner is gone. ResourceExhausted: a quarter of all is taken by such copies.
  absl::StatusOr<std::shared_ptr<const std::vector<std::byte>>> Keep(std::span<const std::byte> bytes);

  size_t bytes() const { return bytes_; }

 private:
  const size_t max_bytes_;
  size_t bytes_ = 0;         // of parts and copies
  size_t kept_ = 0;          // of these: copies
  std::list<Part*> by_use_;  // least recently used first
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_LINES_LINE_MEMORY_H_
