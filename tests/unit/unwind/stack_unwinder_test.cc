#include "unwind/stack_unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "formats/byte_reader.h"
#include "unit/unwind/raw_record.h"
#include "unwind/cfi_step.h"
#include "unwind/stack_recording.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

constexpr uint64_t kStack = 0x7fff00000000;
// Each function has 256 bytes.
constexpr uint64_t kFrameless = 0x10000, kFramed = 0x20000, kOther = 0x30000, kNative = 0x40000, kRoot = 0x50000,
                   kFunclet = 0x60000, kStub = 0x70000;

UnwindInfo Info(std::vector<UnwindCode> codes) {
  UnwindInfo info;
  info.prologue_bytes = 8;
  info.codes.assign(codes.begin(), codes.end());
  return info;
}

class FakeCode : public CodeFinder {
 public:
  FakeCode() {
    // sub rsp, 24
    Managed(kFrameless, Info({{4, UnwindOp::kAlloc, 0, 24}}));
    // push rbp; sub rsp, 16; lea rbp, [rsp+16]
    Managed(kFramed, Info({{5, UnwindOp::kAlloc, 0, 16}, {1, UnwindOp::kPush, kUnwindRbp, 0}}));
    Managed(kOther, Info({{5, UnwindOp::kAlloc, 0, 16}, {1, UnwindOp::kPush, kUnwindRbp, 0}}));
    CodeAt native;
    native.kind = CodeKind::kNative;
    native.has_row = true;
    native.row.cfa = CfaRule::kSpOffset;
    native.row.cfa_offset = 16;
    native.row.ra_offset = -8;
    functions_[kNative] = native;
    native.row.ra = RegisterRule::kUndefined;
    functions_[kRoot] = native;
    CodeAt stub;
    stub.kind = CodeKind::kStub;
    functions_[kStub] = stub;
  }
  ManagedFunction& Managed(uint64_t begin, UnwindInfo info) {
    auto function = std::make_shared<ManagedFunction>();
    function->begin = function->method_begin = begin;
    function->end = begin + 256;
    function->unwind = std::move(info);
    CodeAt code;
    code.kind = CodeKind::kManaged;
    code.managed = function;
    functions_[begin] = code;
    return *function;
  }
  void Native(uint64_t begin, const CodeAt& code) { functions_[begin] = code; }
  void NativeAt(uint64_t address, const CodeAt& code) { single_[address] = code; }
  const CodeAt& At(uint64_t address) override {
    if (address == kNative + 0x100) return trap_;  // right behind kNative's last byte
    if (const auto single = single_.find(address); single != single_.end()) return single->second;
    const auto found = functions_.find(address & ~uint64_t{255});
    return found == functions_.end() ? nothing_ : found->second;
  }

 private:
  std::map<uint64_t, CodeAt> functions_;
  std::map<uint64_t, CodeAt> single_;
  CodeAt nothing_{.mapped = false};
  CodeAt trap_{.kind = CodeKind::kReturnTrap};
};

class StackUnwinderTest : public testing::Test {
 protected:
  std::vector<uint64_t> Walk() { return Walk(unwinder_); }
  std::vector<uint64_t> Walk(StackUnwinder& unwinder) {
    const absl::StatusOr<RawStack> raw = RawStack::Parse(record_.Bytes());
    EXPECT_TRUE(raw.ok()) << raw.status();
    unwinder.Walk(*raw, code_, stack_);
    std::vector<uint64_t> addresses;
    for (const UserFrame& frame : stack_.frames) addresses.push_back(frame.address);
    return addresses;
  }
  void Leaf(uint64_t ip, uint64_t fp) {
    record_.header.ip = ip;
    record_.header.sp = kStack;
    record_.header.fp = fp;
    record_.header.stop = WIRE_STOP_END;
  }
  RawRecord record_;
  FakeCode code_;
  StackUnwinder unwinder_{{64, ElfMachine::kX64}};
  UserStack stack_;
};

