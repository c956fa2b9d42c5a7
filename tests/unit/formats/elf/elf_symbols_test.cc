#include "formats/elf/elf_symbols.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/elf/elf_builder.h"
#include "unit/formats/elf/find_symbol.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

// The name at an address; "" where there is none.
class Names {
 public:
  explicit Names(std::string bytes) : bytes_(std::move(bytes)) {
    const auto image = ElfImage::Parse(AsBytes(bytes_));
    if (image.ok()) symbols_ = ElfSymbols::Build(*image, *image);
  }
  std::string At(uint64_t address) const {
    const auto symbol = symbols_.Find({address});
    return symbol ? std::string(symbol->name) : "";
  }
  const ElfSymbols& symbols() const { return symbols_; }

 private:
  std::string bytes_;
  ElfSymbols symbols_;
};

TEST(ElfSymbolsTest, AnAddressBehindAFunctionHasNoName) {
  const Names names(ElfBuilder().Symbol("a", 0x2000, 0x10).Symbol("b", 0x2020, 0x10).Build());
  EXPECT_EQ(names.At(0x1fff), "");
  EXPECT_EQ(names.At(0x2000), "a");
  EXPECT_EQ(names.At(0x200f), "a");
  EXPECT_EQ(names.At(0x2010), "");
  EXPECT_EQ(names.At(0x2020), "b");
  EXPECT_EQ(names.At(0x2030), "");
  EXPECT_EQ(names.At(~uint64_t{0}), "");
}

TEST(ElfSymbolsTest, AliasesAreChosenByTheDocumentedOrderWhateverTheirPlaceInTheTable) {
  struct Alias {
    std::string name;
    uint8_t binding, type;
  };
  // Best first.
  const std::vector<Alias> ranking = {{"malloc", STB_GLOBAL, STT_FUNC},        {"malloc_long", STB_GLOBAL, STT_FUNC},
                                      {"weakly", STB_WEAK, STT_FUNC},          {"_underscore", STB_GLOBAL, STT_FUNC},
                                      {"__libc_malloc", STB_GLOBAL, STT_FUNC}, {"local", STB_LOCAL, STT_FUNC},
                                      {"label", STB_GLOBAL, STT_NOTYPE}};
  for (size_t best = 0; best < ranking.size(); ++best) {
    for (const bool reversed : {false, true}) {
      ElfBuilder builder;
      for (size_t i = best; i < ranking.size(); ++i) {
        const Alias& alias = ranking[reversed ? ranking.size() - 1 - (i - best) : i];
        builder.Symbol(alias.name, 0x2100, 0x20, alias.binding, alias.type);
      }
      const Names names(builder.Build());
      EXPECT_EQ(names.At(0x2110), ranking[best].name) << reversed;
      EXPECT_EQ(names.symbols().size(), 1u);
    }
  }
}

TEST(ElfSymbolsTest, TheInnerOfTwoNestedFunctionsWinsAndTheOuterOneGoesOnBehindIt) {
  const Names names(ElfBuilder().Symbol("outer", 0x2000, 0x100).Symbol("inner", 0x2040, 0x10).Build());
  EXPECT_EQ(names.At(0x203f), "outer");
  EXPECT_EQ(names.At(0x2040), "inner");
  EXPECT_EQ(names.At(0x2050), "outer");
  EXPECT_EQ(names.At(0x20ff), "outer");
  EXPECT_EQ(names.At(0x2100), "");
}

TEST(ElfSymbolsTest, AShortAliasDoesNotCutOffALongOne) {
  const Names names(ElfBuilder().Symbol("entry", 0x2000, 0x8).Symbol("__whole", 0x2000, 0x40).Build());
  EXPECT_EQ(names.At(0x2004), "entry");
  EXPECT_EQ(names.At(0x2008), "__whole");
}

