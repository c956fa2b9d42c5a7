// The written frames are read back by the reader of ELF images, and must say at each byte what the unwind data says.
#include "formats/unwind/eh_frame_writer.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/elf/cfi_table.h"
#include "unit/formats/elf/shared_object_header.h"
#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As perf lays an image out: code at kText, and the frames behind it.
constexpr uint64_t kText = 0x100;

class Image {
 public:
  Image(FrameMachine machine, uint32_t code_bytes, const EhFrame& frame) {
    const uint64_t frames = (kText + code_bytes + 7) / 8 * 8;
    bytes_.assign(frames, '\x90');
    bytes_ += frame.bytes;
    Elf64_Ehdr header = SharedObjectHeader(machine == FrameMachine::kX64 ? EM_X86_64 : EM_AARCH64);
    header.e_phnum = 2;
    const uint64_t table = bytes_.size() - frame.header_bytes;
    const Elf64_Phdr segments[] = {{PT_LOAD, PF_R | PF_X, 0, 0, 0, bytes_.size(), bytes_.size(), 0x1000},
                                   {PT_GNU_EH_FRAME, PF_R, table, table, table, frame.header_bytes, 0, 4}};
    std::memcpy(bytes_.data(), &header, sizeof header);
    std::memcpy(bytes_.data() + sizeof header, segments, sizeof segments);
  }
  CfiAnswer At(uint32_t offset) const {
    const absl::StatusOr<ElfImage> image = ElfImage::Parse(AsBytes(bytes_));
    EXPECT_TRUE(image.ok()) << image.status();
    const absl::StatusOr<CfiTable> table = CfiTable::Open(*image);
    EXPECT_TRUE(table.ok()) << table.status();
    return table->At({kText + offset});
  }

 private:
  std::string bytes_;
};

// The row at a byte by the codes alone: those whose instructions are done.
CfiRow RowByCodes(const UnwindInfo& info, uint32_t offset) {
  CfiRow row;
  row.ra_offset = -8;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = 8;
  std::vector<UnwindCode> done;
  for (const UnwindCode& code : info.codes) {
    if (code.prologue_offset <= offset) done.insert(done.begin(), code);
  }
  int32_t depth = 8;
  for (const UnwindCode& code : done) {
    if (code.op == UnwindOp::kPush) depth += 8;
    if (code.op == UnwindOp::kAlloc) depth += static_cast<int32_t>(code.value);
    if (code.op == UnwindOp::kSetFrame) {
      row.cfa = CfaRule::kFpOffset;
      row.cfa_offset = depth - static_cast<int32_t>(code.value);
    }
    if (code.op == UnwindOp::kPush && code.reg == kUnwindRbp && row.fp == RegisterRule::kSame) {
      row.fp = RegisterRule::kAtCfaOffset;
      row.fp_offset = -depth;
    }
    if (row.cfa == CfaRule::kSpOffset) row.cfa_offset = depth;
  }
  for (const UnwindCode& code : done) {
    if (code.op == UnwindOp::kSave && code.reg == kUnwindRbp && row.fp == RegisterRule::kSame) {
      row.fp = RegisterRule::kAtCfaOffset;
      row.fp_offset = static_cast<int32_t>(code.value) - depth;
    }
  }
  return row;
}