TEST_F(StackUnwinderTest, FindsTheCallerThatTheChainSkips) {
  // kFrameless is the leaf, called by kFramed, called by kRoot. The chain goes from the leaf to kFramed's caller.
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kRoot + 0x10, {1, 2, 3, kFramed + 0x30, 5, 6});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20, kFramed + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kUnwindInfo);
  EXPECT_EQ(stack_.frames[1].lookup_address, kFramed + 0x2f);
  EXPECT_EQ(stack_.frames[0].sp, kStack);
  EXPECT_EQ(stack_.frames[1].sp, kStack + 32);
  EXPECT_EQ(stack_.frames[2].sp, kStack + 64);
  const std::optional<StackPart> part = StackPartOf(stack_, 1);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, kStack + 32);
  EXPECT_EQ(part->end, kStack + 64);
  EXPECT_FALSE(StackPartOf(stack_, 2));
  EXPECT_EQ(unwinder_.counters().checked, 1u);
  EXPECT_EQ(unwinder_.counters().contradictions, 0u);
}

TEST_F(StackUnwinderTest, AWordThatIsNotThereIsSaid) {
  // The gap was cut after two words: the frameless leaf's return address is not known.
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, 0, kRoot + 0x10, {1, 2});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kFallback);
  EXPECT_EQ(unwinder_.counters().missing_words, 1u);
}

TEST_F(StackUnwinderTest, AReturnAddressThatTheRuntimeBentIsNoCaller) {
  // kFrameless would return to kFramed, whose frame is the first of the chain; kOther called that.
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kOther + 0x10, {1, 2, 3, kNative + 0x100, 5, 6});
  record_.Frame(kStack + 80, 0, kRoot + 0x10, {7, 8});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20, kOther + 0x10, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kFallback);
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kNone);
  // Without a chain it ends there, and says so.
  record_ = {};
  Leaf(kFrameless + 0x20, 0);
  record_.Tail({1, 2, 3, kNative + 0x100, 5, 6});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.end, StackEnd::kBroken);
}

TEST_F(StackUnwinderTest, AReturnAddressOfNativeAotMayBeBentToo) {
  // Its methods are native code; that nothing called from there tells where to look.
  CodeAt native = code_.At(kNative);
  native.no_call = true;
  code_.Native(kNative, native);
  native.no_call = false;
  code_.Native(kFrameless, native);
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kOther + 0x10, {1, kNative + 0x100, 3, 4, 5, 6});
  record_.Frame(kStack + 80, 0, kRoot + 0x10, {7, 8});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20, kOther + 0x10, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
}

