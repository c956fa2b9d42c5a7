#include "formats/inprocess/ring_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "inprocess/ring_writer.h"
#include "ring_memory.h"

namespace clrsampler {
namespace {

constexpr size_t kAll = 1 << 20;
// The size of a record without texts.
constexpr size_t kShortest = sizeof(InprocessRecord);

InprocessMessage Message(uint64_t number, std::u16string_view text = u"") {
  InprocessMessage message;
  message.kind = InprocessKind::kExceptionThrown;
  message.time_ns = 1000 + number;
  message.tid = 42;
  message.values[0] = number;
  message.texts[0] = {text.data(), static_cast<uint16_t>(text.size())};
  return message;
}

class RingTest : public testing::Test {
 protected:
  RingTest() : reader_(*InprocessRingReader::Create(memory_.bytes())) {
    EXPECT_TRUE(writer_.Open(memory_.bytes().data(), memory_.bytes().size()));
  }
  std::vector<LibraryRecord> Drain(size_t most = kAll) {
    std::vector<LibraryRecord> records;
    status_ = reader_.Drain(most, [&](LibraryRecord record) { records.push_back(std::move(record)); });
    return records;
  }

  RingMemory memory_;
  InprocessRingReader reader_;
  InprocessRingWriter writer_;
  absl::Status status_;
};

TEST_F(RingTest, ARecordComesOutAsItWentIn) {
  InprocessMessage message = Message(7, u"Shop.Öl\xd800");
  const std::u16string method = u"Pay";
  message.texts[1] = {method.data(), 3};
  message.values[3] = ~uint64_t{0};
  writer_.Write(message);
  const std::vector<LibraryRecord> records = Drain();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, InprocessKind::kExceptionThrown);
  EXPECT_EQ(records[0].time_ns, 1007u);
  EXPECT_EQ(records[0].tid, 42u);
  EXPECT_EQ(records[0].values[0], 7u);
  EXPECT_EQ(records[0].values[3], ~uint64_t{0});
  EXPECT_EQ(records[0].texts[0], "Shop.Öl\uFFFD");
  EXPECT_EQ(records[0].texts[1], "Pay");
  EXPECT_TRUE(Drain().empty());
}

TEST_F(RingTest, AMapHasItsEntries) {
  const InprocessMapEntry entries[] = {{0xfffffffe, 0, 4}, {0, 4, 17}};
  InprocessMessage message = Message(1);
  message.kind = InprocessKind::kILToNativeMap;
  message.texts[1] = {entries, 2 * sizeof(InprocessMapEntry) / 2};
  writer_.Write(message);
  const std::vector<LibraryRecord> records = Drain();
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0].map.size(), 2u);
  EXPECT_EQ(records[0].map[0].il_offset, 0xfffffffeu);
  EXPECT_EQ(records[0].map[1].native_end, 17u);
  EXPECT_EQ(records[0].texts[1], "");
}

TEST_F(RingTest, WhatDoesNotFitIsCountedAndNobodyWaits) {
  const size_t fit = kMinInprocessCapacity / kShortest;
  for (uint64_t i = 0; i < fit + 10; ++i) writer_.Write(Message(i));
  EXPECT_EQ(reader_.lost(), 10u);
  const std::vector<LibraryRecord> records = Drain();
  ASSERT_EQ(records.size(), fit);
  EXPECT_EQ(records.back().values[0], fit - 1);
  writer_.Write(Message(99));
  EXPECT_EQ(Drain().size(), 1u) << "there is room again";
  EXPECT_EQ(reader_.lost(), 10u);
}

TEST_F(RingTest, RecordsOfAllSizesGoAroundTheEndManyTimes) {
  const std::u16string text(kMaxInprocessTextUnits, u'x');
  uint64_t next = 0;
  for (uint64_t i = 0; i < 5000; ++i) {
    writer_.Write(Message(i, std::u16string_view(text).substr(0, i * 7 % (text.size() + 1))));
    if (i % 3 != 0) continue;
    for (const LibraryRecord& record : Drain()) {
      EXPECT_EQ(record.values[0], next);
      EXPECT_EQ(record.texts[0].size(), next * 7 % (text.size() + 1));
      ++next;
    }
    ASSERT_TRUE(status_.ok()) << status_;
  }
  EXPECT_GE(next, 4998u);
  EXPECT_EQ(reader_.lost(), 0u);
  EXPECT_GT(reader_.taken_bytes(), 20 * kMinInprocessCapacity);
}

