#include "formats/names/runtime_names.h"

#include <random>
#include <string>

#include "formats/names/frame_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "unit/rounds.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseRuntimeNameTest, TakesEveryFieldOfAJitdumpText) {
  const MethodName name = ParseRuntimeName(
      "instance class [System.Runtime]System.Threading.Tasks.Task`1<int32> [System.Private.CoreLib] "
      "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::TryInsert(!0,class "
      "System.Func`2<!0,int32>)[PreJIT]");
  EXPECT_EQ(name.kind, MethodKind::kMethod);
  EXPECT_EQ(name.return_type, "class [System.Runtime]System.Threading.Tasks.Task`1<int32>");
  EXPECT_EQ(name.module, "System.Private.CoreLib");
  EXPECT_EQ(name.type, "System.Collections.Generic.Dictionary`2");
  EXPECT_THAT(name.type_args, ElementsAre("System.__Canon", "System.Int32"));
  EXPECT_EQ(name.method, "TryInsert");
  ASSERT_TRUE(name.parameters.has_value());
  EXPECT_THAT(*name.parameters, ElementsAre("!0", "class System.Func`2<!0,int32>"));
  EXPECT_EQ(name.tier, "PreJIT");
}

TEST(ParseRuntimeNameTest, WorksWithoutATier) {  // DOTNET_PerfMapShowOptimizationTiers=0
  const MethodName name = ParseRuntimeName("int32[] [App] A.B::M[x](int32[])");
  EXPECT_EQ(name.return_type, "int32[]");
  EXPECT_EQ(name.type, "A.B");
  EXPECT_EQ(name.method, "M[x]");
  EXPECT_EQ(name.tier, "");
}

TEST(ParseRuntimeNameTest, UnescapesTheOwner) {
  EXPECT_EQ(ParseRuntimeName("void [A] Odd.a\\,b::M()").type, "Odd.a,b");
  EXPECT_EQ(ParseRuntimeName("void [A] Odd.\\[br\\]::M()").type, "Odd.[br]");
  EXPECT_EQ(ParseRuntimeName("void [A] Odd.plus\\\\\\+::M()").type, "Odd.plus\\+");
  const MethodName name = ParseRuntimeName("void [A] B`1[C+<I<X\\,Y>-Do>d__6]::M()");
  EXPECT_EQ(name.type, "B`1");
  EXPECT_THAT(name.type_args, ElementsAre("C+<I<X,Y>-Do>d__6"));
}

TEST(ParseRuntimeNameTest, ArraysAreOwnersToo) {
  EXPECT_EQ(ParseRuntimeName("instance void [System.Private.CoreLib] System.Int32[,]::.ctor(int32,int32)").type,
            "System.Int32[,]");
}

TEST(ParseRuntimeNameTest, MethodNamesMayHoldAnything) {
  for (const char* method : {"should return 5 (five)", "a::b", "x 42", "semi;colon", "q\"uote'`", "|Active|_|", "c)d",
                             "<odd", ">", "a\tb", "->", "get_Item ", "M[x]", "[x]"}) {
    const std::string text =
        std::string("int32 [Odd names] Odd.my type::") + method +
        "(int32,class [System.Private.CoreLib]System.Collections.Generic.List`1<string>)[QuickJitted]";
    const MethodName name = ParseRuntimeName(text);
    EXPECT_EQ(name.module, "Odd names") << text;
    EXPECT_EQ(name.type, "Odd.my type") << text;
    EXPECT_EQ(name.method, method);
    EXPECT_EQ(name.parameters->size(), 2u) << text;
    EXPECT_EQ(name.tier, "QuickJitted");
  }
}

// Runtimes 8 to 10 cut a perf map line short by one byte for each byte that UTF-8 needs beyond UTF-16's units.
TEST(ParseRuntimeNameTest, LinesCutByTheRuntimeKeepTheirName) {
  const MethodName mark = ParseRuntimeName("int32 [A] N.T::ünï(int32)[QuickJitted");
  EXPECT_EQ(mark.method, "ünï");
  EXPECT_EQ(mark.tier, "QuickJitted");
  EXPECT_THAT(*mark.parameters, ElementsAre("int32"));
  const MethodName tier = ParseRuntimeName("int32 [A] N.T::ünïü(int32)[QuickJit");
  EXPECT_EQ(tier.tier, "");
  EXPECT_EQ(FrameText(tier, NameStyle::kFull), "A!N.T.ünïü(int)");
  const MethodName list = ParseRuntimeName("int32 [A] N.T::名前名前名前名前(int32,class Sys");
  EXPECT_EQ(list.method, "名前名前名前名前");
  EXPECT_FALSE(list.parameters.has_value());
}

