// Damaged and lying images: nothing may crash, hang or eat memory, and what is found stays inside the bounds it claims.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_symbols.h"
#include "formats/elf/plt.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/elf_builder.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/formats/elf/linked_image.h"

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

// The file is mapped, and its owner may write to it at any time.
TEST(ElfHostileTest, NamesThatChangeWhileTheyAreSortedDoNoHarm) {
  ElfBuilder builder;
  constexpr size_t kAliases = 60'000;
  for (size_t i = 0; i < kAliases; ++i) builder.Symbol(absl::StrFormat("f%06d", i * 7919 % kAliases), 0x2000, 0x10);
  const std::string bytes = builder.Build();
  void* const memory = mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, bytes.data(), bytes.size());
  const auto image = ElfImage::Parse({static_cast<const std::byte*>(memory), bytes.size()});
  ASSERT_TRUE(image.ok() && image->symtab());
  const std::span<const std::byte> strings = image->symtab()->strings;
  const pid_t owner = fork();
  if (owner == 0) {
    char* const texts = static_cast<char*>(memory) + (strings.data() - image->bytes().data());
    std::minstd_rand random(1);
    while (getppid() != 1) {
      for (int i = 0; i < 1000; ++i) texts[random() % strings.size()] = static_cast<char>('0' + random() % 10);
    }
    _exit(0);
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ElfSymbols::Build(*image, *image).size(), 1u);
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  munmap(memory, bytes.size());
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Whether there is a table of all symbols is asked for each symbol without size, and takes a look at each section.
TEST(ElfHostileTest, SymbolsWithoutSizeTakeTheSameTimeWhateverTheNumberOfSections) {
  static constexpr size_t kSymbols = 60'000;
  const auto seconds = [](size_t sections) {
    LinkedImage image(EM_X86_64);
    image.Add({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x1000,
               .bytes = std::string(kSymbols, '\xc3')});
    std::vector<LinkedImage::Symbol> symbols;
    for (uint64_t i = 0; i < kSymbols; ++i) symbols.push_back({"f", 0x1000 + i, 0});
    image.AddSymbols(".dynsym", ".dynstr", symbols);
    for (size_t i = 0; i < sections; ++i) image.Add({.name = "x", .flags = 0});
    const std::string bytes = image.Build();
    const auto parsed = ElfImage::Parse(AsBytes(bytes));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const double begin = CpuSeconds();
    EXPECT_EQ(ElfSymbols::Build(*parsed, *parsed).size(), kSymbols);
    return CpuSeconds() - begin;
  };
  const double few = std::min({seconds(0), seconds(0), seconds(0)});
  EXPECT_LT(seconds(8'000), 4 * few + 0.1) << "a look at each section for each symbol takes seconds";
}

// Each section of notes is read, and a hundred thousand may show the same bytes: all of them together have one bound.
TEST(ElfHostileTest, NotesOfAnImageAreReadUpToANumber) {
  const std::string none(sizeof(Elf64_Nhdr), '\0');
  const std::string id = RawBytes(Elf64_Nhdr{4, 20, NT_GNU_BUILD_ID}) + std::string("GNU\0", 4) + std::string(20, 'i');
  const auto id_behind = [&](size_t sections, size_t notes) {
    std::string empty;
    for (size_t i = 0; i < notes; ++i) empty += none;
    LinkedImage image(EM_X86_64);
    image.Add(
        {.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .bytes = std::string(16, '\xc3')});
    for (size_t i = 0; i < sections; ++i) image.Add({.name = ".note", .type = SHT_NOTE, .flags = 0, .bytes = empty});
    image.Add({.name = ".note.gnu.build-id", .type = SHT_NOTE, .flags = 0, .bytes = id});
    const std::string bytes = image.Build();
    const auto parsed = ElfImage::Parse(AsBytes(bytes));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? parsed->build_id().size() : 0;
  };
  EXPECT_EQ(id_behind(0, 0), 20u);
  EXPECT_EQ(id_behind(40, 100), 20u);
  EXPECT_EQ(id_behind(42, 100), 0u);
}

// A table in a hole of a file takes no space on the disk, and its pages become memory when they are read.
TEST(ElfHostileTest, OfATableWithoutEndTheFirstSymbolsAreRead) {
  std::string small = ElfBuilder().Symbol("first", 0x2000, 0x10).Build();
  Elf64_Ehdr header;
  std::memcpy(&header, small.data(), sizeof header);
  const size_t section = header.e_shoff + 2 * sizeof(Elf64_Shdr);
  Elf64_Shdr table;
  std::memcpy(&table, small.data() + section, sizeof table);
  const size_t at = (small.size() + 7) / 8 * 8, count = ElfSymbolTable::kMaxSymbols + 10;
  Patch(small, section + offsetof(Elf64_Shdr, sh_offset), at, 8);
  Patch(small, section + offsetof(Elf64_Shdr, sh_size), count * sizeof(Elf64_Sym), 8);
  const size_t size = at + count * sizeof(Elf64_Sym);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memcpy(memory, small.data(), small.size());
  const std::string_view row(small.data() + table.sh_offset + sizeof(Elf64_Sym), sizeof(Elf64_Sym));
  for (const size_t index : {size_t{1}, count - 1}) {
    std::memcpy(static_cast<char*>(memory) + at + index * sizeof(Elf64_Sym), row.data(), row.size());
  }
  const auto image = ElfImage::Parse({static_cast<const std::byte*>(memory), size});
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_TRUE(image->symtab().has_value());
  EXPECT_EQ(image->symtab()->size(), ElfSymbolTable::kMaxSymbols);
  EXPECT_EQ(image->symtab()->left_out, 10u);
  const ElfSymbols symbols = ElfSymbols::Build(*image, *image);
  EXPECT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols.symbols_not_read(), 10u);
  munmap(memory, size);
}

TEST(ElfHostileTest, ASectionsNameWithoutEndIsNone) {
  std::string bytes = ElfBuilder().Symbol("f", 0x2000, 0x10).Build();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const size_t names = header.e_shoff + header.e_shstrndx * sizeof(Elf64_Shdr);
  Patch(bytes, names + offsetof(Elf64_Shdr, sh_offset), bytes.size(), 8);
  Patch(bytes, names + offsetof(Elf64_Shdr, sh_size), 100'000, 8);
  bytes += std::string(99'999, 'x') + '\0';
  const auto image = ElfImage::Parse(AsBytes(bytes));
  ASSERT_TRUE(image.ok());
  ASSERT_FALSE(image->sections().empty());
  EXPECT_EQ(image->sections().front().name, "");
}

}  // namespace
}  // namespace clrsampler