TEST_F(RingTest, AStepTakesNoMoreThanItMay) {
  for (uint64_t i = 0; i < 10; ++i) writer_.Write(Message(i));
  EXPECT_EQ(Drain(4).size(), 4u);
  EXPECT_EQ(Drain(4).size(), 4u);
  EXPECT_EQ(Drain(4).size(), 2u);
}

TEST_F(RingTest, ThreadsLoseNothingButWhatIsCounted) {
  constexpr uint64_t kThreads = 4, kEach = 20'000;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) writer_.Write(Message(t * kEach + i, u"some text"));
      --running;
    });
  }
  std::vector<uint64_t> next(kThreads, 0);
  uint64_t seen = 0;
  for (bool more = true; more;) {
    more = running > 0;
    for (const LibraryRecord& record : Drain()) {
      const uint64_t thread = record.values[0] / kEach;
      ASSERT_LT(thread, kThreads);
      EXPECT_GE(record.values[0] % kEach, next[thread]) << "each thread's are in order";
      next[thread] = record.values[0] % kEach + 1;
      EXPECT_EQ(record.texts[0], "some text");
      ++seen;
    }
    ASSERT_TRUE(status_.ok()) << status_;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen + reader_.lost(), kThreads * kEach);
}

TEST_F(RingTest, NothingIsLostBecauseTheRingMovesOnWhileAThreadLooks) {
  constexpr uint64_t kHalf = kMinInprocessCapacity / 2;
  auto* header = reinterpret_cast<InprocessRingHeader*>(memory_.bytes().data());
  std::atomic<bool> over = false;
  // Other threads write half a ring every microsecond, and an agent takes it at once.
  std::thread others([&] {
    while (!over) {
      header->returned.store(header->reserved.fetch_add(kHalf) + kHalf);
      for (volatile int i = 0; i < 300;) i = i + 1;
    }
  });
  for (uint64_t round = 0; round < 300; ++round) {
    // They may stand still. Then there is room for so many records.
    const uint64_t before = header->returned;
    while (header->returned == before) std::this_thread::yield();
    for (uint64_t i = 0; i < 100; ++i) writer_.Write(Message(i));
  }
  over = true;
  others.join();
  EXPECT_EQ(reader_.lost(), 0u);
}

TEST_F(RingTest, ARecordThatIsTooLongIsLost) {
  const std::u16string text(kMaxInprocessTextUnits, u'x');
  InprocessMessage message = Message(1, text);
  const std::vector<InprocessMapEntry> entries(kMaxInprocessMapEntries + 1);
  message.texts[1] = {entries.data(), static_cast<uint16_t>(entries.size() * sizeof(InprocessMapEntry) / 2)};
  writer_.Write(message);
  EXPECT_TRUE(Drain().empty());
  EXPECT_EQ(reader_.lost(), 1u);
}

TEST_F(RingTest, SizesThatNoLibraryWritesEndIt) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{8}, kShortest - 8, kShortest + 4, kMaxInprocessRecordBytes + 8,
                              uint64_t{kMinInprocessCapacity + 8}, uint64_t{0xffffffff}}) {
    memory_.word(0) = uint64_t{17} << 32 | size;
    EXPECT_TRUE(Drain().empty());
    EXPECT_TRUE(absl::IsDataLoss(status_)) << size;
  }
  memory_.word(0) = 64;  // padding that does not reach the end
  EXPECT_TRUE(Drain().empty());
  EXPECT_TRUE(absl::IsDataLoss(status_));
  memory_.word(0) = kMinInprocessCapacity;  // padding where the longest record would have fitted
  EXPECT_TRUE(Drain().empty());
  EXPECT_TRUE(absl::IsDataLoss(status_));
}

