#include "clr/memory/runtime_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "test_paths.h"
#include "unit/clr/memory/fake_runtime.h"
#include "unit/formats/pe/fixture.h"
#include "unit/formats/runtime/il_map_bytes.h"
#include "unit/rounds.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr MetadataTable kTypeDef = MetadataTable::kTypeDef, kMethodDef = MetadataTable::kMethodDef;
constexpr uint64_t kCode = 0x7F12'3456'0000;

// Rows: 1 <Module>; 2 Ns.Plain {1 Run, 2 Of<T>}; 3 Ns.Box`1 {3 .ctor}; 4 Ns.Pair`2 {4 First}; 5 Ns.Plain+Inner {5 Deep}
std::string Shapes() {
  MetadataBuilder builder("shapes");
  builder.Type("", "<Module>");
  const uint32_t plain = builder.Type("Ns", "Plain");
  builder.Method("Run");
  const uint32_t of = builder.Method("Of");
  const uint32_t box = builder.Type("Ns", "Box`1");
  builder.Method(".ctor");
  const uint32_t pair = builder.Type("Ns", "Pair`2");
  builder.Method("First");
  const uint32_t inner = builder.Type("", "Inner");
  builder.Method("Deep");
  builder.Sorted(MetadataTable::kNestedClass).Sorted(MetadataTable::kGenericParam);
  builder.Nested(inner, plain);
  builder.GenericParam({kMethodDef, of}, 0, "TOf");
  builder.GenericParam({kTypeDef, box}, 0, "TBox");
  builder.GenericParam({kTypeDef, pair}, 0, "TKey");
  builder.GenericParam({kTypeDef, pair}, 1, "TValue");
  return builder.Build();
}

class RuntimeMemoryTest : public testing::TestWithParam<RuntimeKind> {
 protected:
  void SetUp() override {
    heap_ = &fake_.AddHeap(kCode, 0x8000);
    module_ = fake_.AddModule(Shapes());
    plain_ = fake_.AddType(module_, 2);
    Reattach();
  }
  void Reattach() {
    auto runtime = fake_.Attach();
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *std::move(runtime);
  }
  // A method of a new piece of code.
  uint64_t Place(uint64_t method_desc, FakeRuntime::Heap* heap = nullptr) {
    FakeRuntime::Heap& where = heap == nullptr ? *heap_ : *heap;
    const uint64_t offset = (where.nibbles.methods.size() + 1) * 0x100;
    fake_.AddCode(where, offset, 0x80, method_desc);
    return where.range.begin + offset;
  }
  std::string NameAt(uint64_t address) {
    const auto found = runtime_->Find(address);
    if (!found) return absl::StrCat("!", runtime_->last_detail());
    if (found->kind == ManagedCode::Kind::kNone) return "none";
    if (found->kind == ManagedCode::Kind::kNoMethod) return "no method";
    const MethodName& name = found->name;
    std::string text = name.type;
    if (!name.type_args.empty()) absl::StrAppend(&text, "[", absl::StrJoin(name.type_args, ","), "]");
    absl::StrAppend(&text, "::", name.method);
    if (!name.method_args.empty()) absl::StrAppend(&text, "[", absl::StrJoin(name.method_args, ","), "]");
    return text;
  }
  // The text of a type, as the argument of a generic method.
  std::string TextOf(uint64_t handle) {
    const std::string name = NameAt(Place(fake_.AddGenericMethod(plain_, 2, {handle})));
    constexpr absl::string_view kBefore = "Ns.Plain::Of[";
    if (!absl::StartsWith(name, kBefore)) return name;
    return name.substr(kBefore.size(), name.size() - kBefore.size() - 1);
  }

  FakeRuntime fake_{GetParam()};
  FakeRuntime::Heap* heap_ = nullptr;
  uint64_t module_ = 0, plain_ = 0;
  std::unique_ptr<RuntimeMemory> runtime_;
};

INSTANTIATE_TEST_SUITE_P(Majors, RuntimeMemoryTest,
                         testing::Values(8, 9, 10, 11, RuntimeKind(9, ElfMachine::kArm64),
                                         RuntimeKind(10, ElfMachine::kArm64), RuntimeKind(11, ElfMachine::kArm64)),
                         [](const auto& one) { return Text(one.param); });

// These only some versions have.
class RuntimeMemory8Test : public RuntimeMemoryTest {};
INSTANTIATE_TEST_SUITE_P(Net8, RuntimeMemory8Test, testing::Values(8));
class RuntimeMemory9Test : public RuntimeMemoryTest {};
INSTANTIATE_TEST_SUITE_P(Net9And10, RuntimeMemory9Test, testing::Values(9, 10));
// Their descriptors, if any, need not say where the arguments of methods are.
class RuntimeMemoryBefore11Test : public RuntimeMemoryTest {};
INSTANTIATE_TEST_SUITE_P(Before11, RuntimeMemoryBefore11Test, testing::Values(8, 9, 10));
class RuntimeMemory11Test : public RuntimeMemoryTest {};
INSTANTIATE_TEST_SUITE_P(Net11, RuntimeMemory11Test, testing::Values(11));

TEST_P(RuntimeMemoryTest, NamesAMethodFromItsMetadata) {
  const uint64_t at = Place(fake_.AddMethod(plain_, 1));
  const auto found = runtime_->Find(at + 0x7F);
  ASSERT_TRUE(found.has_value()) << runtime_->last_detail();
  EXPECT_EQ(found->kind, ManagedCode::Kind::kMethod);
  EXPECT_EQ(found->name.type, "Ns.Plain");
  EXPECT_EQ(found->name.method, "Run");
  EXPECT_EQ(found->name.module, "shapes");
  EXPECT_EQ(found->token, 0x06000001u);
  EXPECT_EQ(found->range.begin, at);
  EXPECT_EQ(found->range.end, at + 0x80);
  EXPECT_FALSE(found->transient);
  EXPECT_EQ(NameAt(at + 0x80), "no method");
  EXPECT_EQ(NameAt(at - 1), "no method");
  EXPECT_EQ(NameAt(0x1000), "none");
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 5), 5))), "Ns.Plain+Inner::Deep");
}

// .NET 8: the field says which module loaded the type, an optional slot which one defines it. Its place depends on the
// slots before it (MultipurposeSlotOffset in src/coreclr/vm/methodtable.cpp), and on the chunks of virtual slots.
TEST_P(RuntimeMemory8Test, ATypeIsNamedByTheModuleThatDefinesIt) {
  const uint64_t other = fake_.AddModuleWithoutImage();
  const auto type_with_slots = [&](uint16_t slots, uint64_t slot_offset) {
    const uint64_t table = fake_.AddType(other, 2);
    fake_.memory.Set<uint16_t>(table + fake_.layout.method_table.flags2, static_cast<uint16_t>(0x10 | slots));
    fake_.memory.Set<uint64_t>(table + slot_offset, module_);
    return table;
  };
  constexpr uint64_t kBehind = 64 + 8;  // the table, and its one chunk
  const std::pair<uint16_t, uint64_t> places[] = {
      {0x0, 48},      {0x1, 56},          {0x2, 48},          {0x4, 56},      {0x3, kBehind},
      {0x5, kBehind}, {0xD, kBehind + 8}, {0xE, kBehind + 8}, {0x6, kBehind}, {0xF, kBehind + 16}};
  for (const auto& [slots, offset] : places) {
    EXPECT_EQ(NameAt(Place(fake_.AddMethod(type_with_slots(slots, offset), 1))), "Ns.Plain::Run") << slots;
  }
}

// With an argument that can be freed, an instance is loaded by the argument's module. It shares all else with the
// canonical one.
TEST_P(RuntimeMemory8Test, AnInstanceIsNamedByTheModuleOfTheCanonicalOne) {
  MetadataBuilder builder("plugin");
  for (const char* name : {"<Module>", "Wrong", "Wrong", "Argument"}) builder.Type("", name);
  const uint64_t plugin = fake_.AddModule(builder.Build());
  const auto& at = fake_.layout.method_table;
  const auto make_collectible = [&](uint64_t table) {
    fake_.memory.Set<uint32_t>(table + at.flags, *fake_.memory.Value<uint32_t>(table + at.flags) | at.collectible);
    return table;
  };
  const uint64_t argument = make_collectible(fake_.AddType(plugin, 4));
  const uint64_t canonical = fake_.AddType(module_, 3, {plain_});
  const uint64_t instance = make_collectible(fake_.AddType(plugin, 3, {argument}));
  for (const uint64_t tag : {uint64_t{1}, uint64_t{2}}) {
    fake_.memory.Set<uint64_t>(instance + fake_.layout.fields.class_or_canonical, canonical | tag);
    EXPECT_EQ(runtime_->TypeName(instance), "Ns.Box`1[Argument]");
  }
  fake_.memory.Set<uint64_t>(instance + fake_.layout.fields.class_or_canonical, fake_.AddType(module_, 4) | 1);
  EXPECT_EQ(runtime_->TypeName(instance), std::nullopt) << "the canonical one of another type";
}

