#include "formats/unwind/arm64_unwind.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kXdataWordBytes = 4;
// DWARF numbers: x0 to x30 are 0 to 30, d0 to d31 are 64 to 95. Callees save x19 to x28 and d8 to d15.
constexpr uint8_t kX19 = 19, kFp = 29, kLr = 30, kD8 = 72, kD15 = 79;

absl::Status DamagedArm64(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("arm64 unwind info: ", what));
}

// The first word, and a second one where its counts are both 0.
struct Header {
  uint32_t function_bytes = 0;
  size_t codes_offset = 0;
  size_t code_bytes = 0;
  size_t bytes = 0;
};

absl::StatusOr<Header> ReadHeader(std::span<const std::byte> bytes) {
  const std::optional<uint32_t> word = LoadAt<uint32_t>(bytes, 0);
  if (!word) return DamagedArm64("too short");
  if (const uint32_t version = *word >> 18 & 3; version != 0) return DamagedArm64(absl::StrCat("version ", version));
  const bool has_handler = *word >> 20 & 1, one_epilogue = *word >> 21 & 1;
  size_t epilogues = *word >> 22 & 31, code_words = *word >> 27;
  Header header;
  header.codes_offset = kXdataWordBytes;
  if (epilogues == 0 && code_words == 0) {
    const std::optional<uint32_t> extension = LoadAt<uint32_t>(bytes, kXdataWordBytes);
    if (!extension) return DamagedArm64("too short");
    epilogues = *extension & 0xFFFF;
    code_words = *extension >> 16 & 0xFF;
    header.codes_offset += kXdataWordBytes;
  }
  // With one epilogue the count is the place where its codes begin, and there is no word.
  if (!one_epilogue) header.codes_offset += epilogues * kXdataWordBytes;
  header.function_bytes = (*word & 0x3FFFF) * 4;
  header.code_bytes = code_words * kXdataWordBytes;
  header.bytes = header.codes_offset + header.code_bytes + (has_handler ? kXdataWordBytes : 0);
  return header;
}

// The kind of a code before save_next is resolved. save_next means the pair after the one of the code that was executed
// before it.
struct RawCode {
  enum class Kind : uint8_t { kPlain, kNextPair, kEnd, kEndOfPart };
  Arm64UnwindCode code;
  size_t bytes = 1;
  Kind kind = Kind::kPlain;
};

RawCode Plain(Arm64UnwindOp op, uint32_t value, size_t bytes) { return {{op, 0, 0, value}, bytes}; }

// `bits` of `word` from `at` on.
uint32_t Bits(uint32_t word, int at, int bits) { return word >> at & ((1u << bits) - 1); }

// Registers `first` and, in a pair, the next one; nullopt: a callee saves no such ones.
std::optional<RawCode> Saved(Arm64UnwindOp op, uint32_t first, bool pair, uint32_t value) {
  const uint32_t last = first + (pair ? 1 : 0);
  const bool known = first >= kX19 && last <= (first < kD8 ? kLr : kD15);
  if (!known) return std::nullopt;
  return RawCode{{op, static_cast<uint8_t>(first), static_cast<uint8_t>(pair ? last : 0), value}, 2};
}

// Two bytes, the first of them from 0xC8 to 0xDE, as one number of 16 bits.
std::optional<RawCode> DecodeSave(uint32_t word) {
  const uint32_t offset = Bits(word, 0, 6) * 8, pushed = offset + 8, pushed_one = Bits(word, 0, 5) * 8 + 8;
  switch (word >> 10) {
    case 0x32:  // save_regp
      return Saved(Arm64UnwindOp::kSave, kX19 + Bits(word, 6, 4), true, offset);
    case 0x33:  // save_regp_x
      return Saved(Arm64UnwindOp::kPush, kX19 + Bits(word, 6, 4), true, pushed);
    case 0x34:  // save_reg
      return Saved(Arm64UnwindOp::kSave, kX19 + Bits(word, 6, 4), false, offset);
    case 0x35: {
      if (Bits(word, 9, 1) == 0) return Saved(Arm64UnwindOp::kPush, kX19 + Bits(word, 5, 4), false, pushed_one);
      const uint32_t first = kX19 + 2 * Bits(word, 6, 3);  // save_lrpair
      if (first >= kFp) return std::nullopt;
      return RawCode{{Arm64UnwindOp::kSave, static_cast<uint8_t>(first), kLr, offset}, 2};
    }
    case 0x36:  // save_fregp, save_fregp_x
      if (Bits(word, 9, 1) == 0) return Saved(Arm64UnwindOp::kSave, kD8 + Bits(word, 6, 3), true, offset);
      return Saved(Arm64UnwindOp::kPush, kD8 + Bits(word, 6, 3), true, pushed);
    default:  // save_freg, save_freg_x; 0xDF allocates what depends on the CPU
      if (Bits(word, 9, 1) == 0) return Saved(Arm64UnwindOp::kSave, kD8 + Bits(word, 6, 3), false, offset);
      if (Bits(word, 8, 1) == 1) return std::nullopt;
      return Saved(Arm64UnwindOp::kPush, kD8 + Bits(word, 5, 3), false, pushed_one);
  }
}

