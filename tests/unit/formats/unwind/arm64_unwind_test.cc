#include "formats/unwind/arm64_unwind.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "unit/formats/unwind/arm64_records.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum Arm64UnwindOp;

// A record of 40 bytes of code without epilogues and handler, with these codes, which the last word is filled up of.
std::string Record(absl::string_view codes_hex) {
  std::string codes = absl::HexStringToBytes(codes_hex);
  codes.resize((codes.size() + 3) / 4 * 4, '\xe3');
  std::string record("\x0a\0\0\0", 4);
  record[3] = static_cast<char>(codes.size() / 4 << 3);
  return record + codes;
}

std::vector<Arm64UnwindCode> CodesOf(absl::string_view codes_hex) {
  const std::string record = Record(codes_hex);
  const auto info = Arm64UnwindInfo::Parse(AsBytes(record));
  EXPECT_TRUE(info.ok()) << codes_hex << " " << info.status();
  return info.ok() ? info->codes : std::vector<Arm64UnwindCode>();
}

std::string ErrorOf(absl::string_view record) {
  const auto info = Arm64UnwindInfo::Parse(AsBytes(record));
  EXPECT_EQ(info.status().code(), absl::StatusCode::kDataLoss);
  return std::string(info.status().message());
}

TEST(Arm64UnwindTest, RealRecordsSayWhatTheirCodeDoes) {
  const auto plain = Arm64UnwindInfo::Parse(Hex(kArm64Plain.unwind));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->function_bytes, Hex(kArm64Plain.code).size());
  EXPECT_EQ(plain->bytes, Hex(kArm64Plain.unwind).size());
  EXPECT_EQ(plain->before_function, 0u);
  EXPECT_THAT(plain->codes, ElementsAre(Arm64UnwindCode{kPush, 29, 30, 32}, Arm64UnwindCode{kSave, 19, 20, 16},
                                        Arm64UnwindCode{kSetFrame}));
  // Its epilogue's codes begin where the prologue's do, so its count is no count.
  const auto funclet = Arm64UnwindInfo::Parse(Hex(kArm64Funclet.unwind));
  ASSERT_TRUE(funclet.ok()) << funclet.status();
  EXPECT_EQ(funclet->bytes, Hex(kArm64Funclet.unwind).size());
  EXPECT_THAT(funclet->codes, ElementsAre(Arm64UnwindCode{kPush, 29, 30, 48}, Arm64UnwindCode{kSave, 19, 20, 16},
                                          Arm64UnwindCode{kSave, 21, 22, 32}));
  const auto above = Arm64UnwindInfo::Parse(Hex(kArm64RecordAbove.unwind));
  ASSERT_TRUE(above.ok()) << above.status();
  EXPECT_EQ(above->function_bytes, 140u);
  EXPECT_THAT(above->codes, ElementsAre(Arm64UnwindCode{kAlloc, 0, 0, 48}, Arm64UnwindCode{kSave, 29, 30, 8},
                                        Arm64UnwindCode{kSave, 19, 0, 40}, Arm64UnwindCode{kSetFrame, 0, 0, 8}));
  const auto vector = Arm64UnwindInfo::Parse(Hex(kArm64Vector.unwind));
  ASSERT_TRUE(vector.ok()) << vector.status();
  EXPECT_THAT(vector->codes, ElementsAre(Arm64UnwindCode{kPush, 29, 30, 32}, Arm64UnwindCode{kSave, 72, 0, 24},
                                         Arm64UnwindCode{kSetFrame}));
}

// Expectations are those of "ARM64 exception handling", section "Unwind codes".
TEST(Arm64UnwindTest, EachCodeIsRead) {
  const std::pair<const char*, Arm64UnwindCode> kCodes[] = {
      {"1f", {kAlloc, 0, 0, 496}},     {"3f", {kPush, 19, 20, 248}},
      {"41", {kSave, 29, 30, 8}},      {"bf", {kPush, 29, 30, 512}},
      {"c7ff", {kAlloc, 0, 0, 32752}}, {"ca02", {kSave, 27, 28, 16}},
      {"ce02", {kPush, 27, 28, 24}},   {"d2c3", {kSave, 30, 0, 24}},
      {"d4e1", {kPush, 26, 0, 16}},    {"d541", {kPush, 29, 0, 16}},
      {"d702", {kSave, 27, 30, 16}},   {"d982", {kSave, 78, 79, 16}},
      {"db82", {kPush, 78, 79, 24}},   {"ddc2", {kSave, 79, 0, 16}},
      {"dee1", {kPush, 79, 0, 16}},    {"e0010203", {kAlloc, 0, 0, 0x10203 * 16}},
      {"e1", {kSetFrame, 0, 0, 0}},    {"e2ff", {kSetFrame, 0, 0, 2040}},
      {"e3", {kNop, 0, 0, 0}},         {"fc", {kSignReturn, 0, 0, 0}},
  };
  for (const auto& [hex, code] : kCodes) EXPECT_THAT(CodesOf(absl::StrCat(hex, "e4")), ElementsAre(code)) << hex;
  EXPECT_THAT(CodesOf("e4"), IsEmpty());
}

