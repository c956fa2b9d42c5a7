#include "formats/elf/elf_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/byte_reader.h"
#include "formats/elf/plt.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/elf_builder.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

std::string Fixture(const std::string& name) { return *ReadWholeFile(ElfFixture(name), 64 << 20); }

std::string ErrorOf(const std::string& bytes) {
  return std::string(ElfImage::Parse(AsBytes(bytes)).status().message());
}

TEST(ElfImageTest, RefusesOtherFilesInWords) {
  EXPECT_THAT(ErrorOf("MZ"), HasSubstr("not an ELF file"));
  EXPECT_THAT(ErrorOf("\x7f"
                      "ELF"),
              HasSubstr("shorter than"));
  std::string image = ElfBuilder().Build();
  image[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(ErrorOf(image), HasSubstr("32-bit"));
  image[EI_CLASS] = ELFCLASS64;
  image[EI_DATA] = ELFDATA2MSB;
  EXPECT_THAT(ErrorOf(image), HasSubstr("little-endian"));
  EXPECT_THAT(ErrorOf(ElfBuilder().Machine(EM_RISCV).Build()), HasSubstr("machine 243"));
  image = ElfBuilder().Build();
  image[16] = ET_REL;
  EXPECT_THAT(ErrorOf(image), HasSubstr("neither executable nor shared"));
}

TEST(ElfImageTest, OffsetAndAddressAreConvertedThroughTheirSegment) {
  const std::string bytes = ElfBuilder().Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->ToAddress({0x1010}), VirtualAddress{0x2010});
  EXPECT_EQ(image->ToOffset({0x2010}), FileOffset{0x1010});
  EXPECT_EQ(image->ToAddress({0xfff}), std::nullopt);
  EXPECT_EQ(image->ToAddress({0x2000}), std::nullopt);
  EXPECT_EQ(image->ToOffset({0x3000}), std::nullopt);
}

TEST(ElfImageTest, AFilePageInTwoSegmentsMeansTheExecutableOne) {
  const LoadSegment segments[] = {{{0x0}, {0x0}, 0x1800, 0x1800, false}, {{0x1000}, {0x2000}, 0x1000, 0x1000, true}};
  EXPECT_EQ(ToVirtualAddress(segments, {0x1400}), VirtualAddress{0x2400});
  EXPECT_EQ(ToVirtualAddress(segments, {0x400}), VirtualAddress{0x400});
}

TEST(ElfImageTest, BssHasAddressesButNoFileOffset) {
  const LoadSegment segments[] = {{{0x1000}, {0x1000}, 0x100, 0x1000, true}};
  EXPECT_EQ(ToFileOffset(segments, {0x10ff}), FileOffset{0x10ff});
  EXPECT_EQ(ToFileOffset(segments, {0x1100}), std::nullopt);
}

TEST(ElfImageTest, ReadsBuildIdAndDebugLinkOfAStrippedLibrary) {
  const std::string whole = Fixture("libwhole.so"), stripped = Fixture("libstripped.so");
  const std::string debug = Fixture("libstripped.so.dbg");
  const auto whole_image = ElfImage::Parse(AsBytes(whole)), stripped_image = ElfImage::Parse(AsBytes(stripped));
  const auto debug_image = ElfImage::Parse(AsBytes(debug));
  ASSERT_TRUE(whole_image.ok() && stripped_image.ok() && debug_image.ok());
  EXPECT_EQ(whole_image->build_id().size(), 20u);
  EXPECT_EQ(BuildIdText(whole_image->build_id()).size(), 40u);
  EXPECT_EQ(BuildIdText(stripped_image->build_id()), BuildIdText(whole_image->build_id()));
  EXPECT_EQ(BuildIdText(debug_image->build_id()), BuildIdText(whole_image->build_id()));
  EXPECT_FALSE(whole_image->debug_link().has_value());
  ASSERT_TRUE(stripped_image->debug_link().has_value());
  EXPECT_EQ(stripped_image->debug_link()->file_name, "libstripped.so.dbg");
  EXPECT_FALSE(stripped_image->symtab().has_value());
  EXPECT_TRUE(stripped_image->dynsym().has_value());
  EXPECT_TRUE(debug_image->symtab().has_value());
}

// Without section headers the dynamic segment still leads to the same symbols.
TEST(ElfImageTest, DynamicSymbolsAreFoundWithoutSectionHeaders) {
  std::string bytes = Fixture("libstripped.so");
  const std::string whole = bytes;
  const auto with = ElfImage::Parse(AsBytes(whole));
  std::memset(bytes.data() + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(uint64_t));
  const auto without = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_TRUE(without->sections().empty());
  ASSERT_TRUE(without->dynsym().has_value());
  EXPECT_EQ(without->dynsym()->size(), with->dynsym()->size());
  EXPECT_EQ(FindSymbol(*without, "exported_entry")->address, FindSymbol(*with, "exported_entry")->address);
}

TEST(ElfImageTest, FindSymbolWantsTheWholeName) {
  const std::string bytes = Fixture("libwhole.so");
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_TRUE(FindSymbol(*image, "exported_entry").has_value());
  EXPECT_FALSE(FindSymbol(*image, "exported_entr").has_value());
  EXPECT_FALSE(FindSymbol(*image, "exported_entry2").has_value());
  EXPECT_FALSE(FindSymbol(*image, "rand").has_value()) << "undefined here";
}

TEST(ElfImageTest, PltStubsLeadToTheFunctionsThatTheyCall) {
  std::string bytes = Fixture("libwhole.so");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t i = 0; i < header.e_shnum; ++i) {  // the symbols are found by PT_DYNAMIC
    const size_t type = header.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type);
    if (bytes[type] == SHT_DYNSYM) bytes[type] = SHT_PROGBITS;
  }
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const auto entry = FindSymbol(*image, "exported_entry");
  ASSERT_TRUE(entry.has_value());
  PltStubs stubs;
  std::vector<std::string> targets;
  std::vector<ElfSection> of_stubs(image->sections().begin(), image->sections().end());
  std::erase_if(of_stubs, [](const ElfSection& section) { return section.name.substr(0, 4) != ".plt"; });
  for (const ElfSection& section : of_stubs) {
    for (uint64_t at = 0; at < section.size; at += 8) {
      const auto stub = stubs.Find(*image, {section.address.value + at});
      ASSERT_TRUE(stub.has_value());
      EXPECT_LE(stub->start.value, section.address.value + at);
      if (stub->target.empty()) continue;
      targets.emplace_back(stub->target);
      // The relocations are read once, and not for each address: a large library has 355,000. So are the names of
      // sections and the way to the symbols, which a hostile image makes long.
      for (const ElfSection& rows : image->sections()) {
        if (rows.type != SHT_RELA && rows.type != SHT_DYNAMIC && rows.name != ".shstrtab") continue;
        std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(rows.offset), rows.size, '\0');
      }
    }
  }
  EXPECT_THAT(targets, testing::Contains("rand"));
  EXPECT_THAT(targets, testing::Contains("puts"));
  EXPECT_FALSE(stubs.Find(*image, entry->address).has_value());
}

}  // namespace
}  // namespace clrsampler
