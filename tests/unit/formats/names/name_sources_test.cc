// One method, one frame: what the runtime's jitdump and crossgen2's r2rmap call the same methods of one program.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "formats/names/folded_text.h"
#include "formats/names/frame_text.h"
#include "formats/names/runtime_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test_paths.h"
#include "unit/formats/names/folded_rules.h"

namespace clrsampler {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Lines(const char* file) {
  std::ifstream stream(absl::StrCat(TestData("names/"), file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<MethodName> RuntimeMethodsOfTheProgram() {
  std::vector<MethodName> names;
  for (const std::string& line : Lines("runtime_names.txt")) {
    MethodName name = ParseRuntimeName(line);
    if (name.module == "NameZoo" && name.kind == MethodKind::kMethod) names.push_back(std::move(name));
  }
  return names;
}

std::vector<MethodName> R2rMethods() {
  std::vector<MethodName> names;
  for (const std::string& line : Lines("r2rmap_names.txt")) names.push_back(ParseR2rMapName(line));
  return names;
}

std::set<std::string> Texts(std::vector<MethodName> names, NameStyle style) {
  std::set<std::string> texts;
  for (MethodName& name : names) {
    name.module.clear();  // a row of an r2rmap says neither
    name.tier.clear();
    texts.insert(FrameText(name, style));
  }
  return texts;
}

std::vector<std::string> Missing(const std::set<std::string>& from, const std::set<std::string>& in) {
  std::vector<std::string> missing;
  std::set_difference(from.begin(), from.end(), in.begin(), in.end(), std::back_inserter(missing));
  return missing;
}

// crossgen2 compiles other instantiations than the program runs, and inlines; these methods are in no row of the map.
const char* const kNotInTheMap[] = {"Zoo.Box<__Canon>.<>c__DisplayClass4_0<int>.<ctor>",
                                    "Zoo.Box<int>.<>c__DisplayClass4_0<__Canon>.<ctor>", "Zoo.Nested.Static<int>.A.Get",
                                    "Zoo.Run.IAdd", "Zoo.Run.Throw"};

TEST(NameSourcesTest, ShortTextsOfTheRuntimeAndTheR2rMapAreEqual) {
  const std::set<std::string> runtime = Texts(RuntimeMethodsOfTheProgram(), NameStyle::kShort);
  const std::set<std::string> map = Texts(R2rMethods(), NameStyle::kShort);
  ASSERT_GT(runtime.size(), 150u);
  EXPECT_THAT(Missing(runtime, map), ::testing::UnorderedElementsAreArray(kNotInTheMap));
}

TEST(NameSourcesTest, FullTextsAreEqualButForTypesOfGenericMethods) {
  const std::set<std::string> runtime = Texts(RuntimeMethodsOfTheProgram(), NameStyle::kFull);
  const std::set<std::string> map = Texts(R2rMethods(), NameStyle::kFull);
  ASSERT_GT(runtime.size(), 180u);
  std::vector<std::string> unexpected;
  for (const std::string& text : Missing(runtime, map)) {
    const bool not_in_map = std::any_of(std::begin(kNotInTheMap), std::end(kNotInTheMap),
                                        [&](const char* name) { return absl::StartsWith(text, name); });
    if (!not_in_map) unexpected.push_back(text);
  }
  // The documented exception: the runtime says "!!0" where crossgen2 puts the argument.
  EXPECT_THAT(unexpected,
              UnorderedElementsAre("<PrivateImplementationDetails>.InlineArrayAsReadOnlySpan(ref M0, int)",
                                   "<PrivateImplementationDetails>.InlineArrayElementRef(ref M0, int)",
                                   "Zoo.Box<__Canon>.Map(__Canon, System.Func<__Canon, M0>)",
                                   "Zoo.Box<int>.Map(int, System.Func<int, M0>)", "Zoo.Lambdas.Generic(M0)",
                                   "Zoo.Locals.Gen(M0)", "Zoo.Locals.Gen.L|2_0(M1)",
                                   "Zoo.Parameters.Method(M0, M1, System.Collections.Generic.List<M0>, M1[])",
                                   "Zoo.Work.Two(M0)"));
}

// full: two methods of one program share a text only when they are instantiations of one generic method.
TEST(NameSourcesTest, FullTextsTellMethodsApart) {
  std::map<std::string, std::set<std::string>> by_text;
  for (MethodName& name : RuntimeMethodsOfTheProgram()) {
    name.tier.clear();
    by_text[FrameText(name, NameStyle::kFull)].insert(name.type + "::" + name.method);
  }
  for (const auto& [text, methods] : by_text) EXPECT_EQ(methods.size(), 1u) << text;
}

TEST(NameSourcesTest, SourceConstructsReadAsTheProgramWroteThem) {
  const std::set<std::string> texts = Texts(RuntimeMethodsOfTheProgram(), NameStyle::kShort);
  // In the order of name_zoo.cs.
  for (const char* text : {"Program.Main",
                           "Program.Main.AddTop",
                           "Program.Main.StaticTop",
                           "Program.Main.<lambda_0_2>",
                           "Zoo.Run.All",
                           "Zoo.Order.Order",
                           "Zoo.Order.static Order",
                           "Zoo.Order.get_Item",
                           "Zoo.Order.add_Changed",
                           "Zoo.Order.op_Implicit",
                           "Zoo.Num.Zoo.INum<Zoo.Num>.op_Addition",
                           "Zoo.Box<int>.Inner<long>.Pair",
                           "Zoo.Box<__Canon>.Plain.Value",
                           "Zoo.Numbers.System.Collections.IEnumerable.GetEnumerator",
                           "Zoo.Numbers.Count",
                           "Zoo.Numbers.Stream",
                           "Zoo.Work.One",
                           "Zoo.Work.Two",
                           "Zoo.Work.Three.Local",
                           "Zoo.Work.Three.StaticLocal",
                           "Zoo.Work.Three.Items",
                           "Zoo.Work.Zoo.IJob<System.ValueTuple<int, string>>.DoAsync",
                           "Zoo.Lambdas.Lambdas",
                           "Zoo.Lambdas.static Lambdas.<lambda_8_0>",
                           "Zoo.Locals.Go.Rec",
                           "Zoo.Hidden.Work",
                           "Zoo.Nested.A.B.C.Deep",
                           "Zoo.Ünïcode.Größe",
                           "Zoo.class.event",
                           "Zoo.Disp.System.IDisposable.Dispose"}) {
    EXPECT_TRUE(texts.contains(text)) << text;
  }
  for (const std::string& text : texts) {
    EXPECT_FALSE(absl::StrContains(text, "d__") || absl::StrContains(text, "b__") || absl::StrContains(text, "g__"))
        << text;
  }
}

TEST(NameSourcesTest, NothingOfTheRuntimesNotationIsLeft) {
  for (const std::string& line : Lines("runtime_names.txt")) {
    MethodName name = ParseRuntimeName(line);
    if (absl::StrContains(line, "Odd names")) continue;
    if (name.kind == MethodKind::kMethod) {
      EXPECT_FALSE(name.type.empty()) << line;
    }
    for (const NameStyle style : {NameStyle::kShort, NameStyle::kFull}) {
      const std::string text = FrameText(name, style);
      for (const char* token :
           {"`", "::", "class ", "valuetype ", "!!", "int32", "uint8", "native ", "[System.", "/*", "...", "stub<"}) {
        EXPECT_FALSE(absl::StrContains(text, token)) << token << " in " << text << "\nfrom " << line;
      }
    }
    const std::string short_text = FrameText(name, NameStyle::kShort);
    EXPECT_FALSE(absl::StrContains(short_text, "(")) << short_text;
  }
}

TEST(NameSourcesTest, EveryStyleObeysTheFoldedRules) {
  for (const char* file : {"runtime_names.txt", "r2rmap_names.txt"}) {
    const std::vector<std::string> lines = Lines(file);
    ASSERT_THAT(lines, ::testing::Not(IsEmpty()));
    for (const std::string& line : lines) {
      const MethodName name = ParseRuntimeName(line);
      for (const std::string& text : {line, FrameText(name, NameStyle::kShort), FrameText(name, NameStyle::kFull),
                                      FrameText(name, NameStyle::kRaw)}) {
        EXPECT_EQ(test_support::BrokenFoldedRule(FoldedFrame(text, FrameSuffix::kManaged), "_[j]"), "") << text;
        EXPECT_EQ(test_support::BrokenFoldedRule(FoldedFrame(text, FrameSuffix::kNone), ""), "") << text;
      }
    }
  }
}

}  // namespace
}  // namespace clrsampler