TEST_F(StackUnwinderTest, TwoWitnessesThatDisagreeAreAContradiction) {
  // kFramed at a call site: by sp its rbp was saved at kStack + 16, but rbp says kStack + 32.
  Leaf(kNative + 1, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kOther + 0x10, {1, kFramed + 0x30, 3, 4, 5, 6});
  record_.Frame(kStack + 80, 0, kRoot + 0x10, {7, 8});
  EXPECT_THAT(Walk(), ElementsAre(kNative + 1, kFramed + 0x30, kOther + 0x10, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kContradiction);
  EXPECT_EQ(stack_.frames[2].origin, FrameOrigin::kFallback);
  EXPECT_EQ(stack_.frames[2].doubt, FrameDoubt::kNone);
  EXPECT_EQ(unwinder_.counters().contradictions, 1u);
}

TEST_F(StackUnwinderTest, AFuncletAndItsMethodAreOneFrame) {
  ManagedFunction& funclet = code_.Managed(kFunclet, Info({{4, UnwindOp::kAlloc, 0, 8}}));
  funclet.funclet = true;
  funclet.method_begin = kOther;
  // rbp is the parent's: the frame that called the parent lies there.
  Leaf(kFunclet + 0x20, kStack + 64);
  record_.Frame(kStack + 64, 0, kRoot + 0x10, {1, kOther + 0x40, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(Walk(), ElementsAre(kFunclet + 0x20, kRoot + 0x10));
}

TEST_F(StackUnwinderTest, AMethodThatCallsItselfInAHandlerIsAFrameForEachCall) {
  ManagedFunction& funclet = code_.Managed(kFunclet, Info({{4, UnwindOp::kAlloc, 0, 8}}));
  funclet.funclet = true;
  funclet.method_begin = kFramed;
  // kFramed, called by its own handler, that of a call that was made by a handler, too. rbp is the parent's in each.
  Leaf(kFramed + 0x20, kStack + 16);
  record_.Frame(kStack + 16, kStack + 64, kFunclet + 0x20, {1, 2});
  record_.Frame(kStack + 64, kStack + 112, kFunclet + 0x20, {1, 2, 3, 4});
  record_.Frame(kStack + 112, 0, kRoot + 0x10, {1, 2, 3, 4});
  EXPECT_THAT(Walk(), ElementsAre(kFramed + 0x20, kFunclet + 0x20, kFunclet + 0x20, kRoot + 0x10));
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
}

TEST_F(StackUnwinderTest, AFuncletThatIsLeftLikeAMethodIsOneFrameWithItsParent) {
  // push rbp; sub rsp, 8, as .NET 8 and 9 begin them. Its parent called it.
  ManagedFunction& funclet =
      code_.Managed(kFunclet, Info({{5, UnwindOp::kAlloc, 0, 8}, {1, UnwindOp::kPush, kUnwindRbp, 0}}));
  funclet.funclet = true;
  funclet.method_begin = kFramed;
  Leaf(kFunclet, kStack + 24);
  record_.Frame(kStack + 24, 0, kRoot + 0x10, {kFramed + 0x30, 2, 3});
  EXPECT_THAT(Walk(), ElementsAre(kFunclet, kRoot + 0x10));
}

TEST_F(StackUnwinderTest, AStubHasItsCallerOnTop) {
  Leaf(kStub + 3, kStack + 24);
  record_.Frame(kStack + 24, 0, kRoot + 0x10, {kFramed + 0x30, 2, 3});
  EXPECT_THAT(Walk(), ElementsAre(kStub + 3, kFramed + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kStub);
}

TEST_F(StackUnwinderTest, ACallThroughABadPointerShowsWhoMadeIt) {
  Leaf(0xdead0000, kStack + 24);
  record_.Frame(kStack + 24, 0, kRoot + 0x10, {kFramed + 0x30, 2, 3});
  EXPECT_THAT(Walk(), ElementsAre(0xdead0000, kFramed + 0x30, kRoot + 0x10));
}

TEST_F(StackUnwinderTest, AReturnAddressWithoutCodeIsNoFrame) {
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, 0, kRoot + 0x10, {1, 2, 3, 0xdead0000, 5, 6});
  EXPECT_THAT(Walk(), ElementsAre(kFrameless + 0x20, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(unwinder_.counters().no_code, 1u);
}

TEST_F(StackUnwinderTest, AResumedFrameIsNotOneUntilUnwindDataLeadsThere) {
  // The frame pointer holds data, and a word of the stack points to what looks like a frame: no unwind data leads
  // there.
  Leaf(kStub + 3, 12345);
  record_.header.stop = WIRE_STOP_END;
  record_.Frame((kStack + 24) | WIRE_FRAME_RESUMED, 0, kRoot + 0x10, {kNative + 0x30, kStack + 24, 0xdead0000});
  EXPECT_THAT(Walk(), ElementsAre(kStub + 3, kNative + 0x30));
  EXPECT_EQ(stack_.end, StackEnd::kBroken);
}

TEST_F(StackUnwinderTest, ADeeperStackThanTheLimitIsTruncated) {
  Leaf(kFramed + 0x20, kStack + 16);
  for (uint64_t i = 0; i < 200; ++i) {
    record_.Frame(kStack + 16 + 32 * i, kStack + 48 + 32 * i, kFramed + 0x20, {1, 2});
  }
  EXPECT_EQ(Walk().size(), 64u);
  EXPECT_EQ(stack_.end, StackEnd::kTruncated);
}

TEST_F(StackUnwinderTest, ALeafsFrameMayEndWhereAnyRegisterSays) {
  CodeAt code;
  code.kind = CodeKind::kNative;
  code.has_row = true;
  code.row.cfa = CfaRule::kRegister;
  code.row.cfa_register = 2;  // rcx
  code.row.cfa_offset = 8;
  code.row.ra_offset = -8;
  code_.Native(kOther, code);
  Leaf(kOther + 3, 77);
  record_.header.general[2] = kStack + 24;
  record_.Tail({1, 2, 3, kRoot + 0x10, 5});
  EXPECT_THAT(Walk(), ElementsAre(kOther + 3, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kTable);
}

// Native code that leaves its epilogues out of its tables: in the body the frame has 16 bytes, at `ret` 8.
CodeAt InEpilogue() {
  CodeAt code;
  code.kind = CodeKind::kNative;
  code.has_row = true;
  code.row = {CfaRule::kSpOffset, RegisterRule::kSame, RegisterRule::kAtCfaOffset, false, 16, 0, -8};
  code.has_leaf_row = true;
  code.leaf_row = code.row;
  code.leaf_row.cfa_offset = 8;
  return code;
}

TEST_F(StackUnwinderTest, ALeafInAnEpilogueIsNotWhereTheTableSays) {
  code_.Native(kOther, InEpilogue());
  Leaf(kOther + 0x20, 0);
  record_.Tail({kFrameless + 0x30, kRoot + 0x66, 3, 4, kRoot + 0x10});
  EXPECT_THAT(Walk(), ElementsAre(kOther + 0x20, kFrameless + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kTable);
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
}

TEST_F(StackUnwinderTest, ACallerIsInNoEpilogue) {
  // The byte before a return address may read like one.
  code_.Native(kOther, InEpilogue());
  Leaf(kStub + 3, 0);
  record_.Tail({kOther + 0x20, kRoot + 0x66, kRoot + 0x10, 5});
  EXPECT_THAT(Walk(), ElementsAre(kStub + 3, kOther + 0x20, kRoot + 0x10));
}

TEST_F(StackUnwinderTest, WhatASignalInterruptedMayBeInAnEpilogue) {
  CodeAt signal;
  signal.kind = CodeKind::kNative;
  signal.has_row = signal.row.signal_frame = true;
  code_.Native(kFramed, signal);
  code_.Native(kOther, InEpilogue());
  Leaf(kFramed, 0);
  // The context: rbp at 120, rsp at 160, rip at 168 (cfi_step.cc); the interrupted stack lies above it.
  std::vector<uint64_t> words(24, 1);
  words[120 / 8] = 0;
  words[160 / 8] = kStack + 22 * 8;
  words[168 / 8] = kOther + 0x20;
  words[22] = kFrameless + 0x30;
  words[23] = kRoot + 0x66;
  words.insert(words.end(), {5, 6, kRoot + 0x10});
  record_.Tail(words);
  EXPECT_THAT(Walk(), ElementsAre(kFramed, kOther + 0x20, kFrameless + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].lookup_address, kOther + 0x20);
}

// Without rows: assembly, which has its return address on top, and compilers' functions, which do not.
class BetweenRowsTest : public StackUnwinderTest {
 protected:
  static constexpr uint64_t kBare = 0x80000;

  BetweenRowsTest() {
    CodeAt code;
    code.kind = CodeKind::kNative;
    code.between_rows = true;
    code_.Native(kBare, code);
    Leaf(kBare + 0x20, kStack + 24);
    record_.Frame(kStack + 24, 0, kRoot + 0x10, {kNative + 0x30, 2, 3});
  }
  void Caller(uint64_t calls, bool no_call = false) {
    CodeAt code = code_.At(kNative);
    code.call_distance = calls == 0 ? 0 : static_cast<int32_t>(calls - (kNative + 0x30));
    code.no_call = no_call;
    code_.Native(kNative, code);
  }
  void ExpectOnTop() {
    EXPECT_THAT(Walk(), testing::Contains(kNative + 0x30));
    EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kNone);
    EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kStub);
  }
  void ExpectByChain() {
    EXPECT_THAT(Walk(), ElementsAre(kBare + 0x20, kRoot + 0x10));
    EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
    EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kChain);
  }
};

TEST_F(BetweenRowsTest, TheReturnAddressIsOnTop) { ExpectOnTop(); }

TEST_F(BetweenRowsTest, WhoCalledItCalledIt) {
  Caller(kBare);
  ExpectOnTop();
  Caller(kBare + 0x20);
  ExpectOnTop();
}

TEST_F(BetweenRowsTest, WhereNoCallIsNothingReturns) {
  Caller(0, /*no_call=*/true);
  ExpectByChain();
}

TEST_F(BetweenRowsTest, WhoCalledSomethingElseDidNotCallIt) {
  Caller(kBare + 0x21);  // behind it
  ExpectByChain();
  Caller(kOther);  // far below
  ExpectByChain();
  Caller(kStub);  // near enough, but no code of this kind
  ExpectByChain();
}

TEST_F(BetweenRowsTest, ASystemCallMayEndTheRowsOfItsFunction) {
  CodeAt row;
  row.kind = CodeKind::kNative;
  row.has_row = true;
  row.row.cfa = CfaRule::kSpOffset;
  row.row.cfa_offset = 8;
  Caller(kBare);
  code_.NativeAt(kBare, row);
  ExpectByChain();
  code_.NativeAt(kBare + 0x1d, row);
  ExpectOnTop();
  row.row.cfa_offset = 16;
  code_.NativeAt(kBare + 0x1d, row);
  ExpectByChain();
}

TEST_F(BetweenRowsTest, AZeroOnTopIsNoEnd) {
  record_.user[1] = 0;
  ExpectByChain();
  record_.user[1] = 0xdead0000;  // no code
  ExpectByChain();
}

TEST_F(BetweenRowsTest, ASignalHandlerReturnsToWhereNobodyCalled) {
  CodeAt signal = code_.At(kNative);
  signal.row.signal_frame = signal.no_call = true;
  code_.Native(kNative, signal);
  ExpectOnTop();
}

TEST_F(StackUnwinderTest, NativeCodeWithoutTablesMayKeepNoFramePointer) {
  constexpr uint64_t kBare = 0x80000;
  CodeAt bare;
  bare.kind = CodeKind::kNative;
  code_.Native(kBare, bare);
  Leaf(kNative + 1, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kOther + 0x10, {1, kBare + 0x30, 3, 4, 5, 6});
  record_.Frame(kStack + 80, 0, kRoot + 0x10, {7, 8});
  EXPECT_THAT(Walk(), ElementsAre(kNative + 1, kBare + 0x30, kOther + 0x10, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kNone);
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.frames[2].doubt, FrameDoubt::kNone);
  // A frame pointer of zero is the end, and is believed.
  record_ = {};
  Leaf(kNative + 1, 0);
  record_.Tail({1, kBare + 0x30, 3, 4});
  EXPECT_THAT(Walk(), ElementsAre(kNative + 1, kBare + 0x30));
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kNone);
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
}

TEST_F(StackUnwinderTest, AStackThatEndsBeforeItsRootSaysSo) {
  // Nothing is known of this JIT compiler's code. Its frame pointers are followed without a mark while they lead on.
  constexpr uint64_t kJit = 0x80000;
  code_.Native(kJit, {.kind = CodeKind::kUnknown});
  Leaf(kJit + 1, kStack + 16);
  record_.Frame(kStack + 16, 12345, kJit + 0x30, {1, 2});
  EXPECT_THAT(Walk(), ElementsAre(kJit + 1, kJit + 0x30));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kNone);
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.end, StackEnd::kBroken);
}

TEST_F(StackUnwinderTest, KernelThreadsHaveNoStack) {
  record_.header.flags = WIRE_SAMPLE_KTHREAD;
  EXPECT_THAT(Walk(), ElementsAre());
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
}

// Whatever the words are: it ends, and each frame is in code.
TEST_F(StackUnwinderTest, GarbageEnds) {
  std::mt19937_64 random(7);
  const uint64_t starts[] = {kFrameless, kFramed, kOther, kNative, kStub};
  for (int round = 0; round < 2000; ++round) {
    record_ = RawRecord();
    const auto word = [&]() -> uint64_t {
      switch (random() % 4) {
        case 0:
          return starts[random() % 5] + random() % 256;
        case 1:
          return kStack + 8 * (random() % 400);
        default:
          return random();
      }
    };
    Leaf(starts[random() % 5] + random() % 256, kStack + 8 * (random() % 100));
    uint64_t at = kStack;
    for (int i = 0; i < 20; ++i) {
      std::vector<uint64_t> gap(random() % 12);
      for (uint64_t& value : gap) value = word();
      at += 8 * gap.size();
      record_.Frame(at, word(), word(), gap);
      at += 16;
    }
    record_.Tail({word(), word(), word()});
    const std::vector<uint64_t> addresses = Walk();
    ASSERT_LE(addresses.size(), 64u);
    for (size_t i = 1; i < addresses.size(); ++i) ASSERT_TRUE(code_.At(addresses[i] - 1).mapped);
  }
}

TEST_F(StackUnwinderTest, ARecordingGivesTheSameStack) {
  Leaf(kFrameless + 0x20, kStack + 48);
  record_.Frame(kStack + 48, kStack + 80, kRoot + 0x10, {1, 2, 3, kFramed + 0x30, 5, 6});
  StackRecording recording;
  const std::span<const std::byte> bytes = record_.Bytes();
  RecordedStack& recorded = recording.stacks.emplace_back();
  recorded.record.resize(bytes.size() / 8);
  std::memcpy(recorded.record.data(), bytes.data(), bytes.size());
  CodeRecorder recorder(code_, recording);
  unwinder_.Walk(*RawStack::Parse(bytes), recorder, recorded.result);

  const std::string text = recording.Serialize();
  const absl::StatusOr<StackRecording> read = StackRecording::Parse(AsBytes(text));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->stacks.size(), 1u);
  RecordedCode code(*read);
  const absl::StatusOr<RawStack> raw = RawStack::Parse(std::as_bytes(std::span(read->stacks[0].record)));
  ASSERT_TRUE(raw.ok());
  unwinder_.Walk(*raw, code, stack_);
  EXPECT_EQ(stack_, read->stacks[0].result);
  EXPECT_EQ(stack_, recorded.result);
  EXPECT_EQ(stack_.frames.size(), 3u);

  // Cut anywhere it is refused.
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(StackRecording::Parse(AsBytes(absl::string_view(text).substr(0, size))).ok()) << size;
  }
}

