#include "formats/unwind/x64_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

// The codes of the unwind data in the order of the prologue.
std::vector<UnwindCode> Written(const CodeBytes& function) {
  const auto info = UnwindInfo::Parse(Hex(function.unwind));
  EXPECT_TRUE(info.ok()) << info.status();
  return {info->codes.rbegin(), info->codes.rend()};
}

TEST(DecodePrologueTest, SaysWhatTheUnwindDataSays) {
  for (const CodeBytes& function : {kFrameless, kTailJump, kMovesSp, kFunclet8, kFunclet10}) {
    EXPECT_THAT(DecodePrologue(Hex(function.code)).codes, testing::ElementsAreArray(Written(function)));
  }
}

TEST(DecodePrologueTest, AFramePointerIsNotInTheUnwindData) {
  for (const CodeBytes& function : {kFramed, kProbed}) {
    std::vector<UnwindCode> expected = Written(function);
    const bool probed = expected.size() > 3;
    expected.push_back(
        {static_cast<uint8_t>(probed ? 0x23 : 9), UnwindOp::kSetFrame, kUnwindRbp, probed ? 0x1100u : 16u});
    const Prologue prologue = DecodePrologue(Hex(function.code));
    EXPECT_THAT(prologue.codes, testing::ElementsAreArray(expected));
    EXPECT_EQ(prologue.end, PrologueEnd::kFrame);
    EXPECT_EQ(prologue.bytes, expected.back().prologue_offset);
  }
}

TEST(DecodePrologueTest, EndsAtTheBody) {
  const Prologue prologue = DecodePrologue(Hex(kFrameless.code));
  EXPECT_EQ(prologue.end, PrologueEnd::kBody);
  EXPECT_EQ(prologue.bytes, 5u);
  // A method for on-stack replacement: its first instruction belongs to no prologue.
  EXPECT_TRUE(DecodePrologue(Hex(kOsr.code)).codes.empty());
}

TEST(DecodePrologueTest, CutCodeEndsIt) {
  for (const CodeBytes& function : {kFramed, kProbed, kMovesSp}) {
    const std::vector<std::byte> code = Hex(function.code);
    const size_t whole = DecodePrologue(code).codes.size();
    for (size_t size = 0; size < 11; ++size) {
      const Prologue cut = DecodePrologue(std::span(code).first(size));
      EXPECT_LE(cut.codes.size(), whole);
      for (const UnwindCode& done : cut.codes) EXPECT_LE(done.prologue_offset, size);
    }
  }
}

TEST(FuncletFrameReadyTest, IsWhereTheParentsFrameIsTaken) {
  EXPECT_EQ(FuncletFrameReady(Hex(kFunclet8.code)), 14u);
  EXPECT_EQ(FuncletFrameReady(Hex("555350"
                                  "488bafa0010000"
                                  "4889ac2410010000"
                                  "488dad30010000")),
            25u);
  EXPECT_EQ(FuncletFrameReady(Hex(kFunclet10.code)), std::nullopt);
  EXPECT_EQ(FuncletFrameReady(Hex(kFramed.code)), std::nullopt);
  EXPECT_EQ(FuncletFrameReady(Hex("5350"
                                  "488b2f"
                                  "48892c24"
                                  "488d6d30")),
            std::nullopt);  // rbp was not saved
}

class EpilogueTest : public testing::Test {
 protected:
  static constexpr uint64_t kSp = 0x7000, kRbp = 0x7100, kMark = 0xAB00000000;
  // The stack holds its own addresses, marked, from kSp on.
  Epilogue Follow(const char* hex, size_t offset = 0, uint64_t function_bytes = 0) {
    const std::vector<std::byte> code = Hex(hex);
    return FollowEpilogue(code, function_bytes == 0 ? code.size() : function_bytes, offset, kSp, kRbp,
                          [this](uint64_t at) -> std::optional<uint64_t> {
                            if (at < kSp || at >= end_) return std::nullopt;
                            return at | kMark;
                          });
  }
  uint64_t end_ = 0x9000;
};

