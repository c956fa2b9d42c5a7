// The reader's side of a BPF ring buffer (kernel/bpf/ringbuf.c).
#ifndef CLRSAMPLER_CAPTURE_RING_READER_H_
#define CLRSAMPLER_CAPTURE_RING_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace clrsampler {

using RecordFunction = absl::FunctionRef<void(std::span<const std::byte> record)>;

// Walks committed records of `data`, which is `size` bytes (a power of two) followed by the same bytes mapped again.
// Pure.
class RingCursor {
 public:
  RingCursor() = default;
  // From position `from` up to `to`.
  RingCursor(const std::byte* data, size_t size, uint64_t from, uint64_t to)
      : data_(data), size_(size), at_(from), to_(to) {}

  // The record here, behind those that the writer gave up; nullptr: there is none, or it is still being written.
  const std::span<const std::byte>* Next();
  // Goes on behind it.
  void Pop() { at_ = next_; }
  uint64_t position() const { return at_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t at_ = 0;
  uint64_t to_ = 0;
  uint64_t next_ = 0;
  std::span<const std::byte> record_;
};

// Move-only owner of the mappings of one ring buffer map. One thread reads.
class RingReader {
 public:
  // `map_fd` is borrowed and must live as long; `ring_bytes` is the map's max_entries.
  static absl::StatusOr<RingReader> Map(int map_fd, size_t ring_bytes);

  RingReader() = default;
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  ~RingReader();

  // Reading begins, with the records that are there now.
  void Begin();
  // As RingCursor's. The span is valid until Pop.
  const std::span<const std::byte>* Next() { return cursor_.Next(); }
  void Pop();
  // Reading ends: what was popped has been read.
  void End();
  // Bytes that wait to be read.
  size_t waiting() const;

 private:
  void Unmap();

  std::byte* consumer_ = nullptr;        // one page: the reader's position
  const std::byte* producer_ = nullptr;  // one page: the writers' position; then twice the data
  size_t size_ = 0;
  size_t page_ = 0;
  RingCursor cursor_;
  uint64_t released_ = 0;  // the position up to which writers have their room back
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_RING_READER_H_
