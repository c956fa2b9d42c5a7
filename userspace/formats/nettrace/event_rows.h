// The rows of one block of events or of descriptions of events, whose headers say what differs from the row before.
//
// A block begins with u16 size of its own header and u16 flags, of which bit 0 says that rows are compressed. A row: a
// byte of flags, then numbers of seven bits a byte, lowest first. Flag 1: metadata id. 2: growth of the sequence
// number, capture thread, processor. 4: thread. 8: stack. Always: growth of the time. 16, 32: two ids of 16 bytes. 64:
// sorted. 128: size of the payload. A part that is not there is as in the row before, which is all zeros for the first.
// The payload follows.
//
// Errors (DataLoss) are final for the block.
#ifndef CLRSAMPLER_FORMATS_NETTRACE_EVENT_ROWS_H_
#define CLRSAMPLER_FORMATS_NETTRACE_EVENT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"

namespace clrsampler {

struct EventRow {
  uint32_t metadata_id = 0;  // 0: the payload describes a kind of event
  uint32_t sequence = 0;
  uint64_t capture_thread = 0;
  uint32_t processor = 0;
  uint64_t thread = 0;
  uint32_t stack_id = 0;
  uint64_t ticks = 0;
  bool sorted = false;
  std::span<const std::byte> payload;  // in the block
};

class EventRows {
 public:
  static absl::StatusOr<EventRows> Of(std::span<const std::byte> block);

  // nullopt: there are no more.
  absl::StatusOr<std::optional<EventRow>> Next();

 private:
  explicit EventRows(std::span<const std::byte> rest) : rest_(rest) {}

  template <typename T>
  T Number();
  void Skip(size_t bytes);

  std::span<const std::byte> rest_;
  EventRow row_;
  uint32_t payload_bytes_ = 0;
  bool whole_ = true;  // nothing read so far was cut off
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_NETTRACE_EVENT_ROWS_H_
