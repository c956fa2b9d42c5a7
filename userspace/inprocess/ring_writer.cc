#include "inprocess/ring_writer.h"

#include <cstring>

namespace clrsampler {
namespace {

// Another thread takes a place in some ten instructions. One that is beaten so often gives up rather than wait.
constexpr int kMaxTries = 256;

}  // namespace

bool InprocessRingWriter::Open(void* memory, size_t bytes) {
  if (bytes < kInprocessHeaderBytes + kMinInprocessCapacity || bytes > kInprocessHeaderBytes + kMaxInprocessCapacity) {
    return false;
  }
  auto* header = static_cast<InprocessRingHeader*>(memory);
  const uint64_t capacity = bytes - kInprocessHeaderBytes;
  if (header->magic != kInprocessMagic || header->capacity != capacity || (capacity & (capacity - 1)) != 0) {
    return false;
  }
  data_ = static_cast<unsigned char*>(memory) + kInprocessHeaderBytes;
  capacity_ = capacity;
  header_ = header;
  return true;
}

bool InprocessRingWriter::Reserve(uint32_t bytes, uint64_t& position) {
  uint64_t at = header_->reserved.load(std::memory_order_relaxed);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (at % 8 != 0) return false;  // no writer leaves it so: a word there could go beyond the end
    const uint64_t to_end = capacity_ - (at & (capacity_ - 1));
    const uint64_t padding = bytes > to_end ? to_end : 0;
    const uint64_t used = at - header_->returned.load(std::memory_order_acquire);
    if (used > capacity_ || used + padding + bytes > capacity_) {
      // The two are of different moments where this thread stood still between them: other records were written and
      // given back meanwhile. If nothing was reserved since, there is no room.
      const uint64_t now = header_->reserved.load(std::memory_order_relaxed);
      if (now == at) return false;
      at = now;
      continue;
    }
    if (!header_->reserved.compare_exchange_weak(at, at + padding + bytes, std::memory_order_relaxed)) continue;
    if (padding != 0) Publish(at, static_cast<uint32_t>(padding), InprocessKind::kPadding);
    position = at + padding;
    return true;
  }
  return false;
}

void InprocessRingWriter::Publish(uint64_t position, uint32_t bytes, InprocessKind kind) {
  auto* word = reinterpret_cast<std::atomic<uint64_t>*>(data_ + (position & (capacity_ - 1)));
  word->store(static_cast<uint64_t>(kind) << 32 | bytes, std::memory_order_release);
}

void InprocessRingWriter::SayThatItRuns() {
  if (header_ != nullptr) header_->runs.store(1, std::memory_order_relaxed);
}

void InprocessRingWriter::CountLeftOut(uint64_t methods) {
  if (header_ != nullptr) header_->left_out.fetch_add(methods, std::memory_order_relaxed);
}

void InprocessRingWriter::Write(const InprocessMessage& message) {
  if (header_ == nullptr) return;
  const size_t first = size_t{2} * message.texts[0].count;
  const size_t second = size_t{2} * message.texts[1].count;
  const size_t bytes = (sizeof(InprocessRecord) + first + second + 7) / 8 * 8;
  uint64_t position = 0;
  if (bytes > kMaxInprocessRecordBytes || !Reserve(static_cast<uint32_t>(bytes), position)) {
    header_->lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  unsigned char* place = data_ + (position & (capacity_ - 1));
  auto* record = reinterpret_cast<InprocessRecord*>(place);
  record->time_ns = message.time_ns;
  record->tid = message.tid;
  for (int i = 0; i < 2; ++i) record->text_units[i] = message.texts[i].count;
  for (int i = 0; i < 4; ++i) record->values[i] = message.values[i];
  unsigned char* text = place + sizeof(InprocessRecord);
  if (first != 0) std::memcpy(text, message.texts[0].units, first);
  if (second != 0) std::memcpy(text + first, message.texts[1].units, second);
  Publish(position, static_cast<uint32_t>(bytes), message.kind);
}

}  // namespace clrsampler