TEST(EhFrameWriterTest, RowsAreThoseOfTheCodesAtEachByte) {
  for (const CodeBytes& function : {kFramed, kFrameless, kTailJump, kMovesSp, kProbed, kFunclet8, kFunclet10, kOsr}) {
    const auto code_bytes = static_cast<uint32_t>(Hex(function.code).size());
    const std::vector<std::byte> unwind = Hex(function.unwind);
    const auto steps = FrameStepsOfX64(unwind);
    ASSERT_TRUE(steps.ok()) << steps.status();
    const FrameFunction part{0, code_bytes, *steps};
    const auto frame = WriteEhFrame(FrameMachine::kX64, code_bytes, {&part, 1});
    ASSERT_TRUE(frame.ok()) << frame.status();
    const Image image(FrameMachine::kX64, code_bytes, *frame);
    for (uint32_t offset = 0; offset < code_bytes; ++offset) {
      const CfiAnswer answer = image.At(offset);
      ASSERT_EQ(answer.coverage, CfiCoverage::kRow) << function.unwind << " " << offset;
      EXPECT_EQ(answer.row, RowByCodes(*UnwindInfo::Parse(unwind), offset)) << function.unwind << " " << offset;
    }
    EXPECT_EQ(image.At(code_bytes).coverage, CfiCoverage::kBetween);
  }
}

TEST(EhFrameWriterTest, AFramePointerThatPointsToItsOwnPlaceTellsTheCallersSp) {
  struct Set {
    CodeBytes function;
    uint32_t end;    // of the instruction that sets it
    int32_t offset;  // of the caller's sp from it
  };
  for (const Set& set : {Set{kFramed, 9, 16}, Set{kProbed, 35, 16}, Set{kOsr, 46, 144}}) {
    const std::vector<std::byte> code = Hex(set.function.code), unwind = Hex(set.function.unwind);
    const auto steps = FrameStepsOfX64(unwind, code);
    ASSERT_TRUE(steps.ok()) << steps.status();
    const auto code_bytes = static_cast<uint32_t>(code.size());
    const FrameFunction part{0, code_bytes, *steps};
    const auto frame = WriteEhFrame(FrameMachine::kX64, code_bytes, {&part, 1});
    ASSERT_TRUE(frame.ok()) << frame.status();
    const Image image(FrameMachine::kX64, code_bytes, *frame);
    for (uint32_t offset = 0; offset < code_bytes; ++offset) {
      CfiRow row = RowByCodes(*UnwindInfo::Parse(unwind), offset);
      if (offset >= set.end) {
        row.cfa = CfaRule::kFpOffset;
        row.cfa_offset = set.offset;
      }
      EXPECT_EQ(image.At(offset).row, row) << set.function.unwind << " " << offset;
    }
  }
}

TEST(EhFrameWriterTest, ARegisterThatIsUsedForOtherThingsTellsNothing) {
  const std::vector<std::byte> unwind = Hex(kFramed.unwind);
  const auto by_sp = *FrameStepsOfX64(unwind);
  std::vector<std::byte> code = Hex(kFramed.code);
  EXPECT_NE(*FrameStepsOfX64(unwind, code), by_sp);
  for (size_t size = 0; size <= 9; ++size) {
    EXPECT_EQ(*FrameStepsOfX64(unwind, std::span(code).first(size)), by_sp) << "no byte is left for the body";
  }
  code[8] = std::byte{0x08};  // lea rbp,[rsp+8]: another place of the frame
  EXPECT_EQ(*FrameStepsOfX64(unwind, code), by_sp);
  for (const CodeBytes& function : {kFrameless, kTailJump, kMovesSp, kFunclet8, kFunclet10}) {
    const std::vector<std::byte> its = Hex(function.unwind);
    EXPECT_EQ(*FrameStepsOfX64(its, Hex(function.code)), *FrameStepsOfX64(its)) << function.unwind;
  }
}

TEST(EhFrameWriterTest, ATableCanBeLeftOut) {
  const FrameFunction part{0, 20, *FrameStepsOfX64(Hex(kFrameless.unwind))};
  const auto with = WriteEhFrame(FrameMachine::kX64, 20, {&part, 1});
  const auto without = WriteEhFrame(FrameMachine::kX64, 20, {&part, 1}, SearchTable::kLeftOut);
  ASSERT_TRUE(with.ok() && without.ok());
  // The same frames and a header of the same length, in which the count and the table are omitted.
  EXPECT_EQ(without->header_bytes, with->header_bytes);
  const size_t header = with->bytes.size() - with->header_bytes;
  EXPECT_EQ(without->bytes.substr(0, header), with->bytes.substr(0, header));
  EXPECT_EQ(without->bytes.substr(header, 4), "\x01\x1b\xff\xff");
  EXPECT_EQ(without->bytes.substr(header + 4, 4), with->bytes.substr(header + 4, 4));
  EXPECT_EQ(without->bytes.substr(header + 8), std::string(12, '\0'));
}

