#include "formats/elf/line_sequences.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/status/status.h"
#include "formats/elf/dwarf_cursor.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr uint32_t kFirstReservedLength = 0xfffffff0;  // 64-bit DWARF, and what is not defined
constexpr uint16_t kVersion = 5;

// DW_LNS_* and DW_LNE_*. Operations that are not named here change no address.
enum Standard : uint8_t { kExtended = 0, kCopy = 1, kAdvancePc = 2, kConstAddPc = 8, kFixedAdvancePc = 9 };
enum Extended : uint8_t { kEndSequence = 1, kSetAddress = 2 };

struct Header {
  uint8_t instruction_bytes = 0;
  uint8_t line_range = 0;
  uint8_t opcode_base = 0;
  std::array<uint8_t, 256> operands{};  // of standard opcodes, ULEB128 each

  uint64_t AdvanceOf(uint8_t special) const {
    return uint64_t{static_cast<uint8_t>(special - opcode_base)} / line_range * instruction_bytes;
  }
};

absl::Status Unimplemented(const char* what) { return absl::UnimplementedError(what); }

// Takes it off `table`, which begins behind its length; the program is what is left.
absl::StatusOr<Header> TakeHeader(DwarfCursor& table) {
  if (table.Take<uint16_t>() != kVersion) return Unimplemented("its lines are not those of DWARF 5");
  const auto address_bytes = table.Take<uint8_t>();
  const auto selector_bytes = table.Take<uint8_t>();
  if (address_bytes != sizeof(uint64_t) || selector_bytes != 0)
    return Unimplemented("its addresses are of another kind");
  const auto header_bytes = table.Take<uint32_t>();
  DwarfCursor fields(table.TakeBlock(header_bytes), {0});
  Header header;
  header.instruction_bytes = fields.Take<uint8_t>();
  const auto operations = fields.Take<uint8_t>();
  fields.Take<uint8_t>();  // default_is_stmt
  fields.Take<uint8_t>();  // line_base
  header.line_range = fields.Take<uint8_t>();
  header.opcode_base = fields.Take<uint8_t>();
  for (unsigned opcode = 1; opcode < header.opcode_base; ++opcode) header.operands[opcode] = fields.Take<uint8_t>();
  if (!table.ok() || !fields.ok() || header.line_range == 0 || header.opcode_base == 0) {
    return absl::DataLossError("a header of its line tables is damaged");
  }
  if (operations != 1) return Unimplemented("its instructions are bundles");
  return header;
}

class Program {
 public:
  Program(const Header& header, DwarfCursor code, uint64_t table, std::vector<LineSequence>& sequences)
      : header_(header), code_(code), table_(table), sequences_(sequences) {}

  absl::Status Run() {
    while (!code_.at_end()) {
      Step(code_.Take<uint8_t>());
      if (sequences_.size() > kMaxLineSequences) return absl::ResourceExhaustedError("it has too many line sequences");
    }
    return code_.ok() ? absl::OkStatus() : absl::DataLossError("a program of its line tables is damaged");
  }

 private:
  void Step(uint8_t opcode) {
    if (opcode >= header_.opcode_base) {
      address_ += header_.AdvanceOf(opcode);
      return Row();
    }
    switch (opcode) {
      case kExtended:
        return StepExtended(DwarfCursor(code_.TakeBlock(code_.TakeUleb()), {0}));
      case kCopy:
        return Row();
      case kAdvancePc:
        address_ += code_.TakeUleb() * header_.instruction_bytes;
        return;
      case kConstAddPc:
        address_ += header_.AdvanceOf(255);
        return;
      case kFixedAdvancePc:
        address_ += code_.Take<uint16_t>();
        return;
      default:
        for (unsigned i = 0; i < header_.operands[opcode]; ++i) code_.TakeUleb();
    }
  }

  void StepExtended(DwarfCursor operation) {
    switch (operation.Take<uint8_t>()) {
      case kEndSequence:
        if (begin_.value_or(0) != 0 && *begin_ < address_) sequences_.push_back({*begin_, address_, table_});
        begin_.reset();
        address_ = 0;
        return;
      case kSetAddress:
        address_ = operation.Take<uint64_t>();
    }
    if (!operation.ok()) code_.Fail();
  }

  void Row() { begin_ = std::min(begin_.value_or(address_), address_); }

  const Header& header_;
  DwarfCursor code_;
  const uint64_t table_;
  std::vector<LineSequence>& sequences_;
  uint64_t address_ = 0;
  std::optional<uint64_t> begin_;  // of the sequence at hand; nullopt: it has no row yet
};

}  // namespace

absl::StatusOr<std::vector<LineSequence>> ListLineSequences(std::span<const std::byte> debug_line) {
  std::vector<LineSequence> sequences;
  DwarfCursor section(debug_line, {0});
  while (!section.at_end()) {
    const uint64_t at = section.at();
    const auto length = section.Take<uint32_t>();
    if (length >= kFirstReservedLength) return Unimplemented("it is 64-bit DWARF");
    DwarfCursor table(section.TakeBlock(length), {0});
    if (!section.ok()) break;
    ASSIGN_OR_RETURN(const Header header, TakeHeader(table));
    RETURN_IF_ERROR(Program(header, DwarfCursor(table.rest(), {0}), at, sequences).Run());
  }
  if (!section.ok()) return absl::DataLossError("its line tables are cut off");
  std::sort(sequences.begin(), sequences.end(),
            [](const LineSequence& a, const LineSequence& b) { return a.begin < b.begin; });
  return sequences;
}

}  // namespace clrsampler