TEST_P(RuntimeMemoryTest, AnImageThatTheLoaderLaidOutIsReadByItsRvas) {
  const uint64_t module = fake_.AddModule(Shapes(), /*flat=*/false);
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module, 2), 1))), "Ns.Plain::Run");
}

TEST_P(RuntimeMemoryTest, GenericArgumentsOfTypesAndMethods) {
  const uint64_t inner = fake_.AddType(module_, 5);
  const uint64_t box = fake_.AddType(module_, 3, {plain_}), pair = fake_.AddType(module_, 4, {box, inner});
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(box, 3))), "Ns.Box`1[Ns.Plain]::.ctor");
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(pair, 4))), "Ns.Pair`2[Ns.Box`1[Ns.Plain],Ns.Plain+Inner]::First");
  EXPECT_EQ(NameAt(Place(fake_.AddGenericMethod(plain_, 2, {pair}))),
            "Ns.Plain::Of[Ns.Pair`2[Ns.Box`1[Ns.Plain],Ns.Plain+Inner]]");
}

TEST_P(RuntimeMemoryTest, WrongNumbersOfArgumentsAreRefused) {
  const uint64_t inner = fake_.AddType(module_, 5);
  // The definition itself, too few and too many.
  for (const auto& [rid, method, arguments] :
       std::vector<std::tuple<uint32_t, uint32_t, std::vector<uint64_t>>>{{3, 3, {}},
                                                                          {3, 3, {inner, inner}},
                                                                          {4, 4, {inner}},
                                                                          {2, 1, {inner}},
                                                                          {4, 4, std::vector<uint64_t>(64, inner)},
                                                                          {4, 4, std::vector<uint64_t>(65, inner)}}) {
    const std::string name = NameAt(Place(fake_.AddMethod(fake_.AddType(module_, rid, arguments), method)));
    EXPECT_EQ(name[0], '!') << rid << " " << name;
    EXPECT_EQ(runtime_->last_failure(), ProbeFailure::kContradiction);
  }
  for (const auto& arguments : std::vector<std::vector<uint64_t>>{{inner, inner}, std::vector<uint64_t>(65, inner)}) {
    EXPECT_EQ(NameAt(Place(fake_.AddGenericMethod(plain_, 2, arguments)))[0], '!');
  }
  EXPECT_EQ(NameAt(Place(fake_.AddGenericMethod(plain_, 1, {inner})))[0], '!') << "a method without parameters";
  // Wrong in the argument of an argument.
  const uint64_t wrong = fake_.AddType(module_, 4, {inner});
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 3, {wrong}), 3)))[0], '!');
}

TEST_P(RuntimeMemoryTest, AMethodOfAnotherTypeThanTheMetadataSaysIsRefused) {
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(plain_, 5))), "!metadata and runtime disagree on a method's type");
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 5), 1))),
            "!metadata and runtime disagree on a method's type");
  for (const uint32_t rid : {0u, 6u, 0xFFFu, 0xFFFFFFu}) {
    EXPECT_EQ(NameAt(Place(fake_.AddMethod(plain_, rid)))[0], '!') << rid;
  }
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 0), 1)))[0], '!');
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 99), 1)))[0], '!');
}

TEST_P(RuntimeMemoryTest, AMethodOutsideItsChunkIsRefused) {
  const uint64_t desc = fake_.AddMethod(plain_, 1);
  fake_.memory.Set<uint8_t>(desc - 4 * 8 - 24 + fake_.layout.method_desc_chunk.size, 3);
  EXPECT_EQ(NameAt(Place(desc)), "!a method outside its chunk");
}

TEST_P(RuntimeMemoryTest, TextsOfConstructedTypes) {
  const uint64_t box = fake_.AddType(module_, 3, {plain_});
  EXPECT_EQ(TextOf(fake_.AddArray(module_, plain_, 0)), "Ns.Plain[]");
  EXPECT_EQ(TextOf(fake_.AddArray(module_, plain_, 1)), "Ns.Plain[*]");
  EXPECT_EQ(TextOf(fake_.AddArray(module_, plain_, 3)), "Ns.Plain[,,]");
  EXPECT_EQ(TextOf(fake_.AddArray(module_, fake_.AddArray(module_, box, 2), 0)), "Ns.Box`1[Ns.Plain][,][]");
  EXPECT_EQ(TextOf(fake_.AddTypeDesc(0x10, plain_)), "Ns.Plain&");
  EXPECT_EQ(TextOf(fake_.AddTypeDesc(0x0F, fake_.AddTypeDesc(0x0F, plain_))), "Ns.Plain**");
  EXPECT_EQ(TextOf(fake_.AddVariable(module_, 2)), "TBox");
  EXPECT_EQ(TextOf(fake_.AddVariable(module_, 1, /*of_method=*/true)), "TOf");
  EXPECT_EQ(TextOf(fake_.AddFunctionPointer({plain_, box, fake_.AddTypeDesc(0x10, plain_)})),
            "Ns.Plain (Ns.Box`1[Ns.Plain], Ns.Plain&)");
  EXPECT_EQ(TextOf(fake_.AddFunctionPointer({plain_})), "Ns.Plain ()");
}

TEST_P(RuntimeMemoryTest, DamagedTypesAreRefused) {
  EXPECT_EQ(TextOf(fake_.AddArray(module_, plain_, 33)), "!an array of no rank");
  // Sizes between those of two ranks, and in the runtime's memory anything may stand there.
  for (const uint32_t bytes : {0u, 23u, 25u, 31u, 39u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    const uint64_t array = fake_.AddArray(module_, plain_, 1);
    fake_.memory.Set<uint32_t>(array + fake_.layout.method_table.base_size, bytes);
    EXPECT_EQ(TextOf(array), "!an array of no rank") << bytes;
  }
  EXPECT_EQ(TextOf(fake_.AddTypeDesc(0x14, plain_)), "!a type of an unknown kind");
  EXPECT_EQ(TextOf(fake_.AddVariable(module_, 99)), "!a type variable has no row in the metadata");
  const uint64_t pointer = fake_.AddFunctionPointer({plain_});
  fake_.memory.Set<uint32_t>((pointer & ~uint64_t{2}) + fake_.layout.type_desc.function_count, 64);
  EXPECT_EQ(TextOf(pointer), "!a function pointer with too many parameters");
  EXPECT_EQ(TextOf(0), "!not mapped");
  EXPECT_EQ(TextOf(2), "!not mapped");
  EXPECT_EQ(TextOf(fake_.AddType(module_, 77)), "!a type has no row in the metadata");
  EXPECT_EQ(TextOf(fake_.AddType(fake_.memory.Allocate(1600), 2)), "!a module is of no class of the runtime");
  EXPECT_EQ(TextOf(plain_), "Ns.Plain") << "a failure is of one lookup only";
}

TEST_P(RuntimeMemoryTest, NestingIsCutAndCirclesEnd) {
  uint64_t handle = plain_;
  for (int i = 0; i < 11; ++i) handle = fake_.AddTypeDesc(0x0F, handle);
  EXPECT_EQ(TextOf(handle), "Ns.Plain***********");
  for (int i = 0; i < 5; ++i) handle = fake_.AddTypeDesc(0x0F, handle);
  // Parts of it are known by now, so another one.
  uint64_t deep = fake_.AddType(module_, 5);
  for (int i = 0; i < 40; ++i) deep = fake_.AddTypeDesc(0x0F, deep);
  EXPECT_EQ(TextOf(deep).substr(0, 4), "...*");
  const uint64_t circle = fake_.AddTypeDesc(0x10);
  fake_.memory.Set<uint64_t>((circle & ~uint64_t{2}) + fake_.layout.type_desc.argument, circle);
  EXPECT_EQ(TextOf(circle).substr(0, 4), "...&");
  // A type whose arguments are itself, twice: 2 to the power of the depth, but for the budget of reads.
  const uint64_t pair = fake_.AddType(module_, 4, {plain_, plain_});
  fake_.SetArguments(pair, {pair, pair});
  const uint64_t before = fake_.memory.reads;
  TextOf(pair);
  EXPECT_LE(fake_.memory.reads - before, 2000u);
}

TEST_P(RuntimeMemoryTest, LongTypeTextsAreCut) {
  uint64_t handle = fake_.AddType(module_, 4, {plain_, plain_});
  for (int i = 0; i < 11; ++i) handle = fake_.AddType(module_, 4, {handle, handle});
  EXPECT_LE(TextOf(handle).size(), 4096u + 3u);
}

TEST_P(RuntimeMemoryTest, DynamicMethodsHaveNamesThatArePrintable) {
  EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, "Emitted7"))), "dynamicClass::Emitted7");
  const uint64_t stub = Place(fake_.AddDynamicMethod(plain_, "IL_STUB_PInvoke"));
  EXPECT_EQ(runtime_->Find(stub)->name.kind, MethodKind::kIlStub);
  EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, "naïve"))), "dynamicClass::naïve");
  for (const char* damaged :
       {"a\nb", "\x7F", "\x80", "\xC1\xBF", "\xC3", "\xE2\x82", "\xE2\x82x", "\xF5\x80\x80\x80", "X)\xDE\xFF\x7F"}) {
    EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, damaged))), "!a dynamic method's name is no text");
  }
  EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, "\xE2\x82\xAC\xF0\x9F\x98\x80"))),
            "dynamicClass::\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, ""))), "!a dynamic method's name is no text");
  EXPECT_EQ(NameAt(Place(fake_.AddDynamicMethod(plain_, std::string(5000, 'x')))), "!a text without end");
  const uint64_t nameless = fake_.AddDynamicMethod(plain_, "x");
  fake_.memory.Set<uint64_t>(nameless + fake_.layout.dynamic_method_name, 0);
  EXPECT_EQ(NameAt(Place(nameless)), "!a dynamic method without a name");
  fake_.memory.Set<uint64_t>(nameless + fake_.layout.dynamic_method_name, 0x999);
  EXPECT_EQ(NameAt(Place(nameless)), "!not mapped");
}