TEST(EhFrameWriterTest, EachFuncletHasItsOwnRows) {
  const std::vector<FrameFunction> parts = {{0, 20, *FrameStepsOfX64(Hex(kFrameless.unwind))},
                                            {24, 40, *FrameStepsOfX64(Hex(kFunclet10.unwind))}};
  const auto frame = WriteEhFrame(FrameMachine::kX64, 45, parts);
  ASSERT_TRUE(frame.ok()) << frame.status();
  const Image image(FrameMachine::kX64, 45, *frame);
  EXPECT_EQ(image.At(19).row.cfa_offset, 32);
  EXPECT_EQ(image.At(20).coverage, CfiCoverage::kBetween);
  EXPECT_EQ(image.At(24).row.cfa_offset, 8);
  EXPECT_EQ(image.At(25).row.cfa_offset, 16);
  EXPECT_EQ(image.At(40).coverage, CfiCoverage::kBetween);
}

TEST(EhFrameWriterTest, StepsFarFromTheBeginningAndOfArm64) {
  // stp x29, x30, [sp, -48]!; mov x29, sp
  const FrameFunction part{0,
                           4000,
                           {{400, FrameRule::kCfa, 31, 48},
                            {400, FrameRule::kSaved, 29, -48},
                            {400, FrameRule::kSaved, 30, -40},
                            {404, FrameRule::kCfa, 29, 48}}};
  const auto frame = WriteEhFrame(FrameMachine::kArm64, 4000, {&part, 1});
  ASSERT_TRUE(frame.ok()) << frame.status();
  const Image image(FrameMachine::kArm64, 4000, *frame);
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.ra = RegisterRule::kSame;
  EXPECT_EQ(image.At(396).row, row);
  row = {CfaRule::kSpOffset, RegisterRule::kAtCfaOffset, RegisterRule::kAtCfaOffset, false, 48, -48, -40};
  EXPECT_EQ(image.At(400).row, row);
  row.cfa = CfaRule::kFpOffset;
  EXPECT_EQ(image.At(404).row, row);
  EXPECT_EQ(image.At(3996).row, row);
}

TEST(EhFrameWriterTest, VectorRegistersAndSignedReturnsOfArm64) {
  const FrameFunction part{0,
                           40,
                           {{4, FrameRule::kReturnSigned, 0, 0},
                            {8, FrameRule::kCfa, 31, 32},
                            {8, FrameRule::kSaved, 72, -8},
                            {8, FrameRule::kSaved, 30, -24}}};
  const auto frame = WriteEhFrame(FrameMachine::kArm64, 40, {&part, 1});
  ASSERT_TRUE(frame.ok()) << frame.status();
  // advance_loc1 4, negate_ra_state, advance_loc1 4, def_cfa_offset 32, offset_extended 72 1, offset 30 3
  EXPECT_THAT(frame->bytes, HasSubstr("\x02\x04\x2d\x02\x04\x0e\x20\x05\x48\x01\x9e\x03"));
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = 32;
  row.ra = RegisterRule::kAtCfaOffset;
  row.ra_offset = -24;
  EXPECT_EQ(Image(FrameMachine::kArm64, 40, *frame).At(36).row, row);
}

