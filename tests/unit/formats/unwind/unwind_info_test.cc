#include "formats/unwind/unwind_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

UnwindCode Push(uint8_t offset, uint8_t reg) { return {offset, UnwindOp::kPush, reg, 0}; }
UnwindCode Alloc(uint8_t offset, uint32_t bytes) { return {offset, UnwindOp::kAlloc, 0, bytes}; }
UnwindCode Save(uint8_t offset, uint8_t reg, uint32_t at) { return {offset, UnwindOp::kSave, reg, at}; }

TEST(UnwindInfoTest, PushesAndAllocations) {
  const auto info = UnwindInfo::Parse(Hex(kFrameless.unwind));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->prologue_bytes, 5);
  EXPECT_EQ(info->frame_register, 0);
  EXPECT_THAT(info->codes, ElementsAre(Alloc(5, 16), Push(1, 3)));
  EXPECT_EQ(info->bytes, 8u);
  EXPECT_FALSE(info->chained);
}

TEST(UnwindInfoTest, WhatFollowsBeginsAtAnEvenSlot) {
  EXPECT_EQ(UnwindInfo::Parse(Hex(kFramed.unwind))->bytes, 12u);  // three slots
}

TEST(UnwindInfoTest, LargeFramesInBothForms) {
  EXPECT_THAT(UnwindInfo::Parse(Hex(kProbed.unwind))->codes,
              ElementsAre(Alloc(27, 0x10D8), Push(10, 3), Push(9, 12), Push(7, 13), Push(5, 14), Push(3, 15),
                          Push(1, kUnwindRbp)));
  EXPECT_THAT(UnwindInfo::Parse(Hex("19080300"
                                    "0811"
                                    "00001000"))
                  ->codes,
              ElementsAre(Alloc(8, 0x100000)));
}

TEST(UnwindInfoTest, TheFrameOfAFunctionThatMovesSp) {
  const auto info = UnwindInfo::Parse(Hex(kMovesSp.unwind));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->frame_register, kUnwindRbp);
  EXPECT_EQ(info->frame_offset, 32u);
  EXPECT_EQ(info->codes[0], (UnwindCode{11, UnwindOp::kSetFrame, kUnwindRbp, 32}));
}

TEST(UnwindInfoTest, ALargeFrameOffset) {  // CoreCLR's own op 11, with 15 as the small offset
  const auto info =
      UnwindInfo::Parse(Hex("191004f5"
                            "100b"
                            "44010000"
                            "0150"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->frame_offset, 0x1440u);
  EXPECT_THAT(info->codes, ElementsAre(UnwindCode{16, UnwindOp::kSetFrame, kUnwindRbp, 0x1440}, Push(1, kUnwindRbp)));
}

TEST(UnwindInfoTest, AMethodThatReplacesAnotherOne) {
  EXPECT_THAT(UnwindInfo::Parse(Hex(kOsr.unwind))->codes,
              ElementsAre(Save(41, 3, 128), Save(33, 13, 136), Save(25, 14, 144), Save(17, 15, 152), Alloc(9, 32),
                          Alloc(5, 8), Alloc(0, 120), Push(0, kUnwindRbp)));
}

TEST(UnwindInfoTest, FarSavesAndVectorRegistersThatDoNotMatter) {
  EXPECT_THAT(UnwindInfo::Parse(Hex("19200900"
                                    "2055"
                                    "00000900"
                                    "1068"
                                    "0200"
                                    "0869"
                                    "00000a00"
                                    "0150"))
                  ->codes,
              ElementsAre(Save(32, 5, 0x90000), Push(1, kUnwindRbp)));
}

TEST(UnwindInfoTest, DamagedOnesAreErrors) {
  for (const char* hex : {"", "190100",
                          "1a010100"
                          "0130",
                          "19010200"
                          "0130",  // short, another version, too few slots
                          "19080100"
                          "0801",  // an allocation without its size
                          "19080200"
                          "0811"
                          "0000",
                          "19080200"
                          "0821"
                          "0000",  // half of it; of no known form
                          "190b0200"
                          "0b0b"
                          "0000",  // half a frame offset
                          "190b0300"
                          "0b0b"
                          "00000010",  // a frame offset above 4 GiB
                          "19010100"
                          "0106",
                          "19010100"
                          "0107",
                          "19010100"
                          "010a",
                          "19010100"
                          "010c"}) {
    EXPECT_TRUE(absl::IsDataLoss(UnwindInfo::Parse(Hex(hex)).status())) << hex;
  }
}

class ChainTest : public testing::Test {
 protected:
  absl::StatusOr<UnwindInfo> Parse(uint32_t rva) {
    return UnwindInfo::ParseWithChain([this](uint32_t at) { return std::span<const std::byte>(parts_[at]); }, rva);
  }
  std::map<uint32_t, std::vector<std::byte>> parts_;
};

TEST_F(ChainTest, WhatTheFirstPartDidWasDoneBefore) {
  parts_[0x100] =
      Hex("21000000"
          "001000000020000000020000");  // no codes of its own; {0x1000, 0x2000, 0x200}
  parts_[0x200] = Hex(kFrameless.unwind);
  const auto info = Parse(0x100);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->prologue_bytes, 0);
  EXPECT_TRUE(info->chained);
  EXPECT_THAT(info->codes, ElementsAre(Alloc(0, 16), Push(0, 3)));
}

TEST_F(ChainTest, HasAnEnd) {
  parts_[0x100] =
      Hex("21000000"
          "001000000020000000010000");  // to itself
  EXPECT_TRUE(absl::IsDataLoss(Parse(0x100).status()));
  parts_[0x100] =
      Hex("21000000"
          "0010000000200000");  // cut
  EXPECT_TRUE(absl::IsDataLoss(Parse(0x100).status()));
  parts_[0x100] =
      Hex("21000000"
          "001000000020000000030000");  // to nothing
  EXPECT_TRUE(absl::IsDataLoss(Parse(0x100).status()));
}

}  // namespace
}  // namespace clrsampler