TEST_P(RuntimeMemoryTest, ArrayMethodsAreNamedByTheirSlot) {
  const uint64_t array = fake_.AddArray(module_, plain_, 2);
  const char* names[] = {"Get", "Set", "Address", ".ctor", ".ctor"};
  for (uint16_t i = 0; i < 5; ++i) {
    const uint64_t desc = fake_.AddMethod(array, 0, FakeRuntime::kArrayMethod);
    fake_.memory.Set<uint16_t>(desc + fake_.layout.method_desc.slot, static_cast<uint16_t>(4 + i));
    EXPECT_EQ(NameAt(Place(desc)), absl::StrCat("Ns.Plain[,]::", names[i]));
  }
  const uint64_t desc = fake_.AddMethod(array, 0, FakeRuntime::kArrayMethod);
  EXPECT_EQ(NameAt(Place(desc)), "!an array method outside its table");
}

TEST_P(RuntimeMemoryTest, TiersComeFromTheVersionThatHasThisCode) {
  const uint64_t desc = fake_.AddMethod(plain_, 1);
  const uint64_t first = Place(desc), second = Place(desc);
  EXPECT_EQ(runtime_->Find(first)->name.tier, "Optimized");
  fake_.MakeTieringEligible(desc);
  EXPECT_EQ(runtime_->Find(first)->name.tier, "") << "its IL is in no file";
  fake_.AddVersion(desc, second, 1);
  fake_.AddVersion(desc, 0, 4);
  EXPECT_EQ(runtime_->Find(first)->name.tier, "");
  EXPECT_EQ(runtime_->Find(second)->name.tier, "OptimizedTier1");
  // Another method's versions are not its own.
  const uint64_t other = fake_.AddMethod(fake_.AddType(module_, 5), 5);
  const uint64_t third = Place(other);
  fake_.AddVersion(other, third, 3);
  EXPECT_EQ(runtime_->Find(third)->name.tier, "Optimized");
  EXPECT_EQ(runtime_->Find(second)->name.tier, "OptimizedTier1");
  // A tier that nobody knows, and versions in a circle: the name stays.
  const uint64_t fourth = Place(desc);
  fake_.AddVersion(desc, fourth, 77);
  EXPECT_EQ(runtime_->Find(fourth)->name.tier, "");
  EXPECT_EQ(NameAt(fourth), "Ns.Plain::Run");
}

// A method that is not in the copy of a table may be in the table that there is now. So it is not called quickly
// jitted, which would stand for good.
TEST_P(RuntimeMemory8Test, ATableOfVersionsThatChangesWhileItIsCopiedTellsNothing) {
  const uint64_t desc = fake_.AddMethod(plain_, 1), at = Place(desc);
  fake_.MakeTieringEligible(desc);
  fake_.AddVersion(desc, at, 3);
  const uint64_t table = fake_.VersionTable();
  bool changed = false;
  fake_.memory.before_read = [&](uint64_t address) {
    if (address != table || std::exchange(changed, true)) return;
    const uint64_t other = fake_.AddMethod(fake_.AddType(module_, 5), 5);
    fake_.AddVersion(other, Place(other), 1);
  };
  EXPECT_EQ(runtime_->Find(at)->name.tier, "");
  EXPECT_EQ(runtime_->Find(at)->name.tier, "Optimized");
}

// A target may show another table each time. It is copied as often as there is room for the work.
TEST_P(RuntimeMemory8Test, ALargeTableOfVersionsThatChangesAllTheTimeIsCopiedNowAndThen) {
  constexpr uint64_t kSlots = 1 << 20;
  const uint64_t desc = fake_.AddMethod(plain_, 1), at = Place(desc);
  fake_.MakeTieringEligible(desc);
  fake_.AddVersion(desc, at, 3);
  const uint64_t large = fake_.memory.Allocate(8 * kSlots);
  uint64_t bytes = 0;
  const auto find = [&](uint32_t count) {
    fake_.SetVersionTable(large, kSlots, count);
    const uint64_t before = fake_.memory.bytes;
    EXPECT_EQ(runtime_->Find(at)->name.tier, "");
    bytes += fake_.memory.bytes - before;
  };
  for (uint32_t i = 0; i < 100; ++i) find(1 + i);
  EXPECT_LE(bytes, 5 * 8 * kSlots);
  EXPECT_GE(bytes, 4 * 8 * kSlots);
  for (int i = 0; i < 20; ++i) runtime_->NextIteration();
  const uint64_t before = bytes;
  for (uint32_t i = 0; i < 100; ++i) find(200 + i);
  EXPECT_NEAR(static_cast<double>(bytes - before), 8 * kSlots, 1'000'000);
}

// A Debug build, a method with the attribute, and a process that was told so: none of them takes part in tiering.
TEST_P(RuntimeMemoryTest, CodeOutsideOfTieringIsOptimisedUnlessTheRuntimeWasTold) {
  constexpr uint16_t kNoOptimization = 0x40, kAggressiveOptimization = 0x200;
  MetadataBuilder builder("untiered");
  builder.Type("", "<Module>");
  const uint32_t type = builder.Type("Ns", "Untiered");
  const uint32_t plain = builder.Method("Plain");
  const uint32_t not_optimised = builder.Method("NotOptimised", {0, 0, 1}, 0, kNoOptimization);
  const uint32_t at_once = builder.Method("AtOnce", {0, 0, 1}, 0, kAggressiveOptimization);
  const uint64_t module = fake_.AddModule(builder.Build()), untiered = fake_.AddType(module, type);
  FakeRuntime::Heap& transient = fake_.AddHeap(kCode + 0x10000, 0x4000, /*collectible=*/true);
  const std::vector<uint64_t> places = {
      Place(fake_.AddMethod(untiered, plain)), Place(fake_.AddMethod(untiered, not_optimised)),
      Place(fake_.AddMethod(untiered, at_once)), Place(fake_.AddDynamicMethod(untiered, "IL_STUB_PInvoke")),
      Place(fake_.AddDynamicMethod(untiered, "Emitted"), &transient)};
  const auto tiers = [&] {
    std::vector<std::string> found;
    for (const uint64_t place : places) found.push_back(runtime_->Find(place)->name.tier);
    return found;
  };
  EXPECT_THAT(tiers(), ElementsAre("Optimized", "MinOptJitted", "Optimized", "Optimized", "Optimized"));
  fake_.SetModuleFlags(module, FakeRuntime::kDebugBuild);
  EXPECT_THAT(tiers(), ElementsAre("MinOptJitted", "MinOptJitted", "MinOptJitted", "MinOptJitted", "Optimized"));
  fake_.SetModuleFlags(module, FakeRuntime::kReleaseBuild);
  RuntimePlace place = fake_.place();
  int asked = 0;
  place.compiles_with_min_opts = [&asked] { return ++asked > 0; };
  auto runtime = RuntimeMemory::Attach(place, fake_.memory, nullptr, fake_.copies, true);
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  runtime_ = *std::move(runtime);
  EXPECT_EQ(asked, 0);
  EXPECT_THAT(tiers(), ElementsAre("MinOptJitted", "MinOptJitted", "MinOptJitted", "MinOptJitted", "Optimized"));
  EXPECT_EQ(asked, 1);
}

