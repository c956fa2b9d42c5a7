#include "pipeline/async_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// MethodTables of the test's types.
constexpr uint64_t kOuter = 0x10, kMiddle = 0x20, kInner = 0x30, kTask = 0x40, kAction = 0x50, kAwait = 0x60,
                   kList = 0x70, kWait = 0x80, kObject = 0xB0, kDebugged = 0xC0, kRuntimeTask = 0xD0,
                   kContinuation = 0xE0, kHelper = 0xF0;
constexpr uint64_t kChainStack = 0x7ffd00000000, kChainStackEnd = kChainStack + 0x200;

MethodName MoveNext(std::string type, std::vector<std::string> arguments = {}) {
  MethodName name;
  name.module = "shop";
  name.type = std::move(type);
  name.method = "MoveNext";
  name.type_args = std::move(arguments);
  return name;
}

class FakeStack : public StackMemory {
 public:
  std::optional<uint64_t> Word(uint64_t address) const override {
    const auto found = words.find(address);
    return found == words.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<uint64_t, uint64_t> words;
};

class AsyncChainTest : public testing::Test {
 protected:
  AsyncChainTest() {
    layout_.tasks.task_link = 32;
    layout_.tasks.action_link = 8;
    layout_.tasks.await_link = 16;
    layout_.runtime.state_link = 16;
    layout_.runtime.next_link = 8;
    layout_.runtime.owner_link = 40;
    types_[kOuter] = {AsyncKind::kBox, MoveNext("Outer"), false, 96};
    types_[kMiddle] = {AsyncKind::kBox, MoveNext("Middle"), false, 96};
    types_[kInner] = {AsyncKind::kBox, MoveNext("Inner"), false, 96};
    types_[kDebugged] = {AsyncKind::kBox, MoveNext("Debugged"), true, 72};
    types_[kTask] = {AsyncKind::kPromise, {}};
    types_[kAction] = {AsyncKind::kAction, {}};
    types_[kAwait] = {AsyncKind::kAwait, {}};
    types_[kList] = {AsyncKind::kSeveral, {}};
    types_[kWait] = {AsyncKind::kThread, {}};
    types_[kObject] = {};
    types_[kRuntimeTask] = {AsyncKind::kRuntimeTask, {}};
    types_[kContinuation] = {AsyncKind::kContinuation, {}};
    types_[kHelper] = {AsyncKind::kHelperContinuation, {}};
  }

  wire_async_object& Add(uint64_t address, uint64_t type, uint32_t link = 0, uint64_t next = 0) {
    wire_async_object object{};
    object.address = address;
    object.words[0] = type;
    if (link != 0) object.words[link / 8] = next;
    objects_.push_back(object);
    return objects_.back();
  }
  void AddContinuation(uint64_t address, uint64_t next, uint64_t suspended_at, uint64_t type = kContinuation) {
    Add(address | WIRE_ASYNC_CONTINUATION, type, 8, next).words[WIRE_ASYNC_SUSPENDED_AT] = suspended_at;
  }
  // The task of suspended methods, and what awaits it.
  void AddRuntimeTask(uint64_t address, uint64_t innermost, uint64_t awaiter) {
    Add(address, kRuntimeTask, 16, innermost).words[4] = awaiter;
  }
  void PutInfo(uint64_t at, uint64_t outer, uint64_t continuation, uint64_t task) {
    stack_.words[at] = outer;
    stack_.words[at + 8] = continuation;
    stack_.words[at + 16] = task;
  }
  // Words that mean nothing, so that all of the frame is there.
  void FillStack() {
    for (uint64_t at = kChainStack; at < kChainStackEnd; at += 8) stack_.words[at] = 0x3;
  }
  std::optional<AsyncChain> OfDispatcher() { return Objects().OfDispatcher(stack_, kChainStack, kChainStackEnd); }
  AsyncObjects Objects() { return AsyncObjects(objects_, layout_, find_); }
  std::optional<AsyncChain> OfMachine(const MethodName& running = MoveNext("Inner")) {
    return Objects().OfMachine(stack_, kChainStack, kChainStackEnd, running);
  }
  static std::vector<std::string> Names(const AsyncChain& chain) {
    std::vector<std::string> names;
    for (const AsyncCaller& caller : chain.callers) {
      names.push_back(caller.box != nullptr ? caller.box->method.type : absl::StrCat("at ", caller.suspended_at));
    }
    return names;
  }

