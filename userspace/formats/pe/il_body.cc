#include "formats/pe/il_body.h"

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint8_t kPrefix = 0xFE, kTail = 0x14, kSwitch = 0x45;

// The operand of an instruction; numbers are its bytes.
enum Operand : uint8_t {
  kNone = 0,
  kOne = 1,
  kTwo = 2,
  kFour = 4,
  kEight = 8,
  kShortBranch,
  kBranch,
  kTargets,  // of a switch
};

struct OperandRange {
  uint8_t first, last;
  Operand operand;
};

// All others have none. Those that nobody defines have none either: no runtime runs a body with one.
constexpr OperandRange kOneByte[] = {
    {0x0E, 0x13, kOne},         {0x1F, 0x1F, kOne},           {0x20, 0x20, kFour}, {0x21, 0x21, kEight},
    {0x22, 0x22, kFour},        {0x23, 0x23, kEight},         {0x27, 0x29, kFour}, {0x2B, 0x37, kShortBranch},
    {0x38, 0x44, kBranch},      {kSwitch, kSwitch, kTargets}, {0x6F, 0x75, kFour}, {0x79, 0x79, kFour},
    {0x7B, 0x81, kFour},        {0x8C, 0x8D, kFour},          {0x8F, 0x8F, kFour}, {0xA3, 0xA5, kFour},
    {0xC2, 0xC2, kFour},        {0xC6, 0xC6, kFour},          {0xD0, 0xD0, kFour}, {0xDD, 0xDD, kBranch},
    {0xDE, 0xDE, kShortBranch},
};
constexpr OperandRange kTwoBytes[] = {
    {0x06, 0x07, kFour}, {0x09, 0x0E, kTwo}, {0x12, 0x12, kOne},
    {0x15, 0x16, kFour}, {0x19, 0x19, kOne}, {0x1C, 0x1C, kFour},
};

template <size_t kRanges>
constexpr std::array<Operand, 256> TableOf(const OperandRange (&ranges)[kRanges]) {
  std::array<Operand, 256> table = {};
  for (const OperandRange& range : ranges) {
    for (unsigned opcode = range.first; opcode <= range.last; ++opcode) table[opcode] = range.operand;
  }
  return table;
}
constexpr std::array<Operand, 256> kOperands = TableOf(kOneByte), kPrefixedOperands = TableOf(kTwoBytes);

absl::Status DamagedBody(absl::string_view what) { return absl::DataLossError(absl::StrCat("an IL body: ", what)); }

// The instructions of a body, without its header.
absl::StatusOr<std::span<const std::byte>> CodeOf(std::span<const std::byte> bytes) {
  constexpr uint8_t kTiny = 2, kFat = 3;
  constexpr size_t kFatBytes = 12;
  const std::optional<uint8_t> first = LoadAt<uint8_t>(bytes, 0);
  if (!first) return DamagedBody("no header");
  uint64_t offset = 1, size = *first >> 2;
  if ((*first & 3) == kFat) {
    const std::optional<uint16_t> flags = LoadAt<uint16_t>(bytes, 0);
    const std::optional<uint32_t> code_bytes = LoadAt<uint32_t>(bytes, 4);
    if (!flags || !code_bytes || *flags >> 12 != kFatBytes / 4) return DamagedBody("its header");
    offset = kFatBytes;
    size = *code_bytes;
  } else if ((*first & 3) != kTiny) {
    return DamagedBody("its header");
  }
  if (size > kMaxIlBodyBytes || bytes.size() < offset || size > bytes.size() - offset) return DamagedBody("its size");
  return bytes.subspan(offset, size);
}

// The distances of a switch, from behind its last one.
absl::StatusOr<uint64_t> ReadTargets(std::span<const std::byte> code, uint64_t at, uint64_t begin, IlBodyFacts& facts) {
  const std::optional<uint32_t> count = LoadAt<uint32_t>(code, at);
  if (!count || *count > code.size() / 4) return DamagedBody("a switch is cut off");
  const uint64_t end = at + 4 + uint64_t{4} * *count;
  for (uint64_t target = at + 4; target < end; target += 4) {
    const std::optional<int32_t> distance = LoadAt<int32_t>(code, target);
    if (!distance) return DamagedBody("a switch is cut off");
    if (static_cast<int64_t>(end) + *distance <= static_cast<int64_t>(begin)) facts.branches_back = true;
  }
  return end;
}

}  // namespace

absl::StatusOr<IlBodyFacts> ReadIlBody(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(const std::span<const std::byte> code, CodeOf(bytes));
  IlBodyFacts facts;
  for (uint64_t at = 0; at < code.size();) {
    const uint64_t begin = at;
    uint8_t opcode = std::to_integer<uint8_t>(code[at++]);
    Operand operand = kOperands[opcode];
    if (opcode == kPrefix) {
      if (at >= code.size()) return DamagedBody("its last instruction is cut off");
      opcode = std::to_integer<uint8_t>(code[at++]);
      operand = kPrefixedOperands[opcode];
      facts.has_tail_prefix |= opcode == kTail;
    }
    int64_t distance = 1;
    if (operand == kTargets) {
      ASSIGN_OR_RETURN(at, ReadTargets(code, at, begin, facts));
    } else if (operand == kShortBranch) {
      const uint8_t byte = LoadAt<uint8_t>(code, at).value_or(0);
      distance = byte < 0x80 ? byte : byte - 0x100;
      at += 1;
    } else if (operand == kBranch) {
      distance = LoadAt<int32_t>(code, at).value_or(0);
      at += 4;
    } else {
      at += operand;
    }
    if (at > code.size()) return DamagedBody("its last instruction is cut off");
    if (static_cast<int64_t>(at) + distance <= static_cast<int64_t>(begin)) facts.branches_back = true;
  }
  return facts;
}

}  // namespace clrsampler