TEST(ParseRuntimeNameTest, PointersOfThisRunAreLeftOut) {
  const MethodName name = ParseRuntimeName(
      "int32 [Anonymously Hosted DynamicMethods Assembly] dynamicClass::Made at run time: a;b(int32,Zoo.Box`1 /* MT: "
      "0x7f3bc6136c18 */<Zoo.Order /* MT: 0x7f3bc6136808 */>)[Optimized]");
  EXPECT_EQ(name.kind, MethodKind::kDynamicMethod);
  EXPECT_EQ(name.method, "Made at run time: a;b");
  EXPECT_THAT(*name.parameters, ElementsAre("int32", "Zoo.Box`1<Zoo.Order>"));
}

TEST(ParseRuntimeNameTest, Stubs) {
  EXPECT_EQ(ParseRuntimeName("stub<1002> GenerateLookupStub<GenerateLookupStub>").kind, MethodKind::kStub);
  EXPECT_EQ(ParseRuntimeName("stub<1002> GenerateLookupStub<X>").method, "GenerateLookupStub<X>");
  EXPECT_EQ(ParseRuntimeName("stub Link<X>").method, "Link<X>");
  EXPECT_EQ(ParseRuntimeName("int32 [A] dynamicClass::IL_STUB_PInvoke()[Optimized]").kind, MethodKind::kIlStub);
  EXPECT_EQ(ParseRuntimeName("stubborn [A] B::C()").kind, MethodKind::kMethod);
}

TEST(ParseRuntimeNameTest, OtherTextsAreTheMethod) {
  for (const char* text : {"", "x", "LazyCompile:*foo app.js:3", "[", "[]", "[A] ", "void [A] NoSeparator()", "stub",
                           "stub<", "stub<1>", "stub ", "a::b(c)", "void [A] B::", "::", "]["}) {
    const MethodName name = ParseRuntimeName(text);
    EXPECT_EQ(name.method, text);
    EXPECT_EQ(name.type, "") << text;
    EXPECT_EQ(name.kind, MethodKind::kMethod) << text;
  }
}

TEST(ParseR2rMapNameTest, TakesEveryField) {
  const MethodName name = ParseR2rMapName(
      "System.Collections.Generic.KeyValuePair`2[System.Int32, System.String] Zoo.Box`1+Inner`1[System.Int32, "
      "System.__Canon]::Pair(System.Int32, System.Func`2[System.Int32, System.__Canon])");
  EXPECT_EQ(name.return_type, "System.Collections.Generic.KeyValuePair`2[System.Int32, System.String]");
  EXPECT_EQ(name.module, "");
  EXPECT_EQ(name.type, "Zoo.Box`1+Inner`1");
  EXPECT_THAT(name.type_args, ElementsAre("System.Int32", "System.__Canon"));
  EXPECT_EQ(name.method, "Pair");
  EXPECT_THAT(*name.parameters, ElementsAre("System.Int32", "System.Func`2[System.Int32, System.__Canon]"));
}

TEST(ParseR2rMapNameTest, VoidIsLeftOutAndFunctionPointersHoldParentheses) {
  const MethodName name = ParseR2rMapName("Zoo.P::Call(System.Int32 (System.Int32, System.Byte), System.Int32)");
  EXPECT_EQ(name.return_type, "");
  EXPECT_EQ(name.type, "Zoo.P");
  EXPECT_THAT(*name.parameters, ElementsAre("System.Int32 (System.Int32, System.Byte)", "System.Int32"));
  EXPECT_EQ(FrameText(name, NameStyle::kFull), "Zoo.P.Call(delegate*<int, byte, int>, int)");
  const MethodName result = ParseR2rMapName("System.Int32 (System.Int32) Zoo.P::Get()");
  EXPECT_EQ(result.type, "Zoo.P");
  EXPECT_EQ(result.return_type, "System.Int32 (System.Int32)");
  EXPECT_THAT(*result.parameters, IsEmpty());
}

