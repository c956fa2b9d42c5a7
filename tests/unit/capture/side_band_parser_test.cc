#include "capture/side_band_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Builds records field by field, as include/uapi/linux/perf_event.h lists them.
class RecordBuilder {
 public:
  RecordBuilder(uint32_t type, uint16_t misc = 0) : type_(type), misc_(misc) {}
  RecordBuilder& U32(uint32_t value) { return Raw(&value, sizeof value); }
  RecordBuilder& U64(uint64_t value) { return Raw(&value, sizeof value); }
  RecordBuilder& Text(std::string text) {
    text.resize((text.size() + 8) & ~size_t{7}, '\0');  // at least one NUL
    return Raw(text.data(), text.size());
  }
  // With the trailer of sample_id_all: {pid, tid}, time, {cpu, reserved}.
  std::vector<std::byte> Build(uint64_t time = 1000, uint32_t cpu = 3) {
    U32(77).U32(78).U64(time).U32(cpu).U32(0);
    return WithHeader();
  }
  std::vector<std::byte> WithHeader() const {
    std::string record(8, '\0');
    const uint16_t size = static_cast<uint16_t>(8 + body_.size());
    std::memcpy(record.data(), &type_, 4);
    std::memcpy(record.data() + 4, &misc_, 2);
    std::memcpy(record.data() + 6, &size, 2);
    record += body_;
    const auto* begin = reinterpret_cast<const std::byte*>(record.data());
    return {begin, begin + record.size()};
  }

 private:
  RecordBuilder& Raw(const void* data, size_t size) {
    body_.append(static_cast<const char*>(data), size);
    return *this;
  }
  uint32_t type_;
  uint16_t misc_;
  std::string body_;
};

TEST(SideBandParserTest, Fork) {
  const auto event = **ParseSideBandRecord(RecordBuilder(7).U32(20).U32(10).U32(21).U32(11).U64(999).Build());
  EXPECT_EQ(event.kind, SideBandKind::kFork);
  EXPECT_EQ(event.pid, 20u);
  EXPECT_EQ(event.parent_pid, 10u);
  EXPECT_EQ(event.tid, 21u);
  EXPECT_EQ(event.parent_tid, 11u);
  EXPECT_EQ(event.time.ns, 1000u);  // of the trailer: the clock asked for
  EXPECT_EQ(event.cpu, 3);
}

TEST(SideBandParserTest, CommAndExec) {
  const auto renamed = **ParseSideBandRecord(RecordBuilder(3).U32(5).U32(6).Text(".NET Tiered Com").Build());
  EXPECT_EQ(renamed.kind, SideBandKind::kComm);
  EXPECT_EQ(renamed.comm, ".NET Tiered Com");
  EXPECT_FALSE(renamed.exec);
  EXPECT_EQ(renamed.tid, 6u);
  const auto exec = **ParseSideBandRecord(RecordBuilder(3, 1 << 13).U32(5).U32(5).Text("dotnet").Build());
  EXPECT_TRUE(exec.exec);
  EXPECT_EQ(exec.comm, "dotnet");
}

RecordBuilder Mmap(uint16_t misc = 0) {
  RecordBuilder record(10, misc);
  record.U32(5).U32(6).U64(0x7f0000000000).U64(0x2000).U64(0x1000).U32(254).U32(1).U64(4242).U64(7).U32(5).U32(2);
  return record;
}

TEST(SideBandParserTest, Mmap2) {
  const auto event = **ParseSideBandRecord(Mmap().Text("/memfd:doublemapper (deleted)").Build());
  EXPECT_EQ(event.kind, SideBandKind::kMmap);
  EXPECT_EQ(event.start, 0x7f0000000000u);
  EXPECT_EQ(event.length, 0x2000u);
  EXPECT_EQ(event.page_offset, 0x1000u);
  EXPECT_EQ(event.device_major, 254u);
  EXPECT_EQ(event.device_minor, 1u);
  EXPECT_EQ(event.inode, 4242u);
  EXPECT_EQ(event.inode_generation, 7u);
  EXPECT_EQ(event.protection, 5u);
  EXPECT_EQ(event.flags, 2u);
  EXPECT_EQ(event.path, "/memfd:doublemapper (deleted)");
}

TEST(SideBandParserTest, ABuildIdIsNotTakenForAnInode) {
  const auto event = **ParseSideBandRecord(Mmap(1 << 14).Text("/bin/x").Build());
  EXPECT_EQ(event.inode, 0u);
  EXPECT_EQ(event.path, "/bin/x");
}