TEST_P(RuntimeMemoryTest, CodeOutsideOfTieringHasNoTierWhereItsModuleCanNotBeRead) {
  const uint64_t at = Place(fake_.AddMethod(plain_, 1));
  EXPECT_EQ(runtime_->Find(at)->name.tier, "Optimized");
  fake_.memory.Unmap(module_);
  EXPECT_EQ(NameAt(at), "Ns.Plain::Run");
  EXPECT_EQ(runtime_->Find(at)->name.tier, "");
}

// The compiler may optimise a loop at once that it was asked to compile quickly: then there is no patchpoint in it.
TEST_P(RuntimeMemoryTest, CodeIsQuicklyJittedWhereItsIlAndItsPatchpointsSaySo) {
  MetadataBuilder builder("tiers");
  builder.Type("", "<Module>");
  const uint32_t type = builder.Type("Ns", "Tiers");
  const uint32_t straight = builder.Method("Straight", {0, 0, 1}, FakeRuntime::kStraightIl);
  const uint32_t loop = builder.Method("Loop", {0, 0, 1}, FakeRuntime::kLoopIl);
  const uint32_t nowhere = builder.Method("Nowhere", {0, 0, 1}, 0x70'0000);
  const uint32_t at_once = builder.Method("AtOnce", {0, 0, 1}, FakeRuntime::kStraightIl, 0x200);
  const std::string metadata = builder.Build(), file = FakeRuntime::Image(metadata, /*flat=*/true);
  const uint64_t tiers = fake_.AddType(fake_.AddModule(metadata), type);
  auto runtime = fake_.Attach(true, [&file](uint64_t) {
    return MappedContent{AsBytes(file), std::make_shared<int>(0), "/app/tiers.dll"};
  });
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  const auto tier_of = [&](uint32_t rid, const std::string& debug_info) {
    const uint64_t desc = fake_.AddMethod(tiers, rid), offset = 0x100 * (heap_->nibbles.methods.size() + 1);
    const uint64_t header = fake_.AddCode(*heap_, offset, 0x80, desc);
    fake_.MakeTieringEligible(desc);
    if (!debug_info.empty()) {
      const uint64_t info = fake_.memory.Allocate(64);
      fake_.memory.SetBytes(info, AsBytes(debug_info));
      fake_.memory.Set<uint64_t>(header, info);
    }
    const auto found = (*runtime)->Find(heap_->range.begin + offset);
    return found ? found->name.tier : absl::StrCat("!", (*runtime)->last_detail());
  };
  const bool is_net11 = GetParam().version == 11;
  const std::string plain = is_net11 ? Nibbles({0, 0, 0, 0, 0, 0, 0}) : std::string(2, '\0');
  const std::string patchpoint = is_net11 ? Nibbles({0, 0, 0, 0, 40, 0, 0}) : "\1" + std::string(41, '\0');
  EXPECT_EQ(tier_of(straight, ""), "QuickJitted");
  EXPECT_EQ(tier_of(loop, patchpoint), "QuickJitted");
  EXPECT_EQ(tier_of(loop, plain), "");
  EXPECT_EQ(tier_of(loop, ""), "");
  EXPECT_EQ(tier_of(nowhere, ""), "");
  EXPECT_EQ(tier_of(at_once, ""), "OptimizedTier1") << "AggressiveOptimization, on 8";
}

TEST_P(RuntimeMemoryTest, AMethodThatIsReplacedWhileItIsNamedIsChanged) {
  const uint64_t at = Place(fake_.AddMethod(plain_, 1));
  const uint64_t other = fake_.AddMethod(fake_.AddType(module_, 5), 5);
  const uint64_t header = *fake_.memory.Value<uint64_t>(at - 8);
  // The same header, now of another method: the pointer to it says nothing.
  fake_.memory.before_read = [&](uint64_t address) {
    if (address == plain_) fake_.memory.Set<uint64_t>(header + fake_.layout.code_header.method_desc, other);
  };
  EXPECT_EQ(runtime_->Find(at), std::nullopt);
  EXPECT_EQ(runtime_->last_failure(), ProbeFailure::kChanged);
  fake_.memory.before_read = nullptr;
  EXPECT_EQ(NameAt(at), "Ns.Plain+Inner::Deep");
}

TEST_P(RuntimeMemoryTest, StandsUntilItIsAnotherMethod) {
  const uint64_t at = Place(fake_.AddMethod(plain_, 1));
  const MethodCode code = runtime_->Find(at)->code;
  EXPECT_TRUE(runtime_->Stands(code));
  fake_.memory.Set<uint64_t>(code.header, 0x1);  // debug information: any byte of the identity
  EXPECT_FALSE(runtime_->Stands(code));
  fake_.memory.Set<uint64_t>(code.header, 0);
  EXPECT_TRUE(runtime_->Stands(code));
  fake_.memory.Set<uint64_t>(at - 8, code.header + 64);
  EXPECT_FALSE(runtime_->Stands(code));
}

TEST_P(RuntimeMemoryTest, CodeThatWasJustFoundIsNotSearchedForAgain) {
  const uint64_t at = Place(fake_.AddMethod(plain_, 1));
  const MethodCode code = runtime_->Find(at)->code;
  const uint64_t before = fake_.memory.reads;
  const std::optional<RuntimeCode> again = runtime_->FindCode(at);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(fake_.memory.reads, before);
  EXPECT_EQ(again->kind, ManagedCode::Kind::kMethod);
  EXPECT_FALSE(again->transient);
  EXPECT_EQ(again->code.range.begin, code.range.begin);
  EXPECT_EQ(again->code.range.end, code.range.end);
  EXPECT_EQ(again->code.header, code.header);
  EXPECT_EQ(again->code.identity, code.identity);
}

TEST_P(RuntimeMemoryTest, CodeThatMayBeFreedIsSearchedForEachTime) {
  FakeRuntime::Heap& heap = fake_.AddHeap(kCode + 0x10000, 0x4000, /*collectible=*/true);
  const uint64_t at = Place(fake_.AddMethod(plain_, 1), &heap);
  ASSERT_TRUE(runtime_->Find(at)->transient);
  const uint64_t before = fake_.memory.reads;
  const std::optional<RuntimeCode> again = runtime_->FindCode(at);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->transient);
  EXPECT_GT(fake_.memory.reads, before);
}

// A type of a collectible assembly is freed, and another gets its address.
// Nothing says where a stub ends. A method behind it that was freed leaves its bytes.
TEST_P(RuntimeMemoryTest, BehindAStubThatMayBeFreedOnlyItsJumpIsOne) {
  const std::vector<uint8_t> jump =
      GetParam().machine == ElfMachine::kArm64
          ? std::vector<uint8_t>{0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6, 1, 2, 3, 4, 5, 6, 0, 0}
          : std::vector<uint8_t>{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 0, 0, 0xff, 0xe0};
  for (const bool collectible : {false, true}) {
    const uint64_t begin = kCode + (collectible ? 0x200'0000 : 0x400'0000);
    FakeRuntime::Heap& heap = fake_.AddHeap(begin, 0x4000, collectible);
    fake_.SetHeader(heap, 0x100, 1);
    heap.nibbles.Add(0x100, 0x20);
    fake_.WriteNibbles(heap);
    fake_.memory.SetBytes(begin + 0x100, std::as_bytes(std::span(jump)));
    const auto kind = [&](uint64_t address) { return runtime_->Find(address)->kind; };
    const auto behind = collectible ? ManagedCode::Kind::kNoMethod : ManagedCode::Kind::kStub;
    EXPECT_EQ(kind(begin + 0x100), ManagedCode::Kind::kStub);
    EXPECT_EQ(kind(begin + 0x104), ManagedCode::Kind::kStub);
    EXPECT_EQ(kind(begin + 0x100 + jump.size()), behind);
    EXPECT_EQ(runtime_->FindCode(begin + 0x100 + jump.size())->kind, behind);
    EXPECT_EQ(runtime_->FindCode(begin + 0x100)->kind, ManagedCode::Kind::kStub);
  }
}

