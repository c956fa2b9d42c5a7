#include "formats/elf/eh_frame.h"

#include <elf.h>
#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "formats/elf/elf_symbols.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

// The compiler wrote both tables for the same functions: sizes in .symtab, ranges in .eh_frame.
TEST(EhFrameTest, BoundsOfCompiledFunctionsAreThoseOfTheirSymbols) {
  const std::string bytes = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto functions = EhFrameTable::Parse(*image);
  ASSERT_TRUE(functions.ok());
  for (const char* name :
       {"exported_entry", "_ZNK4shop5Order5TotalEi", "_ZN4shop5TwiceIlEET_S1_", "_ZL12HiddenHelperi"}) {
    const auto symbol = FindSymbol(*image, name);
    ASSERT_TRUE(symbol.has_value()) << name;
    for (const uint64_t inside : {uint64_t{0}, symbol->size / 2, symbol->size - 1}) {
      const auto bounds = functions->Find({symbol->address.value + inside});
      ASSERT_TRUE(bounds.has_value()) << name;
      EXPECT_EQ(bounds->start, symbol->address);
      EXPECT_EQ(bounds->end.value, symbol->address.value + symbol->size);
      EXPECT_TRUE(bounds->end_known);
    }
  }
}

TEST(EhFrameTest, CodeWithoutUnwindDataBelongsToNoFunction) {
  const std::string bytes = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto functions = EhFrameTable::Parse(*image);
  const auto assembly = FindSymbol(*image, "after_sizeless");
  ASSERT_TRUE(assembly.has_value());
  EXPECT_FALSE(functions->Find(assembly->address).has_value());
  EXPECT_FALSE(functions->Find({0}).has_value());
  EXPECT_FALSE(functions->Find({~uint64_t{0}}).has_value());
}

TEST(EhFrameTest, EveryDescriptionOfThisProgramReadsAndIsTheOneOfItsRow) {
  const std::string bytes = *ReadWholeFile("/proc/self/exe", 256 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto functions = EhFrameTable::Parse(*image);
  ASSERT_TRUE(functions.ok());
  ASSERT_GT(functions->size(), 100u);
  for (size_t i = 0; i < functions->size(); ++i) {
    const auto description = functions->Description(i);
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_EQ(description->start, functions->FunctionStart(i));
    EXPECT_NE(description->common.code_alignment, 0u);
    EXPECT_NE(description->common.data_alignment, 0);
    if (i > 0) {
      EXPECT_GE(functions->FunctionStart(i), functions->FunctionStart(i - 1));
    }
  }
}

TEST(EhFrameTest, AnUnreadableDescriptionLeavesTheFunctionStart) {
  std::string bytes = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto intact = ElfImage::Parse(AsBytes(bytes));
  const auto symbol = FindSymbol(*intact, "exported_entry");
  const ElfSection* frames = intact->FindSection(".eh_frame");
  ASSERT_NE(frames, nullptr);
  std::memset(bytes.data() + frames->offset, 0, frames->size);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto functions = EhFrameTable::Parse(*image);
  ASSERT_TRUE(functions.ok());
  const auto bounds = functions->Find({symbol->address.value + symbol->size / 2});
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->start, symbol->address);
  EXPECT_FALSE(bounds->end_known);
}

TEST(EhFrameTest, RefusesOtherEncodingsAndLyingCounts) {
  std::string bytes = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const uint64_t header = ElfImage::Parse(AsBytes(bytes))->FindSection(".eh_frame_hdr")->offset;
  const auto status_with = [&](size_t at, const std::string& patch) {
    std::string damaged = bytes;
    damaged.replace(header + at, patch.size(), patch);
    return EhFrameTable::Parse(*ElfImage::Parse(AsBytes(damaged))).status();
  };
  EXPECT_TRUE(absl::IsUnimplemented(status_with(0, "\x02")));
  EXPECT_TRUE(absl::IsUnimplemented(status_with(3, "\x1b")));
  EXPECT_TRUE(absl::IsNotFound(status_with(3, "\xff")));
  EXPECT_TRUE(absl::IsDataLoss(status_with(8, "\xff\xff\xff\x7f")));
}

TEST(EhFrameTest, MoreFunctionsThanAnyImageHasAreRefused) {
  const auto status_of = [](size_t rows) {
    LinkedImage image(EM_X86_64);
    image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .bytes = "\xc3"});
    image.AddUnwindTables(0x10000, {});
    std::string& header = image.Find(".eh_frame_hdr")->bytes;
    header.replace(8, 4, RawBytes(static_cast<uint32_t>(rows)));
    header.resize(12 + 8 * rows);
    const std::string bytes = image.Build();
    return EhFrameTable::Parse(*ElfImage::Parse(AsBytes(bytes))).status();
  };
  EXPECT_TRUE(status_of(EhFrameTable::kMaxRows).ok()) << status_of(EhFrameTable::kMaxRows);
  EXPECT_TRUE(absl::IsResourceExhausted(status_of(EhFrameTable::kMaxRows + 1)));
}

}  // namespace
}  // namespace clrsampler
