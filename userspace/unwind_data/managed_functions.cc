#include "unwind_data/managed_functions.h"

#include "absl/status/statusor.h"
#include "formats/unwind/x64_code.h"

namespace clrsampler {

std::optional<UnwindInfo> ReadUnwindInfo(ReadBytes read, uint64_t base, uint32_t rva) {
  UnwindInfoBytes bytes;
  const absl::StatusOr<UnwindInfo> info =
      UnwindInfo::ParseWithChain([&](uint32_t at) { return ReadUnwindInfoBytes(read, base + at, bytes); }, rva);
  if (!info.ok()) return std::nullopt;
  return *info;
}

std::optional<uint32_t> OsrFrameBytes(const UnwindInfo& unwind) {
  if (unwind.chained) return std::nullopt;  // what was done before is the parent's prologue
  bool begins_with_frame = false;
  uint64_t bytes = 0;
  for (const UnwindCode& code : unwind.codes) {
    if (IsReturnSlotOfPatchpoint(code)) bytes += code.value;
    if (code.prologue_offset != 0) continue;
    begins_with_frame = true;
    if (code.op == UnwindOp::kAlloc) bytes += code.value;
    if (code.op == UnwindOp::kPush && code.reg != kUnwindRbp) bytes += 8;
  }
  if (!begins_with_frame || bytes > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(bytes);
}

std::optional<CfiRow> RowOfEpilogue(std::span<const std::byte> code, uint64_t function_bytes, uint64_t offset) {
  // Values that no sum of an epilogue's few numbers carries from one to the other, and words that tell where they lie.
  // The result shows which of them it was made of.
  constexpr uint64_t kSp = uint64_t{1} << 40, kRbp = uint64_t{1} << 50, kWord = uint64_t{1} << 60;
  const Epilogue epilogue = FollowEpilogue(code, function_bytes, offset, kSp, kRbp,
                                           [](uint64_t address) { return std::optional<uint64_t>(kWord + address); });
  if (epilogue.kind != Epilogue::Kind::kLeaves) return std::nullopt;
  const auto small = [](uint64_t from, uint64_t to) -> std::optional<int32_t> {
    const auto distance = static_cast<int64_t>(to - from);
    if (distance < INT32_MIN || distance > INT32_MAX) return std::nullopt;
    return static_cast<int32_t>(distance);
  };
  CfiRow row;
  std::optional<int32_t> offset_of_cfa = small(kSp, epilogue.sp);
  row.cfa = CfaRule::kSpOffset;
  if (!offset_of_cfa) {
    offset_of_cfa = small(kRbp, epilogue.sp);
    row.cfa = CfaRule::kFpOffset;
  }
  const std::optional<int32_t> slot = epilogue.pops_rbp ? small(epilogue.sp, epilogue.rbp - kWord) : 0;
  if (!offset_of_cfa || !slot) return std::nullopt;
  row.cfa_offset = *offset_of_cfa;
  row.ra_offset = -8;
  if (epilogue.pops_rbp) {
    row.fp = RegisterRule::kAtCfaOffset;
    row.fp_offset = *slot;
  }
  return row;
}

std::optional<CfiRow> LinkRegisterRow(const Arm64Leaf& leaf) {
  if (leaf.where != Arm64Return::kLinkRegister) return std::nullopt;
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = static_cast<int32_t>(leaf.sp_above);
  row.fp = row.ra = RegisterRule::kSame;
  return row;
}

CodeAt ManagedArm64(std::span<const std::byte> code, uint64_t begin, uint64_t address) {
  CodeAt answer;
  answer.kind = CodeKind::kManaged;
  // Return addresses less one are no addresses of instructions.
  const Arm64Leaf leaf = address % 4 == 0 ? DecodeArm64Leaf(code, address - begin) : Arm64Leaf();
  answer.between_rows = leaf.where == Arm64Return::kUnknown;
  const std::optional<CfiRow> row = LinkRegisterRow(leaf);
  answer.has_row = row.has_value();
  if (row) answer.row = *row;
  return answer;
}

}  // namespace clrsampler