TEST_P(RuntimeMemoryTest, NothingOfCollectibleCodeIsRemembered) {
  FakeRuntime::Heap& heap = fake_.AddHeap(kCode + 0x10000, 0x4000, /*collectible=*/true);
  const uint64_t module = fake_.AddModule(Shapes());
  const uint64_t type = fake_.AddType(module, 2), box = fake_.AddType(module, 3, {type});
  const uint64_t at = Place(fake_.AddMethod(box, 3), &heap);
  EXPECT_TRUE(runtime_->Find(at)->transient);
  EXPECT_EQ(NameAt(at), "Ns.Box`1[Ns.Plain]::.ctor");
  fake_.memory.Set<uint32_t>(type + fake_.layout.method_table.flags2,
                             fake_.layout.method_table.rid_in_flags2 ? 5 << 8 : 5 << 16);
  EXPECT_EQ(NameAt(at), "Ns.Box`1[Ns.Plain+Inner]::.ctor");
  // The module too.
  MetadataBuilder other("other");
  other.Type("", "<Module>");
  other.Type("New", "Two");
  const uint32_t three = other.Type("New", "Three`1");
  other.Method("Go");
  other.Method("Gone");
  other.Type("", "Four");
  other.Type("", "Five");
  other.GenericParam({kTypeDef, three}, 0, "T");
  const uint64_t replaced = fake_.AddModule(other.Build());
  std::vector<std::byte> bytes(1400);
  ASSERT_TRUE(fake_.memory.Read(replaced, bytes));
  fake_.memory.SetBytes(module, bytes);
  const uint64_t desc = fake_.AddMethod(box, 1);
  EXPECT_EQ(NameAt(Place(desc, &heap)), "New.Three`1[Five]::Go");
}

// Ends of large metadata can be the same in two builds of an assembly. Their GUIDs differ.
TEST_P(RuntimeMemoryTest, AnotherBuildOfALargeAssemblyIsNotTheOneBefore) {
  const auto build = [](const std::string& method, char guid) {
    MetadataBuilder builder("large");
    builder.Type("", "<Module>");
    builder.Type("Ns", "Plain");
    builder.Method(method);
    return builder.BuildLarge(std::string(16, guid), 70'000);
  };
  const std::string old_build = build("Old", 'a');
  const std::string old_image = FakeRuntime::Image(old_build, true);
  for (const bool with_file : {false, true}) {
    MappedContentFinder files;
    if (with_file) {
      files = [&](uint64_t) { return MappedContent{AsBytes(old_image), nullptr}; };
    }
    auto runtime = fake_.Attach(true, files);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *std::move(runtime);
    FakeRuntime::Heap& heap = fake_.AddHeap(kCode + (with_file ? 0x20000 : 0x10000), 0x4000, /*collectible=*/true);
    const uint64_t module = fake_.AddModule(old_build);
    const uint64_t at = Place(fake_.AddMethod(fake_.AddType(module, 2), 1), &heap);
    EXPECT_EQ(NameAt(at), "Ns.Plain::Old");
    EXPECT_EQ(NameAt(at), "Ns.Plain::Old");
    EXPECT_EQ(runtime_->modules().copied(), with_file ? 0u : 1u) << "compared, and not copied again";
    std::vector<std::byte> bytes(1400);
    ASSERT_TRUE(fake_.memory.Read(fake_.AddModule(build("New", 'b')), bytes));
    fake_.memory.SetBytes(module, bytes);
    EXPECT_EQ(NameAt(at), "Ns.Plain::New");
  }
}

// Objects tell their type by its address. No method of the type need run.
TEST_P(RuntimeMemoryTest, ATypeThatMayBeFreedIsReadEachTime) {
  const auto& at = fake_.layout.method_table;
  const uint64_t type = fake_.AddType(fake_.AddModule(Shapes()), 2);
  const uint32_t flags = *fake_.memory.Value<uint32_t>(type + at.flags);
  fake_.memory.Set<uint32_t>(type + at.flags, flags | at.collectible);
  EXPECT_EQ(runtime_->TypeName(type), "Ns.Plain");
  fake_.memory.Set<uint32_t>(type + at.flags2, at.rid_in_flags2 ? 5 << 8 : 5 << 16);
  EXPECT_EQ(runtime_->TypeName(type), "Ns.Plain+Inner");
  // Another assembly takes the place of its own.
  MetadataBuilder other("other");
  for (const char* name : {"<Module>", "One", "Two", "Three", "Four"}) other.Type("", name);
  fake_.memory.Set<uint64_t>(type + at.module, fake_.AddModule(other.Build()));
  EXPECT_EQ(runtime_->TypeName(type), "Four");
}

// Values of methods of collectible assemblies on 8.0.30, 9.0.19, 10.0.14 and 11.0.0. On 8 the other bit says something
// else.
TEST_P(RuntimeMemoryTest, TheFlagOfTypesThatMayBeFreed) {
  const uint64_t type = fake_.AddType(module_, 2);
  const auto is_freed = [&](uint32_t flags) {
    fake_.memory.Set<uint32_t>(type + fake_.layout.method_table.flags, flags);
    const auto found = runtime_->TypeOf(type);
    return found.has_value() && found->collectible;
  };
  const bool is_8 = fake_.layout.major == 8;
  EXPECT_EQ(is_freed(0x10000000), is_8);
  EXPECT_EQ(is_freed(0x00200000), !is_8);
}

TEST_P(RuntimeMemoryTest, ATypeThatIsNeverFreedIsReadOnce) {
  EXPECT_EQ(runtime_->TypeName(plain_), "Ns.Plain");
  FakeRuntime::Heap& heap = fake_.AddHeap(kCode + 0x10000, 0x4000, /*collectible=*/true);
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(plain_, 1), &heap)), "Ns.Plain::Run");  // forgets what may be freed
  const uint64_t reads = fake_.memory.reads;
  EXPECT_EQ(runtime_->TypeName(plain_), "Ns.Plain");
  EXPECT_EQ(fake_.memory.reads, reads);
}

// Texts of types are kept as long as all of them have 16 MiB.
TEST_P(RuntimeMemory9Test, LongTextsOfManyTypesAreReadAgain) {
  constexpr int kTypes = (16 << 20) / 4000 + 1;
  MetadataBuilder builder("long");
  builder.Type("", "<Module>");
  builder.Type("", std::string(4000, 'L'));
  const uint64_t module = fake_.AddModule(builder.Build());
  const uint64_t first = fake_.AddType(module, 2);
  const auto reads_for = [&](uint64_t type) {
    const uint64_t before = fake_.memory.reads;
    EXPECT_TRUE(runtime_->TypeName(type).has_value());
    return fake_.memory.reads - before;
  };
  EXPECT_NE(reads_for(first), 0u);
  EXPECT_EQ(reads_for(first), 0u);
  for (int i = 0; i < kTypes; ++i) reads_for(fake_.AddType(module, 2));
  EXPECT_NE(reads_for(first), 0u);
}

TEST_P(RuntimeMemoryTest, EmittedMetadataIsReadAgainWhenItHasGrown) {
  const uint64_t module = fake_.AddModuleWithoutImage();
  const uint64_t first = Place(fake_.AddMethod(fake_.AddType(module, 2), 1));
  if (!fake_.layout.module.dynamic_metadata) {
    EXPECT_EQ(NameAt(first), "!a method of a module without metadata");
    EXPECT_EQ(runtime_->last_failure(), ProbeFailure::kUnsupported);
    return;
  }
  EXPECT_EQ(NameAt(first)[0], '!');
  MetadataBuilder builder("emitted");
  builder.Type("", "<Module>");
  builder.Type("", "One");
  builder.Method("Run");
  fake_.SetEmitted(module, builder.Build("#-"));
  EXPECT_EQ(NameAt(first), "One::Run");
  builder.Type("", "Two");
  builder.Method("Walk");
  const uint64_t second = Place(fake_.AddMethod(fake_.AddType(module, 3), 2));
  EXPECT_EQ(NameAt(second)[0], '!') << "the runtime's copy is older than the type";
  fake_.SetEmitted(module, builder.Build("#-"));
  EXPECT_EQ(NameAt(second), "Two::Walk");
  EXPECT_EQ(NameAt(first), "One::Run");
}

// The runtime frees its copy when it has made a larger one.
TEST_P(RuntimeMemory9Test, EmittedMetadataThatIsReplacedWhileItIsCopiedIsReadAgain) {
  MetadataBuilder builder("emitted");
  builder.Type("", "<Module>");
  builder.Type("", "One");
  builder.Method("Run");
  const uint64_t module = fake_.AddModuleWithoutImage();
  fake_.SetEmitted(module, builder.Build("#-"));
  const uint64_t copy = *fake_.memory.Value<uint64_t>(module + *fake_.layout.module.dynamic_metadata);
  const uint64_t at = Place(fake_.AddMethod(fake_.AddType(module, 2), 1));
  bool replaced = false;
  fake_.memory.before_read = [&](uint64_t address) {
    if (address != copy + 4 || std::exchange(replaced, true)) return;
    builder.Type("", "Two");
    fake_.SetEmitted(module, builder.Build("#-"));
    // The bytes are another object's by now.
    MetadataBuilder other("other");
    other.Type("", "<Module>");
    other.Type("", "Own");
    other.Method("Run");
    fake_.memory.SetBytes(copy + 4, AsBytes(other.Build("#-")));
  };
  EXPECT_EQ(NameAt(at), "!emitted metadata grew while it was copied");
  EXPECT_EQ(runtime_->last_failure(), ProbeFailure::kChanged);
  EXPECT_EQ(NameAt(at), "One::Run");
}

