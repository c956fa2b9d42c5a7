#include "formats/unwind/unwind_info.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"

namespace clrsampler {
namespace {

// UNWIND_CODE.UnwindOp. What is missing here (6, 7: epilogues of version 2; 10: interrupt frames) CoreCLR never wrote.
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
    const uint8_t offset = *LoadAt<uint8_t>(*slots, 2 * i), op_and_info = *LoadAt<uint8_t>(*slots, 2 * i + 1);
    const uint8_t op = op_and_info & 15, op_info = op_and_info >> 4;
    ++i;
    // Of the slots that follow; past the end it is an error below, whatever is read here.
    const auto small = LoadAt<uint16_t>(*slots, 2 * i);
    const auto large = LoadAt<uint32_t>(*slots, 2 * i);
    size_t more = 0;
    UnwindCode code{offset, UnwindOp::kAlloc, 0, 0};
    bool keep = true;
    switch (op) {
      case kPushNonvol:
        code.op = UnwindOp::kPush;
        code.reg = op_info;
        break;
      case kAllocSmall:
        code.value = 8 * op_info + 8u;
        break;
      case kAllocLarge:
        if (op_info > 1) return Damaged("an allocation of no known form");
        more = op_info == 0 ? 1 : 2;
        code.value = op_info == 0 ? 8u * small.value_or(0) : large.value_or(0);
        break;
      case kSetFpreg:
        code.op = UnwindOp::kSetFrame;
        code.reg = info.frame_register;
        code.value = info.frame_offset;
        break;
      case kSetFpregLarge:
        more = 2;
        if (large.value_or(0) > UINT32_MAX / 16) return Damaged("a frame offset of more than 32 bits");
        info.frame_offset = 16 * large.value_or(0);
        code.op = UnwindOp::kSetFrame;
        code.reg = info.frame_register;
        code.value = info.frame_offset;
        break;
      case kSaveNonvol:
      case kSaveNonvolFar:
        more = op == kSaveNonvol ? 1 : 2;
        code.op = UnwindOp::kSave;
        code.reg = op_info;
        code.value = op == kSaveNonvol ? 8u * small.value_or(0) : large.value_or(0);
        break;
      case kSaveXmm128:
      case kSaveXmm128Far:
        more = op == kSaveXmm128 ? 1 : 2;
        keep = false;
        break;
      default:
        return Damaged(absl::StrCat("op ", op));
    }
    if (more > count - i) return Damaged("a code that goes on behind the last one");
    i += more;
    if (keep) info.codes.push_back(code);
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
    const absl::StatusOr<UnwindInfo> parent = Parse(bytes);
    if (!parent.ok()) return parent.status();
    for (UnwindCode code : parent->codes) {
      code.prologue_offset = 0;
      info->codes.push_back(code);
    }
    if (info->frame_register == 0) {
      info->frame_register = parent->frame_register;
      info->frame_offset = parent->frame_offset;
    }
    chained = parent->chained;
    behind = parent->bytes;
  }
  return info;
}

}  // namespace clrsampler
