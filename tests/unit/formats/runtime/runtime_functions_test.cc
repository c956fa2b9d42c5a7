#include "formats/runtime/runtime_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "unit/formats/runtime/runtime_image_builder.h"

namespace clrsampler {
namespace {

using Builder = RuntimeImageBuilder;

std::vector<std::string> Names(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat("Thread_Do", i));
  return names;
}

absl::StatusOr<RuntimeFunctions> Read(const Builder& builder) {
  const std::string bytes = builder.Build();
  const auto image = ElfImage::Parse(AsBytes(bytes));
  EXPECT_TRUE(image.ok()) << image.status();
  return RuntimeFunctions::Read(*image);
}

std::string NameOf(const absl::StatusOr<RuntimeFunctions>& functions, size_t index) {
  const RuntimeFunction* found = functions->StartingAt({Builder::Function(index)});
  return found == nullptr ? "" : found->name;
}

JitHelperTable HelpersOf(int major, ElfMachine machine = ElfMachine::kX64) {
  for (JitHelperTable& table : JitHelperTables(machine)) {
    if (table.major == major) return table;
  }
  ADD_FAILURE() << major;
  return {};
}

// Where the n-th function of the helpers' table is in a built image, by the helper's name.
size_t FunctionOf(const JitHelperTable& table, absl::string_view helper) {
  size_t functions = Builder::kFirstHelper;
  for (const JitHelper& one : table.helpers) {
    if (one.helper == helper) return functions;
    if (one.kind == JitHelperKind::kFunction) ++functions;
  }
  ADD_FAILURE() << helper;
  return 0;
}

size_t IndexOf(const JitHelperTable& table, absl::string_view helper) {
  const auto found = std::find_if(table.helpers.begin(), table.helpers.end(),
                                  [&](const JitHelper& one) { return one.helper == helper; });
  return static_cast<size_t>(found - table.helpers.begin());
}

TEST(RuntimeFunctionsTest, EntryPointsAreNamedByTheTextInFrontOfThem) {
  for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
    Builder builder(machine);
    builder.AddPairs(Names(40));
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok()) << functions.status();
    ASSERT_EQ(functions->all().size(), 40u);
    ASSERT_EQ(functions->tables().size(), 1u);
    EXPECT_EQ(functions->tables()[0].kind, RuntimeTableKind::kEntryPoints);
    EXPECT_EQ(functions->tables()[0].at.value, Builder::kPairs);
    EXPECT_EQ(functions->tables()[0].functions, 40u);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(NameOf(functions, i), absl::StrCat("Thread_Do", i));
    EXPECT_EQ(functions->StartingAt({Builder::Function(3) + 1}), nullptr) << "inside a function";
    EXPECT_EQ(NameOf(functions, 40), "");
  }
}

TEST(RuntimeFunctionsTest, OnlyARuntimeIsRead) {
  Builder builder;
  builder.AddPairs(Names(40));
  builder.runtime_export = "PyInit_lists";
  EXPECT_TRUE(absl::IsNotFound(Read(builder).status()));
}

TEST(RuntimeFunctionsTest, AFewPairsAreNoTable) {
  Builder builder;
  builder.AddPairs(Names(23));
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_TRUE(functions->all().empty());
  EXPECT_TRUE(functions->tables().empty());
}

TEST(RuntimeFunctionsTest, AGapMakesTwoTables) {
  Builder builder;
  builder.AddPairs(Names(60));
  builder.slots.erase(Builder::kPairs + 16 * 30);
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(functions->tables().size(), 2u);
  EXPECT_EQ(functions->all().size(), 59u);
  EXPECT_EQ(NameOf(functions, 30), "") << "its name is not there";
}

TEST(RuntimeFunctionsTest, ATableWithOneNameTwiceIsRefused) {
  Builder builder;
  std::vector<std::string> names = Names(40);
  names[7] = names[20];
  builder.AddPairs(names);
  EXPECT_TRUE(Read(builder)->all().empty());
}

TEST(RuntimeFunctionsTest, ATableWithTextsOfAnotherKindIsRefused) {
  std::vector<std::string> plain;
  for (int i = 0; i < 40; ++i) plain.push_back(absl::StrCat("append", i));
  Builder builder;
  builder.AddPairs(plain);
  EXPECT_TRUE(Read(builder)->all().empty()) << "methods of some class, not entry points";
}

TEST(RuntimeFunctionsTest, ATextThatIsNoIdentifierEndsATable) {
  for (const std::string& text : {std::string("Thread Do"), std::string("9Thread_Do"), std::string("Thread::Do"),
                                  std::string("\x1b[2J_x"), std::string(200, 'a'), std::string("a")}) {
    Builder builder;
    std::vector<std::string> names = Names(60);
    names[30] = text;
    builder.AddPairs(names);
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok());
    EXPECT_EQ(functions->all().size(), 59u) << text;
    EXPECT_EQ(functions->tables().size(), 2u) << text;
  }
}

