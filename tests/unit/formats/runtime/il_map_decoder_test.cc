#include "formats/runtime/il_map_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "formats/byte_reader.h"
#include "formats/runtime/nibble_reader.h"
#include "unit/formats/runtime/il_map_bytes.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kNet8 = DebugInfoFormat::kNet8;
constexpr auto kNet10 = DebugInfoFormat::kNet10;
constexpr auto kNet11 = DebugInfoFormat::kNet11;

using Triple = std::tuple<uint32_t, int32_t, uint32_t>;  // native offset, IL offset, sources

std::vector<Triple> Decoded(DebugInfoFormat format, absl::string_view bounds, uint32_t code_bytes = 1000) {
  const auto map = DecodeBounds(format, AsBytes(bounds), code_bytes);
  EXPECT_TRUE(map.ok()) << map.status();
  std::vector<Triple> entries;
  if (!map.ok()) return entries;
  for (const IlMapEntry& entry : map->entries()) {
    entries.emplace_back(entry.native_offset, entry.il_offset, entry.sources);
  }
  return entries;
}

bool Refused(DebugInfoFormat format, absl::string_view bounds, uint32_t code_bytes = 1000) {
  return absl::IsDataLoss(DecodeBounds(format, AsBytes(bounds), code_bytes).status());
}

TEST(NibbleReaderTest, NumbersOfEveryLength) {
  for (const uint32_t value : {0u, 7u, 8u, 63u, 64u, 511u, 512u, 1u << 29, 1u << 30, UINT32_MAX}) {
    const std::string bytes = Nibbles({value});
    EXPECT_EQ(NibbleReader(AsBytes(bytes)).Number(), value);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(NibbleReader(AsBytes(absl::string_view(bytes).substr(0, size))).Number(), std::nullopt);
    }
  }
  EXPECT_EQ(Nibbles({UINT32_MAX}).size(), NibbleReader::kMaxNumberBytes);
}

TEST(NibbleReaderTest, NumbersThatNobodyWritesAreRefused) {
  // 33 bits, twelve groups, and a first group that says nothing.
  EXPECT_EQ(NibbleReader(AsBytes("\xFC\xFF\xFF\xFF\xFF\x07")).Number(), std::nullopt);
  EXPECT_EQ(NibbleReader(AsBytes("\x99\x99\x99\x99\x99\x19")).Number(), std::nullopt);
  EXPECT_EQ(NibbleReader(AsBytes("\x18")).Number(), std::nullopt);
}

TEST(NibbleReaderTest, TheNextBytesBeginBehindAZeroHalf) {
  const std::string bytes = Nibbles({1}) + Nibbles({2, 3});
  NibbleReader reader(AsBytes(bytes));
  EXPECT_EQ(reader.Number(), 1u);
  EXPECT_TRUE(reader.AlignToByte());
  EXPECT_EQ(reader.bytes_used(), 1u);
  EXPECT_EQ(reader.Number(), 2u);
  EXPECT_FALSE(reader.AlignToByte());
}

// Sources of .NET 8: 2 the stack is empty, 0x10 a call instruction, the rest says nothing to us.
TEST(IlMapDecoderTest, Net8HasOneNumberAfterTheOther) {
  const std::string bounds = Nibbles({5, 0, 1, 2, 0, 3, 0, 70, 20, 2, 1, 21, 0x10, 9, 2, 0x0D});
  EXPECT_THAT(Decoded(kNet8, bounds), ElementsAre(Triple(0, -2, IlMapEntry::kStackEmpty), Triple(0, 0, 0),
                                                  Triple(70, 17, IlMapEntry::kStackEmpty), Triple(80, -1, 0)));
}

TEST(IlMapDecoderTest, Net10PacksEntriesIntoBits) {
  const std::string bounds = Packed(2, 7, 5, {{2, 0, 1}, {2, 0, 3}, {0, 70, 20}, {1, 1, 21}, {3, 1, 4}, {0, 99, 0}});
  EXPECT_THAT(Decoded(kNet10, bounds),
              ElementsAre(Triple(0, -2, IlMapEntry::kStackEmpty), Triple(0, 0, IlMapEntry::kStackEmpty),
                          Triple(70, 17, 0), Triple(171, -3, 0)));
}

