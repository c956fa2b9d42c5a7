#include "capture/ring_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstring>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kSize = 64;

// The data area of a ring, kept twice as the kernel maps it.
class FakeRing {
 public:
  void Put(const std::string& text, uint32_t flags = 0) {
    const uint32_t header[2] = {static_cast<uint32_t>(text.size()) | flags, 0};
    std::string bytes(reinterpret_cast<const char*>(header), sizeof header);
    bytes += text;
    bytes.resize((bytes.size() + 7) & ~size_t{7}, '.');
    for (char byte : bytes) {
      const size_t at = producer & (kSize - 1);
      data[at] = data[at + kSize] = static_cast<std::byte>(byte);
      ++producer;
    }
  }
  std::vector<std::string> Read() {
    std::vector<std::string> records;
    RingCursor cursor(data, kSize, consumer, producer);
    while (const std::span<const std::byte>* record = cursor.Next()) {
      records.emplace_back(reinterpret_cast<const char*>(record->data()), record->size());
      cursor.Pop();
    }
    consumer = cursor.position();
    return records;
  }
  alignas(8) std::byte data[2 * kSize] = {};
  uint64_t producer = 0;
  uint64_t consumer = 0;
};

TEST(RingCursorTest, ReadsRecordsOfAnyLengthInOrder) {
  FakeRing ring;
  ring.Put("a");
  ring.Put("12345678");
  ring.Put("");
  EXPECT_THAT(ring.Read(), ElementsAre("a", "12345678", ""));
  EXPECT_EQ(ring.consumer, ring.producer);
}

TEST(RingCursorTest, RecordsThatWrapAreWhole) {
  FakeRing ring;
  for (int i = 0; i < 100; ++i) {
    const std::string text(static_cast<size_t>(i % 40), static_cast<char>('a' + i % 26));
    ring.Put(text);
    EXPECT_THAT(ring.Read(), ElementsAre(text)) << i;
  }
}

TEST(RingCursorTest, StopsAtARecordThatIsBeingWritten) {
  FakeRing ring;
  ring.Put("done");
  const uint64_t busy = ring.producer;
  ring.Put("busy", BPF_RINGBUF_BUSY_BIT);
  ring.Put("later");
  EXPECT_THAT(ring.Read(), ElementsAre("done"));
  EXPECT_EQ(ring.consumer, busy);
  EXPECT_THAT(ring.Read(), IsEmpty());
  const uint32_t committed = 4;
  std::memcpy(ring.data + busy, &committed, 4);
  EXPECT_THAT(ring.Read(), ElementsAre("busy", "later"));
}

TEST(RingCursorTest, SkipsDiscardedRecords) {
  FakeRing ring;
  ring.Put("gone", BPF_RINGBUF_DISCARD_BIT);
  ring.Put("kept");
  EXPECT_THAT(ring.Read(), ElementsAre("kept"));
}

TEST(RingCursorTest, ARecordStaysUntilItIsTakenAway) {
  FakeRing ring;
  ring.Put("1");
  ring.Put("2");
  RingCursor cursor(ring.data, kSize, ring.consumer, ring.producer);
  EXPECT_EQ(cursor.Next()->data(), cursor.Next()->data());
  EXPECT_EQ(cursor.position(), 0u);
  cursor.Pop();
  EXPECT_EQ(cursor.position(), 16u);
}

TEST(RingCursorTest, ALengthBeyondTheProducerIsNotRead) {
  FakeRing ring;
  ring.Put("abcd");
  const uint32_t wrong = 48;
  std::memcpy(ring.data, &wrong, 4);
  EXPECT_THAT(ring.Read(), IsEmpty());
  EXPECT_EQ(ring.consumer, 0u);
}

}  // namespace
}  // namespace clrsampler
