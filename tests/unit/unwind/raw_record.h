// Builds sample records as the BPF program lays them out.
#ifndef CLRSAMPLER_TESTS_UNIT_UNWIND_RAW_RECORD_H_
#define CLRSAMPLER_TESTS_UNIT_UNWIND_RAW_RECORD_H_

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "clrsampler/wire.h"

namespace clrsampler {

class RawRecord {
 public:
  wire_cpu_sample header{};
  std::vector<uint64_t> kernel;
  std::vector<uint64_t> user;
  std::vector<wire_code_snapshot> snapshots;
  std::vector<wire_replaced_return> returns;
  std::vector<wire_async_object> async_objects;
  std::vector<wire_trace_context> traces;  // one at most

  RawRecord& Frame(uint64_t frame_address, uint64_t saved_fp, uint64_t return_address, std::vector<uint64_t> gap = {}) {
    user.push_back(frame_address | uint64_t{gap.size()} << WIRE_GAP_SHIFT);
    user.insert(user.end(), gap.begin(), gap.end());
    user.push_back(saved_fp);
    user.push_back(return_address);
    ++header.user_frames;
    return *this;
  }
  RawRecord& Tail(std::vector<uint64_t> words) {
    user.push_back(uint64_t{words.size()} << WIRE_GAP_SHIFT);
    user.insert(user.end(), words.begin(), words.end());
    return *this;
  }
  // 8-byte aligned; valid until the next call.
  std::span<const std::byte> Bytes() {
    header.kernel_frames = static_cast<uint16_t>(kernel.size());
    header.user_words = static_cast<uint32_t>(user.size());
    header.header.kind = WIRE_CPU_SAMPLE;
    header.snapshots = static_cast<uint16_t>(snapshots.size());
    header.header.size = static_cast<uint32_t>(
        sizeof header + (kernel.size() + user.size()) * 8 + snapshots.size() * sizeof(wire_code_snapshot) +
        returns.size() * sizeof(wire_replaced_return) + async_objects.size() * sizeof(wire_async_object) +
        traces.size() * sizeof(wire_trace_context));
    header.flags |= traces.empty() ? 0 : WIRE_SAMPLE_TRACE;
    header.flags |= static_cast<uint32_t>(returns.size()) << WIRE_SAMPLE_RETURNS_SHIFT;
    header.flags |= static_cast<uint32_t>(async_objects.size()) << WIRE_SAMPLE_ASYNC_SHIFT;
    storage_.assign(sizeof header / 8, 0);
    std::memcpy(storage_.data(), &header, sizeof header);
    storage_.insert(storage_.end(), kernel.begin(), kernel.end());
    storage_.insert(storage_.end(), user.begin(), user.end());
    const size_t used = storage_.size();
    storage_.resize(used + snapshots.size() * sizeof(wire_code_snapshot) / 8);
    if (!snapshots.empty()) {
      std::memcpy(storage_.data() + used, snapshots.data(), snapshots.size() * sizeof(wire_code_snapshot));
    }
    for (const wire_replaced_return& replaced : returns) {
      storage_.push_back(replaced.at);
      storage_.push_back(replaced.address);
    }
    for (const wire_async_object& object : async_objects) {
      storage_.push_back(object.address);
      storage_.insert(storage_.end(), std::begin(object.words), std::end(object.words));
    }
    for (const wire_trace_context& trace : traces) {
      const size_t end = storage_.size();
      storage_.resize(end + sizeof trace / sizeof(uint64_t));
      std::memcpy(storage_.data() + end, &trace, sizeof trace);
    }
    return std::as_bytes(std::span<const uint64_t>(storage_));
  }

 private:
  std::vector<uint64_t> storage_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_TESTS_UNIT_UNWIND_RAW_RECORD_H_