TEST(IlMapDecoderTest, Net11HasABitForAsync) {
  const std::string bounds = Packed(3, 4, 2, {{2, 0, 1}, {4, 9, 3}, {6, 1, 0}});
  EXPECT_THAT(Decoded(kNet11, bounds),
              ElementsAre(Triple(0, -2, IlMapEntry::kStackEmpty), Triple(9, 0, IlMapEntry::kAsync),
                          Triple(10, -3, IlMapEntry::kStackEmpty | IlMapEntry::kAsync)));
}

TEST(IlMapDecoderTest, NoBytesAreAMapWithoutEntries) {
  for (const DebugInfoFormat format : {kNet8, kNet10, kNet11}) EXPECT_THAT(Decoded(format, ""), IsEmpty());
}

TEST(IlMapDecoderTest, TheWidestNumbers) {
  const uint32_t highest = uint32_t{INT32_MAX} + 3;
  EXPECT_THAT(Decoded(kNet8, Nibbles({1, 0, highest, 2})), ElementsAre(Triple(0, INT32_MAX, IlMapEntry::kStackEmpty)));
  EXPECT_TRUE(Refused(kNet8, Nibbles({1, 0, highest + 1, 2})));
  EXPECT_TRUE(Refused(kNet8, Nibbles({1, 0, UINT32_MAX, 2})));
  const uint32_t far = IlMapEntry::kMaxNativeOffset;
  for (const uint32_t source_bits : {2u, 3u}) {
    const DebugInfoFormat format = source_bits == 2 ? kNet10 : kNet11;
    const std::string bounds = Packed(source_bits, 29, 32, {{0, 0, highest}, {2, far, 5}});
    EXPECT_THAT(Decoded(format, bounds, far),
                ElementsAre(Triple(0, INT32_MAX, 0), Triple(far, 2, IlMapEntry::kStackEmpty)));
    EXPECT_TRUE(Refused(format, bounds, far - 1)) << "outside the code";
    EXPECT_TRUE(Refused(format, Packed(source_bits, 29, 32, {{0, 0, 5}, {0, far, 5}, {0, 1, 5}}), UINT32_MAX));
    EXPECT_TRUE(Refused(format, Packed(source_bits, 30, 32, {{0, 0, 5}}))) << "more bits than code can have";
    EXPECT_TRUE(Refused(format, Packed(source_bits, 5, 33, {{0, 0, 5}})));
    EXPECT_TRUE(Refused(format, Packed(source_bits, 5, 32, {{0, 0, highest + 1}})));
  }
}

TEST(IlMapDecoderTest, EveryByteIsUsed) {
  const std::string eight = Nibbles({2, 0, 1, 2, 4, 3, 2});
  const std::string ten = Packed(2, 3, 4, {{2, 0, 1}, {2, 4, 3}});
  EXPECT_EQ(Decoded(kNet8, eight).size(), 2u);
  EXPECT_EQ(Decoded(kNet10, ten).size(), 2u);
  for (const std::string& behind : {std::string(1, '\0'), std::string(32, '\0')}) {
    EXPECT_TRUE(Refused(kNet8, eight + behind));
    EXPECT_TRUE(Refused(kNet10, ten + behind));
    EXPECT_TRUE(Refused(kNet11, Packed(3, 3, 4, {{2, 0, 1}, {2, 4, 3}}) + behind));
  }
  // The bits behind the last entry: six of the last byte.
  std::string filled = ten;
  filled.back() = static_cast<char>(filled.back() | 0x80);
  EXPECT_TRUE(Refused(kNet10, filled));
}

