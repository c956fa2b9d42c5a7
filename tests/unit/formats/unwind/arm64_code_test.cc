#include "formats/unwind/arm64_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace clrsampler {
namespace {

std::vector<std::byte> Code(std::initializer_list<uint32_t> instructions) {
  std::vector<std::byte> bytes(instructions.size() * 4);
  std::memcpy(bytes.data(), std::data(instructions), bytes.size());
  return bytes;
}

std::vector<Arm64Leaf> All(const std::vector<std::byte>& code) {
  std::vector<Arm64Leaf> leaves;
  for (size_t at = 0; at < code.size(); at += 4) leaves.push_back(DecodeArm64Leaf(code, at));
  return leaves;
}

constexpr Arm64Leaf kRecord{Arm64Return::kFrameRecord};
constexpr Arm64Leaf kUnknown{};
constexpr Arm64Leaf Lr(uint32_t sp_above) { return {Arm64Return::kLinkRegister, sp_above}; }

using testing::ElementsAre;

// From here on as they stand in System.Linq and System.Private.CoreLib 10.0.14 for arm64.

TEST(Arm64CodeTest, FrameRecordAtTheBottom) {
  EXPECT_THAT(All(Code({
                  0xa9be7bfd,  // stp x29, x30, [sp, #-32]!
                  0xf9000ff3,  // str x19, [sp, #24]
                  0x910003fd,  // mov x29, sp
                  0xaa0003f3,  // mov x19, x0
                  0xd63f0200,  // blr x16
                  0xf9400ff3,  // ldr x19, [sp, #24]
                  0xa8c27bfd,  // ldp x29, x30, [sp], #32
                  0xd65f03c0,  // ret
              })),
              ElementsAre(Lr(0), Lr(32), Lr(32), kRecord, kRecord, kRecord, kRecord, Lr(0)));
}

TEST(Arm64CodeTest, FrameRecordAboveArguments) {
  EXPECT_THAT(All(Code({
                  0xd10143ff,  // sub sp, sp, #0x50
                  0xa9027bfd,  // stp x29, x30, [sp, #32]
                  0x910083fd,  // add x29, sp, #0x20
                  0xd503201f,  // nop
                  0xa9427bfd,  // ldp x29, x30, [sp, #32]
                  0x910143ff,  // add sp, sp, #0x50
                  0xd65f03c0,  // ret
              })),
              ElementsAre(Lr(0), Lr(80), Lr(80), kRecord, kRecord, Lr(80), Lr(0)));
}

TEST(Arm64CodeTest, SpMovedByARegister) {
  const std::vector<Arm64Leaf> leaves = All(Code({
      0x9281ffe9,  // mov x9, #-4096
      0xb8696bff,  // ldr wzr, [sp, x9]
      0xa9bb53f3,  // stp x19, x20, [sp, #-80]!
      0xa9015bf5,  // stp x21, x22, [sp, #16]
      0xd2821808,  // mov x8, #4288
      0xcb2863ff,  // sub sp, sp, x8
      0xa9007bfd,  // stp x29, x30, [sp]
      0x910003fd,  // mov x29, sp
      0xd63f0200,  // blr x16
      0x910003bf,  // mov sp, x29
      0xa9407bfd,  // ldp x29, x30, [sp]
      0xd65f03c0,  // ret
  }));
  for (size_t i = 0; i <= 7; ++i) EXPECT_EQ(leaves[i].where, Arm64Return::kLinkRegister) << i;
  EXPECT_EQ(leaves[3].sp_above, 80u);
  for (size_t i = 8; i <= 10; ++i) EXPECT_EQ(leaves[i], kRecord) << i;
  EXPECT_EQ(leaves[11], Lr(0));
}

TEST(Arm64CodeTest, FuncletsHaveTheirParentsFramePointer) {
  EXPECT_THAT(All(Code({
                  0xa9be7bfd,  // stp x29, x30, [sp, #-32]!
                  0xf9000ff3,  // str x19, [sp, #24]
                  0x10fffec0,  // adr x0, ...
                  0xf9400ff3,  // ldr x19, [sp, #24]
                  0xa8c27bfd,  // ldp x29, x30, [sp], #32
                  0xd65f03c0,  // ret
              })),
              ElementsAre(kRecord, kRecord, kRecord, kRecord, kRecord, Lr(0)));
}

TEST(Arm64CodeTest, TailCallsAndSwitches) {
  // The pointer of a tail call is loaded before the frame is left.
  EXPECT_THAT(All(Code({
                  0xf9400001,  // ldr x1, [x0]
                  0xf9402021,  // ldr x1, [x1, #64]
                  0xa8c17bfd,  // ldp x29, x30, [sp], #16
                  0xd61f0020,  // br x1
              })),
              ElementsAre(kRecord, kRecord, kRecord, Lr(0)));
  // ... and a direct one
  EXPECT_THAT(All(Code({0xa9417bfd, 0x910083ff, 0x17ffff00})), ElementsAre(kRecord, Lr(32), Lr(0)));
  EXPECT_THAT(All(Code({
                  0x10000401,  // adr x1, table
                  0xb8605821,  // ldr w1, [x1, w0, uxtw #2]
                  0x10ffffc2,  // adr x2, begin
                  0x8b020021,  // add x1, x1, x2
                  0xd61f0020,  // br x1
              })),
              ElementsAre(kRecord, kRecord, kRecord, kRecord, kRecord));
}

TEST(Arm64CodeTest, BodiesRunIntoCallsTrapsAndLoops) {
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f, 0x94000010, 0xd65f03c0}), 0), kRecord);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f, 0xd43e0000}), 0), kRecord);
  // for (;;) {}, and a jump out of what is known
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f, 0x17ffffff}), 0), kRecord);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f, 0x14000400}), 0), kRecord);
  // Over a conditional branch to the epilogue.
  EXPECT_EQ(DecodeArm64Leaf(Code({0x3500022b, 0x54000040, 0xa8c27bfd, 0xd65f03c0}), 0), kRecord);
}