TEST(ParseR2rMapNameTest, NamesOfCompilersHoldCommas) {
  const MethodName name =
      ParseR2rMapName("Zoo.Work+<Zoo-IJob<System-ValueTuple<System-Int32,System-String>>-DoAsync>d__6::MoveNext()");
  EXPECT_EQ(name.type, "Zoo.Work+<Zoo-IJob<System-ValueTuple<System-Int32,System-String>>-DoAsync>d__6");
  EXPECT_THAT(name.type_args, IsEmpty());
}

TEST(ParseR2rMapNameTest, OtherTextsAreTheMethod) {
  for (const char* text : {"", "x", "()", "a b c", "f(x)", "::", ")("}) EXPECT_EQ(ParseR2rMapName(text).method, text);
}

// Cutting or damaging a real text anywhere must give some text, and never lose all of it.
TEST(RuntimeNamesTest, DamagedTextsStillGiveAText) {
  const std::string text =
      "instance class [System.Runtime]System.Task`1<int32> [Shop] Shop.Box`1+<Shop-IJob<A\\,B>-Do>d__3`1[System.Int32,"
      "Shop.X`1[System.Byte]]::<<Main>g__Local|0_0>b__1(!0,method void *(int32),int32[0...,0...]&)[OptimizedTier1]";
  std::mt19937 random(7);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string head = text.substr(0, cut);
    const std::string tail = text.substr(cut);
    for (const MethodName& name :
         {ParseRuntimeName(head), ParseR2rMapName(head), ParseRuntimeName(tail), ParseR2rMapName(tail)}) {
      for (const NameStyle style : {NameStyle::kShort, NameStyle::kFull, NameStyle::kRaw}) {
        if (cut != 0 && cut != text.size()) {
          EXPECT_NE(FrameText(name, style), "");
        }
      }
    }
  }
  for (int i = 0; i < Rounds(20'000); ++i) {
    std::string damaged = text;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = "<>[](),:\\`+!&* ;x"[random() % 17];
    EXPECT_NE(FrameText(ParseRuntimeName(damaged), NameStyle::kFull), "");
    EXPECT_NE(FrameText(ParseR2rMapName(damaged), NameStyle::kShort), "");
  }
}

// 256 KiB of what makes careless searching quadratic: a second would become many minutes, and the test's own limit ends
// it.
TEST(RuntimeNamesTest, TimeIsLinearInTheSizeOfTheText) {
  for (const std::string piece :
       {".<",  "+<",       "[",       ",[",   "[,",       "<",  "(", ")",      "\\", "::", " [", "] ", "A`99+",
        "!0,", "A`1<!0>,", "/* MT: ", "<>c+", "<x>d__1+", "<<", ">", "<a>b__", ")[", " (", "x.", "][", "B`1["}) {
    std::string run;
    while (run.size() < (1 << 18)) run += piece;
    for (const std::string& text :
         {run, "void [A] " + run + "::M()", "void [A] B::" + run + "()", "void [A] B::M(" + run + ")",
          "void [A] B`1[" + run + "]::M(" + run + ")", "R B::M(" + run + ")"}) {
      EXPECT_LT(FrameText(ParseRuntimeName(text), NameStyle::kFull).size(), 64u << 20) << piece;
      EXPECT_LT(FrameText(ParseR2rMapName(text), NameStyle::kShort).size(), 64u << 20) << piece;
    }
  }
}

TEST(RuntimeNamesTest, AFunctionPointerCanBeAnOutParameter) {
  const MethodName name = ParseRuntimeName(
      "void [System.Private.CoreLib] System.RuntimeTypeHandle::GetActivationInfo(class System.RuntimeType,method "
      "object "
      "*(void*)&,void*&,method void *(object)*[],bool&)[PreJIT]");
  EXPECT_EQ(
      FrameText(name, NameStyle::kFull),
      "System.Private.CoreLib!System.RuntimeTypeHandle.GetActivationInfo(System.RuntimeType, ref delegate*<void*, "
      "object>, ref void*, delegate*<object, void>*[], ref bool) [PreJIT]");
}

}  // namespace
}  // namespace clrsampler
