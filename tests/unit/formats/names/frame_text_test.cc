#include "formats/names/frame_text.h"

#include <string>

#include "formats/names/runtime_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace clrsampler {
namespace {

struct Example {
  const char* runtime;  // without return type, which no style shows
  const char* short_text;
  const char* full_text;
};

std::string Short(const MethodName& name) { return FrameText(name, NameStyle::kShort); }
std::string Full(const MethodName& name) { return FrameText(name, NameStyle::kFull); }

void ExpectExamples(std::initializer_list<Example> examples) {
  for (const Example& example : examples) {
    const MethodName name = ParseRuntimeName(std::string("instance void [Shop] ") + example.runtime);
    EXPECT_EQ(Short(name), example.short_text) << example.runtime;
    EXPECT_EQ(Full(name), example.full_text) << example.runtime;
  }
}

TEST(FrameTextTest, OrdinaryMembers) {
  ExpectExamples({
      {"Shop.Order::Total()[QuickJitted]", "Shop.Order.Total", "Shop!Shop.Order.Total() [QuickJitted]"},
      {"Shop.Order::Add(int32,string)[OptimizedTier1]", "Shop.Order.Add",
       "Shop!Shop.Order.Add(int, string) [OptimizedTier1]"},
      {"Shop.Order::get_Count()", "Shop.Order.get_Count", "Shop!Shop.Order.get_Count()"},
      {"Shop.Order::op_Addition(class Shop.Order,class Shop.Order)", "Shop.Order.op_Addition",
       "Shop!Shop.Order.op_Addition(Shop.Order, Shop.Order)"},
      {"Order::Total()", "Order.Total", "Shop!Order.Total()"},
      {"Shop.Outer+Inner+Deep::Run()", "Shop.Outer.Inner.Deep.Run", "Shop!Shop.Outer.Inner.Deep.Run()"},
      {"System.String::Concat(string,string)", "System.String.Concat", "Shop!System.String.Concat(string, string)"},
      {"Shop.Orders::System.Collections.IEnumerable.GetEnumerator()",
       "Shop.Orders.System.Collections.IEnumerable.GetEnumerator",
       "Shop!Shop.Orders.System.Collections.IEnumerable.GetEnumerator()"},
      {"Shop.Orders::System.IEquatable<System.ValueTuple<System.Int32,System.String[]>>.Equals(object)",
       "Shop.Orders.System.IEquatable<System.ValueTuple<int, string[]>>.Equals",
       "Shop!Shop.Orders.System.IEquatable<System.ValueTuple<int, string[]>>.Equals(object)"},
      {"Shop.Point::<Clone>$()", "Shop.Point.<Clone>$", "Shop!Shop.Point.<Clone>$()"},
  });
}

TEST(FrameTextTest, Constructors) {
  ExpectExamples({
      {"Shop.Order::.ctor(int32)", "Shop.Order.Order", "Shop!Shop.Order.Order(int)"},
      {"Shop.Order::.cctor()", "Shop.Order.static Order", "Shop!Shop.Order.static Order()"},
      {"Order::.ctor()", "Order.Order", "Shop!Order.Order()"},
      {"Shop.Outer`1+Inner[System.Int32]::.ctor()", "Shop.Outer<int>.Inner.Inner",
       "Shop!Shop.Outer<int>.Inner.Inner()"},
      {"System.Collections.Generic.List`1[System.__Canon]::.ctor(int32)",
       "System.Collections.Generic.List<__Canon>.List", "Shop!System.Collections.Generic.List<__Canon>.List(int)"},
      {"Shop.Order+<>c::.cctor()", "Shop.Order.<>c.<cctor>", "Shop!Shop.Order.<>c.<cctor>()"},
      {"Shop.Order+<>c__DisplayClass3_0::.ctor()", "Shop.Order.<>c__DisplayClass3_0.<ctor>",
       "Shop!Shop.Order.<>c__DisplayClass3_0.<ctor>()"},
      {"Shop.Order+<Items>d__4::.ctor(int32)", "Shop.Order.Items.<ctor>", "Shop!Shop.Order.Items|4.<ctor>(int)"},
  });
}

TEST(FrameTextTest, GenericOwnersTakeTheirArgumentsByArity) {
  ExpectExamples({
      {"System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::TryInsert(!0,!1,uint8)",
       "System.Collections.Generic.Dictionary<__Canon, int>.TryInsert",
       "Shop!System.Collections.Generic.Dictionary<__Canon, int>.TryInsert(__Canon, int, byte)"},
      {"System.Collections.Generic.Dictionary`2+Enumerator[System.Int64,System.Byte[]]::MoveNext()",
       "System.Collections.Generic.Dictionary<long, byte[]>.Enumerator.MoveNext",
       "Shop!System.Collections.Generic.Dictionary<long, byte[]>.Enumerator.MoveNext()"},
      {"Zoo.Box`1+Inner`1[System.Int32,System.Int64]::Pair(!0,!1)", "Zoo.Box<int>.Inner<long>.Pair",
       "Shop!Zoo.Box<int>.Inner<long>.Pair(int, long)"},
      {"System.Collections.Generic.List`1[System.Collections.Generic.KeyValuePair`2[System.__Canon,System.Nullable`1["
       "System.Int32]]]::Add(!0)",
       "System.Collections.Generic.List<System.Collections.Generic.KeyValuePair<__Canon, int?>>.Add",
       "Shop!System.Collections.Generic.List<System.Collections.Generic.KeyValuePair<__Canon, int?>>.Add("
       "System.Collections.Generic.KeyValuePair<__Canon, int?>)"},
      {"System.Collections.Generic.List`1::Add(!0)", "System.Collections.Generic.List<>.Add",
       "Shop!System.Collections.Generic.List<>.Add(T0)"},
      {"System.Collections.Generic.Dictionary`2+Enumerator::Reset()",
       "System.Collections.Generic.Dictionary<,>.Enumerator.Reset",
       "Shop!System.Collections.Generic.Dictionary<,>.Enumerator.Reset()"},
      {"<>f__AnonymousType0`2[System.__Canon,System.Int32]::get_Age()", "<>f__AnonymousType0<__Canon, int>.get_Age",
       "Shop!<>f__AnonymousType0<__Canon, int>.get_Age()"},
      {"Odd.A`B[System.Int32]::Run()", "Odd.A`B<int>.Run", "Shop!Odd.A`B<int>.Run()"},
  });
}

TEST(FrameTextTest, LambdasStayApart) {
  ExpectExamples({
      {"Shop.Order+<>c::<Main>b__0_1(int32)", "Shop.Order.Main.<lambda_0_1>", "Shop!Shop.Order.Main.<lambda_0_1>(int)"},
      {"Shop.Order+<>c__DisplayClass3_0::<Run>b__1()", "Shop.Order.Run.<lambda_3_1>",
       "Shop!Shop.Order.Run.<lambda_3_1>()"},
      {"Shop.Order+<>c__DisplayClass3_2::<Run>b__2()", "Shop.Order.Run.<lambda_3_2>",
       "Shop!Shop.Order.Run.<lambda_3_2>()"},
      {"Shop.Order::<get_Prop>b__4_0()", "Shop.Order.get_Prop.<lambda_4_0>", "Shop!Shop.Order.get_Prop.<lambda_4_0>()"},
      {"Shop.Order::<.ctor>b__5_0()", "Shop.Order.Order.<lambda_5_0>", "Shop!Shop.Order.Order.<lambda_5_0>()"},
      {"Shop.Order+<>c::<.cctor>b__8_0()", "Shop.Order.static Order.<lambda_8_0>",
       "Shop!Shop.Order.static Order.<lambda_8_0>()"},
      {"Shop.Order+<>c__7`1[System.__Canon]::<Generic>b__7_0()", "Shop.Order.Generic.<lambda_7_0>",
       "Shop!Shop.Order.Generic.<lambda_7_0>()"},
      {"Shop.Box`1+<>c__DisplayClass4_0`1[System.Int32,System.__Canon]::<Map>b__0()", "Shop.Box<int>.Map.<lambda_4_0>",
       "Shop!Shop.Box<int>.Map.<lambda_4_0>()"},
      {"Shop.Work+<>c__DisplayClass6_0::<Shop.IJob<System.Int32>.Do>b__0()", "Shop.Work.Shop.IJob<int>.Do.<lambda_6_0>",
       "Shop!Shop.Work.Shop.IJob<int>.Do.<lambda_6_0>()"},
      {"Program+<>c::<<Main>$>b__0_3(int32)", "Program.Main.<lambda_0_3>", "Shop!Program.Main.<lambda_0_3>(int)"},
  });
}

TEST(FrameTextTest, LocalFunctionsShowTheirOrdinalOnlyInFull) {
  ExpectExamples({
      {"Shop.Order::<Main>g__Add|0_1(int32)", "Shop.Order.Main.Add", "Shop!Shop.Order.Main.Add|0_1(int)"},
      {"Shop.Order+<>c__DisplayClass2_0::<Three>g__Items|4()", "Shop.Order.Three.Items",
       "Shop!Shop.Order.Three.Items|2_4()"},
      {"Program::<<Main>$>g__StaticTop|0_1(int32)", "Program.Main.StaticTop", "Shop!Program.Main.StaticTop|0_1(int)"},
  });
}

TEST(FrameTextTest, StateMachinesReadAsTheMethod) {
  ExpectExamples({
      {"Shop.Api+<RunAsync>d__5::MoveNext()", "Shop.Api.RunAsync", "Shop!Shop.Api.RunAsync|5.MoveNext()"},
      {"Shop.Api+<Run>d__3`1[System.Int32]::MoveNext()", "Shop.Api.Run", "Shop!Shop.Api.Run|3.MoveNext()"},
      {"Shop.Api`1+<Run>d__3`1[System.Int32,System.__Canon]::MoveNext()", "Shop.Api<int>.Run",
       "Shop!Shop.Api<int>.Run|3.MoveNext()"},
      {"Shop.Api+<>c+<<Main>b__0_0>d::MoveNext()", "Shop.Api.Main.<lambda_0_0>",
       "Shop!Shop.Api.Main.<lambda_0_0>.MoveNext()"},
      {"Shop.Api+<>c__DisplayClass2_0+<<Three>b__1>d::MoveNext()", "Shop.Api.Three.<lambda_2_1>",
       "Shop!Shop.Api.Three.<lambda_2_1>.MoveNext()"},
      {"Shop.Api+<<Main>g__Local|0_0>d::MoveNext()", "Shop.Api.Main.Local", "Shop!Shop.Api.Main.Local|0_0.MoveNext()"},
      {"Shop.Api+<>c__DisplayClass2_0+<<Three>g__Local|2>d::MoveNext()", "Shop.Api.Three.Local",
       "Shop!Shop.Api.Three.Local|2_2.MoveNext()"},
      {"Shop.Api+<Items>d__4::System.Collections.Generic.IEnumerator<System.Int32>.get_Current()",
       "Shop.Api.Items.System.Collections.Generic.IEnumerator<int>.get_Current",
       "Shop!Shop.Api.Items|4.System.Collections.Generic.IEnumerator<int>.get_Current()"},
      {"Shop.Api+<System-Collections-IEnumerable-GetEnumerator>d__1::MoveNext()",
       "Shop.Api.System.Collections.IEnumerable.GetEnumerator",
       "Shop!Shop.Api.System.Collections.IEnumerable.GetEnumerator|1.MoveNext()"},
      {"Shop.Api+<Shop-IJob<System-ValueTuple<System-Int32\\,System-String>>-DoAsync>d__6::MoveNext()",
       "Shop.Api.Shop.IJob<System.ValueTuple<int, string>>.DoAsync",
       "Shop!Shop.Api.Shop.IJob<System.ValueTuple<int, string>>.DoAsync|6.MoveNext()"},
      {"Program+<<Main>$>d__0::MoveNext()", "Program.Main", "Shop!Program.Main|0.MoveNext()"},
      {"Program+<<<Main>$>g__Local|0_0>d::MoveNext()", "Program.Main.Local", "Shop!Program.Main.Local|0_0.MoveNext()"},
      {"Shop.Iterator::MoveNext()", "Shop.Iterator.MoveNext", "Shop!Shop.Iterator.MoveNext()"},
  });
}

TEST(FrameTextTest, TopLevelStatementsAreMain) {
  ExpectExamples({
      {"Program::<Main>$(string[])", "Program.Main", "Shop!Program.Main(string[])"},
      // The method that starts an async one. The two differ where the text promises to tell methods apart.
      {"Program::<Main>(string[])", "Program.Main", "Shop!Program.<Main>(string[])"},
  });
}

TEST(FrameTextTest, FileLocalTypesLoseTheHash) {
  const std::string hash = "069007CE2C6624A074A58EB23753170A9416C8A931C23C72B68284F63645007B";
  const std::string type = "Zoo.<Program>F" + hash + "__Hidden";
  ExpectExamples({
      {(type + "::.ctor()").c_str(), "Zoo.Hidden.Hidden", "Shop!Zoo.Hidden@Program.Hidden()"},
      {(type + "+<>c::<Work>b__0_0()").c_str(), "Zoo.Hidden.Work.<lambda_0_0>",
       "Shop!Zoo.Hidden@Program.Work.<lambda_0_0>()"},
      {("Zoo.A::Take(class " + type + ")").c_str(), "Zoo.A.Take", "Shop!Zoo.A.Take(Zoo.Hidden@Program)"},
      {"Zoo.<Program>F12__Hidden::Run()", "Zoo.<Program>F12__Hidden.Run", "Shop!Zoo.<Program>F12__Hidden.Run()"},
  });
}

TEST(FrameTextTest, UnknownNamesOfCompilersStay) {
  ExpectExamples({
      {"<PrivateImplementationDetails>::ComputeStringHash(string)", "<PrivateImplementationDetails>.ComputeStringHash",
       "Shop!<PrivateImplementationDetails>.ComputeStringHash(string)"},
      {"<>y__InlineArray2`1[System.Int32]::Foo()", "<>y__InlineArray2<int>.Foo", "Shop!<>y__InlineArray2<int>.Foo()"},
      {"Shop.F+<Raw>e__FixedBuffer::Equals(object)", "Shop.F.<Raw>e__FixedBuffer.Equals",
       "Shop!Shop.F.<Raw>e__FixedBuffer.Equals(object)"},
      {"Shop.Module+clo@12-1::Invoke(class Microsoft.FSharp.Core.Unit)", "Shop.Module.clo@12-1.Invoke",
       "Shop!Shop.Module.clo@12-1.Invoke(Microsoft.FSharp.Core.Unit)"},
      {"VB$AnonymousType_0`1[System.Int32]::get_X()", "VB$AnonymousType_0<int>.get_X",
       "Shop!VB$AnonymousType_0<int>.get_X()"},
      {"Shop.T::|Active|_|(int32)", "Shop.T.|Active|_|", "Shop!Shop.T.|Active|_|(int)"},
      {"Shop.T::<odd(int32)", "Shop.T.<odd", "Shop!Shop.T.<odd(int)"},
      {"Shop.T::<a>b__x()", "Shop.T.<a>b__x", "Shop!Shop.T.<a>b__x()"},
  });
}

TEST(FrameTextTest, ParametersReadAsCSharp) {
  ExpectExamples({
      {"A::M(bool,char,int8,uint8,int16,uint16,int32,uint32,int64,uint64,float32,float64)", "A.M",
       "Shop!A.M(bool, char, sbyte, byte, short, ushort, int, uint, long, ulong, float, double)"},
      {"A::M(valuetype [System.Runtime]System.Decimal,string,object,native int,native uint,void*,native int*)", "A.M",
       "Shop!A.M(decimal, string, object, nint, nuint, void*, nint*)"},
      {"A::M(int32&,int32[],int32[0...,0...],string[][],int32[][0...,0...],uint8*&)", "A.M",
       "Shop!A.M(ref int, int[], int[,], string[][], int[,][], ref byte*)"},
      {"A::M(class System.Collections.Generic.Dictionary`2<string,class System.Collections.Generic.List`1<class "
       "Shop.Order>>&)",
       "A.M",
       "Shop!A.M(ref System.Collections.Generic.Dictionary<string, System.Collections.Generic.List<Shop.Order>>)"},
      {"A::M(class Zoo.Box`1/Inner`1<int32,string>,valuetype Zoo.Box`1/E<int32>)", "A.M",
       "Shop!A.M(Zoo.Box<int>.Inner<string>, Zoo.Box<int>.E)"},
      {"A::M(!!0,!!1[],class System.Func`2<!!0,!!1>)", "A.M", "Shop!A.M(M0, M1[], System.Func<M0, M1>)"},
      {"A::M(method int32 *(int32),method unmanaged void *(uint8*,int64))", "A.M",
       "Shop!A.M(delegate*<int, int>, delegate*<byte*, long, void>)"},
      {"A::M(int32& modreq([System.Runtime]System.Runtime.InteropServices.InAttribute),bool)", "A.M",
       "Shop!A.M(ref int, bool)"},
      {"A::M(valuetype A/<>c__DisplayClass1_0&)", "A.M", "Shop!A.M(ref A.<>c__DisplayClass1_0)"},
  });
}

TEST(MethodSymbolTest, IsWhatCompilersKnow) {
  const struct {
    const char* runtime;
    const char* symbol;
  } examples[] = {
      {"int32 [Shop] Shop.Order::Add(int32,string)[OptimizedTier1]", "Shop.Order::Add"},
      {"instance void [System.Private.CoreLib] System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]"
       "::Add(!0,!1)[PreJIT]",
       "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::Add"},
      {"instance void [Shop] Shop.Order+<RunAsync>d__5::MoveNext()", "Shop.Order+<RunAsync>d__5::MoveNext"},
      {"instance void [Shop] Shop.Order::.ctor(int32)", "Shop.Order::.ctor"},
      {"instance bool [Shop] Shop.Order::System.IComparable.CompareTo(object)",
       "Shop.Order::System.IComparable.CompareTo"},
      {"stub<12> AllocateTemporaryEntryPoints<PRECODE_STUB>", ""},
  };
  for (const auto& example : examples) {
    EXPECT_EQ(MethodSymbol(ParseRuntimeName(example.runtime)), example.symbol) << example.runtime;
  }
  // Metadata writes a blank behind the commas.
  EXPECT_EQ(MethodSymbol({.type = "A`2", .type_args = {"B`2[C, D]", "E"}, .method = "F"}), "A`2[B`2[C,D],E]::F");
  EXPECT_EQ(MethodSymbol({.kind = MethodKind::kDynamicMethod, .type = "dynamicClass", .method = "lambda"}), "");
}

TEST(FrameTextTest, ShortNeverHoldsAParenthesis) {
  const MethodName name = ParseRuntimeName("void [Tests] Odd.(paren)::should return 5 (five)(int32)");
  EXPECT_EQ(Short(name), "Odd.[paren].should return 5 [five]");
  EXPECT_EQ(Full(name), "Tests!Odd.(paren).should return 5 (five)(int)");
}

TEST(FrameTextTest, DynamicMethodsAndStubsSayWhatTheyAre) {
  const MethodName invoke = ParseRuntimeName(
      "object [System.Private.CoreLib] dynamicClass::InvokeStub_Run.Fib(object,System.Span`1 /* MT: 0x7f3bc60fdad8 "
      "*/<object>)[Optimized]");
  EXPECT_EQ(Short(invoke), "[dynamic] InvokeStub_Run.Fib");
  EXPECT_EQ(Full(invoke), "[dynamic] InvokeStub_Run.Fib(object, System.Span<object>) [Optimized]");
  const MethodName pinvoke = ParseRuntimeName("int32 [NameZoo] dynamicClass::IL_STUB_PInvoke(int32)[Optimized]");
  EXPECT_EQ(Short(pinvoke), "[stub IL_STUB_PInvoke]");
  EXPECT_EQ(Full(pinvoke), "[stub IL_STUB_PInvoke(int)] [Optimized]");
  EXPECT_EQ(Short(ParseRuntimeName("stub<12> AllocateTemporaryEntryPoints<PRECODE_STUB>")), "[stub PRECODE_STUB]");
  EXPECT_EQ(Full(ParseRuntimeName("stub<12> AllocateTemporaryEntryPoints<PRECODE_STUB>")),
            "[stub AllocateTemporaryEntryPoints<PRECODE_STUB>]");
  EXPECT_EQ(Short(ParseRuntimeName("stub ReportStubBlock<VSD_ResolveStub>")), "[stub VSD_ResolveStub]");
  EXPECT_EQ(Short(ParseRuntimeName("stub ReportStubBlock<Unknown>")), "[stub ReportStubBlock]");
  EXPECT_EQ(Short(ParseRuntimeName("stub<7> GenerateLookupStub<GenerateLookupStub>")), "[stub VSD_LookupStub]");
  EXPECT_EQ(Full(ParseRuntimeName("stub<7> GenerateLookupStub<GenerateLookupStub>")),
            "[stub GenerateLookupStub<GenerateLookupStub>]");
  EXPECT_EQ(Short(ParseRuntimeName("stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>")),
            "[stub WriteBarrier]");
}

TEST(FrameTextTest, MetadataFieldsReadAsTheRuntimesText) {
  MethodName fields;
  fields.module = "System.Private.CoreLib";
  fields.type = "System.Collections.Generic.Dictionary`2";
  fields.type_args = {"System.__Canon", "System.Collections.Generic.List`1[System.Int32]"};
  fields.method = ".ctor";
  fields.parameters = {{"System.Int32", "System.Collections.Generic.IEqualityComparer`1<!0>", "!1[]", "System.Byte&"}};
  const MethodName text = ParseRuntimeName(
      "instance void [System.Private.CoreLib] "
      "System.Collections.Generic.Dictionary`2[System.__Canon,System.Collections."
      "Generic.List`1[System.Int32]]::.ctor(int32,class "
      "System.Collections.Generic.IEqualityComparer`1<!0>,!1[],uint8&)");
  EXPECT_EQ(Short(fields),
            "System.Collections.Generic.Dictionary<__Canon, System.Collections.Generic.List<int>>.Dictionary");
  EXPECT_EQ(
      Full(fields),
      "System.Private.CoreLib!System.Collections.Generic.Dictionary<__Canon, System.Collections.Generic.List<int>>"
      ".Dictionary(int, System.Collections.Generic.IEqualityComparer<__Canon>, "
      "System.Collections.Generic.List<int>[], ref byte)");
  EXPECT_EQ(Short(text), Short(fields));
  EXPECT_EQ(Full(text), Full(fields));
}

// No runtime map carries a method's own arguments, so showing them would give one method two frames.
TEST(FrameTextTest, MethodArgumentsAreNotShown) {
  MethodName fields;
  fields.type = "Shop.Work";
  fields.method = "Two";
  fields.method_args = {"System.Int32"};
  fields.parameters = {{"!!0"}};
  EXPECT_EQ(Short(fields), "Shop.Work.Two");
  EXPECT_EQ(Full(fields), "Shop.Work.Two(M0)");
  EXPECT_EQ(FrameText(fields, NameStyle::kRaw), "Shop.Work::Two[System.Int32](!!0)");
}

TEST(FrameTextTest, FullLeavesOutWhatIsUnknown) {
  MethodName fields;
  fields.type = "Shop.Work";
  fields.method = "Run";
  EXPECT_EQ(Full(fields), "Shop.Work.Run");
  fields.module = "Shop.dll";
  EXPECT_EQ(Full(fields), "Shop!Shop.Work.Run");
}

TEST(FrameTextTest, RawOfFieldsIsTheRuntimesNotation) {
  MethodName fields;
  fields.type = "Shop.Order`1+Inner";
  fields.type_args = {"System.Int32"};
  fields.method = "Run";
  fields.parameters = {{"System.Int32", "System.String"}};
  EXPECT_EQ(FrameText(fields, NameStyle::kRaw), "Shop.Order`1+Inner[System.Int32]::Run(System.Int32,System.String)");
  EXPECT_EQ(FrameText(ParseRuntimeName("stub Link<UnboxingStub>"), NameStyle::kRaw), "stub Link<UnboxingStub>");
}

TEST(FrameTextTest, NamesThatDifferOnlyBySplitReadTheSame) {
  MethodName a;
  a.type = "Odd.x::y";
  a.method = "a::b";
  MethodName b;
  b.type = "Odd.x";
  b.method = "y::a::b";
  EXPECT_EQ(Short(a), "Odd.x.y.a.b");
  EXPECT_EQ(Short(b), Short(a));
}

TEST(FrameTextTest, EmptyFieldsGiveAText) {
  EXPECT_EQ(Short(MethodName()), "");
  MethodName name;
  name.type = "A";
  EXPECT_EQ(Short(name), "A.");
}

// "!0" may name a long argument many times: bounded by the size of the result, not by the product.
TEST(FrameTextTest, RepeatedVariablesDoNotMultiplyTheText) {
  MethodName name;
  name.type = "A`1";
  name.type_args = {std::string(20'000, 'x')};
  name.method = "M";
  name.parameters.emplace(20'000, "!0");
  EXPECT_LT(Full(name).size(), 100'000u);
  EXPECT_THAT(Full(name), ::testing::EndsWith("...)"));
  std::string list = "class B`9<";
  for (int i = 0; i < 20'000; ++i) list += "!0,";
  name.parameters = {{list + "!0>"}};
  EXPECT_LT(Full(name).size(), 400'000u);
}

TEST(FrameTextTest, DeepNestingIsCopied) {
  std::string type;
  for (int i = 0; i < 20'000; ++i) type += "A`1<";
  MethodName name;
  name.type = "T";
  name.method = "M";
  name.parameters = {{type}};
  EXPECT_THAT(Full(name), ::testing::StartsWith("T.M(A<A<A<"));
  name.method = std::string(20'000, '<') + std::string(20'000, '>') + "b__0_0";
  EXPECT_GT(Full(name).size(), 40'000u);
}

}  // namespace
}  // namespace clrsampler