TEST(EhFrameWriterTest, TheHeaderAndItsSizeAreMultiplesOfWhatReadersAlign) {
  for (uint32_t code_bytes = 32; code_bytes < 48; ++code_bytes) {
    const FrameFunction part{0, code_bytes, *FrameStepsOfX64(Hex(kFramed.unwind))};
    const auto frame = WriteEhFrame(FrameMachine::kX64, code_bytes, {&part, 1});
    EXPECT_EQ((frame->bytes.size() - frame->header_bytes) % 8, 0u);
    EXPECT_EQ(frame->header_bytes, 20u);
    EXPECT_EQ(Image(FrameMachine::kX64, code_bytes, *frame).At(0).coverage, CfiCoverage::kRow);
  }
}

TEST(EhFrameWriterTest, WhatDoesNotFitIsAnError) {
  const auto fails = [](const std::vector<FrameFunction>& parts) {
    const auto frame = WriteEhFrame(FrameMachine::kX64, 32, parts);
    return frame.status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_FALSE(fails({{0, 32, {{1, FrameRule::kCfa, 7, 16}}}}));
  EXPECT_TRUE(fails({{0, 33, {}}}));
  EXPECT_TRUE(fails({{4, 4, {}}}));
  EXPECT_TRUE(fails({{0, 8, {}}, {4, 12, {}}}));
  EXPECT_TRUE(fails({{0, 32, {{32, FrameRule::kCfa, 7, 16}}}}));
  EXPECT_TRUE(fails({{0, 32, {{2, FrameRule::kCfa, 7, 16}, {1, FrameRule::kCfa, 7, 24}}}}));
  EXPECT_TRUE(fails({{0, 32, {{1, FrameRule::kCfa, 7, -8}}}}));
  EXPECT_TRUE(fails({{0, 32, {{1, FrameRule::kSaved, 6, 0}}}}));
  EXPECT_TRUE(fails({{0, 32, {{1, FrameRule::kSaved, 6, -12}}}}));
  EXPECT_TRUE(fails({{0, 32, {{1, FrameRule::kSaved, 32, -16}}}}));
  EXPECT_TRUE(fails({{0, 32, {{1, FrameRule::kReturnSigned, 0, 0}}}}));
}

TEST(FrameStepsTest, AChainFollowsItsFirstPart) {
  // sub rsp,18h, chained to a part that pushes rbp and rbx.
  std::string bytes = absl::HexStringToBytes(
      "21040100"
      "04220000");                   // flag 4: chained
  bytes += std::string(12, '\x55');  // the RUNTIME_FUNCTION
  bytes += absl::HexStringToBytes(
      "01020200"
      "02300150");
  const auto steps = FrameStepsOfX64(AsBytes(bytes));
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_THAT(*steps, ElementsAre(FrameStep{0, FrameRule::kSaved, 6, -16}, FrameStep{0, FrameRule::kCfa, 7, 24},
                                  FrameStep{0, FrameRule::kSaved, 3, -24}, FrameStep{4, FrameRule::kCfa, 7, 48}));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(FrameStepsOfX64(AsBytes(bytes).first(size)).ok()) << size;
  }
}

TEST(FrameStepsTest, DamagedCodesAreErrors) {
  UnwindInfo info;
  info.codes = {{1, UnwindOp::kPush, 3, 0}, {2, UnwindOp::kPush, 5, 0}};  // the first action stands first
  EXPECT_FALSE(FrameStepsOf(info).ok());
  info.codes = {{1, UnwindOp::kAlloc, 0, UINT32_MAX}};
  EXPECT_FALSE(FrameStepsOf(info).ok());
  info.codes = {{1, UnwindOp::kSetFrame, 5, 64}};  // above the caller's sp
  EXPECT_FALSE(FrameStepsOf(info).ok());
  info.codes = {{1, UnwindOp::kSave, 5, 64}};
  EXPECT_FALSE(FrameStepsOf(info).ok());
  info.codes = {{1, UnwindOp::kPush, 16, 0}};
  EXPECT_FALSE(FrameStepsOf(info).ok());
}

}  // namespace
}  // namespace clrsampler
