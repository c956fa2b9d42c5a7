// The reader's side of a BPF ring buffer (kernel/bpf/ringbuf.c), with a budget.
#ifndef CLRSAMPLER_CAPTURE_RING_READER_H_
#define CLRSAMPLER_CAPTURE_RING_READER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace clrsampler {

using RecordFunction = absl::FunctionRef<void(std::span<const std::byte> record)>;

// Reads committed records from `data`, which is `size` bytes (a power of two) followed by the same bytes mapped again,
// from position `from` up to `to`. Stops at a record that is still being written and after `max_bytes`. Returns the new
// position. Pure apart from the callback.
uint64_t ReadRing(const std::byte* data, size_t size, uint64_t from, uint64_t to, size_t max_bytes,
                  RecordFunction on_record);

// Move-only owner of the mappings of one ring buffer map. One thread reads.
class RingReader {
 public:
  // `map_fd` is borrowed and must live as long; `ring_bytes` is the map's max_entries.
  static absl::StatusOr<RingReader> Map(int map_fd, size_t ring_bytes);

  RingReader() = default;
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  ~RingReader();

  // Hands over, in order, the records that were there when it was called, but no more than about `max_bytes` of them.
  // The span is valid during the call. Returns the number of bytes read, record headers included.
  size_t Drain(RecordFunction on_record, size_t max_bytes = std::numeric_limits<size_t>::max());
  // Bytes that wait to be read.
  size_t waiting() const;

 private:
  void Release();

  std::byte* consumer_ = nullptr;        // one page: the reader's position
  const std::byte* producer_ = nullptr;  // one page: the writers' position; then twice the data
  size_t size_ = 0;
  size_t page_ = 0;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_RING_READER_H_
