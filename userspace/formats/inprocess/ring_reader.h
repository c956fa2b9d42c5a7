// The agent's side of the ring of the profiler library (clrsampler/inprocess_ring.h): shared memory -> records.
//
// The target can write anything into that memory at any time. So each word is read once, each record is copied before
// it is looked at, and where it lies follows from the reader's own count only.
#ifndef CLRSAMPLER_FORMATS_INPROCESS_RING_READER_H_
#define CLRSAMPLER_FORMATS_INPROCESS_RING_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clrsampler/inprocess_ring.h"

namespace clrsampler {

struct LibraryRecord {
  InprocessKind kind{};
  uint64_t time_ns = 0;  // as the library says
  uint32_t tid = 0;
  std::array<uint64_t, 4> values{};
  std::array<std::string, 2> texts;    // UTF-8, with whatever characters they have; of kILToNativeMap empty
  std::vector<InprocessMapEntry> map;  // of kILToNativeMap
};

// A record as it lies in the ring, without padding: its first word is trusted to no more than the others. DataLoss: no
// library writes this.
absl::StatusOr<LibraryRecord> ParseLibraryRecord(std::span<const std::byte> bytes);

class InprocessRingReader {
 public:
  // `memory` is that of the ring, all zeros, and is mapped as long as this object lives: kInprocessHeaderBytes and a
  // capacity. It is made into an empty ring here. InvalidArgument: no such capacity, or memory that is not aligned.
  static absl::StatusOr<InprocessRingReader> Create(std::span<std::byte> memory);

  // Takes out what is there, at most `most` records, and at most the ring's capacity with one record. DataLoss is
  // final: something else than the library writes there.
  absl::Status Drain(size_t most, absl::FunctionRef<void(LibraryRecord)> take);

  // Whether the library runs or ran, as the target says.
  bool ran() const;
  // Records that the library had no room for, as the target says.
  uint64_t lost() const;
  // Methods whose maps it left out, as the target says.
  uint64_t left_out() const;
  uint64_t taken_bytes() const { return taken_; }
  // Bytes that are reserved and not taken out, as the target says; at most the capacity. Once the library has gone they
  // are records that can't be read: they lie behind one that was never finished, whose text may look like a record.
  uint64_t unread_bytes() const;

 private:
  explicit InprocessRingReader(std::span<std::byte> memory);

  InprocessRingHeader& header() const { return *reinterpret_cast<InprocessRingHeader*>(memory_.data()); }
  // Bytes of the record at the front, with its kind; 0: there is none yet.
  absl::StatusOr<size_t> SizeOfNext(uint64_t word) const;
  void CopyOut(size_t place, size_t bytes);
  void GiveBack(size_t place, size_t bytes);

  std::span<std::byte> memory_;
  uint64_t capacity_ = 0;
  uint64_t taken_ = 0;  // bytes, since the beginning
  std::vector<uint64_t> copy_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_INPROCESS_RING_READER_H_