// dotnet/runtime src/coreclr/vm/arm64: thunktemplates.S, patchedcode.S, virtualcallstubcpu.hpp.
TEST(Arm64CodeTest, StubsReturnToTheLinkRegister) {
  // FixupPrecode: ldr x11; br x11; ldr x12; ldr x11; br x11
  EXPECT_THAT(All(Code({0x5802000b, 0xd61f0160, 0x5802000c, 0x5802002b, 0xd61f0160})), testing::Each(Lr(0)));
  // Call counting: ldr x9; ldrh w10, [x9]; subs w10, w10, #1; strh w10, [x9]; b.eq; ldr x9; br x9
  EXPECT_THAT(All(Code({0x58020009, 0x7940012a, 0x7100054a, 0x7900012a, 0x54000060, 0x58020009, 0xd61f0120})),
              testing::Each(Lr(0)));
  // Dispatch: ldr x13, [x0]; adr x9; ldp x10, x12, [x9]; cmp; b.ne; br x12
  EXPECT_THAT(All(Code({0xf940000d, 0x10000089, 0xa940312a, 0xeb0a01bf, 0x54000041, 0xd61f0180})),
              testing::Each(Lr(0)));
  // Resolve, as it stood in a process: its three entries, of which the last one jumps back to the first.
  EXPECT_THAT(All(Code({0xf940000c, 0x8b4c3189, 0x1000038a, 0xb940214d, 0xca0d0129, 0x927d2d29, 0xf940054d, 0xf86969a9,
                        0xf940094f, 0xf940012d, 0xeb0d019f, 0x540000c1, 0xf940052d, 0xeb0d01ff, 0x54000061, 0xf940092c,
                        0xd61f0180, 0x100001aa, 0xf940094c, 0xf9400d4d, 0xd61f01a0, 0x1000012a, 0xf940014d, 0xb94001a9,
                        0x71000529, 0xb90001a9, 0x54fffcca, 0xb240016b, 0x17ffffe4})),
              testing::Each(Lr(0)));
  // A write barrier: str x15, [x14], #8; cmp; b.lo; strb; ret x30
  EXPECT_THAT(All(Code({0xf80085cf, 0xeb0c01ff, 0x54000063, 0x3900018b, 0xd65f03c0})), testing::Each(Lr(0)));
}

TEST(Arm64CodeTest, ALinkRegisterSavedElsewhere) {
  // mov x30, x5; ret
  EXPECT_THAT(All(Code({0xaa0503fe, 0xd65f03c0})), ElementsAre(kRecord, Lr(0)));
}

TEST(Arm64CodeTest, AuthenticatedReturns) {
  // paciasp; stp; mov x29, sp; ...; ldp; autiasp; ret, and retaa
  EXPECT_THAT(All(Code({0xd503233f, 0xa9bf7bfd, 0x910003fd, 0xd503201f, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0})),
              ElementsAre(Lr(0), Lr(0), Lr(16), kRecord, kRecord, Lr(0), Lr(0)));
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd65f0bff}), 0), Lr(0));
}

TEST(Arm64CodeTest, LeavesAFunctionsEndAlone) {
  // These stand before: another function's end and a code header.
  EXPECT_EQ(DecodeArm64Leaf(Code({0xa8c27bfd, 0xd65f03c0, 0x12345678, 0x0000ffff, 0xd503201f, 0xd63f0200}), 16),
            kRecord);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xa8c27bfd, 0xd65f03c0, 0xd10083ff, 0x0000ffff, 0xa9be7bfd, 0x910003fd}), 20),
            Lr(32));
}

TEST(Arm64CodeTest, CutCodeIsNotKnown) {
  EXPECT_EQ(DecodeArm64Leaf({}, 0), kUnknown);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f}), 0), kUnknown);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd503201f, 0xd65f03c0}), 2), kUnknown);
  EXPECT_EQ(DecodeArm64Leaf(Code({0xd65f03c0}), 400), kUnknown);
  // An epilogue needs nothing behind it.
  EXPECT_EQ(DecodeArm64Leaf(Code({0xa8c27bfd, 0xd503201f}), 4), Lr(0));
}

TEST(Arm64CodeTest, CallsAreTheInstructionsThatLeaveAReturnAddress) {
  EXPECT_TRUE(IsArm64Call(0x94000010));   // bl
  EXPECT_TRUE(IsArm64Call(0xd63f0020));   // blr x1
  EXPECT_TRUE(IsArm64Call(0xd63f083f));   // blraaz x1
  EXPECT_TRUE(IsArm64Call(0xd73f0822));   // blraa x1, x2
  EXPECT_FALSE(IsArm64Call(0x14000010));  // b
  EXPECT_FALSE(IsArm64Call(0xd61f0180));  // br x12
  EXPECT_FALSE(IsArm64Call(0xd65f03c0));  // ret
  EXPECT_FALSE(IsArm64Call(0xd71f0822));  // braa x1, x2
  EXPECT_FALSE(IsArm64Call(0xd503201f));  // nop
}

}  // namespace
}  // namespace clrsampler
