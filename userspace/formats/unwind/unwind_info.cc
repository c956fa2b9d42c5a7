#include "formats/unwind/unwind_info.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// UNWIND_CODE.UnwindOp. CoreCLR never wrote the values that are missing here (6, 7: epilogues of version 2; 10:
// interrupt frames).
enum RawOp : uint8_t {
  kPushNonvol = 0,
  kAllocLarge = 1,
  kAllocSmall = 2,
  kSetFpreg = 3,
  kSaveNonvol = 4,
  kSaveNonvolFar = 5,
  kSaveXmm128 = 8,
  kSaveXmm128Far = 9,
  kSetFpregLarge = 11,  // CoreCLR's own, for frames whose offset does not fit into four bits
};

constexpr size_t kHeaderBytes = 4;
constexpr uint8_t kChainFlag = 4;
// The shipped frameworks have no chains at all; a part that was split off has one link.
constexpr int kMaxChain = 8;

absl::Status Damaged(absl::string_view what) { return absl::DataLossError(absl::StrCat("unwind info: ", what)); }

// A code, and the slots that follow its first.
struct DecodedCode {
  UnwindCode code{0, UnwindOp::kAlloc, 0, 0};
  size_t more_slots = 0;
  bool keep = true;  // false: it says nothing about general registers
};

// `slots` begins at the code. Where it ends too early, the bytes that are read are of no use, and the caller refuses
// the code.
absl::StatusOr<DecodedCode> DecodeCode(std::span<const std::byte> slots, UnwindInfo& info) {
  const uint8_t op_and_info = LoadAt<uint8_t>(slots, 1).value_or(0), op = op_and_info & 15, op_info = op_and_info >> 4;
  const uint16_t small = LoadAt<uint16_t>(slots, 2).value_or(0);
  const uint32_t large = LoadAt<uint32_t>(slots, 2).value_or(0);
  DecodedCode decoded;
  UnwindCode& code = decoded.code;
  code.prologue_offset = LoadAt<uint8_t>(slots, 0).value_or(0);
  switch (op) {
    case kPushNonvol:
      code.op = UnwindOp::kPush;
      code.reg = op_info;
      return decoded;
    case kAllocSmall:
      code.value = 8 * op_info + 8u;
      return decoded;
    case kAllocLarge:
      if (op_info > 1) return Damaged("an allocation of no known form");
      decoded.more_slots = op_info == 0 ? 1 : 2;
      code.value = op_info == 0 ? 8u * small : large;
      return decoded;
    case kSetFpregLarge:
      decoded.more_slots = 2;
      if (large > UINT32_MAX / 16) return Damaged("a frame offset of more than 32 bits");
      info.frame_offset = 16 * large;
      [[fallthrough]];
    case kSetFpreg:
      code.op = UnwindOp::kSetFrame;
      code.reg = info.frame_register;
      code.value = info.frame_offset;
      return decoded;
    case kSaveNonvol:
    case kSaveNonvolFar:
      decoded.more_slots = op == kSaveNonvol ? 1 : 2;
      code.op = UnwindOp::kSave;
      code.reg = op_info;
      code.value = op == kSaveNonvol ? 8u * small : large;
      return decoded;
    case kSaveXmm128:
    case kSaveXmm128Far:
      decoded.more_slots = op == kSaveXmm128 ? 1 : 2;
      decoded.keep = false;
      return decoded;
    default:
      return Damaged(absl::StrCat("op ", op));
  }
}

}  // namespace

absl::StatusOr<UnwindInfo> UnwindInfo::Parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return Damaged("too short");
  const uint8_t first = *LoadAt<uint8_t>(bytes, 0), count = *LoadAt<uint8_t>(bytes, 2),
                frame = *LoadAt<uint8_t>(bytes, 3);
  if ((first & 7) != 1) return Damaged(absl::StrCat("version ", first & 7));
  UnwindInfo info;
  info.prologue_bytes = *LoadAt<uint8_t>(bytes, 1);
  info.frame_register = frame & 15;
  info.frame_offset = (frame >> 4) * 16;
  info.chained = (first >> 3 & kChainFlag) != 0;
  info.bytes = kHeaderBytes + 2 * ((size_t{count} + 1) & ~size_t{1});  // an even number of slots
  const std::optional<std::span<const std::byte>> slots = SliceAt(bytes, kHeaderBytes, 2 * size_t{count});
  if (!slots) return Damaged("too short");
  for (size_t i = 0; i < count;) {
    ASSIGN_OR_RETURN(DecodedCode decoded, DecodeCode(slots->subspan(2 * i), info));
    ++i;
    if (decoded.more_slots > count - i) return Damaged("a code that goes on behind the last one");
    i += decoded.more_slots;
    if (decoded.keep) info.codes.push_back(decoded.code);
  }
  return info;
}

absl::StatusOr<UnwindInfo> UnwindInfo::ParseWithChain(Reader read, uint32_t rva) {
  std::span<const std::byte> bytes = read(rva);
  absl::StatusOr<UnwindInfo> info = Parse(bytes);
  if (!info.ok()) return info;
  bool chained = info->chained;
  size_t behind = info->bytes;
  for (int link = 0; chained; ++link) {
    if (link == kMaxChain) return Damaged("a chain without end");
    const std::optional<uint32_t> next = LoadAt<uint32_t>(bytes, behind + 8);  // {begin, end, unwind data}
    if (!next) return Damaged("too short");
    bytes = read(*next);
    ASSIGN_OR_RETURN(const UnwindInfo parent, Parse(bytes));
    for (UnwindCode code : parent.codes) {
      code.prologue_offset = 0;
      info->codes.push_back(code);
    }
    if (info->frame_register == 0) {
      info->frame_register = parent.frame_register;
      info->frame_offset = parent.frame_offset;
    }
    chained = parent.chained;
    behind = parent.bytes;
  }
  return info;
}

}  // namespace clrsampler
