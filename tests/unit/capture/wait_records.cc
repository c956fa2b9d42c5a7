#include "unit/capture/wait_records.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace clrsampler::test_support {

const wire_wait* WaitRecords::OpenOf(uint32_t tid) const {
  const auto records = by_thread.find(tid);
  if (records == by_thread.end()) return nullptr;
  for (const wire_wait& wait : records->second) {
    if ((wait.flags & WIRE_WAIT_OPEN) != 0) return &wait;
  }
  return nullptr;
}

WaitRecords DrainWaitRecords(Sampler& sampler) {
  WaitRecords records;
  sampler.Drain([&](std::span<const std::byte> record) {
    wire_header header;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.kind == WIRE_WAIT) {
      wire_wait wait;
      std::memcpy(&wait, record.data(), sizeof wait);
      records.by_thread[wait.tid].push_back(wait);
    } else if (header.kind == WIRE_WAIT_STACK) {
      records.stacks.push_back(Decode(record));
    }
  });
  return records;
}

SamplerOptions FollowingWaits() {
  SamplerOptions options;
  options.filter_processes = true;
  options.frequency_hz = 1;
  options.waits = true;
  options.min_wait_ns = 1'000'000;
  return options;
}

uint32_t OwnTid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace clrsampler::test_support