TEST_F(EpilogueTest, FollowsFromEachOfItsInstructions) {
  // add rsp,10h; pop rbx; ret
  const std::pair<size_t, uint64_t> slots[] = {{0x1B, kSp + 0x18}, {0x1F, kSp + 8}, {0x20, kSp}};
  for (const auto& [offset, slot] : slots) {
    const Epilogue epilogue = Follow(kFrameless.code, offset);
    ASSERT_EQ(epilogue.kind, Epilogue::Kind::kLeaves) << offset;
    EXPECT_EQ(epilogue.ip, slot | kMark);
    EXPECT_EQ(epilogue.sp, slot + 8);
    EXPECT_EQ(epilogue.rbp, kRbp);
    EXPECT_FALSE(epilogue.pops_rbp);
  }
}

TEST_F(EpilogueTest, TakesTheCallersRbp) {
  const Epilogue epilogue = Follow(kFramed.code, 0x10);
  ASSERT_EQ(epilogue.kind, Epilogue::Kind::kLeaves);
  EXPECT_TRUE(epilogue.pops_rbp);
  EXPECT_EQ(epilogue.rbp, (kSp + 16) | kMark);
  EXPECT_EQ(epilogue.ip, (kSp + 24) | kMark);
}

TEST_F(EpilogueTest, MovesSpByTheFramePointer) {
  for (const auto& [hex, slot] : std::initializer_list<std::pair<const char*, uint64_t>>{{"488d65f8"
                                                                                          "5b5dc3",
                                                                                          kRbp + 8},
                                                                                         {"488da500ffffff"
                                                                                          "c3",
                                                                                          kRbp - 0x100},
                                                                                         {"488be5"
                                                                                          "5dc3",
                                                                                          kRbp + 8},
                                                                                         {"4889ec"
                                                                                          "5dc3",
                                                                                          kRbp + 8},
                                                                                         {"c5f877"
                                                                                          "4881c400010000"
                                                                                          "c3",
                                                                                          kSp + 0x100}}) {
    const Epilogue epilogue = Follow(hex);
    ASSERT_EQ(epilogue.kind, Epilogue::Kind::kLeaves) << hex;
    EXPECT_EQ(epilogue.ip, slot | kMark) << hex;
  }
}

TEST_F(EpilogueTest, TailCallsLeaveTheFunction) {
  EXPECT_EQ(Follow(kTailJump.code, 0x22).ip, (kSp + 8) | kMark);
  for (const char* hex : {"5dff2512345678", "48ff20", "48ffe0", "49ffe2", "48ff6018", "5bffe0",
                          "5b41"
                          "5fff20"}) {
    EXPECT_EQ(Follow(hex).kind, Epilogue::Kind::kLeaves) << hex;
  }
  EXPECT_EQ(Follow("e900010000").kind, Epilogue::Kind::kLeaves);
  EXPECT_EQ(Follow("9090e9faffffff90", 2).kind, Epilogue::Kind::kNone);    // to the second byte
  EXPECT_EQ(Follow("9090e9f9ffffff90", 2).kind, Epilogue::Kind::kLeaves);  // to the first: it calls itself
  EXPECT_EQ(Follow("9090e9f8ffffff90", 2).kind, Epilogue::Kind::kLeaves);  // in front of it
  EXPECT_EQ(Follow("e900010000", 0, 0x105).kind, Epilogue::Kind::kLeaves);
  EXPECT_EQ(Follow("e900010000", 0, 0x106).kind, Epilogue::Kind::kNone);  // inside, where the code is not known
}

TEST_F(EpilogueTest, OtherCodeIsNone) {
  for (const char* hex : {"", "90", "ffe0", "ff20", "4883c4", "4883c4f8c3", "4883c410",
                          "5b5b5b5b5b5b5b5b5b5b5b5b5b5bc3", "48ffd0", "e90001", "488d65", "41", "f3"}) {
    EXPECT_EQ(Follow(hex).kind, Epilogue::Kind::kNone) << hex;
  }
  for (size_t offset = 0; offset < 0x1B; ++offset) {  // no instruction of the body is taken for one
    if (offset == 0 || offset == 1 || offset == 5 || offset == 8 || offset == 0xD || offset == 0x13 || offset == 0x18) {
      EXPECT_EQ(Follow(kFrameless.code, offset).kind, Epilogue::Kind::kNone) << offset;
    }
  }
}