  wire_async_layouts layout_{};
  std::map<uint64_t, AsyncType> types_;
  std::function<const AsyncType*(uint64_t)> find_ = [this](uint64_t type) {
    const auto found = types_.find(type);
    return found == types_.end() ? nullptr : &found->second;
  };
  std::vector<wire_async_object> objects_;
  FakeStack stack_;
};

TEST_F(AsyncChainTest, FollowsTheTasksOfBoxesToTheOutermostAwaiter) {
  stack_.words[kChainStack + 0x40] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  Add(0x2000, kMiddle, 32, 0x3000);
  Add(0x3000, kOuter);
  const auto chain = OfMachine();
  ASSERT_TRUE(chain);
  EXPECT_THAT(Names(*chain), ElementsAre("Middle", "Outer"));
  EXPECT_EQ(chain->end, AsyncEnd::kNotAwaited);
}

TEST_F(AsyncChainTest, PromisesActionsAndSchedulersStandBetween) {
  stack_.words[kChainStack] = 0x1000 + 72;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x1100);
  Add(0x1100, kTask, 32, 0x1200);
  Add(0x1200, kAwait, 16, 0x1300);
  Add(0x1300, kAction, 8, 0x2000);
  Add(0x2000, kMiddle, 32, 0x2100);
  Add(0x2100, kWait);
  const auto chain = OfMachine();
  ASSERT_TRUE(chain);
  EXPECT_THAT(Names(*chain), ElementsAre("Middle"));
  EXPECT_EQ(chain->end, AsyncEnd::kThread);
}

TEST_F(AsyncChainTest, WhatIsNotKnownEndsTheChain) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  Add(0x2000, kMiddle, 32, 0x3000);
  const size_t last = objects_.size();
  // Not copied; of another type; a delegate to something else; an object that holds no action; of a type never read.
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
  Add(0x3000, kObject, 32, 0x1000);
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
  objects_.resize(last);
  Add(0x3000, kAction, 8, 0x4000);
  Add(0x4000, kTask);
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
  objects_.resize(last);
  Add(0x3000, kAwait, 16, 0x1000);
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
  objects_.resize(last);
  Add(0x3000, 0xDEAD);
  const auto chain = OfMachine();
  EXPECT_EQ(chain->end, AsyncEnd::kUnknown);
  EXPECT_THAT(Names(*chain), ElementsAre("Middle"));
}

TEST_F(AsyncChainTest, OfSeveralAwaitersNoneIsTaken) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  Add(0x2000, kList, 32, 0x3000);
  Add(0x3000, kOuter);
  const auto chain = OfMachine();
  ASSERT_TRUE(chain);
  EXPECT_THAT(Names(*chain), IsEmpty());
  EXPECT_EQ(chain->end, AsyncEnd::kSeveral);
}

TEST_F(AsyncChainTest, ACircleEnds) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  Add(0x2000, kMiddle, 32, 0x1000);
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
}

TEST_F(AsyncChainTest, TheBoxIsTheOneThatTheFramePointsInto) {
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x3000);
  Add(0x2000 | WIRE_ASYNC_ROOT, kInner, 32, 0x4000);
  Add(0x3000, kOuter);
  Add(0x4000, kMiddle);
  // A pointer to a box is none into it, and one from behind the frame is another frame's.
  stack_.words[kChainStack] = 0x1000;
  stack_.words[kChainStack + 8] = 0x1000 + 96;
  stack_.words[kChainStackEnd] = 0x1000 + 64;
  EXPECT_FALSE(OfMachine());
  stack_.words[kChainStack + 8] = 0x2000 + 64;
  EXPECT_THAT(Names(*OfMachine()), ElementsAre("Middle"));
  // Either could be meant.
  stack_.words[kChainStack + 16] = 0x1000 + 64;
  EXPECT_FALSE(OfMachine());
}