TEST_F(StackUnwinderTest, ARecordingHasAllThatIsKnownOfCode) {
  StackRecording recording;
  recording.code[kOther] = InEpilogue();
  CodeAt both = InEpilogue();
  both.between_rows = both.no_call = true;
  both.leaf_row.cfa = CfaRule::kFpOffset;
  recording.code[kOther + 1] = both;
  recording.code[kNative] = code_.At(kNative);
  recording.code[kNative].call_distance = -1234;
  std::string text = recording.Serialize();
  const absl::StatusOr<StackRecording> read = StackRecording::Parse(AsBytes(text));
  ASSERT_TRUE(read.ok()) << read.status();
  for (const auto& [address, code] : recording.code) {
    EXPECT_EQ(read->code.at(address).has_leaf_row, code.has_leaf_row);
    EXPECT_EQ(read->code.at(address).leaf_row, code.leaf_row);
    EXPECT_EQ(read->code.at(address).row, code.row);
    EXPECT_EQ(read->code.at(address).between_rows, code.between_rows);
    EXPECT_EQ(read->code.at(address).no_call, code.no_call);
    EXPECT_EQ(read->code.at(address).call_distance, code.call_distance);
  }
  // Behind the magic, three counts, and of the first answer the address, its kind, `mapped` and `has_row`.
  constexpr size_t kFlags = 8 + 12 + 8 + 3;
  ASSERT_EQ(text[kFlags], 2);
  text[kFlags] = 16;
  EXPECT_FALSE(StackRecording::Parse(AsBytes(text)).ok()) << "a flag of another version";
}

