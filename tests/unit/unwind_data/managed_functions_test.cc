#include "unwind_data/managed_functions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/unwind/x64_code.h"
#include "unit/clr/memory/fake_memory.h"
#include "unit/formats/unwind/code_bytes.h"
#include "unwind/cfi_step.h"

namespace clrsampler {
namespace {

TEST(ReadUnwindInfoTest, ReadsNoByteBehindIt) {
  FakeMemory memory;
  const auto read = [&](uint64_t at, std::span<std::byte> into) { return memory.Read(at, into); };
  std::vector<std::byte> bytes = Hex(kFrameless.unwind);
  memory.SetBytes(0x5000, bytes);
  const auto info = ReadUnwindInfo(read, 0x4000, 0x1000);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(*info, *UnwindInfo::Parse(bytes));
  EXPECT_FALSE(ReadUnwindInfo(read, 0x4000, 0x1004).has_value());
  EXPECT_FALSE(ReadUnwindInfo(read, 0x9000, 0x1000).has_value());
}

TEST(OsrFrameBytesTest, OnlySuchMethodsBeginWithAFrame) {
  EXPECT_EQ(OsrFrameBytes(*UnwindInfo::Parse(Hex(kOsr.unwind))), 120u);
  for (const CodeBytes& function : {kFramed, kFrameless, kTailJump, kMovesSp, kProbed, kFunclet8, kFunclet10}) {
    EXPECT_EQ(OsrFrameBytes(*UnwindInfo::Parse(Hex(function.unwind))), std::nullopt);
  }
}

CfiRow Row(CfaRule cfa, int32_t offset, std::optional<int32_t> fp_offset = std::nullopt) {
  CfiRow row;
  row.cfa = cfa;
  row.cfa_offset = offset;
  row.ra_offset = -8;
  if (fp_offset) {
    row.fp = RegisterRule::kAtCfaOffset;
    row.fp_offset = *fp_offset;
  }
  return row;
}

CfiRow BySp(int32_t offset, std::optional<int32_t> fp_offset = std::nullopt) {
  return Row(CfaRule::kSpOffset, offset, fp_offset);
}

std::optional<CfiRow> EpilogueAt(const char* hex, uint64_t offset = 0, uint64_t function_bytes = 0) {
  const std::vector<std::byte> code = Hex(hex);
  return RowOfEpilogue(code, function_bytes == 0 ? code.size() : function_bytes, offset);
}

TEST(RowOfEpilogueTest, AtEachInstruction) {
  // add rsp,28h; pop rbx; pop r14; pop r15; pop rbp; ret
  const char* hex = "904883c4285b415e415f5dc3";
  const std::pair<uint64_t, CfiRow> rows[] = {{1, BySp(0x28 + 40, -16)}, {5, BySp(40, -16)},  {6, BySp(32, -16)},
                                              {8, BySp(24, -16)},        {10, BySp(16, -16)}, {11, BySp(8)}};
  for (const auto& [offset, row] : rows) EXPECT_EQ(EpilogueAt(hex, offset), row) << offset;
  EXPECT_EQ(EpilogueAt(hex, 0), std::nullopt);
}

TEST(RowOfEpilogueTest, ItsForms) {
  EXPECT_EQ(EpilogueAt("c3"), BySp(8));
  EXPECT_EQ(EpilogueAt("f3c3"), BySp(8));
  EXPECT_EQ(EpilogueAt("c5f8774881c400010000c3"), BySp(0x108));  // vzeroupper; add rsp,100h; ret
  EXPECT_EQ(EpilogueAt("5b5dc3"), BySp(24, -16));
  EXPECT_EQ(EpilogueAt("5d5bc3"), BySp(24, -24));  // rbp was pushed last
  EXPECT_EQ(EpilogueAt("488d65d85b415c5dc3"),
            Row(CfaRule::kFpOffset, -0x28 + 32, -16));                             // lea rsp,[rbp-28h]; pops; ret
  EXPECT_EQ(EpilogueAt("488da500ffffffc3"), Row(CfaRule::kFpOffset, -0x100 + 8));  // far away
  EXPECT_EQ(EpilogueAt("4889ec5dc3"), Row(CfaRule::kFpOffset, 16, -16));           // mov rsp,rbp
  EXPECT_EQ(EpilogueAt(kTailJump.code, 0x22), BySp(16));                           // pop rbx; rex.W jmp rax
  EXPECT_EQ(EpilogueAt("4154"), std::nullopt);                                     // push r12
}

TEST(RowOfEpilogueTest, TailCalls) {
  for (const char* jump : {"e900010000", "ff2500010000", "48ffe0", "48ff20", "48ff6018", "49ff22", "49ffe1"}) {
    EXPECT_EQ(EpilogueAt(jump), BySp(8)) << jump;
    EXPECT_EQ(EpilogueAt(("4883c4085b5d" + std::string(jump)).c_str()), BySp(32, -16)) << jump;
  }
  EXPECT_EQ(EpilogueAt("90e9faffffff", 1), BySp(8));            // to its own beginning
  EXPECT_EQ(EpilogueAt("e900010000", 0, 0x200), std::nullopt);  // inside
  EXPECT_EQ(EpilogueAt("ffe0"), std::nullopt);                  // a switch
  EXPECT_EQ(EpilogueAt("4883c408ffe0"), BySp(16));
}

TEST(RowOfEpilogueTest, WhatNoCompilerWritesIsNone) {
  // The frame pointer is taken back, and then sp is set by it.
  EXPECT_EQ(EpilogueAt("5d4889ecc3"), std::nullopt);
  EXPECT_EQ(EpilogueAt("5d488d65f8c3"), std::nullopt);
  EXPECT_EQ(EpilogueAt("5d488d65f85dc3"), std::nullopt);
  // More than rows can say.
  EXPECT_EQ(EpilogueAt("4881c4ffffff7f4881c4ffffff7fc3"), std::nullopt);
  EXPECT_EQ(EpilogueAt("5d4881c4ffffff7f4881c4ffffff7fc3"), std::nullopt);
  EXPECT_EQ(EpilogueAt("4883c410", 4), std::nullopt);
  EXPECT_EQ(EpilogueAt("4883c410"), std::nullopt);  // cut
}

// Over one stack, a step by the row leads where the instructions lead.
TEST(RowOfEpilogueTest, SaysWhatFollowingTheCodeSays) {
  class OwnAddresses : public StackMemory {
   public:
    std::optional<uint64_t> Word(uint64_t address) const override { return address + 0x1000000; }
  } stack;
  int epilogues = 0;
  for (const CodeBytes& function : {kFramed, kFrameless, kTailJump, kMovesSp, kProbed, kFunclet8, kFunclet10, kOsr}) {
    const std::vector<std::byte> code = Hex(function.code);
    for (uint64_t offset = 0; offset < code.size(); ++offset) {
      const UnwindRegisters registers{0x5000 + offset, 0x70000, 0x70400, 0};
      const Epilogue followed = FollowEpilogue(code, code.size(), offset, registers.sp, registers.fp,
                                               [&](uint64_t address) { return stack.Word(address); });
      const std::optional<CfiRow> row = RowOfEpilogue(code, code.size(), offset);
      ASSERT_EQ(row.has_value(), followed.kind == Epilogue::Kind::kLeaves) << offset;
      if (!row) continue;
      ++epilogues;
      const CfiStepResult stepped = CfiStep(*row, /*leaf=*/true, registers, stack, ElfMachine::kX64);
      ASSERT_EQ(stepped.outcome, CfiStepOutcome::kCaller) << offset;
      EXPECT_EQ(stepped.caller.ip, followed.ip) << offset;
      EXPECT_EQ(stepped.caller.sp, followed.sp) << offset;
      EXPECT_EQ(stepped.caller.fp, followed.rbp) << offset;
    }
  }
  EXPECT_GT(epilogues, 25);
}

}  // namespace
}  // namespace clrsampler
