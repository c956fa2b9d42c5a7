#include "unwind/managed_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {
namespace {

using Kind = ManagedStepResult::Kind;

constexpr uint64_t kBegin = 0x400000, kCaller = 0x500010, kCallersRbp = 0x7F80, kRbx = 0x1111;

class Words : public StackMemory {
 public:
  std::optional<uint64_t> Word(uint64_t address) const override {
    const auto word = words.find(address);
    return word == words.end() ? std::nullopt : std::optional<uint64_t>(word->second);
  }
  std::map<uint64_t, uint64_t> words;
};

class ManagedStepTest : public testing::Test {
 protected:
  void Use(const CodeBytes& bytes) {
    code_ = Hex(bytes.code);
    function_.begin = function_.method_begin = kBegin;
    function_.end = kBegin + code_.size();
    function_.code = code_;
    function_.unwind = UnwindInfo::Parse(Hex(bytes.unwind)).value();
  }
  // From the address downwards, as pushes put them there.
  void Push(std::initializer_list<uint64_t> words) {
    for (const uint64_t word : words) stack_.words[sp_ -= 8] = word;
  }
  ManagedStepResult Step(uint64_t offset, bool leaf = true) {
    return ManagedStep(function_, leaf, {.ip = kBegin + offset, .sp = sp_, .fp = rbp_}, stack_);
  }
  void ExpectCaller(const ManagedStepResult& result, ManagedStepHow how, const std::string& what = "") {
    EXPECT_EQ(result.kind, Kind::kStepped) << what;
    EXPECT_EQ(result.how, how) << what;
    EXPECT_EQ(result.caller.ip, kCaller) << what;
    EXPECT_EQ(result.caller.sp, 0x7F40u) << what;
    EXPECT_EQ(result.caller.fp, kCallersRbp) << what;
  }

