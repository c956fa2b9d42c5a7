#include "formats/elf/cfi_table.h"

#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "unit/formats/elf/frame_builder.h"

namespace clrsampler {
namespace {

constexpr uint64_t kCode = FrameBuilder::kCode;
constexpr uint8_t kRbp = 6, kRsp = 7, kRip = 16, kX29 = 29, kX30 = 30;

// An image with its table, in the way that an image of this kind is read.
struct Opened {
  explicit Opened(std::string image, bool compiled = false) : bytes(std::move(image)) {
    auto parsed = ElfImage::Parse(AsBytes(bytes));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    auto opened = compiled ? CfiTable::OpenCompiled(*parsed) : CfiTable::Open(*parsed);
    status = opened.status();
    if (opened.ok()) table = *std::move(opened);
  }
  CfiRow Row(uint64_t address) const {
    const auto row = table->Row({address});
    EXPECT_TRUE(row.has_value()) << std::hex << address;
    return row.value_or(CfiRow());
  }
  CfiCoverage Coverage(uint64_t address) const { return table->At({address}).coverage; }

  std::string bytes;
  absl::Status status;
  std::optional<CfiTable> table;
};

// The row at kCode + `inside` of one function, which must be the same on demand and compiled.
CfiRow RowOf(const std::string& instructions, uint64_t inside = 0, uint16_t machine = EM_X86_64,
             FrameBuilder::Common common = {}) {
  FrameBuilder builder;
  builder.Machine(machine).AddFunction(builder.AddCommon(common), kCode, 0x1000, instructions);
  const Opened on_demand(builder.Build()), compiled(builder.Build(/*with_header=*/false));
  EXPECT_TRUE(on_demand.table && on_demand.table->on_demand());
  EXPECT_TRUE(compiled.table && !compiled.table->on_demand());
  if (!on_demand.table || !compiled.table) return {};
  const CfiRow row = on_demand.Row(kCode + inside);
  EXPECT_EQ(row, compiled.Row(kCode + inside));
  return row;
}

CfiRow SpRow(int32_t offset) {
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = offset;
  row.ra_offset = -8;
  return row;
}

TEST(CfiTableTest, RowsOfAnOrdinaryFunction) {
  const std::string program = cfa::Advance(1) + cfa::DefCfaOffset(16) + cfa::Offset(kRbp, 2) + cfa::Advance(3) +
                              cfa::DefCfaRegister(kRbp) + cfa::Advance(40) + cfa::DefCfa(kRsp, 8) + cfa::Restore(kRbp);
  EXPECT_EQ(RowOf(program, 0), SpRow(8));
  CfiRow pushed = SpRow(16);
  pushed.fp = RegisterRule::kAtCfaOffset;
  pushed.fp_offset = -16;
  EXPECT_EQ(RowOf(program, 1), pushed);
  EXPECT_EQ(RowOf(program, 3), pushed);
  CfiRow framed = pushed;
  framed.cfa = CfaRule::kFpOffset;
  EXPECT_EQ(RowOf(program, 4), framed);
  EXPECT_EQ(RowOf(program, 43), framed);
  EXPECT_EQ(RowOf(program, 44), SpRow(8));
  EXPECT_EQ(RowOf(program, 0xfff), SpRow(8));
}

TEST(CfiTableTest, RememberedStatesNest) {
  const std::string program = cfa::DefCfaOffset(16) + cfa::Remember() + cfa::Advance(1) + cfa::DefCfaOffset(24) +
                              cfa::Remember() + cfa::Advance(1) + cfa::Undefined(kRip) + cfa::Advance(1) +
                              cfa::RestoreState() + cfa::Advance(1) + cfa::RestoreState();
  EXPECT_EQ(RowOf(program, 2).ra, RegisterRule::kUndefined);
  EXPECT_EQ(RowOf(program, 3), SpRow(24));
  EXPECT_EQ(RowOf(program, 4), SpRow(16));
}

TEST(CfiTableTest, ArgumentSizesChangeNothing) {
  EXPECT_EQ(RowOf(cfa::GnuArgsSize(300) + cfa::DefCfaOffset(32) + cfa::GnuArgsSize(0)), SpRow(32));
}

TEST(CfiTableTest, AdvancesOfAllWidths) {
  const std::string one("\x02\x01", 2), two("\x03\x00\x01", 3);
  const std::string program =
      one + cfa::DefCfaOffset(16) + two + cfa::DefCfaOffset(24) + cfa::Advance4(0x100) + cfa::DefCfaOffset(32);
  EXPECT_EQ(RowOf(program, 0x100), SpRow(16));
  EXPECT_EQ(RowOf(program, 0x101), SpRow(24));
  EXPECT_EQ(RowOf(program, 0x200), SpRow(24));
  EXPECT_EQ(RowOf(program, 0x201), SpRow(32));
}

TEST(CfiTableTest, ExpressionsThatAreKnown) {
  const std::string deref("\x06");
  CfiRow row = RowOf(cfa::DefCfaExpression(cfa::Breg(kRbp, -8) + deref) + cfa::Expression(kRbp, cfa::Breg(kRbp, 0)));
  EXPECT_EQ(row.cfa, CfaRule::kFpDeref);
  EXPECT_EQ(row.cfa_offset, -8);
  EXPECT_EQ(row.fp, RegisterRule::kAtFpOffset);
  EXPECT_EQ(row.fp_offset, 0);

  row = RowOf(cfa::DefCfaExpression(cfa::Breg(kRsp, 152) + deref + "\x23\x08"));
  EXPECT_EQ(row.cfa, CfaRule::kSpDeref);
  EXPECT_EQ(row.cfa_offset, 152);

  for (const char threshold : {'\x3b', '\x35'}) {  // GNU ld with and without MPX prefixes
    row = RowOf(cfa::DefCfaExpression(cfa::Breg(kRsp, 8) + std::string("\x80\x00\x3f\x1a", 4) + threshold +
                                      "\x2a\x33\x24\x22"));
    EXPECT_EQ(row.cfa, CfaRule::kPlt);
    EXPECT_EQ(row.cfa_offset, threshold - 0x30);
    EXPECT_EQ(row.ra, RegisterRule::kAtCfaOffset);
  }
}

TEST(CfiTableTest, AnyRegisterServesALeaf) {
  CfiRow row = RowOf(cfa::DefCfaRegister(0));  // rax
  EXPECT_EQ(row.cfa, CfaRule::kRegister);
  EXPECT_EQ(row.cfa_register, 0);
  // rsp + 8 + 8 * r9, the word there, 8 above it: bn_mul_mont of OpenSSL.
  row = RowOf(cfa::DefCfaExpression(std::string("\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08", 10)));
  EXPECT_EQ(row.cfa, CfaRule::kSpIndexed);
  EXPECT_EQ(row.cfa_register, 9);
  EXPECT_EQ(row.cfa_offset, 8);
  row = RowOf(cfa::Register(kRip, 2));  // rcx
  EXPECT_EQ(row.ra, RegisterRule::kInRegister);
  EXPECT_EQ(row.ra_offset, 2);
}

TEST(CfiTableTest, WhatASampleCanNotServeIsUnsupportedForThatRegisterOnly) {
  CfiRow row = RowOf(cfa::DefCfaRegister(17));  // xmm0
  EXPECT_EQ(row.cfa, CfaRule::kUnsupported);
  EXPECT_EQ(row.ra, RegisterRule::kAtCfaOffset);
  EXPECT_EQ(RowOf(cfa::DefCfaExpression("\x91\x08")).cfa, CfaRule::kUnsupported);
  EXPECT_EQ(RowOf(cfa::DefCfaOffset(~uint64_t{79})).cfa, CfaRule::kUnsupported) << "below the stack, as in libcoreclr";
  EXPECT_EQ(RowOf(cfa::DefCfaOffset(uint64_t{1} << 40)).cfa, CfaRule::kUnsupported);

  row = RowOf(cfa::ValExpression(kRbp, cfa::Breg(kRsp, 0)));
  EXPECT_EQ(row.fp, RegisterRule::kUnsupported);
  EXPECT_EQ(row.cfa, CfaRule::kSpOffset);
  row = RowOf(cfa::Register(kRip, 17));
  EXPECT_EQ(row.ra, RegisterRule::kUnsupported);
  EXPECT_EQ(RowOf(cfa::Register(kRsp, 8)).cfa, CfaRule::kUnsupported) << "the caller's sp is not the CFA";
  // Registers that nobody needs may have any rule.
  EXPECT_EQ(RowOf(cfa::ValExpression(3, cfa::Breg(kRsp, 0)) + cfa::Expression(12, "\x91\x08")), SpRow(8));
}

TEST(CfiTableTest, TheKernelsSignalFrame) {
  FrameBuilder::Common common;
  common.augmentation = "zRS";
  const std::string context = cfa::DefCfaExpression(cfa::Breg(kRsp, 160) + "\x06") +
                              cfa::Expression(kRsp, cfa::Breg(kRsp, 160)) +
                              cfa::Expression(kRbp, cfa::Breg(kRsp, 120)) + cfa::Expression(kRip, cfa::Breg(kRsp, 168));
  EXPECT_TRUE(RowOf(context, 0, EM_X86_64, common).signal_frame);
  EXPECT_FALSE(RowOf(context, 0).signal_frame) << "not said to be one";
  EXPECT_FALSE(RowOf(cfa::DefCfaOffset(16), 0, EM_X86_64, common).signal_frame) << "of another kind";
}

TEST(CfiTableTest, Arm64) {
  FrameBuilder::Common common;
  common.code_alignment = 4;
  common.return_register = kX30;
  common.instructions = cfa::DefCfa(31, 0);
  const std::string program = cfa::NegateRaState() + cfa::Advance(1) + cfa::DefCfaOffset(32) + cfa::Offset(kX29, 4) +
                              cfa::Offset(kX30, 3) + cfa::Advance(1) + cfa::DefCfaRegister(kX29);
  CfiRow row = RowOf(program, 3, EM_AARCH64, common);
  EXPECT_EQ(row.cfa, CfaRule::kSpOffset);
  EXPECT_EQ(row.cfa_offset, 0);
  EXPECT_EQ(row.ra, RegisterRule::kSame);
  row = RowOf(program, 8, EM_AARCH64, common);
  EXPECT_EQ(row.cfa, CfaRule::kFpOffset);
  EXPECT_EQ(row.cfa_offset, 32);
  EXPECT_EQ(row.fp_offset, -32);
  EXPECT_EQ(row.ra, RegisterRule::kAtCfaOffset);
  EXPECT_EQ(row.ra_offset, -24);
}

TEST(CfiTableTest, NothingIsKnownBetweenFunctions) {
  for (const bool with_header : {true, false}) {
    FrameBuilder builder;
    const uint64_t common = builder.AddCommon();
    builder.AddFunction(common, kCode + 0x100, 0x40, cfa::DefCfaOffset(16));
    builder.AddFunction(common, kCode + 0x200, 0x40, cfa::DefCfaOffset(32));
    const Opened opened(builder.Build(with_header));
    for (const uint64_t at : {0x0, 0xff, 0x140, 0x1ff, 0x240, 0xffff}) {
      EXPECT_EQ(opened.Coverage(kCode + at), CfiCoverage::kBetween) << at;
    }
    for (const uint64_t at : {0x100, 0x13f}) EXPECT_EQ(opened.Row(kCode + at), SpRow(16));
    for (const uint64_t at : {0x200, 0x23f}) EXPECT_EQ(opened.Row(kCode + at), SpRow(32));
    EXPECT_EQ(opened.Coverage(0), CfiCoverage::kBetween);
    EXPECT_EQ(opened.Coverage(~uint64_t{0}), CfiCoverage::kBetween);
    // Compiled tables know rows, but not functions.
    const CfiAnswer answer = opened.table->At({kCode + 0x13f});
    EXPECT_EQ(answer.start.value, with_header ? kCode + 0x100 : 0);
    EXPECT_EQ(answer.end.value, with_header ? kCode + 0x140 : 0);
  }
}

TEST(CfiTableTest, TheFunctionThatStartsLastIsTakenWhereTheyOverlap) {
  for (const bool with_header : {true, false}) {
    FrameBuilder builder;
    const uint64_t common = builder.AddCommon();
    builder.AddFunction(common, kCode, 0x1000, cfa::DefCfaOffset(16));
    builder.AddFunction(common, kCode + 0x100, 0x40, cfa::DefCfaOffset(32));
    const Opened opened(builder.Build(with_header));
    EXPECT_EQ(opened.Row(kCode + 0xff), SpRow(16));
    EXPECT_EQ(opened.Row(kCode + 0x100), SpRow(32));
    EXPECT_EQ(opened.Coverage(kCode + 0x140), CfiCoverage::kBetween);
  }
}

TEST(CfiTableTest, RowsBeforeAnUnknownInstructionAreGood) {
  const std::string program = cfa::DefCfaOffset(16) + cfa::Advance(4) + "\x3f";
  for (const bool with_header : {true, false}) {
    FrameBuilder builder;
    const uint64_t common = builder.AddCommon();
    builder.AddFunction(common, kCode, 0x40, program);
    builder.AddFunction(common, kCode + 0x40, 0x40, cfa::DefCfaOffset(32));
    const Opened opened(builder.Build(with_header));
    EXPECT_EQ(opened.Row(kCode + 3), SpRow(16));
    EXPECT_EQ(opened.Coverage(kCode + 4), CfiCoverage::kUnreadable);
    EXPECT_EQ(opened.Coverage(kCode + 0x3f), CfiCoverage::kUnreadable);
    EXPECT_EQ(opened.Row(kCode + 0x40), SpRow(32));
    if (!with_header) {
      EXPECT_EQ(opened.table->compiled()->damaged(), 1u);
    }
  }
}

TEST(CfiTableTest, FormsOfEntries) {
  struct Form {
    const char* what;
    FrameBuilder::Section section;
    bool long_entries;
    FrameBuilder::Common common;
  };
  FrameBuilder::Common personality, old_gcc, plain, version4;
  personality.augmentation = "zPLR";
  personality.data = std::string("\x9b\0\0\0\0\x1b\x1b", 7);
  old_gcc.augmentation = "eh";
  plain.augmentation = "";
  plain.version = 3;
  version4.augmentation = "";
  version4.version = 4;
  for (const Form& form : {Form{"zR", FrameBuilder::Section::kEhFrame, false, {}},
                           Form{"zPLR", FrameBuilder::Section::kEhFrame, false, personality},
                           Form{"eh", FrameBuilder::Section::kEhFrame, false, old_gcc},
                           Form{"64-bit .eh_frame", FrameBuilder::Section::kEhFrame, true, {}},
                           Form{".debug_frame", FrameBuilder::Section::kDebugFrame, false, plain},
                           Form{".debug_frame version 4", FrameBuilder::Section::kDebugFrame, false, version4},
                           Form{"64-bit .debug_frame", FrameBuilder::Section::kDebugFrame, true, version4}}) {
    FrameBuilder builder(form.section, form.long_entries);
    builder.AddFunction(builder.AddCommon(form.common), kCode, 0x40, cfa::Advance(2) + cfa::DefCfaOffset(24));
    const Opened opened(builder.Build(/*with_header=*/false));
    ASSERT_TRUE(opened.table.has_value()) << form.what << ": " << opened.status;
    EXPECT_EQ(opened.Row(kCode + 1), SpRow(8)) << form.what;
    EXPECT_EQ(opened.Row(kCode + 0x3f), SpRow(24)) << form.what;
    if (form.section == FrameBuilder::Section::kDebugFrame) continue;
    const Opened on_demand(builder.Build());
    ASSERT_TRUE(on_demand.table.has_value() && on_demand.table->on_demand()) << form.what;
    EXPECT_EQ(on_demand.Row(kCode + 0x3f), SpRow(24)) << form.what;
  }
}

TEST(CfiTableTest, DebugFrameFillsWhatTheHeaderLeavesOut) {
  FrameBuilder builder(FrameBuilder::Section::kDebugFrame);
  FrameBuilder::Common plain;
  plain.augmentation = "";
  builder.AddFunction(builder.AddCommon(plain), kCode, 0x40, cfa::DefCfaOffset(24));
  // The header's entries are no .eh_frame, so nothing comes of them.
  const Opened opened(builder.Build(/*with_header=*/true));
  ASSERT_TRUE(opened.table.has_value() && opened.table->on_demand());
  EXPECT_EQ(opened.Row(kCode + 8), SpRow(24));
}

TEST(CfiTableTest, WhyAnImageHasNoTableIsTold) {
  FrameBuilder::Common plain;
  plain.augmentation = "";
  FrameBuilder none;
  EXPECT_TRUE(absl::IsNotFound(Opened(none.Build(false)).status));
  FrameBuilder compressed(FrameBuilder::Section::kDebugFrame);
  compressed.SectionFlags(SHF_COMPRESSED).AddFunction(compressed.AddCommon(plain), kCode, 0x40, "");
  const absl::Status status = Opened(compressed.Build(false)).status;
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(status.message(), "compressed .debug_frame");
  FrameBuilder garbage;
  garbage.Append(std::string(64, '\x11'));
  EXPECT_TRUE(absl::IsDataLoss(Opened(garbage.Build(false)).status));
}

TEST(CfiTableTest, CodeThatSignalHandlersReturnToIsKnownByItsInstructions) {
  const std::string x64("\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9), arm64("\x68\x11\x80\xd2\x01\0\0\xd4", 8);
  for (const auto& [machine, code, second] :
       {std::tuple{EM_X86_64, x64, uint64_t{7}}, std::tuple{EM_AARCH64, arm64, uint64_t{4}}}) {
    FrameBuilder builder;
    builder.Machine(static_cast<uint16_t>(machine)).Code(kCode + 0x800, code);
    builder.AddFunction(builder.AddCommon(), kCode, 0x40, "");
    const Opened opened(builder.Build());
    for (const uint64_t at : {uint64_t{0x7ff}, uint64_t{0x800}, 0x800 + second}) {
      EXPECT_TRUE(opened.Row(kCode + at).signal_frame) << at;
    }
    EXPECT_EQ(opened.Coverage(kCode + 0x7fe), CfiCoverage::kBetween);
    EXPECT_EQ(opened.Coverage(kCode + 0x80c), CfiCoverage::kBetween);
  }
}

}  // namespace
}  // namespace clrsampler
