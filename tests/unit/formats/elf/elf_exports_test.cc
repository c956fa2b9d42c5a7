#include "formats/elf/elf_exports.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

std::string FixturePath(const std::string& name) {
  const auto bytes = ReadWholeFile(ElfFixture(name), 64 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : std::string();
}

// The hash table and the plain walk must agree on every name that is there, and on one that is not.
void ExpectAgreement(const std::string& bytes) {
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok()) << image.status();
  const auto table = image->dynsym();
  ASSERT_TRUE(table.has_value());
  const ElfExports exports(*image);
  size_t defined = 0;
  for (size_t i = 0; i < table->size(); ++i) {
    const ElfSymbol symbol = table->At(i);
    const absl::string_view name = table->Name(symbol.name);
    if (symbol.section == SHN_UNDEF || name.empty()) continue;
    const auto found = exports.Find(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(found->address, symbol.address) << name;
    ++defined;
  }
  EXPECT_GT(defined, 0u);
  EXPECT_EQ(exports.Find("no_such_export"), std::nullopt);
  EXPECT_EQ(exports.Find(""), std::nullopt);
}

TEST(ElfExportsTest, FindsWhatALibraryExports) { ExpectAgreement(FixturePath("libwhole.so")); }

TEST(ElfExportsTest, StrippingTakesNoExports) { ExpectAgreement(FixturePath("libstripped.so")); }

TEST(ElfExportsTest, WithoutSectionHeadersTheSymbolsAreGoneThrough) {
  std::string bytes = FixturePath("libwhole.so");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  ExpectAgreement(bytes);
}

TEST(ElfExportsTest, AStaticProgramExportsNothing) {
  const std::string bytes = FixturePath("static");
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_EQ(ElfExports(*image).Find("main"), std::nullopt);
  EXPECT_EQ(image->interpreter(), "");
}

TEST(ElfExportsTest, AProgramNamesItsLoader) {
  const std::string bytes = FixturePath("pie");
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_NE(image->interpreter().find("/ld-"), absl::string_view::npos) << image->interpreter();
}

TEST(ElfExportsTest, AProgramSaysWhereItBegins) {
  const std::string bytes = FixturePath("pie");
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image->entry().has_value());
  EXPECT_TRUE(image->IsExecutable(*image->entry()));
  std::string elsewhere = bytes;
  Elf64_Ehdr header;
  std::memcpy(&header, elsewhere.data(), sizeof header);
  header.e_entry = 8;  // in no code
  std::memcpy(elsewhere.data(), &header, sizeof header);
  EXPECT_EQ(ElfImage::Parse(AsBytes(elsewhere))->entry(), std::nullopt);
  header.e_entry = 0;
  std::memcpy(elsewhere.data(), &header, sizeof header);
  EXPECT_EQ(ElfImage::Parse(AsBytes(elsewhere))->entry(), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