TEST(Arm64UnwindTest, CodesThatNobodyWritesAreErrors) {
  // Codes that depend on the CPU's vectors, any register, the system's own frames, reserved ones; and registers that a
  // callee does not save.
  for (const char* hex : {"df01", "e7a100", "e8", "ec", "f8", "fd", "ff", "cac0", "d300", "d581", "d740", "d9c0"}) {
    EXPECT_THAT(ErrorOf(Record(absl::StrCat(hex, "e4"))), HasSubstr("code ")) << hex;
  }
}

TEST(Arm64UnwindTest, TheNextPairFollowsTheOneThatWasSavedBefore) {
  // save_regp x19, and five more of which the last is the frame record: so .NET 9 writes what calls native code.
  EXPECT_THAT(CodesOf("e6e6e6e6e6c80216e4"),
              ElementsAre(Arm64UnwindCode{kAlloc, 0, 0, 352}, Arm64UnwindCode{kSave, 19, 20, 16},
                          Arm64UnwindCode{kSave, 21, 22, 32}, Arm64UnwindCode{kSave, 23, 24, 48},
                          Arm64UnwindCode{kSave, 25, 26, 64}, Arm64UnwindCode{kSave, 27, 28, 80},
                          Arm64UnwindCode{kSave, 29, 30, 96}));
  EXPECT_THAT(CodesOf("e628e4"), ElementsAre(Arm64UnwindCode{kPush, 19, 20, 64}, Arm64UnwindCode{kSave, 21, 22, 16}));
  EXPECT_THAT(CodesOf("e6d802e4"), ElementsAre(Arm64UnwindCode{kSave, 72, 73, 16}, Arm64UnwindCode{kSave, 74, 75, 32}));
  for (const char* hex :
       {"e6e4", "e602e4", "e641e4", "e6d982e4", "e6d602e4", "e6d002e4", "e6d942e4", "e6e6e6e6e6c842e4"}) {
    EXPECT_THAT(ErrorOf(Record(hex)), HasSubstr("a next pair of none")) << hex;
  }
}

TEST(Arm64UnwindTest, APartOfAFunctionBeginsWithWhatIsDone) {
  const std::string record = Record("e5e18102e4");
  const auto info = Arm64UnwindInfo::Parse(AsBytes(record));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->before_function, 3u);
  EXPECT_THAT(info->codes, ElementsAre(Arm64UnwindCode{kAlloc, 0, 0, 32}, Arm64UnwindCode{kPush, 29, 30, 16},
                                       Arm64UnwindCode{kSetFrame}));
}

TEST(Arm64UnwindTest, LargeCountsStandInASecondWord) {
  // 3 epilogues, 1 word of codes, a handler.
  const std::string record = absl::HexStringToBytes("0a0010000300010011111111222222223333333302e4e3e344444444");
  const auto info = Arm64UnwindInfo::Parse(AsBytes(record));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->bytes, record.size());
  EXPECT_THAT(info->codes, ElementsAre(Arm64UnwindCode{kAlloc, 0, 0, 32}));
  EXPECT_EQ(*Arm64UnwindInfo::RecordBytes(AsBytes(record).first(Arm64UnwindInfo::kHeaderBytes)), record.size());
  EXPECT_FALSE(Arm64UnwindInfo::RecordBytes(AsBytes(record).first(7)).ok());
}

TEST(Arm64UnwindTest, WhatIsCutOrHasNoEndIsAnError) {
  const std::string record = absl::HexStringToBytes(kArm64RecordAbove.unwind);
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_THAT(ErrorOf(record.substr(0, size)), HasSubstr("too short")) << size;
  }
  EXPECT_THAT(ErrorOf(Record("e3e3e3e3")), HasSubstr("behind the last one"));
  EXPECT_THAT(ErrorOf(Record("e3e3e3c0")), HasSubstr("behind the last one"));
  std::string newer = record;
  newer[2] = static_cast<char>(newer[2] | 4);
  EXPECT_THAT(ErrorOf(newer), HasSubstr("version 1"));
}

}  // namespace
}  // namespace clrsampler
