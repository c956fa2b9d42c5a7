// Damaged and lying images: nothing may crash, hang or eat memory, and what is found stays inside the bounds it claims.
#include <gtest/gtest.h>

#include <random>

#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_symbols.h"
#include "formats/elf/plt.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/elf_builder.h"
#include "unit/formats/elf/find_symbol.h"

namespace clrsampler {
namespace {

// Everything that can be asked of an image. Returns false when it was refused.
bool UseAll(const std::string& bytes) {
  const auto image = ElfImage::Parse(AsBytes(bytes));
  if (!image.ok()) {
    EXPECT_FALSE(image.status().message().empty());
    return false;
  }
  const ElfSymbols symbols = ElfSymbols::Build(*image, *image);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const FunctionSymbol symbol = symbols.At(i);
    EXPECT_LT(symbol.start, symbol.end);
    if (i > 0) {
      EXPECT_LE(symbols.At(i - 1).end, symbol.start);
    }
  }
  (void)image->debug_link();
  (void)FindSymbol(*image, "exported_entry");
  PltStubs stubs;
  for (const ElfSection& section : image->sections()) {
    for (const uint64_t at : {uint64_t{0}, section.size / 2}) (void)stubs.Find(*image, {section.address.value + at});
  }
  const auto functions = EhFrameTable::Parse(*image);
  if (!functions.ok()) return true;
  for (size_t i = 0; i < functions->size(); ++i) {
    const VirtualAddress start = functions->FunctionStart(i);
    const auto bounds = functions->Find(start);
    if (bounds) {
      EXPECT_LE(bounds->start, start);
      EXPECT_LT(start, bounds->end);
    }
  }
  return true;
}

TEST(ElfHostileTest, EveryTruncationIsRefusedOrReadWithoutHarm) {
  const std::string whole = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  ASSERT_TRUE(UseAll(whole));
  for (size_t length = 0; length < 512; ++length) UseAll(whole.substr(0, length));
  for (size_t length = 512; length < whole.size(); length += 97) UseAll(whole.substr(0, length));
}

TEST(ElfHostileTest, RandomDamageDoesNoHarm) {
  const std::string whole = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  std::mt19937 random(3);
  size_t read = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = whole;
    // Headers and section table are where damage matters most.
    const size_t table = whole.size() > 4096 ? whole.size() - 4096 : 0;
    for (int i = 0; i < 8; ++i) {
      const size_t at = random() % 3 == 0   ? random() % 1024
                        : random() % 2 == 0 ? table + random() % 4096
                                            : random() % whole.size();
      bytes[at % whole.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    }
    if (UseAll(bytes)) ++read;
  }
  EXPECT_GT(read, 100u) << "the damage hides everything behind the first check";
}

void Patch(std::string& bytes, size_t at, uint64_t value, size_t width) {
  std::memcpy(bytes.data() + at, &value, width);
}

TEST(ElfHostileTest, HugeCountsAndOffsetsCostNothing) {
  const std::string good = ElfBuilder().Symbol("f", 0x2000, 0x10).Build();
  for (const uint64_t value :
       {uint64_t{0xffff}, uint64_t{0xfffe}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0x7fffffff}}) {
    for (const auto& [at, width] : std::vector<std::pair<size_t, size_t>>{{offsetof(Elf64_Ehdr, e_phoff), 8},
                                                                          {offsetof(Elf64_Ehdr, e_shoff), 8},
                                                                          {offsetof(Elf64_Ehdr, e_phnum), 2},
                                                                          {offsetof(Elf64_Ehdr, e_shnum), 2},
                                                                          {offsetof(Elf64_Ehdr, e_shstrndx), 2},
                                                                          {offsetof(Elf64_Ehdr, e_phentsize), 2},
                                                                          {offsetof(Elf64_Ehdr, e_shentsize), 2}}) {
      std::string bytes = good;
      Patch(bytes, at, value, width);
      UseAll(bytes);
    }
    for (size_t section = 0; section < 5; ++section) {
      Elf64_Ehdr header;
      std::memcpy(&header, good.data(), sizeof header);
      for (const size_t field :
           {offsetof(Elf64_Shdr, sh_offset), offsetof(Elf64_Shdr, sh_size), offsetof(Elf64_Shdr, sh_addr)}) {
        std::string bytes = good;
        Patch(bytes, header.e_shoff + section * sizeof(Elf64_Shdr) + field, value, 8);
        UseAll(bytes);
      }
    }
  }
  // The real count in section 0, as for more than 65,279 sections.
  std::string bytes = good;
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  Patch(bytes, offsetof(Elf64_Ehdr, e_shnum), 0, 2);
  Patch(bytes, header.e_shoff + offsetof(Elf64_Shdr, sh_size), ~uint64_t{0}, 8);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok());
  EXPECT_TRUE(image->sections().empty());
  EXPECT_EQ(image->ignored_headers(), 1u);
}

TEST(ElfHostileTest, SegmentsThatOverflowAreLeftOut) {
  for (const size_t field :
       {offsetof(Elf64_Phdr, p_offset), offsetof(Elf64_Phdr, p_vaddr), offsetof(Elf64_Phdr, p_filesz)}) {
    std::string bytes = ElfBuilder().Symbol("f", 0x2000, 0x10).Build();
    Patch(bytes, sizeof(Elf64_Ehdr) + field, ~uint64_t{0} - 0x10, 8);
    const auto image = ElfImage::Parse(AsBytes(bytes));
    ASSERT_TRUE(image.ok());
    EXPECT_TRUE(image->segments().empty());
    EXPECT_EQ(image->ignored_headers(), 1u);
    EXPECT_FALSE(image->BytesFrom({~uint64_t{0} - 1}).has_value());
  }
}

TEST(ElfHostileTest, NotesThatLieEndTheSearch) {
  std::string bytes = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto image = ElfImage::Parse(AsBytes(bytes));
  const ElfSection* note = image->FindSection(".note.gnu.build-id");
  ASSERT_NE(note, nullptr);
  for (const size_t field : {0, 4}) {
    std::string damaged = bytes;
    Patch(damaged, note->offset + field, 0xffffffff, 4);
    const auto result = ElfImage::Parse(AsBytes(damaged));
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->build_id().empty());
  }
}

// Names that share one endless string: the time must follow from the number of symbols, not from its square.
TEST(ElfHostileTest, ManyAliasesWithOneHugeNameAreIndexedInLinearTime) {
  ElfBuilder builder;
  builder.Symbol(std::string(8 << 20, 'x'), 0x2000, 0x10);
  std::string bytes = builder.Build();
  const std::string one = bytes.substr(0x2000 + sizeof(Elf64_Sym), sizeof(Elf64_Sym));
  // 50,000 symbols, each one byte further into the same string.
  std::string symbols(sizeof(Elf64_Sym), '\0');
  for (uint32_t i = 0; i < 50'000; ++i) {
    std::string row = one;
    Patch(row, 0, 1 + i, 4);
    symbols += row;
  }
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t table = header.e_shoff + 2 * sizeof(Elf64_Shdr);
  Patch(bytes, table + offsetof(Elf64_Shdr, sh_offset), bytes.size(), 8);
  Patch(bytes, table + offsetof(Elf64_Shdr, sh_size), symbols.size(), 8);
  bytes += symbols;
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok());
  const ElfSymbols index = ElfSymbols::Build(*image, *image);
  ASSERT_EQ(index.size(), 1u);
  EXPECT_EQ(index.At(0).name, "") << "longer than any name may be";
}

}  // namespace
}  // namespace clrsampler
