#include "unwind/cfi_step.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <map>

namespace clrsampler {
namespace {

constexpr uint64_t kCfiStack = 0x7ffd0000;

class CfiWords : public StackMemory {
 public:
  CfiWords(std::initializer_list<std::pair<const uint64_t, uint64_t>> words) : words_(words) {}
  std::optional<uint64_t> Word(uint64_t address) const override {
    const auto found = words_.find(address);
    if (found == words_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::map<uint64_t, uint64_t> words_;
};

CfiRow Row(CfaRule cfa, int32_t offset) {
  CfiRow row;
  row.cfa = cfa;
  row.cfa_offset = offset;
  row.ra_offset = -8;
  return row;
}

CfiStepResult OnX64(const CfiRow& row, const UnwindRegisters& registers, const CfiWords& stack, bool leaf = true) {
  return CfiStep(row, leaf, registers, stack, ElfMachine::kX64);
}

TEST(CfiStepTest, FromTheStackPointer) {
  CfiRow row = Row(CfaRule::kSpOffset, 32);
  row.fp = RegisterRule::kAtCfaOffset;
  row.fp_offset = -16;
  const auto step = OnX64(row, {0x1000, kCfiStack, 0x77, 0}, {{kCfiStack + 24, 0x2005}, {kCfiStack + 16, 0x55}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.ip, 0x2005u);
  EXPECT_EQ(step.caller.sp, kCfiStack + 32);
  EXPECT_EQ(step.caller.fp, 0x55u);
  EXPECT_TRUE(step.fp_known);
  EXPECT_FALSE(step.interrupted);
}

TEST(CfiStepTest, FromTheFramePointerWhichIsKeptWhereItIsNotSaved) {
  const auto step =
      OnX64(Row(CfaRule::kFpOffset, 16), {0x1000, kCfiStack, kCfiStack + 0x40, 0}, {{kCfiStack + 0x48, 0x2005}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.sp, kCfiStack + 0x50);
  EXPECT_EQ(step.caller.fp, kCfiStack + 0x40);
}

TEST(CfiStepTest, RealignedStacks) {
  CfiRow row = Row(CfaRule::kFpDeref, -8);
  row.fp = RegisterRule::kAtFpOffset;
  const uint64_t fp = kCfiStack + 0x40;
  const auto step =
      OnX64(row, {0x1000, kCfiStack, fp, 0}, {{fp - 8, kCfiStack + 0x100}, {fp, 0x55}, {kCfiStack + 0xf8, 0x2005}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.sp, kCfiStack + 0x100);
  EXPECT_EQ(step.caller.fp, 0x55u);
  EXPECT_EQ(OnX64(row, {0x1000, kCfiStack, fp, 0}, {{fp, 0x55}}).missing, fp - 8);
}

TEST(CfiStepTest, CallersStackPointerKeptInTheFrame) {
  const auto step = OnX64(Row(CfaRule::kSpDeref, 152), {0x1000, kCfiStack, 0, 0},
                          {{kCfiStack + 152, kCfiStack + 0x200}, {kCfiStack + 0x200, 0x2005}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.sp, kCfiStack + 0x208);
  EXPECT_EQ(step.caller.ip, 0x2005u);
}

TEST(CfiStepTest, AnyRegisterOfALeaf) {
  uint64_t general[16] = {};
  general[9] = 3;
  general[2] = kCfiStack + 0x20;
  UnwindRegisters registers{0x1000, kCfiStack, 0, 0};
  registers.general = general;
  CfiRow row = Row(CfaRule::kSpIndexed, 8);
  row.cfa_register = 9;
  CfiStepResult step = OnX64(row, registers, {{kCfiStack + 32, kCfiStack + 0x200}, {kCfiStack + 0x200, 0x2005}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.sp, kCfiStack + 0x208);
  EXPECT_EQ(step.caller.general, nullptr);

  row = Row(CfaRule::kRegister, 8);
  row.cfa_register = 2;
  step = OnX64(row, registers, {{kCfiStack + 0x20, 0x2005}});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.sp, kCfiStack + 0x28);

  row = Row(CfaRule::kSpOffset, 0);
  row.ra = RegisterRule::kInRegister;
  row.ra_offset = 9;
  general[9] = 0x2005;
  step = OnX64(row, registers, {});
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.ip, 0x2005u);
  EXPECT_EQ(step.caller.sp, kCfiStack);

  registers.general = nullptr;  // of a caller nothing is known
  EXPECT_NE(OnX64(row, registers, {}).outcome, CfiStepOutcome::kCaller);
  row = Row(CfaRule::kRegister, 8);
  EXPECT_EQ(OnX64(row, registers, {}).outcome, CfiStepOutcome::kUnsupported);
}

TEST(CfiStepTest, LazyPltEntriesHavePushedTheirNumberInTheEnd) {
  const CfiWords stack{{kCfiStack, 0x2005}, {kCfiStack + 8, 0x3005}};
  const CfiRow row = Row(CfaRule::kPlt, 11);
  EXPECT_EQ(OnX64(row, {0x101a, kCfiStack, 0, 0}, stack).caller.ip, 0x2005u);
  EXPECT_EQ(OnX64(row, {0x101b, kCfiStack, 0, 0}, stack).caller.ip, 0x3005u);
}

TEST(CfiStepTest, WhyThereIsNoCallerIsTold) {
  CfiRow root = Row(CfaRule::kSpOffset, 16);
  root.ra = RegisterRule::kUndefined;
  EXPECT_EQ(OnX64(root, {0x1000, kCfiStack, 0, 0}, {}).outcome, CfiStepOutcome::kOutermost);

  const auto missing = OnX64(Row(CfaRule::kSpOffset, 16), {0x1000, kCfiStack, 0, 0}, {});
  EXPECT_EQ(missing.outcome, CfiStepOutcome::kMissingWord);
  EXPECT_EQ(missing.missing, kCfiStack + 8);

  EXPECT_EQ(OnX64(Row(CfaRule::kUnsupported, 0), {0x1000, kCfiStack, 0, 0}, {}).outcome, CfiStepOutcome::kUnsupported);
  CfiRow in_register = Row(CfaRule::kSpOffset, 16);
  in_register.ra = RegisterRule::kUnsupported;
  EXPECT_EQ(OnX64(in_register, {0x1000, kCfiStack, 0, 0}, {}).outcome, CfiStepOutcome::kUnsupported);
  in_register.ra = RegisterRule::kSame;  // there is no link register
  EXPECT_EQ(OnX64(in_register, {0x1000, kCfiStack, 0, 7}, {}).outcome, CfiStepOutcome::kUnsupported);

  const CfiWords stack{{kCfiStack - 8, 0x2005}, {kCfiStack + 8, 0}, {kCfiStack + 4, 0x2005}};
  const UnwindRegisters registers{0x1000, kCfiStack, kCfiStack - 16, 0};
  EXPECT_EQ(OnX64(Row(CfaRule::kFpOffset, 16), registers, stack).outcome, CfiStepOutcome::kContradiction)
      << "no growth";
  EXPECT_EQ(OnX64(Row(CfaRule::kFpOffset, 8), registers, stack).outcome, CfiStepOutcome::kContradiction) << "below";
  EXPECT_EQ(OnX64(Row(CfaRule::kSpOffset, 12), registers, stack).outcome, CfiStepOutcome::kContradiction)
      << "unaligned";
  EXPECT_EQ(OnX64(Row(CfaRule::kSpOffset, 16), registers, stack).outcome, CfiStepOutcome::kContradiction) << "no ip";
  EXPECT_EQ(OnX64(Row(CfaRule::kFpOffset, 16), {0x1000, kCfiStack, ~uint64_t{7}, 0}, stack).outcome,
            CfiStepOutcome::kContradiction)
      << "wraps around";
}

TEST(CfiStepTest, ALostFramePointerDoesNotHideTheCaller) {
  for (const RegisterRule rule : {RegisterRule::kAtCfaOffset, RegisterRule::kUnsupported, RegisterRule::kUndefined}) {
    CfiRow row = Row(CfaRule::kSpOffset, 32);
    row.fp = rule;
    row.fp_offset = -24;
    const auto step = OnX64(row, {0x1000, kCfiStack, 0x77, 0}, {{kCfiStack + 24, 0x2005}});
    EXPECT_EQ(step.outcome, CfiStepOutcome::kCaller);
    EXPECT_EQ(step.caller.ip, 0x2005u);
    EXPECT_FALSE(step.fp_known);
    EXPECT_EQ(step.caller.fp, 0u);
  }
}

TEST(CfiStepTest, LeafOnArm64ReturnsByItsLinkRegister) {
  CfiRow row = Row(CfaRule::kSpOffset, 0);
  row.ra = RegisterRule::kSame;
  const UnwindRegisters registers{0x1000, kCfiStack, 0x77, 0x00aa'0000'0040'2004};  // signed
  const auto step = CfiStep(row, /*leaf=*/true, registers, CfiWords{}, ElfMachine::kArm64);
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.ip, 0x40'2004u);
  EXPECT_EQ(step.caller.sp, kCfiStack);
  EXPECT_EQ(CfiStep(row, /*leaf=*/false, registers, CfiWords{}, ElfMachine::kArm64).outcome,
            CfiStepOutcome::kContradiction);
}

TEST(CfiStepTest, FrameOnArm64HasASignedReturnAddress) {
  CfiRow row = Row(CfaRule::kSpOffset, 32);
  row.ra_offset = -24;
  row.fp = RegisterRule::kAtCfaOffset;
  row.fp_offset = -32;
  const auto step =
      CfiStep(row, /*leaf=*/false, {0x1000, kCfiStack, 0x77, 0},
              CfiWords{{kCfiStack, kCfiStack + 0x90}, {kCfiStack + 8, 0x0037'ffff'8800'2004}}, ElfMachine::kArm64);
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_EQ(step.caller.ip, 0xffff'8800'2004u);
  EXPECT_EQ(step.caller.fp, kCfiStack + 0x90);
}

TEST(CfiStepTest, SignalFrameOnArm64) {
  CfiRow row;
  row.signal_frame = true;
  const uint64_t x0 = kCfiStack + 312;
  const CfiWords stack{
      {x0 + 29 * 8, 0x55}, {x0 + 30 * 8, 0x3004}, {x0 + 31 * 8, kCfiStack - 0x8000}, {x0 + 32 * 8, 0x2004}};
  const auto step = CfiStep(row, /*leaf=*/false, {0x1000, kCfiStack, 0, 0}, stack, ElfMachine::kArm64);
  ASSERT_EQ(step.outcome, CfiStepOutcome::kCaller);
  EXPECT_TRUE(step.interrupted);
  EXPECT_EQ(step.caller.ip, 0x2004u);
  EXPECT_EQ(step.caller.sp, kCfiStack - 0x8000) << "the handler may run on a stack of its own";
  EXPECT_EQ(step.caller.fp, 0x55u);
  EXPECT_EQ(step.caller.lr, 0x3004u);
  EXPECT_EQ(CfiStep(row, false, {0x1000, kCfiStack, 0, 0}, CfiWords{}, ElfMachine::kArm64).outcome,
            CfiStepOutcome::kMissingWord);
}

#if defined(__x86_64__)
class LiveMemory : public StackMemory {
 public:
  std::optional<uint64_t> Word(uint64_t address) const override { return *reinterpret_cast<const uint64_t*>(address); }
};

CfiStepResult live_step;
ucontext_t live_context;

void OnSignal(int, siginfo_t*, void* context) {
  // The value of sp once the handler has returned to __restore_rt: the address of the ucontext.
  CfiRow row;
  row.signal_frame = true;
  live_step = CfiStep(row, false, {0x1000, reinterpret_cast<uint64_t>(context), 0, 0}, LiveMemory(), ElfMachine::kX64);
  live_context = *static_cast<ucontext_t*>(context);
}

TEST(CfiStepTest, SignalFrameThatTheKernelMade) {
  struct sigaction action {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_EQ(live_step.outcome, CfiStepOutcome::kCaller);
  EXPECT_TRUE(live_step.interrupted);
  const auto& registers = live_context.uc_mcontext.gregs;
  EXPECT_EQ(live_step.caller.ip, static_cast<uint64_t>(registers[REG_RIP]));
  EXPECT_EQ(live_step.caller.sp, static_cast<uint64_t>(registers[REG_RSP]));
  EXPECT_EQ(live_step.caller.fp, static_cast<uint64_t>(registers[REG_RBP]));
}
#endif

}  // namespace
}  // namespace clrsampler