TEST_F(AsyncChainTest, TheBoxHasTheMachineThatRuns) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  Add(0x2000, kMiddle);
  EXPECT_TRUE(OfMachine());
  EXPECT_FALSE(OfMachine(MoveNext("Other")));
  EXPECT_FALSE(OfMachine(MoveNext("Inner", {"System.Int32"})));
  types_[kInner].method = MoveNext("Inner", {"System.String", "System.Int32"});
  EXPECT_TRUE(OfMachine(MoveNext("Inner", {"System.__Canon", "System.Int32"})));
  EXPECT_FALSE(OfMachine(MoveNext("Inner", {"System.__Canon", "System.Int64"})));
  MethodName elsewhere = MoveNext("Inner", {"System.String", "System.Int32"});
  elsewhere.module = "other";
  EXPECT_FALSE(OfMachine(elsewhere));
}

TEST_F(AsyncChainTest, AMachineThatIsAnObjectIsFoundByItsAddress) {
  wire_async_object& box = Add(0x1000 | WIRE_ASYNC_ROOT, kDebugged, 32, 0x2000);
  box.words[8] = 0x5000;
  Add(0x2000, kMiddle);
  stack_.words[kChainStack] = 0x1000 + 64;
  EXPECT_FALSE(OfMachine(MoveNext("Debugged")));
  stack_.words[kChainStack] = 0x5000;
  EXPECT_TRUE(OfMachine(MoveNext("Debugged")));
}

TEST_F(AsyncChainTest, TheDispatcherHoldsWhatAwaitsTheMethodThatItResumed) {
  FillStack();
  PutInfo(kChainStack + 0x38, 0, 0x2000, 0x1000);
  AddRuntimeTask(0x1000, 0, 0x5000);
  AddContinuation(0x2000, 0x2100, 71);
  AddContinuation(0x2100, 0x2200, 0, kHelper);
  AddContinuation(0x2200, 0, 72);
  // The box awaits the task; another task of such methods awaits the box, by an action.
  Add(0x5000, kOuter, 32, 0x6000);
  Add(0x6000, kAction, 8, 0x7000);
  AddRuntimeTask(0x7000, 0x7100, 0);
  AddContinuation(0x7100, 0x7200, 0, kHelper);
  AddContinuation(0x7200, 0, 73);
  const auto chain = OfDispatcher();
  ASSERT_TRUE(chain);
  EXPECT_THAT(Names(*chain), ElementsAre("at 71", "at 72", "Outer", "at 73"));
  EXPECT_EQ(chain->end, AsyncEnd::kNotAwaited);
}

TEST_F(AsyncChainTest, TheLastMethodOfADispatcherHasNoContinuation) {
  FillStack();
  PutInfo(kChainStack, kChainStackEnd + 0x80, 0, 0x1000);
  PutInfo(kChainStackEnd + 0x80, 0, 0, 0x1000);
  AddRuntimeTask(0x1000, 0, 0);
  const auto chain = OfDispatcher();
  ASSERT_TRUE(chain);
  EXPECT_THAT(Names(*chain), IsEmpty());
  EXPECT_EQ(chain->end, AsyncEnd::kNotAwaited);
}

TEST_F(AsyncChainTest, AStateMachineIsAwaitedByMethodsOfTheRuntime) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  AddRuntimeTask(0x2000, 0x2100, 0x3000);
  AddContinuation(0x2100, 0, 71);
  Add(0x3000, kOuter);
  EXPECT_THAT(Names(*OfMachine()), ElementsAre("at 71", "Outer"));
  // Its methods are running.
  objects_[1].words[2] = 0;
  const auto chain = OfMachine();
  EXPECT_THAT(Names(*chain), IsEmpty());
  EXPECT_EQ(chain->end, AsyncEnd::kUnknown);
}