// Object..ctor of .NET 10.0.14, for one.
TEST(IlMapDecoderTest, ThreeEntriesOfFiveBitsHave32BytesOfZerosBehindThem) {
  const std::string bounds = Packed(2, 1, 2, {{2, 0, 1}, {2, 0, 3}, {2, 1, 0}});
  const std::vector<Triple> entries = {{0, -2, 2}, {0, 0, 2}, {1, -3, 2}};
  EXPECT_EQ(Decoded(kNet10, bounds + std::string(32, '\0')), entries);
  EXPECT_EQ(Decoded(kNet10, bounds), entries);
  for (const size_t zeros : {1, 31, 33}) EXPECT_TRUE(Refused(kNet10, bounds + std::string(zeros, '\0')));
  EXPECT_TRUE(Refused(kNet10, bounds + std::string(31, '\0') + "\1"));
  // Only of three entries, only of five bits, only in this version.
  EXPECT_TRUE(Refused(kNet10, Packed(2, 1, 2, {{2, 0, 1}, {2, 0, 3}}) + std::string(32, '\0')));
  EXPECT_TRUE(Refused(kNet10, Packed(2, 1, 2, {{2, 0, 1}, {2, 0, 3}, {2, 1, 3}, {2, 1, 0}}) + std::string(32, '\0')));
  EXPECT_TRUE(Refused(kNet10, Packed(2, 2, 2, {{2, 0, 1}, {2, 0, 3}, {2, 1, 0}}) + std::string(32, '\0')));
  EXPECT_TRUE(Refused(kNet11, Packed(3, 1, 1, {{2, 0, 1}, {2, 0, 1}, {2, 1, 0}}) + std::string(32, '\0')));
}

TEST(IlMapDecoderTest, CountsThatCannotBeAllocateNothing) {
  EXPECT_TRUE(Refused(kNet8, Nibbles({UINT32_MAX, 0, 1, 2})));
  EXPECT_TRUE(Refused(kNet10, Nibbles({UINT32_MAX, 0, 0}) + std::string(20, '\0')));
  EXPECT_TRUE(Refused(kNet11, Nibbles({UINT32_MAX, 0, 0}) + std::string(20, '\0')));
  for (const DebugInfoFormat format : {kNet8, kNet10, kNet11}) {
    for (const std::string& none : {Nibbles({0}), Nibbles({0, 0, 0})}) {
      EXPECT_TRUE(Refused(format, none)) << "a runtime leaves such a map out";
    }
    EXPECT_TRUE(Refused(format, std::string(kMaxBoundsBytes + 1, '\0')));
  }
}

TEST(IlMapDecoderTest, MapsThatContradictThemselvesAreRefused) {
  EXPECT_TRUE(Refused(kNet8, Nibbles({1, 1, 3, 2}))) << "not from the start";
  EXPECT_TRUE(Refused(kNet8, Nibbles({2, 0, 3, 2, 6, 3, 2}), 5)) << "outside the code";
  EXPECT_TRUE(Refused(kNet8, Nibbles({1, 0, 3, 0x20}))) << "a source that is not known";
  EXPECT_TRUE(Refused(kNet8, Nibbles({3, 0, 3, 2, UINT32_MAX, 3, 2, UINT32_MAX, 3, 2}), UINT32_MAX));
}

TEST(IlMapDecoderTest, MapsCutOffAnywhereAreRefused) {
  const std::vector<PackedEntry> entries = {{2, 0, 1}, {2, 0, 3}, {0, 70, 20}, {2, 1, 21}, {2, 9, 0}};
  const std::string eight = Nibbles({4, 0, 1, 2, 0, 3, 2, 70, 20, 0, 9, 0, 2});
  for (const auto& [format, bounds] :
       {std::pair(kNet8, eight), {kNet10, Packed(2, 7, 5, entries)}, {kNet11, Packed(3, 7, 5, entries)}}) {
    EXPECT_FALSE(Decoded(format, bounds).empty());
    for (size_t size = 1; size < bounds.size(); ++size) {
      EXPECT_TRUE(Refused(format, absl::string_view(bounds).substr(0, size))) << size;
    }
  }
}

