#include "formats/pe/native_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::Pair;

// NativeFormatWriter's encoding, written from its description: the shortest form that holds the value.
std::string Unsigned(uint32_t value) {
  auto bytes = [](uint64_t word, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>(word >> 8 * i);
    return text;
  };
  if (value < 1u << 7) return bytes(uint64_t{value} << 1, 1);
  if (value < 1u << 14) return bytes(uint64_t{value} << 2 | 1, 2);
  if (value < 1u << 21) return bytes(uint64_t{value} << 3 | 3, 3);
  if (value < 1u << 28) return bytes(uint64_t{value} << 4 | 7, 4);
  return std::string(1, '\x0F') + bytes(value, 4);
}

TEST(NativeFormatTest, NumbersOfEveryLength) {
  for (uint32_t value :
       {0u, 1u, 63u, 127u, 128u, 16383u, 16384u, 2097151u, 2097152u, (1u << 28) - 1, 1u << 28, UINT32_MAX}) {
    const std::string text = Unsigned(value) + "\x01";
    const auto number = ReadNativeUnsigned(AsBytes(text), 0);
    ASSERT_TRUE(number.has_value());
    EXPECT_EQ(number->value, value);
    EXPECT_EQ(number->next, text.size() - 1);
    for (size_t size = 0; size + 1 < text.size(); ++size) {
      EXPECT_FALSE(ReadNativeUnsigned(AsBytes(absl::string_view(text).substr(0, size)), 0).has_value());
    }
  }
  EXPECT_FALSE(ReadNativeUnsigned(AsBytes("\x1F\1\2\3\4\5\6\7\x08"), 0).has_value());  // the 64-bit form
}

TEST(NativeFormatTest, SignedNumbersExtendTheirOwnWidth) {
  EXPECT_EQ(ReadNativeSigned(AsBytes(absl::string_view("\x7E", 1)), 0)->value, 63);
  EXPECT_EQ(ReadNativeSigned(AsBytes(absl::string_view("\x80", 1)), 0)->value, -64);
  EXPECT_EQ(ReadNativeSigned(AsBytes(absl::string_view("\xFE", 1)), 0)->value, -1);
  EXPECT_EQ(ReadNativeSigned(AsBytes(absl::string_view("\x01\x80", 2)), 0)->value, -8192);
  EXPECT_EQ(ReadNativeSigned(AsBytes(absl::string_view("\x0F\xFE\xFF\xFF\xFF", 5)), 0)->value, -2);
}

std::map<uint32_t, uint32_t> Elements(absl::string_view section, absl::Status* status = nullptr) {
  std::map<uint32_t, uint32_t> elements;
  const absl::Status result = ForEachInNativeArray(AsBytes(section), UINT32_MAX, [&](uint32_t index, uint64_t offset) {
    elements[index] = *ReadEntryPoint(AsBytes(section), offset);
    return absl::OkStatus();
  });
  if (status != nullptr) *status = result;
  return elements;
}

// count 20, u8 offsets; the first block is one leaf for index 9, the second a full path to index 17 (binary 0001).
TEST(NativeFormatTest, ArraysWithLeavesAndPaths) {
  std::string section = Unsigned(20 << 2 | 0);
  const size_t table = section.size();
  section += std::string(2, '\0');
  section[table] = static_cast<char>(section.size() - table);
  section += Unsigned(9 << 2) + Unsigned(5 << 1);  // leaf: compares all four bits, then the element
  section[table + 1] = static_cast<char>(section.size() - table);
  section += Unsigned(1) + Unsigned(1) + Unsigned(1) + Unsigned(1 << 2 | 2) + Unsigned(7 << 2 | 1);
  EXPECT_THAT(Elements(section), ElementsAre(Pair(9, 5), Pair(17, 7)));
  for (uint32_t index = 0; index < 40; ++index) {
    const auto element = FindInNativeArray(AsBytes(section), index);
    ASSERT_TRUE(element.ok()) << element.status();
    ASSERT_EQ(element->has_value(), index == 9 || index == 17) << index;
    if (!element->has_value()) continue;
    EXPECT_EQ(ReadEntryPoint(AsBytes(section), **element), index == 9 ? 5 : 7);
  }
}

TEST(NativeFormatTest, NoMoreIndexesAreVisitedThanAskedFor) {
  // 1,600 indexes. Each block is the same leaf, for the index whose low bits are 9.
  std::string section = Unsigned(1600 << 2 | 0) + std::string(100, static_cast<char>(100)) + Unsigned(9 << 2);
  for (const uint32_t indexes : {0u, 9u, 10u, 32u, 1600u, UINT32_MAX}) {
    uint32_t visited = 0;
    const auto visit = [&](uint32_t index, uint64_t) {
      EXPECT_LT(index, indexes);
      ++visited;
      return absl::OkStatus();
    };
    EXPECT_TRUE(ForEachInNativeArray(AsBytes(section), indexes, visit).ok());
    EXPECT_EQ(visited, (std::min(indexes, 1600u) + 6) / 16);
  }
}

TEST(NativeFormatTest, DamagedArraysEnd) {
  absl::Status status;
  Elements("", &status);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(FindInNativeArray({}, 0).ok());
  Elements(Unsigned(UINT32_MAX - 3), &status);  // a count of 2^30 with nothing behind
  EXPECT_FALSE(status.ok());
  Elements(Unsigned(16 << 2) + "\xFF", &status);  // the block lies behind the end
  EXPECT_FALSE(status.ok());
}

std::vector<uint64_t> Payloads(absl::string_view section, absl::Status* status = nullptr) {
  std::vector<uint64_t> payloads;
  const absl::Status result = ForEachInNativeHashtable(AsBytes(section), [&](uint64_t offset) {
    payloads.push_back(offset);
    return absl::OkStatus();
  });
  if (status != nullptr) *status = result;
  return payloads;
}

TEST(NativeFormatTest, HashtablePayloadsAreRelativeToTheirDistance) {
  // Two buckets, u8 offsets relative to byte 1: entries [3,5) and [5,7), then payloads at 8 and 9.
  const absl::string_view section("\x04\x03\x05\x07\xAA\x06\xBB\x04\x11\x22", 10);
  EXPECT_THAT(Payloads(section), ElementsAre(8, 9));
}

TEST(NativeFormatTest, DamagedHashtablesEnd) {
  absl::Status status;
  for (absl::string_view section : {absl::string_view(""), absl::string_view("\xFC", 1),  // 2^63 buckets
                                    absl::string_view("\x04\x03\x02\x07\0\0\0\0\0", 9),   // buckets out of order
                                    absl::string_view("\x00\x02\x04\xAA\x80", 5),         // payload before the section
                                    absl::string_view("\x00\x02\x40\xAA\x02", 5)}) {      // entries behind the end
    Payloads(section, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace clrsampler
