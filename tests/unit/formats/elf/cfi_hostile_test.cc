// Lying unwind tables: bounded time and memory, whatever they say.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "formats/byte_reader.h"
#include "formats/elf/cfi_program.h"
#include "formats/elf/cfi_table.h"
#include "unit/formats/elf/frame_builder.h"

namespace clrsampler {
namespace {

constexpr uint64_t kHostileCode = FrameBuilder::kCode;

std::optional<CfiTable> Open(const std::string& bytes, bool compiled) {
  const auto image = ElfImage::Parse(AsBytes(bytes));
  if (!image.ok()) return std::nullopt;
  auto table = compiled ? CfiTable::OpenCompiled(*image) : CfiTable::Open(*image);
  if (!table.ok()) return std::nullopt;
  return *std::move(table);
}

// Asks both ways, all over the place.
void UseAll(const std::string& bytes) {
  for (const bool compiled : {true, false}) {
    const auto table = Open(bytes, compiled);
    if (!table) continue;
    for (uint64_t at = kHostileCode - 16; at < kHostileCode + 0x200; at += 3) (void)table->At({at});
    for (const uint64_t at : {uint64_t{0}, ~uint64_t{0}, FrameBuilder::kFrames}) (void)table->At({at});
  }
}

std::string Good() {
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  for (uint64_t i = 0; i < 8; ++i) {
    builder.AddFunction(common, kHostileCode + i * 0x40, 0x40,
                        cfa::Advance(1) + cfa::DefCfaOffset(16) + cfa::Offset(6, 2) + cfa::Remember() +
                            cfa::Advance(3) + cfa::DefCfaRegister(6) + cfa::Expression(6, cfa::Breg(6, 0)) +
                            cfa::RestoreState());
  }
  return builder.Build();
}

TEST(CfiHostileTest, RandomDamageDoesNoHarm) {
  const std::string good = Good();
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 4; ++i) {
      bytes[0x1000 + random() % 0x300] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    UseAll(bytes);
  }
  for (size_t length = 0; length < good.size(); length += 61) UseAll(good.substr(0, length));
}

TEST(CfiHostileTest, LengthsBeyondTheSectionEndIt) {
  for (const std::string& length : {Raw(uint32_t{0xfffffff0}), Raw(uint32_t{0xffffffff}) + Raw(~uint64_t{0}),
                                    Raw(uint32_t{0xffffffff}) + Raw(uint64_t{1} << 32), Raw(uint32_t{1})}) {
    FrameBuilder builder;
    builder.AddFunction(builder.AddCommon(), kHostileCode, 0x40, cfa::DefCfaOffset(16));
    builder.Append(length + std::string(32, '\0'));
    const auto table = Open(builder.Build(false), true);
    ASSERT_TRUE(table.has_value());
    EXPECT_EQ(table->Row({kHostileCode})->cfa_offset, 16) << "what stands before it is good";
    UseAll(builder.Build());
  }
}

TEST(CfiHostileTest, CommonEntriesThatAreNone) {
  // An FDE whose CIE is itself, another FDE, outside the section, or far before it.
  for (const uint64_t common : {uint64_t{0}, uint64_t{24}, uint64_t{4000}, ~uint64_t{0} - 100}) {
    FrameBuilder builder;
    builder.AddCommon();
    builder.AddFunction(common == 0 ? builder.bytes().size() : common, kHostileCode, 0x40, "");
    const std::string image = builder.Build();
    EXPECT_FALSE(Open(image, true).has_value());
    EXPECT_EQ(Open(image, false)->At({kHostileCode}).coverage, CfiCoverage::kUnreadable);
  }
}

TEST(CfiHostileTest, HugeAdvancesEndTheFunction) {
  FrameBuilder::Common common;
  common.code_alignment = ~uint64_t{0} >> 1;
  FrameBuilder builder;
  builder.AddFunction(builder.AddCommon(common), kHostileCode, 0x40,
                      cfa::DefCfaOffset(16) + cfa::Advance4(0xffffffff) + cfa::DefCfaOffset(24) + cfa::Advance4(3));
  const std::string image = builder.Build();
  for (const bool compiled : {false, true}) {
    const auto table = Open(image, compiled);
    EXPECT_EQ(table->Row({kHostileCode + 0x3f})->cfa_offset, 16);
    EXPECT_EQ(table->At({kHostileCode + 0x40}).coverage, CfiCoverage::kBetween);
  }
}

TEST(CfiHostileTest, RememberingWithoutEndIsRefused) {
  std::string bomb;
  for (int i = 0; i < 60'000; ++i) bomb += cfa::Remember();
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  builder.AddFunction(common, kHostileCode, 0x40, cfa::DefCfaOffset(16) + cfa::Advance(1) + bomb);
  builder.AddFunction(common, kHostileCode + 0x40, 0x40, cfa::RestoreState());
  const std::string image = builder.Build();
  for (const bool compiled : {false, true}) {
    const auto table = Open(image, compiled);
    EXPECT_EQ(table->Row({kHostileCode})->cfa_offset, 16);
    EXPECT_EQ(table->At({kHostileCode + 1}).coverage, CfiCoverage::kUnreadable);
    EXPECT_EQ(table->At({kHostileCode + 0x40}).coverage, CfiCoverage::kUnreadable);
  }
}

TEST(CfiHostileTest, ALookUpRunsAProgramOfBoundedLength) {
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  builder.AddFunction(common, kHostileCode, 0x40, std::string(CfiProgram::kMaxInstructionBytes, '\0'));
  builder.AddFunction(common, kHostileCode + 0x40, 0x40, std::string(CfiProgram::kMaxInstructionBytes + 1, '\0'));
  const std::string image = builder.Build();
  const auto table = Open(image, false);
  EXPECT_EQ(table->At({kHostileCode}).coverage, CfiCoverage::kRow);
  EXPECT_EQ(table->At({kHostileCode + 0x40}).coverage, CfiCoverage::kUnreadable);
}

// 60,000 FDEs, each with a CIE of its own that lies inside the one before: together they are 60,000 times as long as
// the bytes that they are made of.
std::string CommonEntriesInsideOneAnother(size_t count) {
  constexpr size_t kTail = 1997;  // ends between two instructions
  // Id, version 3, no letters, factors 0 and -8, return register: read as instructions, they do nothing.
  const std::string header = Raw(uint32_t{0}) + std::string("\x03\0\0\x78\x10", 5);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += Raw(uint32_t{kTail}) + header;
  bytes += std::string(kTail, '\0');
  const std::string commons = Raw(static_cast<uint32_t>(bytes.size())) + Raw(uint32_t{0}) + bytes;
  std::string section = commons;
  for (size_t i = 0; i < count; ++i) {
    const size_t common_at = 8 + i * (4 + header.size()), id_at = section.size() + 4;
    section +=
        Raw(uint32_t{20}) + Raw(static_cast<uint32_t>(id_at - common_at)) + Raw(kHostileCode + i) + Raw(uint64_t{1});
  }
  return section;
}

TEST(CfiHostileTest, CommonEntriesInsideOneAnotherTakeLinearTime) {
  constexpr size_t kCount = 60'000;
  std::optional<CfiTable> table;
  // In CPU time, which other programs take nothing of.
  const auto took = [&table](size_t count) {
    FrameBuilder builder;
    builder.Append(CommonEntriesInsideOneAnother(count));
    const auto image = builder.Build(false);
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    };
    table.reset();
    const double start = now();
    table = Open(image, true);
    return now() - start;
  };
  const double quarter = std::min({took(kCount / 4), took(kCount / 4), took(kCount / 4)});
  const double all = took(kCount);
  ASSERT_TRUE(table.has_value());
  EXPECT_GT(table->compiled()->damaged(), kCount / 2) << "the programs that were run are longer than the section";
  EXPECT_EQ(table->At({kHostileCode}).coverage, CfiCoverage::kRow) << "the first ones are read";
  EXPECT_LT(all, 8 * quarter + 0.1) << "four times as many; in square time it would be sixteen times";
}

TEST(CfiHostileTest, DistinctRowsAndMemoryAreBounded) {
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  // Each 5 bytes make a row that no other is like.
  for (uint64_t function = 0; function < 10; ++function) {
    std::string program;
    for (uint32_t i = 0; i < 12'000; ++i) {
      program += cfa::DefCfaOffset((function * 12'000 + i + 20'000) * 8) + cfa::Advance(1);
    }
    builder.AddFunction(common, kHostileCode + function * 12'000, 12'000, program);
  }
  const std::string image = builder.Build(false);
  const auto table = Open(image, true);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->compiled()->distinct_rows(), CompiledCfi::kMaxDistinctRows);
  EXPECT_LT(table->memory_bytes(), 4u << 20);
  EXPECT_EQ(table->Row({kHostileCode + 7})->cfa_offset, (7 + 20'000) * 8);
  EXPECT_EQ(table->At({kHostileCode + 119'999}).coverage, CfiCoverage::kUnreadable);
}

TEST(CfiHostileTest, FunctionsFarApartAreLeftOut) {
  FrameBuilder builder;
  FrameBuilder::Common absolute;
  absolute.augmentation = "";
  const uint64_t common = builder.AddCommon(absolute);
  builder.AddFunction(common, kHostileCode, 0x40, "");
  builder.AddFunction(common, ~uint64_t{0} - 0x100, 0x40, "");
  builder.AddFunction(common, kHostileCode + (uint64_t{1} << 32) - 0x20, 0x40, "");
  builder.AddFunction(common, kHostileCode + 0x80, ~uint64_t{0}, "");
  const std::string image = builder.Build(false);
  const auto table = Open(image, true);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->At({kHostileCode}).coverage, CfiCoverage::kRow);
  EXPECT_EQ(table->compiled()->damaged(), 3u);
  EXPECT_EQ(table->At({~uint64_t{0} - 0x100}).coverage, CfiCoverage::kBetween);
}

// A hundred thousand sections may show the same code, and claim any size.
TEST(CfiHostileTest, SectionsOfCodeCountOnceAndAreNoLargerThanTheFile) {
  FrameBuilder builder;
  const uint64_t common = builder.AddCommon();
  for (uint64_t i = 0; i < 200; ++i) builder.AddFunction(common, FrameBuilder::kCode + 16 * i, 16, "");
  for (int i = 0; i < 50; ++i) builder.CodeSection(".text", FrameBuilder::kCode, 3200);
  const std::string bytes = builder.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok()) << image.status();
  const auto table = CfiTable::Open(*image);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Extent().code_bytes, 3200u);
  EXPECT_EQ(table->Extent().covered_bytes, 3200u);
  builder.CodeSection(".huge", FrameBuilder::kCode + 3200, uint64_t{1} << 40);
  const std::string huge = builder.Build();
  const auto other = ElfImage::Parse(AsBytes(huge));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(CfiTable::Open(*other)->may_cover_little());
}

}  // namespace
}  // namespace clrsampler