TEST_F(StackUnwinderTest, AStubMayHavePushedWords) {
  CodeAt stub = code_.At(kStub);
  stub.has_row = true;
  stub.row = {CfaRule::kSpOffset, RegisterRule::kSame, RegisterRule::kAtCfaOffset, false, 16, 0, -8};
  code_.Native(kStub, stub);
  Leaf(kStub + 3, kStack + 32);
  record_.Frame(kStack + 32, 0, kRoot + 0x10, {kOther + 0x20, kFramed + 0x30, 2, 3});
  EXPECT_THAT(Walk(), ElementsAre(kStub + 3, kFramed + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kStub);
}

// Managed code on arm64: there is no unwind data, only whether a leaf has its frame record.
class Arm64UnwinderTest : public StackUnwinderTest {
 protected:
  static constexpr uint64_t kMethod = 0x90000, kCaller = 0xa0000, kPrologue = 0xb0000, kNotKnown = 0xc0000,
                            kGcc = 0xd0000;
  static constexpr uint64_t kSignature = uint64_t{0x5a} << 56;  // pointer authentication

  Arm64UnwinderTest() {
    CodeAt managed;
    managed.kind = CodeKind::kManaged;
    code_.Native(kMethod, managed);
    code_.Native(kCaller, managed);
    managed.has_row = true;
    managed.row = {CfaRule::kSpOffset, RegisterRule::kSame, RegisterRule::kSame, false, 32, 0, 0};
    code_.Native(kPrologue, managed);
    managed.has_row = false;
    managed.between_rows = true;
    code_.Native(kNotKnown, managed);
    CodeAt native;
    native.kind = CodeKind::kNative;
    native.has_row = true;
    // stp x29, x30, [sp, #-48]!; mov x29, sp
    native.row = {CfaRule::kSpOffset, RegisterRule::kAtCfaOffset, RegisterRule::kAtCfaOffset, false, 48, -48, -40};
    code_.Native(kGcc, native);
  }
  std::vector<uint64_t> WalkArm64() { return Walk(arm64_); }
  StackUnwinder arm64_{{64, ElfMachine::kArm64}};
};

TEST_F(Arm64UnwinderTest, GoesByTheFrameRecords) {
  Leaf(kMethod + 0x20, kStack);
  record_.header.lr = kMethod + 0x10;  // of its last call
  record_.Frame(kStack, kStack + 64, kSignature | (kCaller + 0x30));
  record_.Frame(kStack + 64, 0, kRoot + 0x10, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(WalkArm64(), ElementsAre(kMethod + 0x20, kCaller + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
  for (const UserFrame& frame : stack_.frames) EXPECT_EQ(frame.doubt, FrameDoubt::kNone);
  // The leaf's frame ends somewhere below its caller's record, whose end is all that is known of the next one.
  const std::optional<StackPart> part = StackPartOf(stack_, 0);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->begin, kStack);
  EXPECT_EQ(part->end, kStack + 64 + 16);
  EXPECT_FALSE(StackPartOf(stack_, 1));
}

TEST_F(Arm64UnwinderTest, APrologueHasItsCallerInTheLinkRegister) {
  Leaf(kPrologue + 8, kStack + 64);
  record_.header.lr = kSignature | (kCaller + 0x30);
  record_.Frame(kStack + 64, 0, kRoot + 0x10, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(WalkArm64(), ElementsAre(kPrologue + 8, kCaller + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[1].origin, FrameOrigin::kUnwindInfo);
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kNone);
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
}

TEST_F(Arm64UnwinderTest, ACallersStateIsThatAfterItsPrologue) {
  // The same function, but as a caller: its frame record is in place.
  Leaf(kMethod + 0x20, kStack);
  record_.Frame(kStack, kStack + 32, kPrologue + 0x30);
  record_.Frame(kStack + 32, 0, kRoot + 0x10, {1, 2});
  EXPECT_THAT(WalkArm64(), ElementsAre(kMethod + 0x20, kPrologue + 0x30, kRoot + 0x10));
}

TEST_F(Arm64UnwinderTest, OfALeafThatIsNotKnownTheLinkRegisterRaisesDoubt) {
  Leaf(kNotKnown + 0x20, kStack + 64);
  record_.header.lr = kSignature | (kCaller + 0x30);
  record_.Frame(kStack + 64, 0, kRoot + 0x10, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(WalkArm64(), ElementsAre(kNotKnown + 0x20, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  record_.header.lr = kRoot + 0x10;
  EXPECT_THAT(WalkArm64(), ElementsAre(kNotKnown + 0x20, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kNone);
}

TEST_F(Arm64UnwinderTest, AStubReturnsToTheLinkRegister) {
  Leaf(kStub + 4, kStack + 64);
  record_.header.lr = kCaller + 0x30;
  record_.Frame(kStack + 64, 0, kRoot + 0x10, {kMethod + 0x30, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(WalkArm64(), ElementsAre(kStub + 4, kCaller + 0x30, kRoot + 0x10));
}

TEST_F(Arm64UnwinderTest, ANativeLeafWithoutARowDoesNotReturnToTheLinkRegister) {
  // OpenSSL's sha256_block has no row. It saves x30, and lets x30 point to its constants.
  constexpr uint64_t kBare = 0xe0000;
  CodeAt bare;
  bare.kind = CodeKind::kNative;
  bare.between_rows = true;
  code_.Native(kBare, bare);
  Leaf(kBare + 0x20, kStack);
  record_.header.lr = kGcc + 0x40;
  record_.Frame(kStack, kStack + 32, kCaller + 0x30);
  record_.Frame(kStack + 32, 0, kRoot + 0x10, {1, 2});
  EXPECT_THAT(WalkArm64(), ElementsAre(kBare + 0x20, kCaller + 0x30, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kNone);
}

TEST_F(Arm64UnwinderTest, ARecordDoesNotSayWhereItsFrameEnds) {
  // Native code that counts from sp, below a method whose frame has 32 bytes above its record.
  Leaf(kMethod + 0x20, kStack);
  record_.Frame(kStack, kStack + 48, kGcc + 0x30);
  record_.Frame(kStack + 48, kStack + 96, kCaller + 0x10, {1, 2, 3, 4});
  record_.Frame(kStack + 96, 0, kRoot + 0x10, {5, 6, 7, 8});
  EXPECT_THAT(WalkArm64(), ElementsAre(kMethod + 0x20, kGcc + 0x30, kCaller + 0x10, kRoot + 0x10));
  EXPECT_EQ(stack_.frames[2].origin, FrameOrigin::kTable);
  EXPECT_EQ(stack_.frames[1].doubt, FrameDoubt::kNone);
}

TEST_F(Arm64UnwinderTest, ALostFramePointerIsNoEnd) {
  Leaf(kMethod + 0x20, 0);
  record_.Tail({1, 2});
  EXPECT_THAT(WalkArm64(), ElementsAre(kMethod + 0x20));
  EXPECT_EQ(stack_.end, StackEnd::kBroken);
  EXPECT_EQ(stack_.frames[0].doubt, FrameDoubt::kCallerMayBeMissing);
}

TEST_F(Arm64UnwinderTest, AProgramsStartHasNoRowAndNoFrame) {
  constexpr uint64_t kStart = 0xe0000;
  CodeAt start;
  start.kind = CodeKind::kNative;
  start.between_rows = true;
  code_.Native(kStart, start);
  Leaf(kGcc + 0x20, kStack);
  record_.Frame(kStack, 0, kStart + 0x30);
  record_.Tail({1, 2, 3, 4});
  EXPECT_THAT(WalkArm64(), ElementsAre(kGcc + 0x20, kStart + 0x30));
  EXPECT_EQ(stack_.end, StackEnd::kComplete);
  // A frame pointer that was not found is no such zero.
  CodeAt lost = code_.At(kGcc);
  lost.row.fp_offset = -4096;
  code_.Native(kGcc, lost);
  record_.header.fp = kStack + 8;
  EXPECT_THAT(WalkArm64(), ElementsAre(kGcc + 0x20, kStart + 0x30));
  EXPECT_EQ(stack_.end, StackEnd::kBroken);
}

}  // namespace
}  // namespace clrsampler
