// Records of two rings in the order of their times, as if they had come through one. Pure.
#ifndef CLRSAMPLER_CAPTURE_MERGE_BY_TIME_H_
#define CLRSAMPLER_CAPTURE_MERGE_BY_TIME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/functional/function_ref.h"
#include "capture/ring_reader.h"
#include "clrsampler/wire.h"

namespace clrsampler {

// CLOCK_MONOTONIC nanoseconds; 0 of a record that is too short to say.
inline uint64_t TimeOfRecord(std::span<const std::byte> record) {
  wire_header header{};
  if (record.size() >= sizeof header) std::memcpy(&header, record.data(), sizeof header);
  return header.time_ns;
}

// A source gives its records in its own order: Next() is the first that is left, nullptr if there is none, and Pop()
// takes it away. Where two records have one time, that of `a` comes first. `b_presses` is asked while `a` has records.
// When it says yes, all of `b` comes before the next one of `a`, whatever their times.
template <typename Source>
void MergeByTime(Source& a, Source& b, absl::FunctionRef<bool()> b_presses, RecordFunction on_record) {
  const auto take = [&on_record](Source& source, const std::span<const std::byte>* record) {
    on_record(*record);
    source.Pop();
  };
  while (true) {
    const auto* first = a.Next();
    if (first != nullptr && b_presses()) {
      while (const auto* pressing = b.Next()) take(b, pressing);
    }
    const auto* second = b.Next();
    if (first == nullptr && second == nullptr) return;
    if (second == nullptr || (first != nullptr && TimeOfRecord(*first) <= TimeOfRecord(*second))) {
      take(a, first);
    } else {
      take(b, second);
    }
  }
}

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_MERGE_BY_TIME_H_