TEST(SideBandParserTest, Lost) {
  const auto event = **ParseSideBandRecord(RecordBuilder(2).U64(1).U64(17).Build());
  EXPECT_EQ(event.kind, SideBandKind::kLost);
  EXPECT_EQ(event.lost, 17u);
}

TEST(SideBandParserTest, OtherKindsSayNothing) {
  EXPECT_FALSE(
      ParseSideBandRecord(RecordBuilder(5).U64(1).U64(2).U64(3).Build())->has_value());  // PERF_RECORD_THROTTLE
}

TEST(SideBandParserTest, EveryTruncationIsRefusedOrShorterText) {
  const std::vector<std::byte> whole = Mmap().Text("/usr/share/dotnet/System.Private.CoreLib.dll").Build();
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(ParseSideBandRecord(cut).ok()) << size;  // the header says more than there is
    if (size < 8) continue;
    const uint16_t claimed = static_cast<uint16_t>(size);
    std::memcpy(cut.data() + 6, &claimed, 2);
    const auto event = ParseSideBandRecord(cut);
    // 8 header, 64 fixed fields, 24 trailer
    EXPECT_EQ(event.ok(), size >= 96) << size;
  }
}

TEST(SideBandParserTest, TextWithoutNulEndsWithTheRecord) {
  RecordBuilder record(3);
  record.U32(5).U32(6).U64(0x4141414141414141);
  EXPECT_EQ((**ParseSideBandRecord(record.Build())).comm, "AAAAAAAA");
}

TEST(SideBandParserTest, RandomBytesAreHarmless) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(200);
  for (int round = 0; round < 20000; ++round) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const uint32_t type = random() % 12;
    const uint16_t size = static_cast<uint16_t>(random() % 220);
    std::memcpy(bytes.data(), &type, 4);
    std::memcpy(bytes.data() + 6, &size, 2);
    const auto event = ParseSideBandRecord(bytes);
    EXPECT_FALSE(event.ok() && size > bytes.size());
    if (event.ok() && event->has_value()) {
      EXPECT_LE((*event)->path.size(), bytes.size());
    }
  }
}

class FakePerfRing {
 public:
  explicit FakePerfRing(size_t size) : data(size) {}
  void Put(const std::vector<std::byte>& record) {
    for (std::byte byte : record) data[head++ % data.size()] = byte;
  }
  std::vector<uint64_t> ReadTimes() {
    std::vector<uint64_t> times;
    tail = ReadPerfRing(data, tail, head, &damaged, [&](std::span<const std::byte> record) {
      const auto event = ParseSideBandRecord(record);
      times.push_back(event.ok() ? (*event)->time.ns : 0);
    });
    return times;
  }
  std::vector<std::byte> data;
  uint64_t head = 0;
  uint64_t tail = 0;
  uint64_t damaged = 0;
};

TEST(ReadPerfRingTest, PutsTogetherWhatWrapsAtEveryOffset) {
  FakePerfRing ring(256);
  for (uint64_t time = 1; time < 200; ++time) {
    ring.Put(RecordBuilder(3).U32(5).U32(6).Text(std::string(time % 30, 'x')).Build(time));
    EXPECT_THAT(ring.ReadTimes(), ElementsAre(time));
  }
  EXPECT_EQ(ring.damaged, 0u);
}

TEST(ReadPerfRingTest, AnImpossibleSizeSkipsTheRestAndIsCounted) {
  for (const uint16_t size : {uint16_t{0}, uint16_t{7}, uint16_t{65535}}) {
    FakePerfRing ring(256);
    ring.Put(RecordBuilder(2).U64(1).U64(17).Build(11));
    std::vector<std::byte> wrong = RecordBuilder(2).U64(1).U64(17).Build(12);
    std::memcpy(wrong.data() + 6, &size, 2);
    ring.Put(wrong);
    ring.Put(RecordBuilder(2).U64(1).U64(17).Build(13));
    EXPECT_THAT(ring.ReadTimes(), ElementsAre(11u)) << size;
    EXPECT_EQ(ring.tail, ring.head);
    EXPECT_EQ(ring.damaged, 1u);
    ring.Put(RecordBuilder(2).U64(1).U64(17).Build(14));
    EXPECT_THAT(ring.ReadTimes(), ElementsAre(14u)) << "goes on with the next";
  }
}

TEST(ReadPerfRingTest, NothingNewIsNothing) {
  FakePerfRing ring(256);
  EXPECT_THAT(ring.ReadTimes(), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
