#include "formats/elf/thread_variable.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <resolv.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "unit/formats/elf/linked_image.h"

namespace clrsampler {
namespace {

using ::testing::Optional;

constexpr char kName[] = "context";
constexpr uint64_t kSlot = 0x3000, kBias = 0x7f0000000000, kArgument = 0x7f1234567890;
constexpr ThreadVectorKind kGlibc = ThreadVectorKind::kGlibc, kMusl = ThreadVectorKind::kMusl;

struct Relocation {
  uint32_t kind;
  uint32_t symbol;  // 1: the variable
  int64_t addend = 0;
};

// A library whose variable is the word at 8 of its block.
std::optional<ThreadVariable> Find(const std::vector<Relocation>& relocations, uint16_t machine = EM_X86_64,
                                   uint8_t type = STT_TLS) {
  LinkedImage image(machine);
  std::string rows;
  for (size_t i = 0; i < relocations.size(); ++i) {
    const uint64_t info = uint64_t{relocations[i].symbol} << 32 | relocations[i].kind;
    rows += RawBytes(Elf64_Rela{kSlot + 16 * i, info, relocations[i].addend});
  }
  image.Add({.name = ".text", .address = 0x1000, .bytes = std::string(16, '\0')});
  image.AddSymbols(".dynsym", ".dynstr", {{kName, 8, 8, type}, {"another", 16, 8, STT_TLS}});
  image.Add({.name = ".rela.dyn", .type = SHT_RELA, .address = 0x2000, .bytes = rows});
  const std::string bytes = image.Build();
  const absl::StatusOr<ElfImage> parsed = ElfImage::Parse(AsBytes(bytes));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return FindThreadVariable(*parsed, kName);
}

absl::StatusOr<ThreadPlace> Place(ThreadVariable variable, const std::map<uint64_t, uint64_t>& memory,
                                  ThreadVectorKind vector = kGlibc, ElfMachine machine = ElfMachine::kX64,
                                  bool is_program = false) {
  if (!variable.of) variable.of = ThreadSegment{.memory_bytes = 32, .alignment = 8};
  return PlaceOf(variable, machine, kBias, is_program, vector, [&](uint64_t address) -> std::optional<uint64_t> {
    const auto word = memory.find(address);
    return word == memory.end() ? std::nullopt : std::optional<uint64_t>(word->second);
  });
}

TEST(ThreadVariableTest, TheRelocationSaysHowItIsReached) {
  EXPECT_EQ(Find({{R_X86_64_TPOFF64, 1}})->access, ThreadAccess::kOffset);
  EXPECT_EQ(Find({{R_X86_64_TLSDESC, 1}})->access, ThreadAccess::kDescriptor);
  EXPECT_EQ(Find({{R_X86_64_DTPMOD64, 1}})->access, ThreadAccess::kIndex);
  EXPECT_EQ(Find({{R_AARCH64_TLS_TPREL, 1}}, EM_AARCH64)->access, ThreadAccess::kOffset);
  EXPECT_EQ(Find({{R_AARCH64_TLSDESC, 1}}, EM_AARCH64)->access, ThreadAccess::kDescriptor);
  EXPECT_EQ(Find({{R_AARCH64_TLS_DTPMOD, 1}}, EM_AARCH64)->access, ThreadAccess::kIndex);
  EXPECT_EQ(Find({})->access, ThreadAccess::kNone);
}

TEST(ThreadVariableTest, RelocationsOfOtherVariablesAreNotTaken) {
  EXPECT_EQ(Find({{R_X86_64_TPOFF64, 2}})->access, ThreadAccess::kNone);
  EXPECT_EQ(Find({{R_X86_64_TPOFF64, 0, 16}})->access, ThreadAccess::kNone);
  EXPECT_EQ(Find({{R_X86_64_TPOFF64, 7}})->access, ThreadAccess::kNone);
  EXPECT_EQ(Find({{R_X86_64_RELATIVE, 1}})->access, ThreadAccess::kNone);
  const auto second = Find({{R_X86_64_TLSDESC, 2}, {R_X86_64_TLSDESC, 1}});
  EXPECT_EQ(second->slot.value, kSlot + 16);
}

TEST(ThreadVariableTest, OneOfTheLinkersOwnSymbolIsToldByItsPlaceInTheBlock) {
  EXPECT_EQ(Find({{R_X86_64_TLSDESC, 0, 8}})->access, ThreadAccess::kDescriptor);
  const auto block = Find({{R_X86_64_DTPMOD64, 0}});
  EXPECT_EQ(block->access, ThreadAccess::kIndex);
  EXPECT_TRUE(block->module_only);
  EXPECT_FALSE(Find({{R_X86_64_DTPMOD64, 0}, {R_X86_64_DTPMOD64, 1}})->module_only);
}

TEST(ThreadVariableTest, AnImageThatDoesNotExportItHasNone) { EXPECT_FALSE(Find({}, EM_X86_64, STT_OBJECT)); }

TEST(ThreadVariableTest, TheLoadersOffsetIsTheDistanceFromTheThreadPointer) {
  const ThreadVariable variable = *Find({{R_X86_64_TPOFF64, 1}});
  EXPECT_EQ(Place(variable, {{kBias + kSlot, static_cast<uint64_t>(-72)}})->offset, -72);
  EXPECT_TRUE(absl::IsUnavailable(Place(variable, {{kBias + kSlot, 0}}).status()));
  EXPECT_TRUE(absl::IsUnavailable(Place(variable, {}).status()));
  for (const int64_t wrong : {72, -71, -(1 << 20) - 8}) {
    EXPECT_TRUE(absl::IsDataLoss(Place(variable, {{kBias + kSlot, static_cast<uint64_t>(wrong)}}).status())) << wrong;
  }
  const ThreadVariable arm64 = *Find({{R_AARCH64_TLS_TPREL, 1}}, EM_AARCH64);
  EXPECT_EQ(Place(arm64, {{kBias + kSlot, 72}}, kGlibc, ElfMachine::kArm64)->offset, 72);
  EXPECT_TRUE(absl::IsDataLoss(Place(arm64, {{kBias + kSlot, 8}}, kGlibc, ElfMachine::kArm64).status()));
}

TEST(ThreadVariableTest, ADescriptorHasAnOffsetOrLeadsToAnIndex) {
  const ThreadVariable variable = *Find({{R_X86_64_TLSDESC, 1}});
  const uint64_t at = kBias + kSlot;
  EXPECT_EQ(*Place(variable, {{at, 1}, {at + 8, static_cast<uint64_t>(-72)}}), ThreadPlace{.offset = -72});
  const ThreadPlace glibc{.offset = 8, .slot = 48, .module = 3, .vector = 8, .count = -16};
  EXPECT_EQ(*Place(variable, {{at, 1}, {at + 8, kArgument}, {kArgument, 3}, {kArgument + 8, 8}}), glibc);
  EXPECT_TRUE(absl::IsUnavailable(Place(variable, {{at, 1}, {at + 8, kArgument}}).status()));
  EXPECT_TRUE(absl::IsUnavailable(Place(variable, {{at, 1}, {at + 8, 0}}).status()));
}

TEST(ThreadVariableTest, VectorsOfBlocksDifferByLibraryAndMachine) {
  const ThreadVariable variable = *Find({{R_X86_64_DTPMOD64, 1}});
  const std::map<uint64_t, uint64_t> memory = {{kBias + kSlot, 3}, {kBias + kSlot + 8, 16}};
  EXPECT_EQ(*Place(variable, memory, kMusl),
            (ThreadPlace{.offset = 16, .slot = 24, .module = 3, .vector = 8, .count = 0}));
  EXPECT_EQ(*Place(variable, memory, kMusl, ElfMachine::kArm64),
            (ThreadPlace{.offset = 16, .slot = 24, .module = 3, .vector = -8, .count = 0}));
  EXPECT_EQ(*Place(variable, memory, kGlibc, ElfMachine::kArm64),
            (ThreadPlace{.offset = 16, .slot = 48, .module = 3, .vector = 0, .count = -16}));
  EXPECT_TRUE(absl::IsUnimplemented(Place(variable, memory, ThreadVectorKind::kUnknown).status()));
  ThreadVariable block = variable;
  block.module_only = true;
  EXPECT_EQ(Place(block, memory)->offset, 8);
}

TEST(ThreadVariableTest, HostileWordsGiveNoPlace) {
  const ThreadVariable variable = *Find({{R_X86_64_DTPMOD64, 1}});
  for (const auto& [module, offset] :
       std::map<uint64_t, uint64_t>{{5000, 8}, {~uint64_t{0}, 8}, {3, 9}, {4, 1 << 30}}) {
    EXPECT_TRUE(absl::IsDataLoss(Place(variable, {{kBias + kSlot, module}, {kBias + kSlot + 8, offset}}).status()));
  }
  ThreadVariable outside = variable;
  outside.of = ThreadSegment{.memory_bytes = 12, .alignment = 8};
  EXPECT_TRUE(absl::IsDataLoss(Place(outside, {}).status()));
  EXPECT_TRUE(absl::IsDataLoss(PlaceOf(*Find({}), ElfMachine::kX64, 0, true, kGlibc, nullptr).status()));
}

TEST(ThreadVariableTest, AProgramsBlockIsNextToTheThreadPointer) {
  ThreadVariable variable = *Find({});
  variable.of = ThreadSegment{.memory_bytes = 20, .alignment = 16};
  EXPECT_EQ(Place(variable, {}, kGlibc, ElfMachine::kX64, true)->offset, 8 - 32);
  EXPECT_EQ(Place(variable, {}, kGlibc, ElfMachine::kArm64, true)->offset, 16 + 8);
  variable.of->alignment = 64;
  EXPECT_EQ(Place(variable, {}, kGlibc, ElfMachine::kArm64, true)->offset, 64 + 8);
  EXPECT_TRUE(absl::IsUnimplemented(Place(variable, {}).status()));
}

}  // namespace

// Exported, as the rules of the variable want it: the program is linked with -rdynamic.
extern "C" {
__attribute__((visibility("default"), used)) thread_local void* elf_test_thread_variable = nullptr;
}

namespace {

std::optional<const char*> AddressIn(const std::string& path, uint64_t bias, bool is_program, const char* name) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const absl::StatusOr<ElfImage> image = ElfImage::Parse(AsBytes(bytes));
  if (!image.ok()) return std::nullopt;
  const std::optional<ThreadVariable> variable = FindThreadVariable(*image, name);
  if (!variable) return std::nullopt;
  const auto place =
      PlaceOf(*variable, image->machine(), bias, is_program, kGlibc,
              [](uint64_t address) -> std::optional<uint64_t> { return *reinterpret_cast<const uint64_t*>(address); });
  if (!place.ok() || place->slot != 0) return std::nullopt;
  return static_cast<const char*>(__builtin_thread_pointer()) + place->offset;
}

// The judge is the code that the compiler made.
TEST(ThreadVariableTest, InThisProgramItIsWhereTheCompilerSays) {
  EXPECT_THAT(AddressIn("/proc/self/exe", 0, true, "elf_test_thread_variable"),
              Optional(reinterpret_cast<const char*>(&elf_test_thread_variable)));
}

// The judge is the C library, whose variable points to what it gives out.
TEST(ThreadVariableTest, InALibraryOfThisProcessItIsWhereTheLoaderSays) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&__res_state), &libc), 0);
  const auto address = AddressIn(libc.dli_fname, reinterpret_cast<uint64_t>(libc.dli_fbase), false, "__resp");
  ASSERT_TRUE(address);
  EXPECT_EQ(*reinterpret_cast<res_state const*>(*address), __res_state());
}

}  // namespace
}  // namespace clrsampler