// The head as a process gives it: kDebugInfoHeadBytes at a time, fewer at the end. Counts the reads.
absl::StatusOr<DebugInfoHeader> ReadHead(DebugInfoFormat format, absl::string_view info, int& reads) {
  DebugInfoPlace place;
  for (reads = 1; reads <= 3; ++reads) {
    const absl::string_view rest = info.substr(std::min<uint64_t>(place.offset, info.size()), kDebugInfoHeadBytes);
    const auto header = ReadDebugInfoHeader(format, AsBytes(rest), place);
    if (!header.ok() || !header->needs_more_at) return header;
    place = *header->needs_more_at;
  }
  return absl::InternalError("too many reads");
}

struct Place {
  uint64_t offset;
  uint32_t bytes;
  int reads;
  friend bool operator==(const Place&, const Place&) = default;
};
void PrintTo(const Place& place, std::ostream* out) {
  *out << place.bytes << " at " << place.offset << " by " << place.reads;
}

Place BoundsOf(DebugInfoFormat format, absl::string_view info) {
  int reads = 0;
  const auto header = ReadHead(format, info, reads);
  EXPECT_TRUE(header.ok()) << header.status();
  if (!header.ok()) return {};
  return {header->bounds_offset, header->bounds_bytes, reads};
}

absl::StatusCode HeadError(DebugInfoFormat format, absl::string_view info) {
  int reads = 0;
  return ReadHead(format, info, reads).status().code();
}

TEST(DebugInfoHeaderTest, SizesFollowTheFlags) {
  const std::string sizes = Nibbles({100, 7});
  for (const DebugInfoFormat format : {kNet8, kNet10}) {
    EXPECT_EQ(BoundsOf(format, std::string(1, '\0') + sizes), (Place{3, 100, 1}));
  }
  EXPECT_EQ(BoundsOf(kNet11, sizes), (Place{2, 100, 1}));
  EXPECT_EQ(BoundsOf(kNet8, std::string(1, '\0') + Nibbles({0, 5})).bytes, 0u);
}

// 32 bytes and the number of locals at 8, or 40 and at 16; 4 for each local.
std::string Patchpoint(DebugInfoFormat format, uint32_t locals) {
  const size_t count_offset = format == kNet8 ? 8 : 16;
  std::string bytes = std::string(count_offset, '\x55') + LittleEndian(locals, 4);
  bytes.resize(count_offset + 24 + 4 * locals, '\x66');
  return bytes;
}

TEST(DebugInfoHeaderTest, PatchpointsAndRichInformationAreSteppedOver) {
  for (const DebugInfoFormat format : {kNet8, kNet10}) {
    const uint64_t fixed = format == kNet8 ? 32 : 40;
    const std::string sizes = Nibbles({100, 7}), far_rich = LittleEndian(500, 4) + std::string(500, '\x77');
    EXPECT_EQ(BoundsOf(format, "\1" + Patchpoint(format, 3) + sizes), (Place{1 + fixed + 12 + 2, 100, 1}));
    EXPECT_EQ(BoundsOf(format, "\1" + Patchpoint(format, 50) + sizes), (Place{1 + fixed + 200 + 2, 100, 2}));
    EXPECT_EQ(BoundsOf(format, "\2" + far_rich + sizes), (Place{1 + 504 + 2, 100, 2}));
    EXPECT_EQ(BoundsOf(format, "\3" + Patchpoint(format, 50) + far_rich + sizes),
              (Place{1 + fixed + 200 + 504 + 2, 100, 3}));
    EXPECT_EQ(HeadError(format, "\1" + Patchpoint(format, 0x10000)), absl::StatusCode::kDataLoss);
  }
}

