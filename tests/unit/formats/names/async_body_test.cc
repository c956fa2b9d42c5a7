#include "formats/names/async_body.h"

#include <gtest/gtest.h>

#include "formats/names/frame_text.h"
#include "formats/names/runtime_names.h"

namespace clrsampler {
namespace {

TEST(AwaitedResultTest, InEachNotation) {
  EXPECT_EQ(AwaitedResult("System.Threading.Tasks.Task`1<System.Int32>"), "System.Int32");
  EXPECT_EQ(AwaitedResult("System.Threading.Tasks.ValueTask`1[System.String]"), "System.String");
  EXPECT_EQ(AwaitedResult("class [System.Runtime]System.Threading.Tasks.Task`1<int32>"), "int32");
  EXPECT_EQ(AwaitedResult("valuetype System.Threading.Tasks.ValueTask`1<class Shop.Box`1<!!0>>"),
            "class Shop.Box`1<!!0>");
  EXPECT_EQ(AwaitedResult("System.Threading.Tasks.Task"), "System.Void");
  EXPECT_EQ(AwaitedResult("valuetype System.Threading.Tasks.ValueTask"), "System.Void");
}

TEST(AwaitedResultTest, NothingElseIsATask) {
  for (const char* type :
       {"", "int32", "System.Void", "System.Threading.Tasks.TaskFactory", "System.Threading.Tasks.Task`2<a,b>",
        "System.Threading.Tasks.Task`1", "System.Threading.Tasks.Task`1<", "System.Threading.Tasks.Task`1[>",
        "My.System.Threading.Tasks.Task", "[System.Runtime", "System.Threading.Tasks.Parallel"}) {
    EXPECT_EQ(AwaitedResult(type), std::nullopt) << type;
  }
}

MethodIdentity Of(const std::string& runtime_text) { return IdentityOf(ParseRuntimeName(runtime_text)); }

// As the perf map of .NET 11 has them.
const char kThunk[] =
    "class [System.Runtime]System.Threading.Tasks.Task`1<int32> [shop] Shop.Cart::CheckoutAsync(int32)[Optimized]";
const char kBody[] = "int32 [shop] Shop.Cart::CheckoutAsync(int32)[QuickJitted]";
const char kStub[] = "object [shop] dynamicClass::IL_STUB_AsyncResume(object,uint8&)[Optimized]";

TEST(AsyncBodyTest, AThunkIsFoldedIntoItsBodyByTheirTexts) {
  EXPECT_TRUE(IsFoldedInto(Of(kThunk), Of(kBody)));
  EXPECT_FALSE(IsFoldedInto(Of(kBody), Of(kThunk))) << "a method that starts itself anew";
  EXPECT_FALSE(IsFoldedInto(Of(kBody), Of(kBody))) << "recursion";
  EXPECT_FALSE(IsFoldedInto(Of(kThunk), Of(kThunk)));
}

TEST(AsyncBodyTest, OverloadsAreOtherMethods) {
  for (const char* other :
       {"int32 [shop] Shop.Cart::CheckoutAsync(int64)[QuickJitted]", "int32 [shop] Shop.Cart::CheckoutAsync()[Tier1]",
        "int64 [shop] Shop.Cart::CheckoutAsync(int32)[Tier1]", "int32 [shop] Shop.Order::CheckoutAsync(int32)[Tier1]",
        "int32 [shop] Shop.Cart`1[int32]::CheckoutAsync(int32)[Tier1]"}) {
    EXPECT_FALSE(IsFoldedInto(Of(kThunk), Of(other))) << other;
  }
}

TEST(AsyncBodyTest, AStubThatResumesIsFoldedIntoAnyMethodItCalls) {
  EXPECT_TRUE(IsFoldedInto(Of(kStub), Of(kBody)));
  EXPECT_FALSE(IsFoldedInto(Of(kStub), Of(kStub)));
  EXPECT_FALSE(IsFoldedInto(Of(kBody), Of(kStub)));
  EXPECT_FALSE(IsFoldedInto(Of("void [a] dynamicClass::IL_STUB_PInvoke()[Optimized]"), Of(kBody)));
  EXPECT_EQ(FrameText(ParseRuntimeName(kStub), NameStyle::kShort), "[stub AsyncResume]");
  EXPECT_EQ(FrameText(ParseRuntimeName(kStub), NameStyle::kFull),
            "[stub IL_STUB_AsyncResume(object, ref byte)] [Optimized]");
}

TEST(AsyncBodyTest, WhatASourceKnowsCountsMoreThanTheText) {
  MethodName body = ParseRuntimeName(kBody), task = ParseRuntimeName(kThunk);
  MethodName thunk = body;  // the other way round: people wrote the one that returns a task
  thunk.async_body = AsyncBody::kThunk;
  EXPECT_TRUE(IsFoldedInto(IdentityOf(thunk), IdentityOf(task)));
  EXPECT_FALSE(IsFoldedInto(IdentityOf(thunk), IdentityOf(thunk)));
  MethodIdentity stub = IdentityOf(body);
  stub.body = AsyncBody::kResumptionStub;  // a precompiled one, which lies behind its method
  EXPECT_TRUE(IsFoldedInto(stub, IdentityOf(body)));
  EXPECT_FALSE(IsFoldedInto(stub, Of("void [shop] Shop.Cart::Other()[Tier1]")));
}

TEST(AsyncBodyTest, NotationsOfOneMethodAreEqual) {
  MethodName metadata;
  metadata.module = "shop";
  metadata.type = "Shop.Cart";
  metadata.method = "CheckoutAsync";
  metadata.parameters = {{"System.Int32"}};
  metadata.return_type = "System.Threading.Tasks.Task`1<System.Int32>";
  EXPECT_TRUE(IsFoldedInto(IdentityOf(metadata), Of(kBody)));
  metadata.return_type = "System.Int32";
  EXPECT_TRUE(IsFoldedInto(Of(kThunk), IdentityOf(metadata)));
}

}  // namespace
}  // namespace clrsampler