TEST_F(AsyncChainTest, NoDispatcherIsTakenWhereTwoPlacesFit) {
  FillStack();
  AddRuntimeTask(0x1000, 0, 0);
  AddContinuation(0x2000, 0, 71);
  EXPECT_FALSE(OfDispatcher());
  PutInfo(kChainStack, 0, 0x2000, 0x1000);
  EXPECT_TRUE(OfDispatcher());
  // The word before the task is no place further out on the stack.
  for (const uint64_t outer :
       {uint64_t{0x3000}, kChainStack, kChainStackEnd, kChainStackEnd + 12, kChainStackEnd + (uint64_t{1} << 32)}) {
    PutInfo(kChainStack + 0x40, outer, 0, 0x1000);
    EXPECT_TRUE(OfDispatcher()) << outer;
  }
  PutInfo(kChainStack + 0x40, 0, 0, 0x1000);
  EXPECT_FALSE(OfDispatcher());
  PutInfo(kChainStack + 0x40, 0, 0x2004, 0x1000);
  EXPECT_TRUE(OfDispatcher());
  PutInfo(kChainStack + 0x40, 0, 0x1000, 0x1000);
  EXPECT_TRUE(OfDispatcher());
  PutInfo(kChainStack + 0x40, kChainStackEnd + 8, 0, 0x1000);
  EXPECT_TRUE(OfDispatcher());
  PutInfo(kChainStackEnd + 8, 0, 0, 0x1000);
  EXPECT_FALSE(OfDispatcher());
}

TEST_F(AsyncChainTest, AContinuationThatAwaitsATaskLeadsToItsOwner) {
  stack_.words[kChainStack] = 0x1000 + 64;
  Add(0x1000 | WIRE_ASYNC_ROOT, kInner, 32, 0x2000);
  AddContinuation(0x2000, 0x2100, 0, kHelper);
  objects_.back().words[5] = 0x3000;
  AddContinuation(0x2100, 0, 71);
  AddRuntimeTask(0x3000, 0x2000, 0x4000);
  Add(0x4000, kOuter);
  EXPECT_THAT(Names(*OfMachine()), ElementsAre("at 71", "Outer"));
  // The task waits for something else, or is no such task.
  objects_[3].words[2] = 0x2100;
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
  objects_[3].words[2] = 0x2000;
  objects_[3].words[0] = kTask;
  EXPECT_EQ(OfMachine()->end, AsyncEnd::kUnknown);
}

TEST_F(AsyncChainTest, ADispatcherOutsideItsFrameIsAnothers) {
  FillStack();
  AddRuntimeTask(0x1000, 0, 0);
  // Nothing has room behind it there but what the prologue saves.
  PutInfo(kChainStackEnd - 80, 0, 0, 0x1000);
  EXPECT_FALSE(OfDispatcher());
  FillStack();
  PutInfo(kChainStackEnd - 88, 0, 0, 0x1000);
  EXPECT_TRUE(OfDispatcher());
  // The words that would tell were not copied.
  stack_.words.erase(kChainStackEnd - 80);
  EXPECT_FALSE(OfDispatcher());
  EXPECT_FALSE(Objects().OfDispatcher(stack_, kChainStackEnd, kChainStack));
  EXPECT_FALSE(Objects().OfDispatcher(stack_, 0, uint64_t{1} << 40));
}