// A copy that can't be read as metadata is no reason to take the next one of the same size for it.
TEST_P(RuntimeMemory9Test, EmittedMetadataThatIsDamagedIsReadAgain) {
  MetadataBuilder builder("emitted");
  builder.Type("", "<Module>");
  builder.Type("", "One");
  builder.Method("Run");
  const uint64_t module = fake_.AddModuleWithoutImage();
  fake_.SetEmitted(module, builder.Build("#-"));
  const uint64_t copy = *fake_.memory.Value<uint64_t>(module + *fake_.layout.module.dynamic_metadata);
  const uint64_t at = Place(fake_.AddMethod(fake_.AddType(module, 2), 1));
  fake_.memory.Set<uint32_t>(copy + 4, 0);
  EXPECT_EQ(NameAt(at)[0], '!');
  fake_.memory.SetBytes(copy + 4, AsBytes(builder.Build("#-")));
  EXPECT_EQ(NameAt(at), "One::Run");
}

// The metadata is read again while a name of the same module is being put together.
TEST_P(RuntimeMemory9Test, EmittedMetadataThatGrowsInTheMiddleOfAName) {
  MetadataBuilder builder("emitted");
  builder.Type("", "<Module>");
  const uint32_t box = builder.Type("", "Box`1");
  builder.Method("Run");
  builder.GenericParam({kTypeDef, box}, 0, "T");
  const uint64_t module = fake_.AddModuleWithoutImage();
  fake_.SetEmitted(module, builder.Build("#-"));
  const uint64_t late = fake_.AddType(module, 3);
  const uint64_t type = fake_.AddType(module, 2, {late});
  const uint64_t at = Place(fake_.AddMethod(type, 1));
  EXPECT_EQ(NameAt(at)[0], '!');
  builder.Type("", "Late");
  fake_.SetEmitted(module, builder.Build("#-"));
  EXPECT_EQ(NameAt(at), "Box`1[Late]::Run");
  // And as the argument of an argument, which ends in the same module again.
  Reattach();
  fake_.SetEmitted(module, builder.Build("#-"));
  EXPECT_EQ(TextOf(fake_.AddType(module, 2, {fake_.AddType(module, 2, {late})})), "Box`1[Box`1[Late]]");
  const uint64_t later = fake_.AddType(module, 4);
  const uint64_t outer = fake_.AddType(module, 2, {fake_.AddType(module, 2, {later})});
  builder.Type("", "Later");
  fake_.SetEmitted(module, builder.Build("#-"));
  EXPECT_EQ(TextOf(outer), "Box`1[Box`1[Later]]");
}

TEST_P(RuntimeMemoryTest, ImagesThatAreDamagedNameNothing) {
  const auto name_in = [&](std::string image) {
    const uint64_t module = fake_.AddModule(Shapes());
    const uint64_t base = fake_.memory.Allocate(std::max<size_t>(image.size(), 4096));
    fake_.memory.SetBytes(base, AsBytes(image));
    const uint64_t assembly = *fake_.memory.Value<uint64_t>(module + fake_.layout.module.assembly_file);
    const uint64_t pe_image = *fake_.memory.Value<uint64_t>(assembly + fake_.layout.pe_assembly_image);
    const uint64_t pe_layout = *fake_.memory.Value<uint64_t>(pe_image + fake_.layout.pe_image.flat);
    fake_.memory.Set<uint64_t>(pe_layout + fake_.layout.pe_layout.base, base);
    if (fake_.layout.module.base) fake_.memory.Set<uint64_t>(module + *fake_.layout.module.base, base);
    return NameAt(Place(fake_.AddMethod(fake_.AddType(module, 2), 1)));
  };
  const std::string good = FakeRuntime::Image(Shapes(), true);
  EXPECT_EQ(name_in(good), "Ns.Plain::Run");
  std::mt19937_64 random(41);
  for (int i = 0; i < 400; ++i) {
    std::string bad = good;
    // The headers, where sizes and places are.
    const size_t at = random() % 0x1B0;
    bad[at] = static_cast<char>(random());
    bad[0x1000 + random() % 80] ^= static_cast<char>(1 << random() % 8);
    const uint64_t before = fake_.memory.bytes;
    const std::string name = name_in(bad);
    EXPECT_TRUE(name == "Ns.Plain::Run" || name[0] == '!') << name;
    EXPECT_LT(fake_.memory.bytes - before, 4u << 20);
    heap_->nibbles = NibbleHeap(fake_.layout.nibble_map, 0x8000);  // room for the next
    fake_.WriteNibbles(*heap_);
  }
}

// An image of CoreLib is mapped. Its tables do not matter here: no method is prepared.
class SelfTestTest : public RuntimeMemoryTest {
 protected:
  void SetUp() override {
    RuntimeMemoryTest::SetUp();
    module_ = fake_.AddModuleWithoutImage();
    info_ = fake_.memory.Allocate(512);
    buckets_ = fake_.memory.Allocate(4 * 64);
    const uint64_t section = fake_.AddSection({kBase, kBase + 0x10000}, 0);
    fake_.memory.Set<uint64_t>(section + fake_.layout.range_section.r2r_module, module_);
    fake_.memory.Set<uint64_t>(module_ + fake_.layout.module.r2r_info, info_);
    fake_.memory.Set<uint64_t>(info_ + fake_.layout.r2r_info.module, module_);
    fake_.memory.Set<uint64_t>(info_ + fake_.layout.r2r_info.entry_points + fake_.layout.hash_map_buckets, buckets_);
    fake_.memory.Set<uint32_t>(buckets_, 3);
  }
  absl::Status Attached() {
    RuntimePlace place = fake_.place();
    place.tables_at = [this](uint64_t) { return R2rTables{image_->get(), nullptr}; };
    const auto files = [this](uint64_t base) {
      return base == kBase ? std::optional(MappedContent{AsBytes(core_lib_), nullptr, "/app/core.dll"}) : std::nullopt;
    };
    return RuntimeMemory::Attach(place, fake_.memory, files, fake_.copies, false).status();
  }

  static constexpr uint64_t kBase = 0x7F20'0000'0000;
  const std::string core_lib_ = FakeRuntime::Image(MetadataBuilder("System.Private.CoreLib").Build(), /*flat=*/true);
  const std::string file_ = ReadFixture("10.0.14-x64/shapes.dll");
  const absl::StatusOr<std::unique_ptr<R2rImage>> image_ = OpenR2r(file_);
  uint64_t module_ = 0, info_ = 0, buckets_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Majors, SelfTestTest, testing::Values(8, 9, 10, 11));

TEST_P(SelfTestTest, ATableOfPreparedMethodsThatIsEmptyIsNoContradiction) {
  EXPECT_TRUE(Attached().ok()) << Attached();
  fake_.memory.Set<uint64_t>(buckets_ + 64, kBase + 0x20000);
  EXPECT_TRUE(absl::IsAborted(Attached())) << Attached();
  EXPECT_THAT(Attached().message(), HasSubstr("a prepared method lies outside its image"));
}

// A build whose fields lie elsewhere gives no method to compare with. It is not read, however often it is tried. A
// runtime that makes the table larger meanwhile is read the next time.
TEST_P(SelfTestTest, ATableOfPreparedMethodsThatCannotBeFollowedIsTriedAgain) {
  fake_.memory.Set<uint64_t>(info_ + fake_.layout.r2r_info.module, module_ + 8);
  EXPECT_TRUE(absl::IsAborted(Attached())) << Attached();
  EXPECT_THAT(Attached().message(), HasSubstr("a module's precompiled code is another module's"));
  fake_.memory.Set<uint64_t>(info_ + fake_.layout.r2r_info.module, module_);
  for (const uint32_t count : {0u, UINT32_MAX}) {
    fake_.memory.Set<uint32_t>(buckets_, count);
    EXPECT_TRUE(absl::IsAborted(Attached())) << count << ": " << Attached();
  }
  fake_.memory.Set<uint32_t>(buckets_, 3);
  EXPECT_TRUE(Attached().ok()) << Attached();
  // Perhaps the runtime is about to load the image.
  fake_.memory.Set<uint64_t>(module_ + fake_.layout.module.r2r_info, 0);
  EXPECT_TRUE(absl::IsAborted(Attached())) << Attached();
}

