#include "clr/hooks/function_table.h"

#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

constexpr uint64_t kCode = 0x10000, kTables = 0x1000;
using Bounds = std::vector<std::pair<uint64_t, uint64_t>>;

LinkedImage ImageOf(const Bounds& bounds, uint64_t flags = SHF_ALLOC | SHF_EXECINSTR) {
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text", .flags = flags, .address = kCode, .bytes = std::string(0x100, '\x90')});
  image.AddUnwindTables(kTables, bounds);
  return image;
}

absl::StatusOr<size_t> Functions(const LinkedImage& linked) {
  const std::string bytes = linked.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_TRUE(image.ok()) << image.status();
  const auto table = FunctionTable::Read(*image);
  if (!table.ok()) return table.status();
  return table->size();
}

TEST(FunctionTableTest, AFunctionIsFoundByItsFirstByteOnly) {
  const std::string bytes = ImageOf({{kCode, 0x10}, {kCode + 0x20, 0x30}}).Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto table = FunctionTable::Read(*image);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 2u);
  EXPECT_EQ(table->StartingAt({kCode + 0x20}), 1u);
  for (const uint64_t at : {kCode - 1, kCode + 1, kCode + 0x10, kCode + 0x1f, kCode + 0x21, kCode + 0x50}) {
    EXPECT_EQ(table->StartingAt({at}), std::nullopt) << at;
  }
  EXPECT_EQ(table->Start(1), VirtualAddress{kCode + 0x20});
  EXPECT_EQ(table->Code(1).size(), 0x30u);
  EXPECT_EQ(table->Offset(1).value, table->Offset(0).value + 0x20);
  EXPECT_EQ(image->ToAddress(table->Offset(1)), VirtualAddress{kCode + 0x20});
  EXPECT_EQ(bytes[table->Offset(1).value], '\x90');
}

TEST(FunctionTableTest, FunctionsMayTouch) {
  EXPECT_EQ(*Functions(ImageOf({{kCode, 0x80}, {kCode + 0x80, 0x80}})), 2u);
}

TEST(FunctionTableTest, WhatLiesOutsideTheCodeIsLeftOut) {
  EXPECT_EQ(*Functions(ImageOf({{kCode - 0x20, 0x10}, {kCode, 0x10}, {kCode + 0x100, 0x10}})), 1u);
  EXPECT_EQ(*Functions(ImageOf({{kCode - 8, 0x10}, {kCode + 0xf8, 0x10}})), 0u);
  EXPECT_EQ(*Functions(ImageOf({{kCode, 0x10}}, SHF_ALLOC)), 0u);
  EXPECT_EQ(*Functions(ImageOf({{kCode, 0}, {kCode + 0x10, 0x10}})), 1u);  // without a byte
}

TEST(FunctionTableTest, SeveralSegmentsOfCode) {
  LinkedImage image = ImageOf({{kCode - 0x1000, 0x10}, {kCode, 0x10}, {kCode + 0x1000, 0x10}});
  for (const uint64_t at : {kCode - 0x1000, kCode + 0x1000}) {
    image.Add({.name = ".init", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = at, .bytes = std::string(0x10, '\x90')});
  }
  EXPECT_EQ(*Functions(image), 3u);
}

TEST(FunctionTableTest, ATableThatContradictsItselfIsRefused) {
  for (const Bounds& bounds : {Bounds{{kCode + 0x20, 0x10}, {kCode, 0x10}}, Bounds{{kCode, 0x10}, {kCode, 0x10}},
                               Bounds{{kCode, 0x30}, {kCode + 0x20, 0x10}}, Bounds{{kCode, 0x80}, {kCode + 1, 1}}}) {
    const auto functions = Functions(ImageOf(bounds));
    EXPECT_TRUE(absl::IsDataLoss(functions.status())) << functions.status();
  }
}

TEST(FunctionTableTest, AnEntryThatDescribesAnotherFunctionIsLeftOut) {
  LinkedImage image = ImageOf({{kCode, 0x10}, {kCode + 0x20, 0x10}});
  image.Find(".eh_frame_hdr")->bytes[12] += 4;  // the first function of the sorted table
  EXPECT_EQ(*Functions(image), 1u);
}

TEST(FunctionTableTest, WithoutATableNothingIsGiven) {
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = kCode, .bytes = "1234"});
  EXPECT_TRUE(absl::IsNotFound(Functions(image).status()));
}

size_t WithSymbols(const Bounds& bounds, const std::vector<LinkedImage::Symbol>& symbols) {
  LinkedImage linked = ImageOf(bounds);
  linked.AddSymbols(".symtab", ".strtab", symbols);
  const std::string bytes = linked.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto names = image->symtab();
  const auto table = FunctionTable::Read(*image, &*names);
  EXPECT_TRUE(table.ok()) << table.status();
  for (uint32_t i = 0; table.ok() && i + 1 < table->size(); ++i) {
    EXPECT_LE(table->Start(i).value + table->Code(i).size(), table->Start(i + 1).value);
  }
  return table.ok() ? table->size() : 0;
}

TEST(FunctionTableTest, SymbolsTellFunctionsThatTheUnwindTableLacks) {
  const Bounds bounds = {{kCode + 0x40, 0x10}};
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0x10}, {"b", kCode + 0x10, 0x10}, {"c", kCode + 0x80, 0x80}}), 4u);
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode + 0x40, 0x10}}), 1u);                          // the same
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0x10}, {"b", kCode, 0x10}}), 2u);             // two names
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0}, {"b", kCode, 0x10, STT_OBJECT}}), 1u);    // no functions
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode - 8, 0x10}, {"b", kCode + 0xf8, 0x10}}), 1u);  // not all in the code
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode + 0x50, ~uint64_t{0} - 8}, {"b", 1, ~uint64_t{0}}}), 1u);
}

TEST(FunctionTableTest, SymbolsThatOverlapAreLeftOut) {
  const Bounds bounds = {{kCode + 0x40, 0x10}};
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0x20}, {"b", kCode + 4, 0x4}, {"c", kCode + 0x20, 0x10}}), 2u);
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0x20}, {"b", kCode, 0x10}}), 1u);
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode, 0x80}, {"b", kCode + 4, 0x4}, {"c", kCode + 0x70, 0x8}}), 1u);
  for (const uint64_t start : {0x38, 0x41, 0x48}) EXPECT_EQ(WithSymbols(bounds, {{"a", kCode + start, 0x10}}), 1u);
  EXPECT_EQ(WithSymbols(bounds, {{"a", kCode + 0x44, 4}}), 1u);
}

}  // namespace
}  // namespace clrsampler
