#include "symbols/native_lines/debug_sections.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

std::vector<std::string> NamesIn(const std::string& file) {
  std::vector<std::string> names;
  for (const DebugSection& section : ListDebugSections(AsBytes(file))) names.emplace_back(section.name);
  return names;
}

// A header of three sections with these names; the last one is their table. The second one is compressed.
std::string FileWith(const std::string& first, const std::string& second) {
  const std::string names = std::string(1, '\0') + first + '\0' + second + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  Elf64_Shdr sections[3]{};
  sections[0].sh_name = 1;
  sections[1].sh_name = static_cast<Elf64_Word>(first.size() + 2);
  sections[1].sh_flags = SHF_COMPRESSED;
  sections[2].sh_offset = sizeof header + sizeof sections;
  sections[2].sh_size = names.size();
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return file + names;
}

TEST(DebugSectionsTest, ThoseOfTheCompilerAreThere) {
  const std::string file = *ReadWholeFile(ElfFixture("liblines.so"), 64 << 20);
  EXPECT_THAT(NamesIn(file), IsSupersetOf({".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"}));
  const auto image = ElfImage::Parse(AsBytes(file));
  for (const DebugSection& section : ListDebugSections(AsBytes(file))) {
    EXPECT_EQ(LoadAt<uint32_t>(AsBytes(file), section.type_at), image->FindSection(section.name)->type);
    EXPECT_FALSE(section.compressed);
  }
}

TEST(DebugSectionsTest, PackedOnesAreTold) {
  const std::string packed = *ReadWholeFile(ElfFixture("libpacked.so.dbg"), 64 << 20);
  EXPECT_THAT(NamesIn(packed), Contains(".debug_line"));
  for (const DebugSection& section : ListDebugSections(AsBytes(packed))) {
    if (section.name == ".debug_line") {
      EXPECT_TRUE(section.compressed);
    }
  }
  const std::string file = FileWith(".debug_line", ".debug_macro");
  const std::vector<DebugSection> sections = ListDebugSections(AsBytes(file));
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_FALSE(sections[0].compressed);
  EXPECT_TRUE(sections[1].compressed);
  EXPECT_EQ(sections[1].index, 1u);
}

TEST(DebugSectionsTest, OtherFilesHaveNone) {
  EXPECT_THAT(NamesIn(FileWith(".debug_loclists", ".debug_types")), ElementsAre(".debug_loclists", ".debug_types"));
  EXPECT_THAT(NamesIn(FileWith(".text", ".debug")), IsEmpty());
  EXPECT_THAT(NamesIn(""), IsEmpty());
  EXPECT_THAT(NamesIn(std::string(4096, 'x')), IsEmpty());
  for (const size_t at : {size_t{EI_CLASS}, size_t{EI_DATA}}) {
    std::string other = FileWith(".debug_loclists", ".debug_types");
    other[at] = 3;
    EXPECT_THAT(NamesIn(other), IsEmpty());
  }
}

TEST(DebugSectionsTest, DamagedHeadersPointNowhereElse) {
  const std::string whole = FileWith(".debug_loclists", ".debug_types");
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    for (int i = 0; i < 3 && !damaged.empty(); ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    for (const DebugSection& section : ListDebugSections(AsBytes(damaged))) {
      const uint64_t table = LoadAt<uint64_t>(AsBytes(damaged), offsetof(Elf64_Ehdr, e_shoff)).value_or(UINT64_MAX);
      ASSERT_EQ(section.type_at, table + section.index * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_type));
      ASSERT_LE(section.type_at + sizeof(uint32_t), damaged.size());
    }
  }
}

}  // namespace
}  // namespace clrsampler