TEST_P(RuntimeMemoryTest, AttachSaysWhyItCannot) {
  const auto status = [&](auto change) {
    FakeRuntime other(GetParam());
    other.AddHeap(kCode, 0x1000);
    change(other);
    return other.Attach().status();
  };
  EXPECT_TRUE(status([](FakeRuntime&) {}).ok());
  EXPECT_TRUE(absl::IsUnavailable(status([](FakeRuntime& r) { r.memory.Unmap(FakeRuntime::kImage); })));
  EXPECT_TRUE(absl::IsUnavailable(FakeRuntime(GetParam()).Attach().status())) << "no code yet";
  const auto circle = [](FakeRuntime& r) {
    for (uint64_t i = 0; i < 256; ++i) r.memory.Set<uint64_t>(FakeRuntime::kRangeMap + 8 * i, FakeRuntime::kRangeMap);
  };
  EXPECT_TRUE(absl::IsAborted(status(circle)));
  if (GetParam().version == 8) {
    EXPECT_TRUE(absl::IsUnavailable(status([](FakeRuntime& r) { r.memory.Set<uint64_t>(FakeRuntime::kDacTable, 0); })));
    return;
  }
  const auto with = [&](const std::string& json, std::vector<uint64_t> pointers = {FakeRuntime::kRangeMap}) {
    return status([&](FakeRuntime& r) { r.SetDescriptor(json, pointers); });
  };
  const std::string globals = R"("globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"]})";
  EXPECT_FALSE(with("{").ok());
  if (GetParam().version >= 11) return;  // says more, and must: see below
  EXPECT_TRUE(with("{\"types\":{}," + globals + "}").ok());
  EXPECT_TRUE(absl::IsUnavailable(with("{\"types\":{}," + globals + "}", {0}))) << "not set up yet";
  EXPECT_TRUE(absl::IsFailedPrecondition(with("{\"types\":{}," + globals + R"(,"contracts":{"Loader":2}})")));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(R"({"types":{"MethodTable":{"Module":60}},)" + globals + "}")));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(R"({"types":{"RealCodeHeader":{"MethodDesc":32}},)" + globals + "}")));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(R"({"types":{"MethodDesc":{"CodeData":4294967295}},)" + globals + "}")));
  if (GetParam().version >= 10) {
    EXPECT_TRUE(absl::IsFailedPrecondition(with(R"({"types":{}})")));
  }
}

TEST_P(RuntimeMemory11Test, RefusesADescriptorFromTheFutureWithASentence) {
  const auto refusal = [&](const std::string& from, const std::string& to) {
    FakeRuntime other(GetParam());
    other.AddHeap(kCode, 0x1000);
    const std::string json = Descriptor11(), changed = absl::StrReplaceAll(json, {{from, to}});
    EXPECT_NE(json, changed) << from;
    other.SetDescriptor(changed);
    return other.Attach().status();
  };
  EXPECT_EQ(refusal(R"("version":2)", R"("version":3)").code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(refusal(R"("version":2)", R"("version":3)").message(),
              HasSubstr("its contract descriptor has version 3, the newest that is known is 2"));
  EXPECT_THAT(refusal(R"("Loader":"c1")", R"("Loader":"c2")").message(),
              HasSubstr("its contract Loader has version c2, known is c1"));
  EXPECT_THAT(refusal(R"("CodeVersions":"c1",)", "").message(),
              HasSubstr("it does not describe its contract CodeVersions"));
  EXPECT_THAT(refusal(R"("MapBase":32,)", "").message(),
              HasSubstr("its contract descriptor does not say where CodeHeapListNode.MapBase is"));
  EXPECT_THAT(refusal(R"("ExecutionManagerCodeRangeMapAddress":[[0],"pointer"],)", "").message(),
              HasSubstr("does not tell where the map of code is"));
}

TEST_P(RuntimeMemory11Test, TellsTheBodiesOfAnAsyncMethodApart) {
  MetadataBuilder builder("shop");
  builder.Type("", "<Module>");
  const uint32_t task = builder.Type("System.Threading.Tasks", "Task`1");
  builder.GenericParam({kTypeDef, task}, 0, "TResult");
  const uint32_t cart = builder.Type("Shop", "Cart");
  builder.Method("CheckoutAsync", {0x00, 0x00, 0x15, 0x12, static_cast<uint8_t>(task << 2), 0x01, 0x08});  // Task<int>
  const uint64_t type = fake_.AddType(fake_.AddModule(builder.Build()), cart);
  const auto body = [&](uint64_t method_desc) {
    const auto found = runtime_->Find(Place(method_desc));
    EXPECT_TRUE(found.has_value()) << runtime_->last_detail();
    return found.has_value() ? found->name : MethodName();
  };
  constexpr char kTask[] = "System.Threading.Tasks.Task`1[System.Int32]";
  EXPECT_EQ(body(fake_.AddMethod(type, 1)).async_body, AsyncBody::kUnknown);
  EXPECT_EQ(body(fake_.AddMethod(type, 1)).return_type, kTask);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0)).async_body, AsyncBody::kUnknown);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x12)).async_body, AsyncBody::kThunk);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x12)).return_type, kTask);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x05)).async_body, AsyncBody::kResult);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x05)).return_type, "System.Int32");
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x05, FakeRuntime::kInstantiated)).return_type, "System.Int32");
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x15)).async_body, AsyncBody::kThunk);
  EXPECT_EQ(body(fake_.AddAsyncMethod(type, 1, 0x15)).return_type, "System.Int32");
}

TEST_P(RuntimeMemory9Test, TakesTheDescriptorsWordAndSaysWhereItDiffers) {
  fake_.layout.method_table.module = 32;
  fake_.SetDescriptor(
      R"({"types":{"MethodTable":{"Module":32}},"globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"]}})");
  Reattach();
  EXPECT_THAT(runtime_->layout_differences(), ElementsAre("MethodTable.Module is at 32"));
  EXPECT_EQ(NameAt(Place(fake_.AddMethod(fake_.AddType(module_, 2), 1))), "Ns.Plain::Run");
}

// Nobody vouches for where their arguments are: they are left out, and the name is kept.
TEST_P(RuntimeMemoryBefore11Test, ArgumentsOfMethodsNeedAWitness) {
  auto unproven = fake_.Attach(/*proven=*/false);
  ASSERT_TRUE(unproven.ok());
  runtime_ = *std::move(unproven);
  const std::string name = NameAt(Place(fake_.AddGenericMethod(plain_, 2, {fake_.AddType(module_, 5)})));
  EXPECT_EQ(name, "Ns.Plain::Of");
}

TEST_P(RuntimeMemoryBefore11Test, EnoughMethodsWithAsManyTypesAsTheyDeclareAreAWitness) {
  const uint64_t inner = fake_.AddType(module_, 5);
  uint64_t at = 0;
  const auto name_after = [&](size_t methods) {
    for (size_t i = 0; i < methods; ++i) at = Place(fake_.AddGenericMethod(plain_, 2, {inner}));
    auto unproven = fake_.Attach(/*proven=*/false);
    EXPECT_TRUE(unproven.ok());
    runtime_ = *std::move(unproven);
    return NameAt(at);
  };
  EXPECT_EQ(name_after(7), "Ns.Plain::Of");
  EXPECT_EQ(name_after(1), "Ns.Plain::Of[Ns.Plain+Inner]");
  EXPECT_EQ(runtime_->self_test().plausible_arguments, 8u);
}