// The codes of one byte below 0xC0, whose upper bits are the code.
RawCode DecodeShort(uint32_t first) {
  const uint32_t pair = Bits(first, 0, 6) * 8, small = Bits(first, 0, 5);
  if (first < 0x20) return Plain(Arm64UnwindOp::kAlloc, small * 16, 1);
  if (first < 0x40) return {{Arm64UnwindOp::kPush, kX19, kX19 + 1, small * 8}, 1};
  if (first < 0x80) return {{Arm64UnwindOp::kSave, kFp, kLr, pair}, 1};
  return {{Arm64UnwindOp::kPush, kFp, kLr, pair + 8}, 1};
}

// Codes from 0xE0 on. `more` are the bytes behind it.
std::optional<RawCode> DecodeOther(uint32_t first, std::span<const std::byte> more) {
  const auto byte = [&](size_t i) { return uint32_t{LoadAt<uint8_t>(more, i).value_or(0)}; };
  switch (first) {
    case 0xE0:
      return Plain(Arm64UnwindOp::kAlloc, (byte(0) << 16 | byte(1) << 8 | byte(2)) * 16, 4);
    case 0xE1:
      return Plain(Arm64UnwindOp::kSetFrame, 0, 1);
    case 0xE2:
      return Plain(Arm64UnwindOp::kSetFrame, byte(0) * 8, 2);
    case 0xE3:
      return Plain(Arm64UnwindOp::kNop, 0, 1);
    case 0xE4:
      return RawCode{{}, 1, RawCode::Kind::kEnd};
    case 0xE5:
      return RawCode{{}, 1, RawCode::Kind::kEndOfPart};
    case 0xE6:
      return RawCode{{}, 1, RawCode::Kind::kNextPair};
    case 0xFC:
      return Plain(Arm64UnwindOp::kSignReturn, 0, 1);
    default:
      return std::nullopt;  // frames of the system's own, and registers that a callee does not save
  }
}

absl::StatusOr<RawCode> Decode(std::span<const std::byte> codes) {
  const uint32_t first = LoadAt<uint8_t>(codes, 0).value_or(0), second = LoadAt<uint8_t>(codes, 1).value_or(0);
  std::optional<RawCode> code;
  if (first < 0xC0) {
    code = DecodeShort(first);
  } else if (first < 0xC8) {
    code = Plain(Arm64UnwindOp::kAlloc, (Bits(first, 0, 3) << 8 | second) * 16, 2);
  } else if (first < 0xE0) {
    code = DecodeSave(first << 8 | second);
  } else {
    code = DecodeOther(first, codes.subspan(1));
  }
  if (!code) return DamagedArm64(absl::StrCat("code ", first));
  if (code->bytes > codes.size()) return DamagedArm64("a code that goes on behind the last one");
  return *code;
}

// The pair that save_next stands for after `last`; nullopt: none is next.
std::optional<Arm64UnwindCode> PairAfter(const Arm64UnwindCode& last) {
  const bool pair = last.second == last.first + 1 && last.second + 2 <= (last.first < kD8 ? kLr : kD15);
  if (!pair || (last.op != Arm64UnwindOp::kSave && last.op != Arm64UnwindOp::kPush)) return std::nullopt;
  const uint32_t at = last.op == Arm64UnwindOp::kPush ? 0 : last.value;
  return Arm64UnwindCode{Arm64UnwindOp::kSave, static_cast<uint8_t>(last.first + 2),
                         static_cast<uint8_t>(last.second + 2), at + 16};
}

}  // namespace

absl::StatusOr<size_t> Arm64UnwindInfo::RecordBytes(std::span<const std::byte> header) {
  ASSIGN_OR_RETURN(const Header read, ReadHeader(header));
  return read.bytes;
}

absl::StatusOr<Arm64UnwindInfo> Arm64UnwindInfo::Parse(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const Header header, ReadHeader(bytes));
  if (header.bytes > bytes.size()) return DamagedArm64("too short");
  const std::span<const std::byte> codes = bytes.subspan(header.codes_offset, header.code_bytes);
  std::vector<RawCode> raw;  // the last instruction first
  std::optional<size_t> own;
  for (size_t at = 0;;) {
    ASSIGN_OR_RETURN(const RawCode code, Decode(codes.subspan(at)));
    at += code.bytes;
    if (code.kind == RawCode::Kind::kEnd) break;
    if (code.kind != RawCode::Kind::kEndOfPart) {
      raw.push_back(code);
    } else if (!own.has_value()) {
      own = raw.size();
    }
  }
  Arm64UnwindInfo info;
  info.function_bytes = header.function_bytes;
  info.bytes = header.bytes;
  info.before_function = raw.size() - own.value_or(raw.size());
  for (size_t i = raw.size(); i-- > 0;) {
    if (raw[i].kind == RawCode::Kind::kNextPair) {
      const auto next = info.codes.empty() ? std::nullopt : PairAfter(info.codes.back());
      if (!next) return DamagedArm64("a next pair of none");
      raw[i].code = *next;
    }
    info.codes.push_back(raw[i].code);
  }
  return info;
}

}  // namespace clrsampler