TEST_F(AsyncChainTest, AContinuationThatIsNotProvenEndsTheChain) {
  FillStack();
  PutInfo(kChainStack, 0, 0x2000, 0x1000);
  AddRuntimeTask(0x1000, 0, 0x5000);
  Add(0x5000, kOuter);
  AddContinuation(0x2000, 0x2100, 71);
  const auto ends = [&] {
    const auto chain = OfDispatcher();
    return chain && chain->end == AsyncEnd::kUnknown && Names(*chain) == std::vector<std::string>{"at 71"};
  };
  // Not copied; another object; one of which the sampler has not read where it is; a circle.
  EXPECT_TRUE(ends());
  Add(0x2100, kObject);
  EXPECT_TRUE(ends());
  objects_.pop_back();
  AddContinuation(0x2100, 0, 72);
  EXPECT_FALSE(ends());
  objects_.back().address = 0x2100;
  EXPECT_TRUE(ends());
  objects_.pop_back();
  AddContinuation(0x2100, 0, 0);
  EXPECT_TRUE(ends());
  objects_.pop_back();
  AddContinuation(0x2100, 0x2000, 72);
  EXPECT_EQ(OfDispatcher()->end, AsyncEnd::kUnknown);
}

TEST_F(AsyncChainTest, TheAddressesOfSuspendedMethodsComeOnce) {
  AddContinuation(0x2000, 0, 71);
  AddContinuation(0x2100, 0, 71);
  AddContinuation(0x2200, 0, 0);
  AddContinuation(0x2300, 0, 72);
  Add(0x2400, kObject).words[WIRE_ASYNC_SUSPENDED_AT] = 73;
  EXPECT_THAT(AsyncObjects::SuspendedAt(objects_), ElementsAre(71, 72));
}

TEST(AsyncKindTest, TypesAreKnownByTheirWholeNames) {
  EXPECT_EQ(AsyncKindOf("System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1"),
            AsyncKind::kBox);
  EXPECT_EQ(AsyncKindOf("System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1"), AsyncKind::kRuntimeTask);
  EXPECT_EQ(AsyncKindOf("System.Runtime.CompilerServices.Continuation"), AsyncKind::kContinuation);
  EXPECT_EQ(AsyncKindOf("System.Runtime.CompilerServices.RuntimeAsyncTaskContinuation"),
            AsyncKind::kHelperContinuation);
  EXPECT_EQ(AsyncKindOf("System.Runtime.CompilerServices.AsyncHelpers"), AsyncKind::kOther);
  EXPECT_EQ(AsyncKindOf("System.Action"), AsyncKind::kAction);
  EXPECT_EQ(AsyncKindOf("System.Threading.Tasks.UnwrapPromise`1"), AsyncKind::kPromise);
  EXPECT_EQ(AsyncKindOf("System.Action`1"), AsyncKind::kOther);
  EXPECT_EQ(AsyncKindOf("System.Threading.Tasks.Task"), AsyncKind::kOther);
  EXPECT_EQ(AsyncKindOf(""), AsyncKind::kOther);
  MethodName method;
  method.module = "System.Private.CoreLib";
  method.type = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1";
  method.method = "MoveNext";
  EXPECT_TRUE(IsResumer(method));
  method.module = "shop";
  EXPECT_FALSE(IsResumer(method));
  method.module = "System.Private.CoreLib";
  method.type = "System.Runtime.CompilerServices.AsyncMethodBuilderCore";
  method.method = "Start";
  EXPECT_FALSE(IsResumer(method));
  method.type = "System.Threading.ExecutionContext";
  EXPECT_FALSE(IsResumer(method));
  method.method = "RunInternal";
  EXPECT_TRUE(IsResumer(method));
}

TEST(AsyncKindTest, OnlyTheRuntimesTaskDispatches) {
  MethodName method;
  method.module = "System.Private.CoreLib";
  method.type = "System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1";
  method.method = "DispatchContinuations";
  EXPECT_TRUE(IsDispatcher(method));
  EXPECT_FALSE(IsResumer(method));
  method.method = "HandleSuspended";
  EXPECT_FALSE(IsDispatcher(method));
  method.method = "InstrumentedDispatchContinuations";
  EXPECT_TRUE(IsDispatcher(method));
  method.module = "shop";
  EXPECT_FALSE(IsDispatcher(method));
}

}  // namespace
}  // namespace clrsampler