// 2,000 bodies are looked at, whatever a map and the number of heaps say.
TEST_P(RuntimeMemoryBefore11Test, AWitnessIsLookedForInAFewBodies) {
  uint64_t reads_of_maps = 0;
  std::vector<AddressRange> maps;
  for (const uint64_t begin : {kCode + 0x100'0000, kCode + 0x200'0000}) {
    FakeRuntime::Heap& heap = fake_.AddHeap(begin, 0x10'0000);
    std::ranges::fill(heap.nibbles.words, 0x1111'1111);
    fake_.WriteNibbles(heap);
    maps.push_back({heap.map, heap.map + 4 * heap.nibbles.words.size()});
  }
  fake_.memory.before_read = [&](uint64_t address) {
    reads_of_maps += std::ranges::any_of(maps, [&](const AddressRange& map) { return map.contains(address); }) ? 1 : 0;
  };
  EXPECT_TRUE(fake_.Attach(/*proven=*/false).ok());
  EXPECT_EQ(reads_of_maps, 1u);
}

// One that holds something else there: it may be the place that is wrong.
TEST_P(RuntimeMemoryBefore11Test, AMethodWithoutTypesWhereTheyBelongIsAWitnessAgainstIt) {
  const uint64_t inner = fake_.AddType(module_, 5);
  const uint64_t damaged = fake_.AddGenericMethod(plain_, 2, {inner});
  const auto arguments = fake_.memory.Value<uint64_t>(damaged + fake_.layout.instantiated_method.arguments);
  fake_.memory.Set<uint64_t>(*arguments, plain_ + 8);
  Place(damaged);
  uint64_t at = 0;
  for (int i = 0; i < 10; ++i) at = Place(fake_.AddGenericMethod(plain_, 2, {inner}));
  auto unproven = fake_.Attach(/*proven=*/false);
  ASSERT_TRUE(unproven.ok());
  runtime_ = *std::move(unproven);
  EXPECT_EQ(NameAt(at), "Ns.Plain::Of");
}

TEST_P(RuntimeMemory9Test, ADescriptorThatNamesTheirPlaceIsAWitness) {
  fake_.SetDescriptor(absl::StrCat(R"({"types":{"InstantiatedMethodDesc":{"PerInstInfo":)",
                                   fake_.layout.instantiated_method.arguments, R"(,"NumGenericArgs":)",
                                   fake_.layout.instantiated_method.count,
                                   R"(}},"globals":{"ExecutionManagerCodeRangeMapAddress":[[0],"pointer"]}})"));
  auto unproven = fake_.Attach(/*proven=*/false);
  ASSERT_TRUE(unproven.ok()) << unproven.status();
  runtime_ = *std::move(unproven);
  EXPECT_EQ(NameAt(Place(fake_.AddGenericMethod(plain_, 2, {fake_.AddType(module_, 5)}))),
            "Ns.Plain::Of[Ns.Plain+Inner]");
}

// Whatever memory says, a lookup ends, soon and without a crash.
class HashedMemory : public MemoryReader {
 public:
  bool Read(uint64_t address, std::span<std::byte> into) override {
    ++reads;
    bytes += into.size();
    if (fixed != nullptr && fixed->Read(address, into)) return true;
    if (absl::HashOf(address >> 12, seed) % 8 == 0) return false;
    for (size_t i = 0; i < into.size(); ++i) {
      const uint64_t word = (address + i) / 8;
      uint64_t value = absl::HashOf(word, seed);
      // Small numbers, pointers into the runtime's image, and pointers to anywhere: what gets a reader furthest.
      switch (value % 5) {
        case 0:
          value = value >> 8 & 0xF;
          break;
        case 1:
          value = FakeRuntime::kImage + (value >> 8 & 0xFFF8);
          break;
        case 2:
          value = (value >> 8 & 7) | (value >> 16 & 7) << 32;
          break;
        default:
          value = 0x7F00'0000'0000 + (value >> 8 & 0xFFFFF8);
          break;
      }
      into[i] = static_cast<std::byte>(value >> 8 * ((address + i) % 8));
    }
    return true;
  }
  FakeMemory* fixed = nullptr;
  uint64_t seed = 0, reads = 0, bytes = 0;
};

TEST_P(RuntimeMemoryTest, LookupsInRandomMemoryEnd) {
  std::mt19937_64 random(51);
  constexpr int kLookups = Rounds(100'000), kRounds = 50;
  uint64_t most_reads = 0, most_bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    FakeMemory fixed = fake_.memory;
    HashedMemory memory;
    memory.fixed = &fixed;
    auto runtime = RuntimeMemory::Attach(fake_.place(), memory, nullptr, fake_.copies, true);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    memory.seed = static_cast<uint64_t>(round) + 1;
    // Now the maps are gone, and only chance is left; in half of the rounds behind a real map of code.
    if (round % 2 == 0) {
      fixed = FakeMemory();
    } else {
      for (uint64_t i = 0; i < 0x8000; i += 0x100) fixed.Set<uint64_t>(kCode + i, random());
      fixed.Unmap(heap_->map);
    }
    for (int i = 0; i < kLookups / kRounds; ++i) {
      const uint64_t reads = memory.reads, bytes = memory.bytes;
      const uint64_t address = i % 3 == 0   ? random()
                               : i % 3 == 1 ? kCode + random() % 0x8000
                                            : 0x7F00'0000'0000 + random() % (1 << 25);
      (*runtime)->Find(address);
      most_reads = std::max(most_reads, memory.reads - reads);
      most_bytes = std::max(most_bytes, memory.bytes - bytes);
    }
  }
  // 512 of the name, 256 of the tier, and what lists and metadata may cost.
  EXPECT_LT(most_reads, 30'000u);
  RecordProperty("most_reads", static_cast<int>(most_reads));
  RecordProperty("most_bytes", static_cast<int>(most_bytes));
}

// The tables that were measured say the same as the runtimes of those versions.
TEST(RuntimeLayoutTest, KnownRuntimesDescribeThemselvesAsMeasured) {
  const std::vector<std::pair<RuntimeKind, std::string>> cases = {
      {9, "net9.0.19"},
      {10, "net10.0.14"},
      {11, "net11.0.0"},
      {{9, ElfMachine::kArm64}, "net9.0.23-arm64"},
      {{10, ElfMachine::kArm64}, "net10.0.15-arm64"},
      {{11, ElfMachine::kArm64}, "net11.0.0-arm64"},
  };
  for (const auto& [kind, name] : cases) {
    std::ifstream stream(absl::StrCat(TestData("../fuzz/corpus/contract_descriptor_fuzz/"), name, ".json"));
    const std::string json{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const auto descriptor = ContractDescriptor::Parse(json, std::vector<uint64_t>(46, 1));
    ASSERT_TRUE(descriptor.ok()) << name << descriptor.status();
    auto layout = RuntimeLayout::ForMajor(kind.version, kind.machine);
    std::vector<std::string> differences;
    EXPECT_TRUE(layout->Overlay(*descriptor, differences).ok()) << name;
    EXPECT_THAT(differences, ElementsAre()) << name;
    EXPECT_EQ(layout->nibble_map, kind.version == 9 ? NibbleMapVersion::k1 : NibbleMapVersion::k2);
    // The other machine's table does not fit; .NET 9 says nothing of functions.
    if (kind.version == 9) continue;
    auto other =
        RuntimeLayout::ForMajor(kind.version, kind.machine == ElfMachine::kX64 ? ElfMachine::kArm64 : ElfMachine::kX64);
    EXPECT_TRUE(absl::IsFailedPrecondition(other->Overlay(*descriptor, differences))) << name;
  }
}

// .NET 8 has 16 bits for the row of a type, all of them set where it stands elsewhere (METHODTABLE_TOKEN_OVERFLOW).
TEST(RuntimeLayoutTest, ARowThatStandsElsewhereIsNone) {
  const auto row = [](uint32_t major, uint32_t word) {
    return RuntimeLayout::ForMajor(major, ElfMachine::kX64)->method_table.TypeDefRow(word);
  };
  EXPECT_EQ(row(8, 0xFFFE'5A4A), 0xFFFEu);
  EXPECT_EQ(row(8, 0xFFFF'5A4A), 0u);
  EXPECT_EQ(row(9, 0x00FF'FF4A), 0xFFFFu);
}

TEST(RuntimeLayoutTest, OfEightOnArm64NothingIsKnown) {
  EXPECT_THAT(RuntimeLayout::ForMajor(8, ElfMachine::kArm64).status().message(),
              HasSubstr("the structures of .NET 8 were never measured on arm64"));
}

TEST(RuntimeLayoutTest, SinceElevenARuntimeDescribesEverythingOrIsRefused) {
  EXPECT_TRUE(absl::IsUnimplemented(RuntimeLayout::ForMajor(7, ElfMachine::kX64).status()));
  EXPECT_THAT(RuntimeLayout::ForMajor(kNewestKnownMajor + 1, ElfMachine::kX64).status().message(),
              HasSubstr(" is not known: 11 is the newest that is"));
  std::ifstream stream(TestData("../fuzz/corpus/contract_descriptor_fuzz/net11.0.0.json"));
  const std::string json{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto overlay = [&](uint32_t major, absl::string_view from, absl::string_view to) {
    const std::string text = absl::StrReplaceAll(json, {{from, to}});
    EXPECT_NE(text, json);
    auto layout = RuntimeLayout::ForMajor(major, ElfMachine::kX64);
    std::vector<std::string> differences;
    return layout->Overlay(*ContractDescriptor::Parse(text, std::vector<uint64_t>(46, 1)), differences);
  };
  EXPECT_THAT(overlay(11, R"("Loader":"c1")", R"("Loader":"c2")").message(),
              HasSubstr("Loader has version c2, known is c1"));
  EXPECT_THAT(overlay(11, R"("Loader":"c1")", R"("Loader":2)").message(),
              HasSubstr("Loader has version 2, known is 1"));
  EXPECT_THAT(overlay(11, R"("Loader":"c1")", R"("Elsewhere":"c1")").message(),
              HasSubstr("does not describe its contract Loader"));
  EXPECT_THAT(overlay(11, R"("MapBase")", R"("Base")").message(),
              HasSubstr("does not say where CodeHeapListNode.MapBase is"));
}

}  // namespace
}  // namespace clrsampler