TEST(ElfSymbolsTest, SizelessSymbolsReachToTheNextSymbolOrTheEndOfTheirSection) {
  const Names names(ElfBuilder()
                        .Symbol("first", 0x2000, 0)
                        .Symbol("second", 0x2080, 0)
                        .Symbol("sized", 0x2100, 0x10)
                        .Symbol("inside_sized", 0x2108, 0)
                        .Symbol("last", 0x2f00, 0)
                        .Symbol("outside", 0x5000, 0)
                        .Build());
  EXPECT_EQ(names.At(0x2040), "first");
  EXPECT_EQ(names.At(0x20ff), "second");
  EXPECT_EQ(names.At(0x2108), "sized");
  EXPECT_EQ(names.At(0x2110), "");
  EXPECT_EQ(names.At(0x2fff), "last");
  EXPECT_EQ(names.At(0x3000), "");
  EXPECT_EQ(names.At(0x5000), "");
}

TEST(ElfSymbolsTest, DataUndefinedHiddenLabelsAndMappingSymbolsAreNoFunctions) {
  const Names names(ElfBuilder()
                        .Symbol("object", 0x2000, 0x10, STB_GLOBAL, STT_OBJECT)
                        .Symbol("undefined", 0x2010, 0x10, STB_GLOBAL, STT_FUNC, STV_DEFAULT, SHN_UNDEF)
                        .Symbol("absolute", 0x2020, 0x10, STB_GLOBAL, STT_FUNC, STV_DEFAULT, SHN_ABS)
                        .Symbol("hidden_label", 0x2030, 0x10, STB_LOCAL, STT_NOTYPE, STV_HIDDEN)
                        .Symbol("$x", 0x2040, 0, STB_LOCAL, STT_NOTYPE)
                        .Symbol("$d.7", 0x2050, 0, STB_LOCAL, STT_NOTYPE)
                        .Symbol(".L1", 0x2060, 0, STB_LOCAL, STT_NOTYPE)
                        .Symbol("", 0x2070, 0x10)
                        .Symbol("data_label", 0x9000, 0x10, STB_GLOBAL, STT_NOTYPE)
                        .Symbol("hidden_function", 0x2080, 0x10, STB_LOCAL, STT_FUNC, STV_HIDDEN)
                        .Symbol("chosen_at_run_time", 0x2090, 0x10, STB_GLOBAL, STT_GNU_IFUNC)
                        .Build());
  EXPECT_EQ(names.symbols().size(), 2u);
  EXPECT_EQ(names.At(0x2080), "hidden_function");
  EXPECT_EQ(names.At(0x2090), "chosen_at_run_time");
}

TEST(ElfSymbolsTest, SizesAndAddressesThatOverflowStayBounded) {
  const Names names(ElfBuilder()
                        .Symbol("endless", 0x2000, ~uint64_t{0})
                        .Symbol("far", uint64_t{1} << 40, 0x10)
                        .Symbol("below", 0x10, 0x10)
                        .Build());
  EXPECT_EQ(names.At(0x2fff), "endless");
  EXPECT_EQ(names.At(uint64_t{1} << 40), "");
  EXPECT_EQ(names.symbols().ignored_symbols(), 2u);
}

// Against the rule read out loud: of the symbols that cover the address, the one that starts last; of those the best
// alias.
TEST(ElfSymbolsTest, AgreesWithANaiveSearchOnRandomOverlaps) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    struct Row {
      uint64_t start, size;
      std::string name;
    };
    std::vector<Row> rows;
    ElfBuilder builder;
    const int count = 1 + static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      // Names of one length, so that among aliases the lower bytes decide.
      rows.push_back({0x2000 + random() % 64, 1 + random() % 32, "f" + std::to_string(100 + random() % 900)});
      builder.Symbol(rows.back().name, rows.back().start, rows.back().size);
    }
    const Names names(builder.Build());
    for (uint64_t address = 0x1ff0; address < 0x2070; ++address) {
      const Row* best = nullptr;
      for (const Row& row : rows) {
        if (address < row.start || address >= row.start + row.size) continue;
        if (best == nullptr || row.start > best->start || (row.start == best->start && row.name < best->name))
          best = &row;
      }
      ASSERT_EQ(names.At(address), best == nullptr ? "" : best->name) << round << " " << address;
    }
    for (size_t i = 1; i < names.symbols().size(); ++i) {
      ASSERT_LE(names.symbols().At(i - 1).end, names.symbols().At(i).start);
    }
  }
}

