#include "formats/names/ilc_names.h"

#include <gtest/gtest.h>

#include "formats/names/frame_text.h"

namespace clrsampler {
namespace {

struct Row {
  absl::string_view symbol;
  absl::string_view expected_short;
  absl::string_view expected_full;
};

// Symbols of a NativeAOT publish of tests/apps/workload (.NET 8.0.30 and 9.0.19).
constexpr Row kRows[] = {
    {"workload_Workload_Loops__Json", "Workload.Loops.Json", "workload!Workload.Loops.Json [AOT]"},
    {"String__Format_2", "System.String.Format_2", "System.String.Format_2 [AOT]"},
    {"S_P_CoreLib_System_IO_TextReader__ReadToEnd", "System.IO.TextReader.ReadToEnd",
     "System.Private.CoreLib!System.IO.TextReader.ReadToEnd [AOT]"},
    {"S_P_Xml_Linq_System_Xml_Linq_XNamespace__Get", "System.Xml.Linq.XNamespace.Get",
     "System.Private.Xml.Linq!System.Xml.Linq.XNamespace.Get [AOT]"},
    {"System_Console_Interop__GetIOException", "Interop.GetIOException", "System.Console!Interop.GetIOException [AOT]"},
    {"System_Security_Cryptography_Interop_Crypto__EvpAes256Cbc", "Interop.Crypto.EvpAes256Cbc",
     "System.Security.Cryptography!Interop.Crypto.EvpAes256Cbc [AOT]"},
    // Constructors.
    {"workload_Workload_Loops___cctor", "Workload.Loops.static Loops", "workload!Workload.Loops.static Loops [AOT]"},
    {"S_P_CoreLib_System_DateTime___ctor_4", "System.DateTime.DateTime",
     "System.Private.CoreLib!System.DateTime.DateTime [AOT]"},
    // Generic types, of nested types too; the number of arguments decides what "__" separates.
    {"S_P_CoreLib_System_Collections_Generic_List_1<Int32>__Add", "System.Collections.Generic.List<int>.Add",
     "System.Private.CoreLib!System.Collections.Generic.List<int>.Add [AOT]"},
    {"S_P_CoreLib_System_Collections_Generic_Dictionary_2_Enumerator<Int32__S_P_CoreLib_System_ValueTuple_2<System___"
     "Canon__Int32>>__MoveNext",
     "System.Collections.Generic.Dictionary<int, System.ValueTuple<__Canon, int>>.Enumerator.MoveNext",
     "System.Private.CoreLib!System.Collections.Generic.Dictionary<int, System.ValueTuple<__Canon, "
     "int>>.Enumerator.MoveNext [AOT]"},
    {"S_P_CoreLib_System_Threading_Tasks_Task_1<__Array<UInt8>>__get_Result",
     "System.Threading.Tasks.Task<byte[]>.get_Result",
     "System.Private.CoreLib!System.Threading.Tasks.Task<byte[]>.get_Result [AOT]"},
    {"S_P_CoreLib_System_Runtime_CompilerServices_AsyncTaskMethodBuilder_1_AsyncStateMachineBox_1<Int64__workload_"
     "Workload_Loops__AsyncInner_d__11>__ExecuteFromThreadPool",
     "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<long>.AsyncStateMachineBox<Workload.Loops.<AsyncInner>d__"
     "11>.ExecuteFromThreadPool",
     "System.Private.CoreLib!System.Runtime.CompilerServices.AsyncTaskMethodBuilder<long>.AsyncStateMachineBox<"
     "Workload.Loops.<AsyncInner>d__11>.ExecuteFromThreadPool [AOT]"},
    {"S_P_CoreLib_System_Runtime_CompilerServices_AsyncTaskMethodBuilder_1_AsyncStateMachineBox_1<S_P_CoreLib_System_"
     "Threading_Tasks_VoidTaskResult__System_Net_Http_System_Net_Http_Http2Connection__ReadAsync_d__63>__MoveNext",
     "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<System.Threading.Tasks.VoidTaskResult>."
     "AsyncStateMachineBox<System.Net.Http.Http2Connection.<ReadAsync>d__63>.MoveNext",
     ""},
    // A method's own arguments are left out, as from every other source.
    {"S_P_CoreLib_System_Runtime_CompilerServices_DefaultInterpolatedStringHandler__AppendFormatted_0<Int64>",
     "System.Runtime.CompilerServices.DefaultInterpolatedStringHandler.AppendFormatted_0", ""},
    // Names that the C# compiler made.
    {"workload_Workload_Loops___c___Linq_b__8_3", "Workload.Loops.Linq.<lambda_8_3>",
     "workload!Workload.Loops.Linq.<lambda_8_3> [AOT]"},
    {"workload_Workload_Loops___c__DisplayClass3_0___Orders_b__1", "Workload.Loops.Orders.<lambda_3_1>",
     "workload!Workload.Loops.Orders.<lambda_3_1> [AOT]"},
    {"workload_Workload_Loops__AsyncInner_d__11__MoveNext", "Workload.Loops.AsyncInner",
     "workload!Workload.Loops.AsyncInner|11.MoveNext [AOT]"},
    {"System_Text_RegularExpressions_System_Text_RegularExpressions_RegexCharClass___MayOverlap_g__KnownDistinctSets_"
     "107_0",
     "System.Text.RegularExpressions.RegexCharClass.MayOverlap.KnownDistinctSets",
     "System.Text.RegularExpressions!System.Text.RegularExpressions.RegexCharClass.MayOverlap.KnownDistinctSets|107_0 "
     "[AOT]"},
    {"System_Net_Security_System_Net_Http_X509ResourceClient___c__DisplayClass15_0___CreateDownloadBytesFunc_b__0_d__"
     "MoveNext",
     "System.Net.Http.X509ResourceClient.CreateDownloadBytesFunc.<lambda_15_0>", ""},
    {"System_Text_Json_System_Text_Json_Serialization_Metadata_JsonPropertyInfo_1___c__DisplayClass10_0<Int64>___"
     "SetSetter_b__0",
     "System.Text.Json.Serialization.Metadata.JsonPropertyInfo<long>.SetSetter.<lambda_10_0>", ""},
    // Explicit implementations: certain where the interface is not generic.
    {"unbox_UInt8__System_IConvertible_ToByte", "System.Byte.System.IConvertible.ToByte",
     "System.Byte.System.IConvertible.ToByte [AOT unboxing]"},
    {"S_P_CoreLib_System_Collections_Generic_List_1<Int8>__System_Collections_IEnumerable_GetEnumerator",
     "System.Collections.Generic.List<sbyte>.System.Collections.IEnumerable.GetEnumerator", ""},
    {"System_Net_Http_System_Net_Http_Headers_ObjectCollection_1<System___Canon>__System_Collections_Generic_"
     "IEnumerable_T__GetEnumerator",
     "System.Net.Http.Headers.ObjectCollection<__Canon>.System_Collections_Generic_IEnumerable_T__GetEnumerator", ""},
    {"<Boxed>S_P_CoreLib_System_ValueTuple_2<Int32__System___Canon>__<unbox>S_P_CoreLib_System_ValueTuple_2__ToString",
     "System.ValueTuple<int, __Canon>.ToString",
     "System.Private.CoreLib!System.ValueTuple<int, __Canon>.ToString [AOT unboxing]"},
    {"System_Text_Json_System_Text_Json_JsonElement____GetFieldHelper", "System.Text.Json.JsonElement.__GetFieldHelper",
     ""},
    // Helpers.
    {"__GetGCStaticBase_workload_Workload_Loops", "[stub GetGCStaticBase]",
     "[stub GetGCStaticBase(workload_Workload_Loops)] [AOT]"},
    {"Internal_CompilerGenerated__Module___<DynamicInvoke>None<Int16>", "[stub DynamicInvoke]", ""},
    {"RhpNewFast", "RhpNewFast", "RhpNewFast [AOT]"},
    {"RhTypeCast_IsInstanceOfInterface", "RhTypeCast_IsInstanceOfInterface", ""},
    {"__managed__Main", "__managed__Main", ""},
};

TEST(IlcNamesTest, ReadsWhatTheCompilerWrote) {
  for (const Row& row : kRows) {
    const MethodName name = ParseIlcName(row.symbol, "workload");
    EXPECT_EQ(FrameText(name, NameStyle::kShort), row.expected_short) << row.symbol;
    if (row.expected_full.empty()) continue;
    EXPECT_EQ(FrameText(name, NameStyle::kFull), row.expected_full) << row.symbol;
  }
}

TEST(IlcNamesTest, TheAssemblyIsKnownByTheProgramOrBecauseItsNamespaceRepeatsIt) {
  EXPECT_EQ(ParseIlcName("Shop_Api_Orders_Order__Add", "Shop.Api").type, "Orders.Order");
  EXPECT_EQ(ParseIlcName("Shop_Api_Orders_Order__Add", "Shop.Api").module, "Shop.Api");
  EXPECT_EQ(ParseIlcName("Serilog_Serilog_Log__Write", "Shop.Api").type, "Serilog.Log");
  EXPECT_EQ(ParseIlcName("Serilog_Serilog_Log__Write", "Shop.Api").module, "Serilog");
  // Not known: the assembly's name stays in front rather than something else being cut off.
  EXPECT_EQ(ParseIlcName("Dapper_Strong_SqlMapper__Query", "Shop.Api").type, "Dapper.Strong.SqlMapper");
  EXPECT_EQ(ParseIlcName("Dapper_Strong_SqlMapper__Query", "Shop.Api").module, "");
}

TEST(IlcNamesTest, WhatDoesNotFitTheGrammarStaysAsItIs) {
  for (const absl::string_view symbol : {"", "_", "__", "a__", "__a", "a<", "a>__b", "List_1<Int32>",
                                         "List_1<Int32__Int32>__Add",  // one argument too many
                                         "List<Int32>__Add", "List_1<Int32>__Add<", "List_1<>__Add",
                                         "List_1<Int32__>__Add", "<Boxed>X", "<Boxed>A__<unbox>B__C", "unbox_"}) {
    const MethodName name = ParseIlcName(symbol, "program");
    EXPECT_EQ(name.method, symbol);
    EXPECT_EQ(name.type, "") << symbol;
  }
}

TEST(IlcNamesTest, NoInputIsSlow) {
  // Seconds if any step were cubic in the size.
  for (const absl::string_view unit : {"_", "__a_d__1", "A_1<", "__x_b__0_1_d", "__c__DisplayClass1_1", "a__"}) {
    std::string symbol = "A";
    while (symbol.size() < 8000) symbol.append(unit.data(), unit.size());
    EXPECT_FALSE(FrameText(ParseIlcName(symbol, "program"), NameStyle::kShort).empty());
  }
}

}  // namespace
}  // namespace clrsampler
