#include "formats/nettrace/event_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/byte_reader.h"
#include "unit/formats/nettrace/nettrace_writer.h"

namespace clrsampler {
namespace {

std::string Block(absl::string_view rows, uint16_t header_bytes = 20) {
  return absl::StrCat(Little(header_bytes), Little(uint16_t{1}), std::string(header_bytes - 4u, 'h'), rows);
}

TEST(EventRowsTest, WhatIsNotThereIsAsBefore) {
  const std::string first = WrittenRow{300, 4, 1u << 20, 77, 1'000'000, true, "abc"}.Bytes();
  const std::string second = std::string(1, '\0') + Varint(5) + "def";  // nothing but the time grows
  const std::string block = Block(first + second);
  absl::StatusOr<EventRows> rows = EventRows::Of(AsBytes(block));
  ASSERT_TRUE(rows.ok());
  const std::optional<EventRow> one = *rows->Next();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->metadata_id, 300u);
  EXPECT_EQ(one->sequence, 5u);
  EXPECT_EQ(one->capture_thread, 1u << 20);
  EXPECT_EQ(one->thread, 1u << 20);
  EXPECT_EQ(one->stack_id, 77u);
  EXPECT_EQ(one->ticks, 1'000'000u);
  EXPECT_TRUE(one->sorted);
  EXPECT_EQ(AsText(one->payload), "abc");
  const std::optional<EventRow> two = *rows->Next();
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->metadata_id, 300u);
  EXPECT_EQ(two->sequence, 6u);
  EXPECT_EQ(two->thread, 1u << 20);
  EXPECT_EQ(two->stack_id, 77u);
  EXPECT_EQ(two->ticks, 1'000'005u);
  EXPECT_FALSE(two->sorted);
  EXPECT_EQ(AsText(two->payload), "def");
  EXPECT_FALSE(rows->Next()->has_value());
}

TEST(EventRowsTest, ALongerHeaderAndActivitiesArePassedOver) {
  const std::string row =
      absl::StrCat(std::string(1, '\xB1'), Varint(9), Varint(2), std::string(32, 'a'), Varint(1), "p");
  const std::string block = Block(row, 24);
  absl::StatusOr<EventRows> rows = EventRows::Of(AsBytes(block));
  ASSERT_TRUE(rows.ok());
  const std::optional<EventRow> one = *rows->Next();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->metadata_id, 9u);
  EXPECT_EQ(AsText(one->payload), "p");
}

TEST(EventRowsTest, TheMarkInAMetadataIdIsNoPartOfIt) {
  const std::string block = Block(WrittenRow{0x8000'0005, 0, 1, 0, 0, false, ""}.Bytes());
  absl::StatusOr<EventRows> rows = EventRows::Of(AsBytes(block));
  EXPECT_EQ((*rows->Next())->metadata_id, 5u);
}

// Every row that lacks its last byte, and numbers that do not end or are too large.
TEST(EventRowsTest, ARowThatIsNotWholeIsAnError) {
  const std::string row = WrittenRow{1, 2, 3, 4, 5, false, "payload"}.Bytes();
  for (size_t size = 1; size < row.size(); ++size) {
    const std::string block = Block(row.substr(0, size));
    absl::StatusOr<EventRows> rows = EventRows::Of(AsBytes(block));
    ASSERT_TRUE(rows.ok());
    EXPECT_TRUE(absl::IsDataLoss(rows->Next().status())) << size;
    EXPECT_TRUE(absl::IsDataLoss(rows->Next().status())) << "it stays one";
  }
  for (const std::string& number :
       {std::string(5, '\xff') + std::string(1, '\0'), std::string("\xff\xff\xff\xff\x10")}) {
    const std::string block = Block(absl::StrCat(std::string(1, '\1'), number, Varint(0)));
    EXPECT_TRUE(absl::IsDataLoss(EventRows::Of(AsBytes(block))->Next().status()));
  }
  const std::string largest = Block(absl::StrCat(std::string(1, '\1'), "\xff\xff\xff\xff\x07", Varint(0)));
  EXPECT_EQ((*EventRows::Of(AsBytes(largest))->Next())->metadata_id, 0x7fff'ffffu);
}

}  // namespace
}  // namespace clrsampler