TEST(RuntimeFunctionsTest, AnAddressThatBeginsNoFunctionRefusesItsTable) {
  Builder inside;
  inside.AddPairs(Names(40));
  inside.slots[Builder::kPairs + 8] += 4;
  EXPECT_TRUE(Read(inside)->all().empty());
  Builder no_entry;
  no_entry.AddPairs(Names(40));
  no_entry.without_unwind = Builder::Function(5);
  EXPECT_TRUE(Read(no_entry)->all().empty());
}

TEST(RuntimeFunctionsTest, AFunctionWithTwoNamesHasNone) {
  Builder builder;
  builder.AddPairs(Names(40));
  builder.slots[Builder::kPairs + 16 * 11 + 8] = Builder::Function(12);
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(functions->all().size(), 38u);
  EXPECT_EQ(functions->in_doubt(), 1u);
  EXPECT_EQ(NameOf(functions, 12), "");
}

TEST(RuntimeFunctionsTest, AFunctionThatOtherTablesLeadToHasNoName) {
  Builder builder;
  builder.AddPairs(Names(40));
  builder.slots[Builder::kMore] = Builder::Function(12);  // a vtable: an empty function that the linker shares
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(functions->all().size(), 39u);
  EXPECT_EQ(functions->in_doubt(), 1u);
  EXPECT_EQ(NameOf(functions, 12), "");
}

TEST(RuntimeFunctionsTest, FCallsAreNamedByTheMethodsThatTheyAre) {
  for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
    Builder builder(machine);
    builder.AddFCalls(20);
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok()) << functions.status();
    ASSERT_EQ(functions->tables().size(), 1u);
    EXPECT_EQ(functions->tables()[0].kind, RuntimeTableKind::kFCalls);
    EXPECT_EQ(functions->tables()[0].at.value, Builder::kClasses);
    EXPECT_EQ(functions->all().size(), 40u);
    EXPECT_EQ(NameOf(functions, 3), "System.Threading.Thread1.SpinWaitInternal");
    EXPECT_EQ(NameOf(functions, 4), "System.Threading.Thread1..ctor");
  }
}

TEST(RuntimeFunctionsTest, AClassWithoutAFunctionBelongsToTheTable) {
  Builder builder;
  builder.AddFCalls(20);
  builder.DropFCallsOf(10);
  EXPECT_EQ(Read(builder)->all().size(), 38u);
}

TEST(RuntimeFunctionsTest, AFewClassesAreNoTable) {
  Builder builder;
  builder.AddFCalls(15);
  EXPECT_TRUE(Read(builder)->all().empty());
}

TEST(RuntimeFunctionsTest, OneWordOfAClassThatDoesNotFitEndsTheTable) {
  // Each class has 11 words: flags, function, name; flags, function, name, signature; flags, 0, name; the end.
  for (size_t word = 0; word < 11; ++word) {
    Builder builder;
    builder.AddFCalls(20);
    const size_t at = 10 * 11 + word;
    const bool flags = word == 0 || word == 3 || word == 7 || word == 10;
    if (flags) {
      builder.call_words[at] ^= 2;
    } else if (word == 8) {
      builder.call_words[at] = 7;
    } else {
      builder.slots.erase(Builder::kCalls + 8 * at);
      builder.call_words[at] = 7;
    }
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok());
    EXPECT_TRUE(functions->all().empty()) << word << ": neither the 10 classes before nor the 9 behind are enough";
  }
}

TEST(RuntimeFunctionsTest, HelpersAreNamedByTheirPlaceInTheTableOfTheVersion) {
  for (const int major : {8, 9, 10, 11}) {
    for (const uint16_t machine : {EM_X86_64, EM_AARCH64}) {
      const JitHelperTable table = HelpersOf(major, machine == EM_X86_64 ? ElfMachine::kX64 : ElfMachine::kArm64);
      Builder builder(machine);
      builder.AddHelpers(table);
      const auto functions = Read(builder);
      ASSERT_TRUE(functions.ok()) << functions.status();
      ASSERT_EQ(functions->tables().size(), 1u) << major;
      EXPECT_EQ(functions->tables()[0].major, major);
      EXPECT_EQ(functions->tables()[0].at.value, Builder::kHelpers);
      EXPECT_EQ(NameOf(functions, FunctionOf(table, "COUNTPROFILE32")), "JIT_CountProfile32");
      EXPECT_EQ(NameOf(functions, FunctionOf(table, "COUNTPROFILE64")), "JIT_CountProfile64");
      EXPECT_EQ(NameOf(functions, FunctionOf(table, "LMUL")), "JIT_LMul");
    }
  }
}

TEST(RuntimeFunctionsTest, DynamicHelpersAreNamedByTheirFirstFunctions) {
  for (const int major : {8, 9, 10, 11}) {
    const JitHelperTable table = HelpersOf(major);
    Builder builder;
    builder.AddHelpers(table);
    builder.AddDynamicHelpers(table);
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok());
    ASSERT_EQ(functions->tables().size(), 2u) << major;
    EXPECT_EQ(functions->tables()[1].at.value, Builder::kDynamic);
    const auto named = [&](absl::string_view name) {
      return std::count_if(functions->all().begin(), functions->all().end(),
                           [&](const RuntimeFunction& one) { return one.name == name; });
    };
    EXPECT_EQ(named("JIT_ProfilerEnterLeaveTailcallStub"), 1) << major;
    EXPECT_EQ(named("JIT_RareDisableHelper"), 1) << major;
    EXPECT_EQ(named("JIT_CountProfile32"), 1) << major;
  }
}

