#include "clr/memory/write_barriers.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "os/file_io.h"
#include "os/mapped_file.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBegin = 0x7f00'0000'1000;

// mov [rdi], rsi; movabs rax, VALUE; shr rdi, SHIFT; cmp byte [rdi + rax], 0; jne +1; ret; mov byte [rdi + rax], 255;
// ret
std::vector<std::byte> Copy(uint8_t value, uint8_t shift) {
  std::vector<uint8_t> code = {0x48, 0x89, 0x37, 0x48, 0xb8};
  code.insert(code.end(), 8, value);
  for (const uint8_t byte : {0x48, 0xc1, 0xef}) code.push_back(byte);
  code.push_back(shift);
  for (const uint8_t byte : {0x80, 0x3c, 0x07, 0x00, 0x75, 0x01, 0xc3, 0xc6, 0x04, 0x07, 0xff, 0xc3}) {
    code.push_back(byte);
  }
  const auto bytes = std::as_bytes(std::span(code));
  return {bytes.begin(), bytes.end()};
}

class WriteBarriersTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto fd = OpenForReading(RuntimeFixture("libfake_coreclr.so"));
    ASSERT_TRUE(fd.ok()) << fd.status();
    auto file = MappedFile::Map(fd->get(), 0, 0, 1 << 20);
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    const auto image = ElfImage::Parse(file_.bytes());
    ASSERT_TRUE(image.ok()) << image.status();
    barriers_ = WriteBarriers(*image);
  }
  static std::vector<std::byte> Among(const std::vector<std::byte>& code, size_t before, size_t after) {
    std::vector<std::byte> memory(before, std::byte{0xcc});
    memory.insert(memory.end(), code.begin(), code.end());
    memory.insert(memory.end(), after, std::byte{0xcc});
    return memory;
  }

  MappedFile file_;
  WriteBarriers barriers_;
};

TEST_F(WriteBarriersTest, OnlyWhatStoresAReferenceFirstIsOne) { EXPECT_EQ(barriers_.size(), 1u); }

TEST_F(WriteBarriersTest, ACopyIsFoundFromEachOfItsBytesWhateverItsValues) {
  for (const uint8_t value : {0x00, 0x7f, 0xf0}) {
    const std::vector<std::byte> code = Copy(value, value);
    const std::vector<std::byte> memory = Among(code, 700, 3);
    for (size_t i = 0; i < memory.size(); ++i) {
      const auto copy = barriers_.CopyAround(kBegin + i, memory, kBegin);
      ASSERT_EQ(copy.has_value(), i >= 700 && i < 700 + code.size()) << i;
      if (!copy.has_value()) continue;
      EXPECT_EQ(copy->begin, kBegin + 700);
      EXPECT_EQ(copy->end, kBegin + 700 + code.size());
    }
  }
}

TEST_F(WriteBarriersTest, AnyOtherByteMakesItAnother) {
  const std::vector<std::byte> code = Copy(1, 2);
  for (size_t i = 0; i < code.size(); ++i) {
    std::vector<std::byte> memory = code;
    memory[i] ^= std::byte{0x01};
    const bool is_value = (i >= 5 && i < 13) || i == 16;
    EXPECT_EQ(barriers_.CopyAround(kBegin, memory, kBegin).has_value(), is_value) << i;
  }
}

TEST_F(WriteBarriersTest, OfArm64ACopyIsTheImagesCodeToTheByte) {
  std::vector<std::byte> bytes(file_.bytes().begin(), file_.bytes().end());
  constexpr size_t kMachine = 18;  // e_machine
  bytes[kMachine] = std::byte{183};
  const auto image = ElfImage::Parse(bytes);
  ASSERT_TRUE(image.ok()) << image.status();
  const WriteBarriers barriers(*image);
  EXPECT_EQ(barriers.size(), 1u) << "what calls is none";
  const std::vector<uint32_t> words = {0xc89ffdcf, 0x58001f0c, 0xeb0c01ff, 0xd65f03c0};
  const auto code = std::as_bytes(std::span(words));
  const std::vector<std::byte> memory = Among({code.begin(), code.end()}, 64, 64);
  for (size_t i = 0; i < memory.size(); i += 4) {
    EXPECT_EQ(barriers.CopyAround(kBegin + i, memory, kBegin).has_value(), i >= 64 && i < 80) << i;
  }
  for (size_t i = 0; i < code.size(); ++i) {
    std::vector<std::byte> other = memory;
    other[64 + i] ^= std::byte{1};
    EXPECT_FALSE(barriers.CopyAround(kBegin + 64, other, kBegin).has_value()) << i;
  }
  EXPECT_FALSE(barriers_.CopyAround(kBegin + 64, memory, kBegin).has_value());
}

TEST_F(WriteBarriersTest, WhatIsCutOrElsewhereIsNone) {
  std::vector<std::byte> memory = Copy(1, 2);
  EXPECT_FALSE(barriers_.CopyAround(kBegin - 1, memory, kBegin).has_value());
  EXPECT_FALSE(barriers_.CopyAround(kBegin + memory.size(), memory, kBegin).has_value());
  memory.pop_back();
  EXPECT_FALSE(barriers_.CopyAround(kBegin, memory, kBegin).has_value());
  EXPECT_FALSE(barriers_.CopyAround(kBegin, {}, kBegin).has_value());
}

}  // namespace
}  // namespace clrsampler