  std::vector<std::byte> code_;
  ManagedFunction function_;
  Words stack_;
  uint64_t sp_ = 0x7F40, rbp_ = kCallersRbp;
};

// Each instruction boundary of a function, with the stack as it is there.
TEST_F(ManagedStepTest, AFramelessLeafAtEachInstruction) {
  Use(kFrameless);
  Push({kCaller});
  ExpectCaller(Step(0), ManagedStepHow::kPrologue);
  Push({kRbx});
  ExpectCaller(Step(1), ManagedStepHow::kPrologue);
  Push({0, 0});
  for (const uint64_t offset : {0x5, 0x8, 0xD, 0x13, 0x18}) ExpectCaller(Step(offset), ManagedStepHow::kBody);
  ExpectCaller(Step(0x1B), ManagedStepHow::kEpilogue);
  sp_ += 16;
  ExpectCaller(Step(0x1F), ManagedStepHow::kEpilogue);
  sp_ += 8;
  ExpectCaller(Step(0x20), ManagedStepHow::kEpilogue);
}

TEST_F(ManagedStepTest, AFramedLeafAtEachInstruction) {
  Use(kFramed);
  Push({kCaller});
  ExpectCaller(Step(0), ManagedStepHow::kPrologue);
  Push({kCallersRbp});
  ExpectCaller(Step(1), ManagedStepHow::kPrologue);
  Push({0});
  ExpectCaller(Step(3), ManagedStepHow::kPrologue);
  Push({kRbx});
  ExpectCaller(Step(4), ManagedStepHow::kBody);
  rbp_ = sp_ + 16;
  ExpectCaller(Step(9), ManagedStepHow::kBody);
  ExpectCaller(Step(0x10), ManagedStepHow::kEpilogue);
  sp_ += 16;
  ExpectCaller(Step(0x13), ManagedStepHow::kEpilogue);
  sp_ += 8;
  rbp_ = kCallersRbp;
  ExpectCaller(Step(0x14), ManagedStepHow::kEpilogue);
}

TEST_F(ManagedStepTest, ACallSiteHasTwoWitnesses) {
  Use(kFramed);
  Push({kCaller, kCallersRbp, 0, kRbx});
  rbp_ = sp_ + 16;
  ManagedStepResult result = Step(0xF, /*leaf=*/false);
  ExpectCaller(result, ManagedStepHow::kBody);
  EXPECT_EQ(result.check, ManagedStepCheck::kAgreed);
  rbp_ += 8;
  result = Step(0xF, /*leaf=*/false);
  EXPECT_EQ(result.check, ManagedStepCheck::kContradicted);
  EXPECT_EQ(result.caller.ip, kCaller);  // what the codes say; the caller decides
  EXPECT_EQ(Step(0xF, /*leaf=*/true).check, ManagedStepCheck::kNotCheckable);
  // No frame pointer, no second witness.
  Use(kFrameless);
  EXPECT_EQ(Step(0x13, /*leaf=*/false).check, ManagedStepCheck::kNotCheckable);
}

TEST_F(ManagedStepTest, ACallerIsNeverInItsEpilogue) {
  Use(kFrameless);
  Push({kCaller, kRbx, 0, 0});
  // Returns to behind the call, where an epilogue could begin; the function may also end there.
  ExpectCaller(Step(0x1B, /*leaf=*/false), ManagedStepHow::kBody);
  ExpectCaller(Step(0x21, /*leaf=*/false), ManagedStepHow::kBody);
  EXPECT_EQ(Step(0x21, /*leaf=*/true).kind, Kind::kNotPossible);
  EXPECT_EQ(Step(0, /*leaf=*/false).kind, Kind::kNotPossible);
}

TEST_F(ManagedStepTest, AProbeOfALargeFrameIsCalledBeforeTheFrameIsThere) {
  Use(kProbed);
  Push({kCaller, kCallersRbp, 0, 0, 0, 0, kRbx});
  ManagedStepResult result = Step(0x18, /*leaf=*/false);
  ExpectCaller(result, ManagedStepHow::kPrologue);
  EXPECT_EQ(result.check, ManagedStepCheck::kNotCheckable) << "rbp is still the caller's";
  sp_ -= 0x10d8;
  rbp_ = sp_ + 0x1100;
  result = Step(0x28, /*leaf=*/false);
  ExpectCaller(result, ManagedStepHow::kBody);
  EXPECT_EQ(result.check, ManagedStepCheck::kAgreed);
}

TEST_F(ManagedStepTest, AFunctionThatMovesSpGoesByItsFramePointer) {
  Use(kMovesSp);
  Push({kCaller, kCallersRbp, kRbx, 0, 0, 0});
  ExpectCaller(Step(6), ManagedStepHow::kPrologue);
  rbp_ = sp_ + 0x20;
  ExpectCaller(Step(0xB), ManagedStepHow::kBody);
  sp_ -= 0x100;
  ExpectCaller(Step(0x26), ManagedStepHow::kBody);
  const ManagedStepResult result = Step(0x38, /*leaf=*/false);
  ExpectCaller(result, ManagedStepHow::kBody);
  EXPECT_EQ(result.check, ManagedStepCheck::kNotCheckable);
  ExpectCaller(Step(0x55), ManagedStepHow::kEpilogue);
  rbp_ = 0x6000;  // below its own stack
  EXPECT_EQ(Step(0x26).kind, Kind::kNotPossible);
}

TEST_F(ManagedStepTest, OnStackReplacementReturnsToTheRealCaller) {
  Use(kOsr);
  function_.osr = true;
  function_.osr_frame_bytes = 120;
  constexpr uint64_t kPhantom = 0x600000;
  Push({kCaller, kCallersRbp});
  const uint64_t saved = sp_;
  Push({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, kPhantom});  // the first version's frame and the call of the runtime
  rbp_ = saved;
  ExpectCaller(Step(0), ManagedStepHow::kPrologue);
  Push({kCallersRbp});
  ExpectCaller(Step(5), ManagedStepHow::kPrologue);
  Push({0, 0, 0, 0});
  ExpectCaller(Step(9), ManagedStepHow::kPrologue);
  rbp_ = sp_ + 0x20;
  ExpectCaller(Step(0x2E), ManagedStepHow::kBody);
  ManagedStepResult result = Step(0x30, /*leaf=*/false);
  ExpectCaller(result, ManagedStepHow::kBody);
  EXPECT_EQ(result.check, ManagedStepCheck::kAgreed);
  rbp_ = saved;
  EXPECT_EQ(Step(0x30, /*leaf=*/false).check, ManagedStepCheck::kContradicted);
  sp_ += 0x80;
  ExpectCaller(Step(0x37), ManagedStepHow::kEpilogue);
  sp_ = saved;
  ExpectCaller(Step(0x3E), ManagedStepHow::kEpilogue);
}

TEST_F(ManagedStepTest, FuncletsGoToTheirParentsCaller) {
  Push({kCaller, kCallersRbp});
  const uint64_t parent = sp_;
  Push({0, 0, 0x600000, 0, 0, 0});  // the parent's frame, the runtime's, the funclet's own
  rbp_ = parent;
  // .NET 10: everywhere.
  Use(kFunclet10);
  function_.funclet = true;
  for (const uint64_t offset : {0, 1, 0xC, 0x10}) ExpectCaller(Step(offset), ManagedStepHow::kFunclet);
  ExpectCaller(Step(0xB, /*leaf=*/false), ManagedStepHow::kFunclet);
  // 8 and 9: once rbp is the parent's.
  Use(kFunclet8);
  function_.funclet = true;
  ExpectCaller(Step(0xE), ManagedStepHow::kFunclet);
  ExpectCaller(Step(0x1C, /*leaf=*/false), ManagedStepHow::kFunclet);
  // In the funclet of a method that replaced another one, rbp points to a copy below the first version's frame.
  Use(kFunclet10);
  function_.osr = true;
  function_.osr_frame_bytes = 16;
  rbp_ = parent - 24;
  ExpectCaller(Step(0xB, /*leaf=*/false), ManagedStepHow::kFunclet);
}

TEST_F(ManagedStepTest, AFuncletWithItsOwnFrameLeavesLikeAMethod) {
  Use(kFunclet8);
  function_.funclet = true;
  Push({kCaller});
  ExpectCaller(Step(0), ManagedStepHow::kPrologue);
  Push({kCallersRbp, kRbx});
  ExpectCaller(Step(2), ManagedStepHow::kPrologue);
  Push({0});
  rbp_ = 0x1234560;
  for (const uint64_t offset : {3, 6, 10}) ExpectCaller(Step(offset), ManagedStepHow::kBody);
  // add rsp,8; pop rbx; pop rbp; ret: until the pop rbp is the parent's.
  code_ =
      Hex("555350488b2f48892c24488d6d30"
          "4883c408"
          "5b"
          "5d"
          "c3");
  function_.end = kBegin + code_.size();
  function_.code = code_;
  sp_ = 0x7F38;
  rbp_ = kCallersRbp;
  ExpectCaller(Step(0x14), ManagedStepHow::kEpilogue);
  sp_ = 0x7F30;
  rbp_ = 0x7F00;
  stack_.words[0x7F00] = 7;
  stack_.words[0x7F08] = 8;
  EXPECT_EQ(Step(0x13).kind, Kind::kNotPossible);  // of a parent that would lie below it
  stack_.words[0x8000] = 7;
  stack_.words[0x8008] = 8;
  rbp_ = 0x8000;
  EXPECT_EQ(Step(0x13).how, ManagedStepHow::kFunclet);
  EXPECT_EQ(Step(0x13).caller.ip, 8u);
}

TEST_F(ManagedStepTest, WordsThatWereNotShipped) {
  Use(kFramed);
  Push({kCaller, kCallersRbp, 0, kRbx});
  stack_.words.erase(0x7F38);
  EXPECT_EQ(Step(9).kind, Kind::kMissingWord);
  EXPECT_EQ(Step(9).missing, 0x7F38u);
  EXPECT_EQ(Step(0x10).kind, Kind::kMissingWord);
  stack_.words.erase(0x7F30);
  EXPECT_EQ(Step(9).missing, 0x7F30u);
}

TEST_F(ManagedStepTest, WithoutCodeTheCodesAlone) {
  Use(kFrameless);
  function_.code = {};
  Push({kCaller, kRbx, 0, 0});
  ExpectCaller(Step(0x13), ManagedStepHow::kBody);
}

TEST_F(ManagedStepTest, ASizeThatWrapsAroundIsNotPossible) {
  Use(kFrameless);
  sp_ = UINT64_MAX - 15;
  EXPECT_EQ(Step(0x13).kind, Kind::kNotPossible);
}

}  // namespace
}  // namespace clrsampler