TEST(RuntimeFunctionsTest, DynamicHelpersOfAnotherVersionHaveNoNames) {
  Builder builder;
  builder.AddHelpers(HelpersOf(10));
  builder.AddDynamicHelpers(HelpersOf(9));
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(functions->tables().size(), 1u);
  for (const RuntimeFunction& one : functions->all()) EXPECT_NE(one.name, "IL_Throw");
}

TEST(RuntimeFunctionsTest, HelpersOfAnUnknownFunctionAreCalledAsTheJitCallsThem) {
  const JitHelperTable table = HelpersOf(8);
  Builder builder;
  builder.AddHelpers(table);
  const auto share = [&](absl::string_view first, absl::string_view second) {
    builder.slots[Builder::kHelpers + 8 * IndexOf(table, second)] = Builder::Function(FunctionOf(table, first));
  };
  share("GETFIELD8", "SETFIELD8");
  for (const auto* helper : {"MON_EXIT", "MON_ENTER_STATIC", "MON_EXIT_STATIC"}) share("MON_ENTER", helper);
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(NameOf(functions, FunctionOf(table, "LMUL_OVF")), "CORINFO_HELP_LMUL_OVF");
  EXPECT_EQ(NameOf(functions, FunctionOf(table, "GETFIELD8")), "CORINFO_HELP_GETFIELD8|SETFIELD8");
  EXPECT_EQ(NameOf(functions, FunctionOf(table, "MON_ENTER")), "") << "four say little";
  EXPECT_EQ(functions->in_doubt(), 0u);
}

TEST(RuntimeFunctionsTest, OneWordThatDoesNotFitRefusesTheTableOfHelpers) {
  const JitHelperTable table = HelpersOf(10);
  for (size_t i = 0; i < table.helpers.size(); ++i) {
    Builder builder;
    builder.AddHelpers(table);
    const uint64_t slot = Builder::kHelpers + 8 * i;
    if (table.helpers[i].kind == JitHelperKind::kFunction) {
      builder.slots.erase(slot);
    } else {
      ++builder.helper_words[i];
    }
    const auto functions = Read(builder);
    ASSERT_TRUE(functions.ok());
    EXPECT_TRUE(functions->all().empty()) << table.helpers[i].helper;
  }
}

TEST(RuntimeFunctionsTest, AHelperMoreOrLessRefusesTheTable) {
  for (const bool more : {false, true}) {
    JitHelperTable table = HelpersOf(10);
    const auto at = table.helpers.begin() + 100;
    if (more) {
      table.helpers.insert(at, {"NEW_IN_11", JitHelperKind::kFunction, true, ""});
    } else {
      table.helpers.erase(at);
    }
    Builder builder;
    builder.AddHelpers(table);
    EXPECT_TRUE(Read(builder)->all().empty()) << more;
  }
}

TEST(RuntimeFunctionsTest, TwoTablesThatFitAreNone) {
  const JitHelperTable table = HelpersOf(10);
  Builder builder;
  builder.AddHelpers(table);
  builder.AddHelpers(table);  // words behind those of the first
  for (size_t i = 0; i < table.helpers.size(); ++i) {
    const auto slot = builder.slots.find(Builder::kHelpers + 8 * i);
    if (slot != builder.slots.end()) builder.slots[slot->first + 8 * table.helpers.size()] = slot->second;
  }
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_TRUE(functions->tables().empty());
}

TEST(RuntimeFunctionsTest, HelpersWithOneBodyAndTwoNamesHaveNone) {
  const JitHelperTable table = HelpersOf(10);
  Builder builder;
  builder.AddHelpers(table);
  const uint64_t target = Builder::Function(FunctionOf(table, "COUNTPROFILE32"));
  for (auto& [slot, address] : builder.slots) {
    if (address == Builder::Function(FunctionOf(table, "COUNTPROFILE64"))) address = target;
  }
  const auto functions = Read(builder);
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(NameOf(functions, FunctionOf(table, "COUNTPROFILE32")), "");
  EXPECT_EQ(functions->in_doubt(), 1u);
}

TEST(JitHelperTablesTest, HelpersAreNamedOnce) {
  for (const ElfMachine machine : {ElfMachine::kX64, ElfMachine::kArm64}) {
    for (const JitHelperTable& table : JitHelperTables(machine)) {
      std::set<absl::string_view> seen;
      for (const JitHelper& helper : table.helpers) {
        EXPECT_TRUE(seen.insert(helper.helper).second) << table.major << " " << helper.helper;
      }
      EXPECT_GT(table.helpers.size(), 190u);
      EXPECT_EQ(table.helpers[0].helper, "UNDEF");
    }
  }
}

}  // namespace
}  // namespace clrsampler