TEST_F(EpilogueTest, SaysWhichWordIsMissing) {
  end_ = kSp + 16;
  const Epilogue epilogue = Follow(kFramed.code, 0x10);
  EXPECT_EQ(epilogue.kind, Epilogue::Kind::kMissingWord);
  EXPECT_EQ(epilogue.missing, kSp + 16);
}

TEST(DecodeCallEndTest, EachFormOfCall) {
  for (const char* hex : {
           "90ffd0",            // call rax
           "41ffd2",            // call r10
           "ff10",              // call [rax]
           "41ff12",            // call [r10]
           "ff5018",            // call [rax+18h]
           "ff1424",            // call [rsp]
           "ff542408",          // call [rsp+8]
           "ff15aaf79b00",      // call [rip+n]
           "ff9098010000",      // call [rax+198h]
           "ff94c398010000",    // call [rbx+rax*8+198h]
           "ff142598010000",    // call [198h]
           "41ff942498010000",  // call [r12+198h]
       }) {
    EXPECT_TRUE(DecodeCallEnd(Hex(hex)).may_call) << hex;
    EXPECT_EQ(DecodeCallEnd(Hex(hex)).distance, std::nullopt) << hex;
  }
  const CallEnd direct = DecodeCallEnd(Hex("9090e8f0ffffff"));
  EXPECT_TRUE(direct.may_call);
  EXPECT_EQ(direct.distance, -16);
  // call [rax+rbp*8+n], whose SIB byte reads like a direct call.
  EXPECT_TRUE(DecodeCallEnd(Hex("ff94e898010000")).may_call);
  EXPECT_EQ(DecodeCallEnd(Hex("ff94e898010000")).distance, std::nullopt);
}

TEST(DecodeCallEndTest, OtherInstructions) {
  for (const char* hex : {
           "", "e8", "90", "c3", "e8000000", "4889e5", "90909090909090",
           "ffe0",          // jmp rax
           "ff2500000000",  // jmp [rip+n]
           "ffd090",        // something behind the call
           "ff30",          // push [rax]
           "ff50",          // call [rax+n], cut
           "ff14",          // call [SIB], cut
       }) {
    EXPECT_FALSE(DecodeCallEnd(Hex(hex)).may_call) << hex;
  }
}

// As it stood in a process of 10.0.14.
TEST(WordsPushedByResolveStubTest, AtEachInstruction) {
  const std::vector<std::byte> stub =
      Hex("488b07"
          "52"
          "49ba08ce39269d550000"
          "488bd0"
          "48c1e80c"
          "4803c2"
          "4835b8390000"
          "4825f87f0000"
          "4a8b0410"
          "49ba0100000002000000"
          "483b5000"
          "752b"
          "4c3b5008"
          "7525"
          "488b4010"
          "5a"
          "ffe0"
          "48b8accb35269d550000"
          "8300ff"
          "7dac"
          "4983cb01"
          "52"
          "49ba0100000002000000"
          "50"
          "48b800c0ffc2197f0000"
          "ffe0");
  const auto at = [&](size_t offset) { return WordsPushedByResolveStub(std::span(stub).subspan(offset)); };
  for (const size_t offset : {0x0, 0x3, 0x45, 0x4f, 0x52, 0x54, 0x58}) EXPECT_EQ(at(offset), 0u) << offset;
  for (const size_t offset :
       {0x4, 0xe, 0x11, 0x15, 0x18, 0x1e, 0x24, 0x28, 0x32, 0x36, 0x38, 0x3c, 0x3e, 0x42, 0x59, 0x63}) {
    EXPECT_EQ(at(offset), 1u) << offset;
  }
  EXPECT_EQ(at(0x64), 2u);
  // A lone jump tells nothing.
  for (const size_t offset : {0x43, 0x6e}) EXPECT_EQ(at(offset), std::nullopt);
  for (size_t size = 0; size < 0x43; ++size)
    EXPECT_EQ(WordsPushedByResolveStub(std::span(stub).first(size)), std::nullopt);
  EXPECT_EQ(WordsPushedByResolveStub(Hex("554889e5")), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