TEST_F(RingTest, ATargetThatWritesAsFastAsTheAgentReadsDoesNotHoldIt) {
  const std::u16string text(kMaxInprocessTextUnits, u'x');
  writer_.Write(Message(0, text));
  size_t records = 0;
  status_ = reader_.Drain(10'000, [&](LibraryRecord) {
    ++records;
    for (int i = 0; i < 2; ++i) writer_.Write(Message(records, text));
  });
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_GE(reader_.taken_bytes(), kMinInprocessCapacity);
  EXPECT_LE(reader_.taken_bytes(), kMinInprocessCapacity + kMaxInprocessRecordBytes);
}

TEST_F(RingTest, KindsAndTextsThatAreNoneEndIt) {
  memory_.word(0) = uint64_t{static_cast<uint32_t>(InprocessKind::kCount)} << 32 | kShortest;
  EXPECT_TRUE(Drain().empty());
  EXPECT_TRUE(absl::IsDataLoss(status_));
  memory_.word(0) = uint64_t{17} << 32 | kShortest;
  memory_.word(16) = uint64_t{0xffff} << 32;  // a text behind the end of its record
  EXPECT_TRUE(Drain().empty());
  EXPECT_TRUE(absl::IsDataLoss(status_));
}

TEST_F(RingTest, WhatTheTargetDoesToTheHeaderChangesNothing) {
  writer_.Write(Message(1));
  auto* header = reinterpret_cast<InprocessRingHeader*>(memory_.bytes().data());
  header->capacity = 1;
  header->magic = 0;
  header->returned = 123;
  header->reserved = ~uint64_t{0};
  EXPECT_EQ(Drain().size(), 1u);
  EXPECT_EQ(header->returned, kShortest);
}

TEST_F(RingTest, ARecordThatIsNeverFinishedAndThoseBehindItAreCountedInBytes) {
  writer_.Write(Message(1));
  writer_.Write(Message(2));
  writer_.Write(Message(3));
  memory_.word(kShortest) = 0;  // the thread of the second one has died before it was there
  EXPECT_EQ(Drain().size(), 1u);
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(reader_.unread_bytes(), 2 * kShortest);
}

TEST_F(RingTest, NoMoreIsUnreadThanTheRingHolds) {
  auto* header = reinterpret_cast<InprocessRingHeader*>(memory_.bytes().data());
  EXPECT_EQ(reader_.unread_bytes(), 0u);
  writer_.Write(Message(1));
  EXPECT_EQ(Drain().size(), 1u);
  EXPECT_EQ(reader_.unread_bytes(), 0u);
  header->reserved = ~uint64_t{0};
  EXPECT_EQ(reader_.unread_bytes(), kMinInprocessCapacity);
  header->reserved = 0;
  EXPECT_EQ(reader_.unread_bytes(), 0u);
}

TEST(InprocessRingTest, OnlySizesOfARingMakeOne) {
  RingMemory memory;
  EXPECT_TRUE(InprocessRingReader::Create(memory.bytes()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(InprocessRingReader::Create(memory.bytes().first(4096)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(InprocessRingReader::Create(memory.bytes().first(12288)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(InprocessRingReader::Create({}).status()));
}

TEST_F(RingTest, NoWordGoesBeyondTheEnd) {
  auto* header = reinterpret_cast<InprocessRingHeader*>(memory_.bytes().data());
  header->reserved = header->returned = kMinInprocessCapacity - 1;
  writer_.Write(Message(1));
  EXPECT_EQ(header->reserved, kMinInprocessCapacity - 1);
  EXPECT_EQ(reader_.lost(), 1u);
}

TEST(InprocessRingTest, TheLibraryTakesNoOtherMemory) {
  RingMemory memory;
  InprocessRingWriter writer;
  EXPECT_FALSE(writer.Open(memory.bytes().data(), memory.bytes().size())) << "no reader has made it a ring";
  ASSERT_TRUE(InprocessRingReader::Create(memory.bytes()).ok());
  EXPECT_FALSE(writer.Open(memory.bytes().data(), memory.bytes().size() - 4096));
  EXPECT_FALSE(writer.Open(memory.bytes().data(), 64));
  writer.Write(Message(1));
  EXPECT_EQ(memory.word(0), 0u) << "without a ring it writes nowhere";
}

}  // namespace
}  // namespace clrsampler
