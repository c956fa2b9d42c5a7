// Properties, whatever the target writes into the ring: a step takes no more records and bytes than it may. It gives
// back what it took and nothing else. Texts have at most the length of their records. A ring that the writer has filled
// comes out whole.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "formats/inprocess/library_events.h"
#include "formats/inprocess/ring_reader.h"
#include "inprocess/ring_writer.h"

namespace clrsampler {
namespace {

constexpr size_t kBytes = kInprocessHeaderBytes + kMinInprocessCapacity;
constexpr size_t kSteps = 4;
constexpr size_t kMost = 500;
alignas(4096) std::byte g_memory[kBytes];

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// The target writes these bytes anywhere behind the header, as often as the agent looks.
void Hostile(std::span<const std::byte> bytes) {
  std::memset(g_memory, 0, kBytes);
  absl::StatusOr<InprocessRingReader> reader = InprocessRingReader::Create(g_memory);
  for (size_t step = 0; step < kSteps; ++step) {
    const size_t at = reader->taken_bytes() & (kMinInprocessCapacity - 1);
    const size_t room = kMinInprocessCapacity - at;
    std::memcpy(g_memory + kInprocessHeaderBytes + at, bytes.data(), bytes.size() < room ? bytes.size() : room);
    size_t records = 0;
    const uint64_t before = reader->taken_bytes();
    const absl::Status status = reader->Drain(kMost, [&](const LibraryRecord& record) {
      ++records;
      Require(record.texts[0].size() + record.texts[1].size() <= 2 * 3 * kMaxInprocessTextUnits);
      Require(record.map.size() <= kMaxInprocessRecordBytes / sizeof(InprocessMapEntry));
      for (const LibraryField& field : LibraryFields(record)) Require(field.name != nullptr);
    });
    Require(records <= kMost && reader->taken_bytes() - before <= kMinInprocessCapacity + kMaxInprocessRecordBytes);
    Require(reader->taken_bytes() % 8 == 0);
    if (!status.ok()) return;
  }
}

// Bytes as messages of the library: the same come out, or are counted.
void Friendly(std::span<const std::byte> bytes) {
  std::memset(g_memory, 0, kBytes);
  absl::StatusOr<InprocessRingReader> reader = InprocessRingReader::Create(g_memory);
  InprocessRingWriter writer;
  Require(writer.Open(g_memory, kBytes));
  uint64_t written = 0, read = 0;
  for (const std::byte byte : bytes) {
    const auto units = static_cast<uint16_t>(static_cast<uint16_t>(byte) * 2);
    const std::u16string text(units, u'x');
    InprocessMessage message;
    message.kind = InprocessKind::kExceptionThrown;
    message.values[0] = written++;
    message.texts[0] = {text.data(), units};
    writer.Write(message);
    if ((static_cast<uint8_t>(byte) & 3) != 0) continue;
    Require(reader
                ->Drain(kMost,
                        [&](const LibraryRecord& record) {
                          Require(record.texts[0].size() % 2 == 0);
                          ++read;
                        })
                .ok());
  }
  Require(reader->Drain(1 << 20, [&](const LibraryRecord&) { ++read; }).ok());
  Require(read + reader->lost() == written);
}

}  // namespace
}  // namespace clrsampler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(clrsampler::ParseLibraryRecord(bytes));
  clrsampler::Hostile(bytes);
  clrsampler::Friendly(bytes.first(size < 4096 ? size : 4096));
  return 0;
}