TEST(DebugInfoHeaderTest, PatchpointsAreSaidHoweverFarTheHeadGoesOn) {
  const auto says = [](DebugInfoFormat format, absl::string_view info) {
    int reads = 0;
    const auto header = ReadHead(format, info, reads);
    return header.ok() && header->has_patchpoint;
  };
  for (const DebugInfoFormat format : {kNet8, kNet10}) {
    const std::string sizes = Nibbles({100, 7}), rich = LittleEndian(500, 4) + std::string(500, '\x77');
    EXPECT_FALSE(says(format, std::string(1, '\0') + sizes));
    EXPECT_FALSE(says(format, "\2" + rich + sizes));
    EXPECT_TRUE(says(format, "\1" + Patchpoint(format, 3) + sizes));
    EXPECT_TRUE(says(format, "\3" + Patchpoint(format, 50) + rich + sizes));
  }
  EXPECT_FALSE(says(kNet11, Nibbles({100, 7})));
  EXPECT_FALSE(says(kNet11, Nibbles({0, 100, 7, 0, 0, 70, 9})));
  EXPECT_TRUE(says(kNet11, Nibbles({0, 100, 7, 0, 60, 70, 9})));
}

TEST(DebugInfoHeaderTest, ThePlaceToGoOnIsWhereThePartBegins) {
  const std::string info = "\1" + Patchpoint(kNet8, 50) + Nibbles({100, 7});
  const auto header = ReadDebugInfoHeader(kNet8, AsBytes(absl::string_view(info).substr(0, 64)));
  ASSERT_TRUE(header.ok());
  ASSERT_TRUE(header->needs_more_at.has_value());
  EXPECT_EQ(header->needs_more_at->part, DebugInfoPart::kSizes);
  EXPECT_EQ(header->needs_more_at->offset, 1u + 32 + 200);
  EXPECT_TRUE(absl::IsDataLoss(ReadDebugInfoHeader(kNet8, {}, *header->needs_more_at).status())) << "no progress";
}

TEST(DebugInfoHeaderTest, OfChangedMethodsTheOriginalMapIsFound) {
  const std::string flags(1, '\0');
  // 10: bounds, uninstrumented, variables. 11: bounds, variables, uninstrumented.
  EXPECT_EQ(BoundsOf(kNet10, flags + Nibbles({UINT32_MAX, 100, 30, 7})), (Place{1 + 9 + 100, 30, 1}));
  EXPECT_EQ(BoundsOf(kNet10, flags + Nibbles({UINT32_MAX, 100, 0, 7})), (Place{1 + 8, 100, 1}));
  EXPECT_EQ(BoundsOf(kNet11, Nibbles({0, 100, 7, 30, 0, 0, 0})), (Place{5 + 107, 30, 1}));
  EXPECT_EQ(BoundsOf(kNet11, Nibbles({0, 100, 7, 0, 60, 70, 9})), (Place{7, 100, 1}));
}

TEST(DebugInfoHeaderTest, ImagesHaveNoFlags) {
  const auto header = ReadDebugInfoHeader(kNet8, AsBytes(Nibbles({100, 7})), {DebugInfoPart::kSizes, 0});
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->bounds_offset, 2u);
  EXPECT_EQ(header->bounds_bytes, 100u);
}

TEST(DebugInfoHeaderTest, DamagedHeadsAreRefused) {
  EXPECT_EQ(HeadError(kNet8, ""), absl::StatusCode::kDataLoss);
  EXPECT_EQ(HeadError(kNet8, "\4" + Nibbles({100, 7})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(HeadError(kNet8, "\2" + LittleEndian(UINT32_MAX, 4)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(HeadError(kNet11, Nibbles({kMaxBoundsBytes + 1, 7})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(HeadError(kNet11, Nibbles({0, kMaxBoundsBytes + 1, 7, 0, 0, 0, 0})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(HeadError(kNet11, std::string(64, '\xFF')), absl::StatusCode::kDataLoss);
  EXPECT_EQ(BoundsOf(kNet11, Nibbles({kMaxBoundsBytes, 7})).bytes, kMaxBoundsBytes);
}

}  // namespace
}  // namespace clrsampler
