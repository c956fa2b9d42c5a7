#include "formats/pe/blob_cursor.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace clrsampler {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// The examples of ECMA-335 II.23.2.
TEST(BlobCursorTest, ReadsUnsignedNumbers) {
  const std::pair<uint32_t, std::vector<std::byte>> examples[] = {
      {0x03, Bytes({0x03})},
      {0x7F, Bytes({0x7F})},
      {0x80, Bytes({0x80, 0x80})},
      {0x2E57, Bytes({0xAE, 0x57})},
      {0x3FFF, Bytes({0xBF, 0xFF})},
      {0x4000, Bytes({0xC0, 0x00, 0x40, 0x00})},
      {0x1FFFFFFF, Bytes({0xDF, 0xFF, 0xFF, 0xFF})},
  };
  for (const auto& [value, bytes] : examples) {
    BlobCursor cursor(bytes);
    EXPECT_EQ(cursor.Number(), value);
    EXPECT_EQ(cursor.remaining(), 0u);
    EXPECT_FALSE(cursor.failed());
  }
}

TEST(BlobCursorTest, ReadsSignedNumbers) {
  const std::pair<int32_t, std::vector<std::byte>> examples[] = {
      {3, Bytes({0x06})},
      {-3, Bytes({0x7B})},
      {64, Bytes({0x80, 0x80})},
      {-64, Bytes({0x01})},
      {8192, Bytes({0xC0, 0x00, 0x40, 0x00})},
      {-8192, Bytes({0x80, 0x01})},
      {268435455, Bytes({0xDF, 0xFF, 0xFF, 0xFE})},
      {-268435456, Bytes({0xC0, 0x00, 0x00, 0x01})},
  };
  for (const auto& [value, bytes] : examples) {
    BlobCursor cursor(bytes);
    EXPECT_EQ(cursor.SignedNumber(), value);
    EXPECT_EQ(cursor.remaining(), 0u);
    EXPECT_FALSE(cursor.failed());
  }
}

TEST(BlobCursorTest, WhatIsCutOffOrNoNumberFails) {
  for (const std::vector<std::byte>& bytes :
       {Bytes({}), Bytes({0x80}), Bytes({0xC0}), Bytes({0xC0, 0x00}), Bytes({0xC0, 0x00, 0x40}),
        Bytes({0xE0, 0x00, 0x00, 0x00}), Bytes({0xFF, 0xFF, 0xFF, 0xFF})}) {
    BlobCursor number(bytes), signed_number(bytes);
    number.Number();
    signed_number.SignedNumber();
    EXPECT_TRUE(number.failed() && signed_number.failed()) << bytes.size();
    EXPECT_LE(number.offset(), bytes.size());
  }
  const std::vector<std::byte> byte = Bytes({0x01});
  BlobCursor behind(byte, 2);
  EXPECT_EQ(behind.Byte(), 0u);
  EXPECT_TRUE(behind.failed());
  EXPECT_EQ(behind.remaining(), 0u);
}

}  // namespace
}  // namespace clrsampler
