#include "formats/inprocess/ring_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/utf16.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kWordBytes = 8;

uint32_t SizeOf(uint64_t word) { return static_cast<uint32_t>(word); }
uint32_t KindOf(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

std::atomic_ref<uint64_t> WordAt(std::span<std::byte> memory, size_t offset) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory.data() + offset));
}

std::vector<InprocessMapEntry> MapOf(std::span<const std::byte> bytes) {
  std::vector<InprocessMapEntry> map(bytes.size() / sizeof(InprocessMapEntry));
  if (!map.empty()) std::memcpy(map.data(), bytes.data(), map.size() * sizeof(InprocessMapEntry));
  return map;
}

}  // namespace

absl::StatusOr<LibraryRecord> ParseLibraryRecord(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(InprocessRecord) || bytes.size() > kMaxInprocessRecordBytes) {
    return absl::DataLossError(absl::StrCat("a record of ", bytes.size(), " bytes"));
  }
  const uint32_t kind = KindOf(*LoadAt<uint64_t>(bytes, 0));
  if (kind == 0 || kind >= static_cast<uint32_t>(InprocessKind::kCount)) {
    return absl::DataLossError(absl::StrCat("a record of the kind ", kind));
  }
  LibraryRecord record;
  record.kind = static_cast<InprocessKind>(kind);
  record.time_ns = *LoadAt<uint64_t>(bytes, offsetof(InprocessRecord, time_ns));
  record.tid = *LoadAt<uint32_t>(bytes, offsetof(InprocessRecord, tid));
  for (size_t i = 0; i < 4; ++i) {
    record.values[i] = *LoadAt<uint64_t>(bytes, offsetof(InprocessRecord, values) + kWordBytes * i);
  }
  size_t at = sizeof(InprocessRecord);
  for (size_t i = 0; i < 2; ++i) {
    const size_t units = *LoadAt<uint16_t>(bytes, offsetof(InprocessRecord, text_units) + sizeof(uint16_t) * i);
    const auto text = SliceAt(bytes, at, 2 * units);
    if (!text) return absl::DataLossError("a record whose texts are longer than itself");
    at += text->size();
    const bool is_map = record.kind == InprocessKind::kILToNativeMap && i == 1;
    if (is_map) {
      record.map = MapOf(*text);
    } else if (units > kMaxInprocessTextUnits) {
      return absl::DataLossError(absl::StrCat("a record with a text of ", units, " units"));
    } else {
      record.texts[i] = Utf8OfUtf16(*text);
    }
  }
  if (bytes.size() - at >= kWordBytes) return absl::DataLossError("a record that is longer than what it holds");
  return record;
}

absl::StatusOr<InprocessRingReader> InprocessRingReader::Create(std::span<std::byte> memory) {
  const uint64_t capacity = memory.size() < kInprocessHeaderBytes ? 0 : memory.size() - kInprocessHeaderBytes;
  if (!std::has_single_bit(capacity) || capacity < kMinInprocessCapacity || capacity > kMaxInprocessCapacity) {
    return absl::InvalidArgumentError(absl::StrCat("no ring has ", memory.size(), " bytes"));
  }
  if (reinterpret_cast<uintptr_t>(memory.data()) % alignof(InprocessRingHeader) != 0) {
    return absl::InvalidArgumentError("a ring lies at an aligned address");
  }
  return InprocessRingReader(memory);
}

InprocessRingReader::InprocessRingReader(std::span<std::byte> memory)
    : memory_(memory),
      capacity_(memory.size() - kInprocessHeaderBytes),
      copy_((kMaxInprocessRecordBytes + kWordBytes - 1) / kWordBytes) {
  auto* ring = new (memory.data()) InprocessRingHeader{};
  ring->magic = kInprocessMagic;
  ring->capacity = capacity_;
}

absl::StatusOr<size_t> InprocessRingReader::SizeOfNext(uint64_t word) const {
  const size_t to_end = capacity_ - (taken_ & (capacity_ - 1));
  const size_t bytes = SizeOf(word);
  const bool padding = KindOf(word) == static_cast<uint32_t>(InprocessKind::kPadding);
  // Padding stands where a record did not fit.
  if (padding ? bytes == to_end && bytes < kMaxInprocessRecordBytes
              : bytes % kWordBytes == 0 && bytes >= sizeof(InprocessRecord) && bytes <= to_end) {
    return bytes;
  }
  return absl::DataLossError(absl::StrCat("a record of ", bytes, " bytes, ", to_end, " before the end of the ring"));
}

void InprocessRingReader::CopyOut(size_t place, size_t bytes) {
  for (size_t i = 0; i < bytes / kWordBytes; ++i) {
    copy_[i] = WordAt(memory_, place + kWordBytes * i).load(std::memory_order_relaxed);
  }
}

void InprocessRingReader::GiveBack(size_t place, size_t bytes) {
  for (size_t i = 0; i < bytes / kWordBytes; ++i) {
    WordAt(memory_, place + kWordBytes * i).store(0, std::memory_order_relaxed);
  }
  taken_ += bytes;
  header().returned.store(taken_, std::memory_order_release);
}

absl::Status InprocessRingReader::Drain(size_t most, absl::FunctionRef<void(LibraryRecord)> take) {
  // A target may write as fast as this reads.
  const uint64_t end = taken_ + capacity_;
  for (size_t count = 0; count < most && taken_ < end; ++count) {
    const size_t place = kInprocessHeaderBytes + (taken_ & (capacity_ - 1));
    const uint64_t word = WordAt(memory_, place).load(std::memory_order_acquire);
    if (word == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const size_t bytes, SizeOfNext(word));
    if (KindOf(word) != static_cast<uint32_t>(InprocessKind::kPadding)) {
      if (bytes > kMaxInprocessRecordBytes) return absl::DataLossError(absl::StrCat("a record of ", bytes, " bytes"));
      CopyOut(place, bytes);
      copy_[0] = word;  // the one that was judged
      ASSIGN_OR_RETURN(LibraryRecord record, ParseLibraryRecord(std::as_bytes(std::span(copy_)).first(bytes)));
      take(std::move(record));
    }
    GiveBack(place, bytes);
  }
  return absl::OkStatus();
}

bool InprocessRingReader::ran() const { return header().runs.load(std::memory_order_relaxed) != 0; }

uint64_t InprocessRingReader::lost() const { return header().lost.load(std::memory_order_relaxed); }

uint64_t InprocessRingReader::left_out() const { return header().left_out.load(std::memory_order_relaxed); }

uint64_t InprocessRingReader::unread_bytes() const {
  const uint64_t reserved = header().reserved.load(std::memory_order_relaxed);
  return reserved > taken_ ? std::min(reserved - taken_, capacity_) : 0;
}

}  // namespace clrsampler