TEST(ElfSymbolsTest, ASizelessExportDoesNotNameTheUnexportedFunctionsBehindIt) {
  const std::string stripped = *ReadWholeFile(ElfFixture("libstripped.so"), 64 << 20);
  const std::string whole = *ReadWholeFile(ElfFixture("libwhole.so"), 64 << 20);
  const auto whole_image = ElfImage::Parse(AsBytes(whole));
  const auto hidden = FindSymbol(*whole_image, "_ZL12HiddenHelperi");
  const auto sizeless = FindSymbol(*whole_image, "sizeless");
  ASSERT_TRUE(hidden && sizeless);
  const Names names(stripped);
  EXPECT_EQ(names.At(sizeless->address.value + 2), "sizeless");
  EXPECT_EQ(names.At(hidden->address.value), "");
  EXPECT_EQ(Names(whole).At(hidden->address.value), "_ZL12HiddenHelperi");
}

// musl's libc is stripped and has no unwind data: what follows the last exported function of assembly are others.
TEST(ElfSymbolsTest, WithoutATableOfAllFunctionsASizelessOneEndsWithItsInstructions) {
  // test edi, edi; jne 1f; ret; nop; 1: call elsewhere; jmp back; then hidden: syscall; ret
  const std::string code("\x85\xff\x75\x02\xc3\x90\xe8\x55\x00\x00\x00\xeb\xf7\x0f\x05\xc3", 16);
  const auto build = [&](uint16_t machine, const std::string& table) {
    LinkedImage image(machine);
    image.Add({.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .address = 0x1000, .bytes = code});
    image.AddSymbols(table, table == ".dynsym" ? ".dynstr" : ".strtab", {{"memset", 0x1000, 0}});
    return Names(image.Build());
  };
  const Names stripped = build(EM_X86_64, ".dynsym");
  for (uint64_t at = 0x1000; at < 0x100d; ++at) EXPECT_EQ(stripped.At(at), "memset") << at;
  for (uint64_t at = 0x100d; at < 0x1010; ++at) EXPECT_EQ(stripped.At(at), "") << at;
  EXPECT_EQ(build(EM_X86_64, ".symtab").At(0x100f), "memset") << "nothing is left out of that table";
  EXPECT_EQ(build(EM_AARCH64, ".dynsym").At(0x1000), "") << "nothing but the section ends it";
}

// A hostile table has millions of symbols without size, each in front of code without end.
TEST(ElfSymbolsTest, InstructionsOfAnImageAreFollowedUpToANumber) {
  constexpr uint64_t kStep = 64 << 10, kCount = 300;
  LinkedImage image(EM_X86_64);
  image.Add({.name = ".text",
             .flags = SHF_ALLOC | SHF_EXECINSTR,
             .address = 0x1000,
             .bytes = std::string(kCount * kStep, '\x90')});
  std::vector<LinkedImage::Symbol> symbols;
  for (uint64_t i = 0; i < kCount; ++i) symbols.push_back({absl::StrCat("f", i), 0x1000 + i * kStep, 0});
  image.AddSymbols(".dynsym", ".dynstr", symbols);
  const Names names(image.Build());
  EXPECT_EQ(names.At(0x1000 + kStep - 1), "f0");
  EXPECT_EQ(names.At(0x1000 + 256 * kStep - 1), "f255");
  EXPECT_EQ(names.At(0x1000 + 256 * kStep), "") << "16 MiB were followed";
}

TEST(ElfSymbolsTest, EveryKindOfProgramNamesItsFunctions) {
  for (const char* file : {"libwhole.so", "pie", "static"}) {
    const std::string bytes = *ReadWholeFile(ElfFixture(file), 64 << 20);
    const auto image = ElfImage::Parse(AsBytes(bytes));
    ASSERT_TRUE(image.ok()) << file;
    const Names names(bytes);
    const auto entry = FindSymbol(*image, "exported_entry");
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(names.At(entry->address.value + entry->size / 2), "exported_alias") << file << ": as long, lower bytes";
    const auto total = FindSymbol(*image, "_ZNK4shop5Order5TotalEi");
    ASSERT_TRUE(total.has_value());
    EXPECT_EQ(names.At(total->address.value + total->size - 1), "_ZNK4shop5Order5TotalEi");
    EXPECT_NE(names.At(total->address.value + total->size), "_ZNK4shop5Order5TotalEi");
  }
}

}  // namespace
}  // namespace clrsampler
