#include "formats/x64/instruction.h"

#include <gtest/gtest.h>

#include <string>

namespace clrsampler {
namespace {

using Flow = X64Instruction::Flow;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;

std::string Bytes(const std::string& digits) {
  std::string bytes;
  std::string pair;
  for (const char c : digits) {
    if (c == ' ') continue;
    pair.push_back(c);
    if (pair.size() < 2) continue;
    bytes.push_back(static_cast<char>(std::stoi(pair, nullptr, 16)));
    pair.clear();
  }
  return bytes;
}

std::optional<X64Instruction> Decode(const std::string& bytes) {
  return DecodeX64({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

// With other bytes behind it, which are no part of it.
X64Instruction Of(const std::string& digits) {
  const std::string bytes = Bytes(digits);
  const auto instruction = Decode(bytes + std::string(15, '\x90'));
  EXPECT_TRUE(instruction.has_value()) << digits;
  if (!instruction) return {};
  EXPECT_EQ(instruction->bytes, bytes.size()) << digits;
  for (size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(Decode(bytes.substr(0, i)).has_value()) << digits << ", " << i;
  return *instruction;
}

// Lengths as `objdump -d` of binutils 2.40 gives them.
TEST(X64InstructionTest, HasTheLengthThatItHas) {
  for (const char* digits : {"90",
                             "0f1f840000000000",
                             "662e0f1f840000000000",
                             "66662e0f1f840000000000",
                             "f3 0f1e fa",
                             "c3",
                             "f3c3",
                             "48b8 8877665544332211",
                             "b8 44332211",
                             "66b8 2211",
                             "a1 8877665544332211",
                             "67a1 44332211",
                             "64488b042528000000",
                             "48 8b 84 24 88 00 00 00",
                             "48 8b 04 25 00 00 00 00",
                             "c7 05 00000000 44332211",
                             "66 c7 00 2211",
                             "f6 c1 01",
                             "f7 c1 44332211",
                             "66 f7 c1 2211",
                             "f6 d1",
                             "f7 d9",
                             "80 3d 00000000 00",
                             "69 c0 44332211",
                             "6b c0 11",
                             "c8 1000 00",
                             "0f a2",
                             "0f 05",
                             "0f ae f0",
                             "0f ba e0 04",
                             "0f c7 0e",
                             "66 0f 3a 0f c1 08",
                             "66 0f 38 00 c1",
                             "0f 10 05 00000000",
                             "c5 f8 77",
                             "c5 fa 6f 06",
                             "c4 e2 7d 58 c0",
                             "c4 e3 7d 39 c8 01",
                             "62 f1 fe 48 6f 06",
                             "62 f3 7d 48 25 c0 ff",
                             "d9 ee",
                             "dd 44 24 08",
                             "df e0",
                             "f0 0f b1 0e",
                             "f2 0f 58 c1",
                             "f2 e9 00000000",
                             "48 0f bf c0",
                             "41 ff 24 c7",
                             "ff 25 00000000",
                             "c5 f9 2e c1",
                             "0f 0b"}) {
    Of(digits);
  }
}

TEST(X64InstructionTest, WhatIsUndefinedIsNone) {
  for (const char* digits :
       {"06", "0f04", "27", "60", "82c001", "9a", "c4", "d4", "d5", "ea", "fe d0", "ff f8", "0f 0a"}) {
    EXPECT_FALSE(Decode(Bytes(digits) + std::string(15, '\x90')).has_value()) << digits;
  }
  EXPECT_FALSE(Decode(std::string(20, '\x66')).has_value());
  EXPECT_FALSE(Decode("").has_value());
}

TEST(X64InstructionTest, KnowsWhereItLeads) {
  EXPECT_EQ(Of("c3").flow, Flow::kReturn);
  EXPECT_EQ(Of("c2 0800").stack, Stack::kOther);
  EXPECT_EQ(Of("e8 fbffffff").flow, Flow::kCall);
  EXPECT_EQ(Of("e8 fbffffff").distance, -5);
  EXPECT_EQ(Of("e9 00010000").flow, Flow::kJump);
  EXPECT_EQ(Of("e9 00010000").distance, 0x100);
  EXPECT_EQ(Of("eb fe").distance, -2);
  EXPECT_EQ(Of("75 10").flow, Flow::kBranch);
  EXPECT_EQ(Of("0f84 10000000").distance, 16);
  EXPECT_EQ(Of("e3 05").flow, Flow::kBranch);  // jrcxz
  EXPECT_EQ(Of("ff d0").flow, Flow::kIndirectCall);
  EXPECT_FALSE(Of("ff d0").by_ip);
  EXPECT_TRUE(Of("ff 15 00000000").by_ip);
  EXPECT_EQ(Of("ff e0").flow, Flow::kIndirectJump);
  EXPECT_EQ(Of("3e ff e0").flow, Flow::kIndirectJump);  // notrack
  for (const char* digits : {"f4", "cc", "0f0b", "48 cf"}) EXPECT_EQ(Of(digits).flow, Flow::kStop) << digits;
  EXPECT_EQ(Of("0f05").flow, Flow::kNext) << "a system call comes back";
  EXPECT_EQ(Of("48 8d 3d 10000000").address_taken, 16);
  EXPECT_FALSE(Of("48 8b 3d 10000000").address_taken.has_value());
}

TEST(X64InstructionTest, KnowsWhatItDoesToTheStackPointer) {
  const auto adds = [](const char* digits, int32_t value) {
    const X64Instruction instruction = Of(digits);
    EXPECT_EQ(instruction.stack, Stack::kAdd) << digits;
    EXPECT_EQ(instruction.value, value) << digits;
    EXPECT_EQ(instruction.fp, Fp::kSame) << digits;
  };
  adds("50", -8);
  adds("41 57", -8);
  adds("6a 01", -8);
  adds("68 00000000", -8);
  adds("ff 74 24 08", -8);
  adds("9c", -8);
  adds("58", 8);
  adds("41 5f", 8);
  adds("41 5d", 8);  // r13, whose low bits are rbp's
  adds("8f 00", 8);
  adds("48 83 ec 18", -0x18);
  adds("48 83 c4 80", -0x80);
  adds("48 81 ec 00010000", -0x100);
  adds("48 8d 64 24 f8", -8);
  adds("48 8d a4 24 00010000", 0x100);
  for (const char* digits : {"48 83 e4 f0", "48 29 c4", "48 89 c4", "83 ec 08", "5c", "48 87 e0", "66 50",
                             "48 8b 24 24", "bc 00000000", "48 0f 44 e0"}) {
    EXPECT_EQ(Of(digits).stack, Stack::kOther) << digits;
  }
  EXPECT_EQ(Of("48 89 ec").stack, Stack::kFromFp);
  EXPECT_EQ(Of("48 8b e5").stack, Stack::kFromFp);
  EXPECT_EQ(Of("48 8d 65 d8").stack, Stack::kFromFp);
  EXPECT_EQ(Of("48 8d 65 d8").value, -40);
  EXPECT_EQ(Of("c9").stack, Stack::kLeave);
  for (const char* digits :
       {"48 39 c4", "48 85 e4", "48 89 e0", "49 89 e4", "4c 8d 24 24", "b4 01", "88 e0", "48 83 fc 08", "0f 28 e0",
        "c5 f9 6f e0", "f2 0f 10 64 24 08", "44 0f b6 e0", "0f 94 c4", "d9 64 24 08"}) {
    EXPECT_EQ(Of(digits).stack, Stack::kSame) << digits;
  }
}

TEST(X64InstructionTest, KnowsWhatItDoesToTheFramePointer) {
  const auto is = [](const char* digits, Fp fp, int32_t value = 0) {
    const X64Instruction instruction = Of(digits);
    EXPECT_EQ(instruction.fp, fp) << digits;
    EXPECT_EQ(instruction.value, value) << digits;
  };
  is("55", Fp::kPushed);
  is("5d", Fp::kPopped);
  is("48 89 e5", Fp::kFromSp);
  is("48 8b ec", Fp::kFromSp);
  is("48 8d 6c 24 10", Fp::kFromSp, 16);
  is("48 89 6c 24 20", Fp::kStored, 32);
  is("48 8b 6c 24 20", Fp::kLoaded, 32);
  is("31 ed", Fp::kCleared);
  is("48 31 ed", Fp::kCleared);
  for (const char* digits : {"89 c5", "48 8b 6d 00", "bd 00000000", "40 b5 01", "40 88 c5", "48 0f af e8", "0f 44 e8",
                             "0f cd", "48 87 c5", "c4 e2 78 f2 e8", "66 0f 7e c5", "f2 48 0f 2c e8", "0f b6 e8",
                             "31 c5", "48 8b 6c 04 20", "64 48 8b 2c 25 00000000", "d3 e5", "f7 d5", "ff c5"}) {
    EXPECT_EQ(Of(digits).fp, Fp::kOther) << digits;
  }
  for (const char* digits : {"48 39 c5", "85 ed", "48 89 e8", "49 89 ed", "41 5d", "41 55", "b5 01", "0f 28 e8",
                             "f2 0f 10 6c 24 08", "c5 f8 28 e8", "48 8b 45 00", "48 89 6c 04 20", "88 ed"}) {
    EXPECT_EQ(Of(digits).fp, Fp::kSame) << digits;
  }
}

TEST(X64InstructionTest, KnowsWhatOnlyFillsSpace) {
  const auto padding = [](const char* digits) {
    const std::string bytes = Bytes(digits);
    return X64PaddingBytes({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  };
  EXPECT_EQ(padding("90"), 1u);
  EXPECT_EQ(padding("cc"), 1u);
  EXPECT_EQ(padding("66 90"), 2u);
  EXPECT_EQ(padding("66 2e 0f 1f 84 00 00000000"), 10u);
  EXPECT_EQ(padding("c3"), 0u);
  EXPECT_EQ(padding("0f 1f"), 0u);
  EXPECT_EQ(padding(""), 0u);
}

}  // namespace
}  // namespace clrsampler
