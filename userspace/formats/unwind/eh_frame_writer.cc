#include "formats/unwind/eh_frame_writer.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// DW_EH_PE_*, and DW_CFA_* with their operands.
constexpr uint8_t kPcRelativeSigned4 = 0x1b, kUnsigned4 = 0x03, kHeaderRelativeSigned4 = 0x3b, kOmitted = 0xff;
// linux:tools/perf/util/unwind-libunwind-local.c reads so much behind the first eight bytes.
constexpr int kHeaderPaddingBytes = 12;
constexpr uint8_t kAdvance1 = 0x02, kAdvance4 = 0x04, kDefCfa = 0x0c, kDefCfaOffset = 0x0e, kOffset = 0x80, kNop = 0;
constexpr uint8_t kOffsetExtended = 0x05, kNegateRaState = 0x2d;
constexpr uint8_t kMaxShortRegister = 63;  // that kOffset has room for
constexpr int kWordBytes = 8;
constexpr size_t kAlignment = 8;

struct MachineFacts {
  uint8_t stack_pointer;  // DWARF numbers
  uint8_t return_address;
  uint8_t last_register;
  int32_t entry_cfa;  // from sp when a function is entered
  bool signs_returns;
};
constexpr MachineFacts kX64Facts = {7, 16, 16, 8, false}, kArm64Facts = {31, 30, 95, 0, true};

uint32_t AlignedUp(uint32_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class FrameBytes {
 public:
  size_t size() const { return bytes_.size(); }
  void Byte(uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void U32(uint32_t value) {
    for (int i = 0; i < 4; ++i) Byte(static_cast<uint8_t>(value >> 8 * i));
  }
  // The distance from the field itself, or from `origin`.
  void Distance(int64_t target) { DistanceFrom(static_cast<int64_t>(size()), target); }
  void DistanceFrom(int64_t origin, int64_t target) { U32(static_cast<uint32_t>(target - origin)); }
  void Uleb(uint32_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  // So many words below the caller's sp.
  void Saved(uint8_t reg, int32_t words) {
    Byte(reg <= kMaxShortRegister ? kOffset | reg : kOffsetExtended);
    if (reg > kMaxShortRegister) Uleb(reg);
    Uleb(static_cast<uint32_t>(words));
  }
  // An entry is as long as its first field says.
  size_t BeginEntry() {
    U32(0);
    return size();
  }
  void EndEntry(size_t begin) {
    while (size() % kAlignment != 0) Byte(kNop);
    const auto length = static_cast<uint32_t>(size() - begin);
    for (size_t i = 0; i < 4; ++i) bytes_[begin - 4 + i] = static_cast<char>(length >> 8 * i);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void WriteCommonEntry(const MachineFacts& machine, FrameBytes& out) {
  const size_t begin = out.BeginEntry();
  out.U32(0);
  for (const uint8_t byte : std::initializer_list<uint8_t>{
           1, 'z', 'R', 0, /*code alignment*/ 1, /*data alignment, -8*/ 0x78, machine.return_address, 1,
           kPcRelativeSigned4, kDefCfa, machine.stack_pointer, static_cast<uint8_t>(machine.entry_cfa)}) {
    out.Byte(byte);
  }
  if (machine.entry_cfa > 0) {  // the return address is on the stack
    out.Byte(kOffset | machine.return_address);
    out.Uleb(static_cast<uint32_t>(machine.entry_cfa / kWordBytes));
  }
  out.EndEntry(begin);
}

absl::Status WriteSteps(const MachineFacts& machine, const FrameFunction& function, FrameBytes& out) {
  const auto misfit = [&](const FrameStep& step) {
    return absl::InvalidArgumentError(absl::StrCat("a frame's step at ", step.offset, " does not fit"));
  };
  uint32_t at = 0;
  uint8_t cfa_register = machine.stack_pointer;
  for (const FrameStep& step : function.steps) {
    if (step.offset < at || step.offset >= function.end - function.begin || step.reg > machine.last_register) {
      return misfit(step);
    }
    if (const uint32_t distance = step.offset - at; distance > 0) {
      out.Byte(distance <= 0xff ? kAdvance1 : kAdvance4);
      distance <= 0xff ? out.Byte(static_cast<uint8_t>(distance)) : out.U32(distance);
      at = step.offset;
    }
    if (step.rule == FrameRule::kReturnSigned) {
      if (!machine.signs_returns) return misfit(step);
      out.Byte(kNegateRaState);
      continue;
    }
    if (step.rule == FrameRule::kSaved) {
      if (step.value >= 0 || step.value % kWordBytes != 0) return misfit(step);
      out.Saved(step.reg, -(step.value / kWordBytes));
      continue;
    }
    if (step.value < 0) return misfit(step);
    out.Byte(step.reg == cfa_register ? kDefCfaOffset : kDefCfa);
    if (step.reg != cfa_register) out.Uleb(step.reg);
    out.Uleb(static_cast<uint32_t>(step.value));
    cfa_register = step.reg;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EhFrame> WriteEhFrame(FrameMachine machine, uint32_t code_bytes,
                                     std::span<const FrameFunction> functions, SearchTable table) {
  const MachineFacts& facts = machine == FrameMachine::kX64 ? kX64Facts : kArm64Facts;
  const int64_t code = -int64_t{AlignedUp(code_bytes)};  // from the first byte that is written
  FrameBytes out;
  WriteCommonEntry(facts, out);
  std::vector<size_t> entries;
  uint32_t least = 0;
  for (const FrameFunction& function : functions) {
    if (function.begin < least || function.end <= function.begin || function.end > code_bytes) {
      return absl::InvalidArgumentError("frames of functions that are empty, overlap, or are in no order");
    }
    least = function.end;
    entries.push_back(out.size());
    const size_t begin = out.BeginEntry();
    out.U32(static_cast<uint32_t>(begin));  // the common entry is at 0
    out.Distance(code + function.begin);
    out.U32(function.end - function.begin);
    out.Byte(0);
    RETURN_IF_ERROR(WriteSteps(facts, function, out));
    out.EndEntry(begin);
  }
  out.U32(0);  // no entry follows
  out.U32(0);
  const auto header = static_cast<int64_t>(out.size());
  const bool written = table == SearchTable::kWritten;
  for (const uint8_t byte :
       {uint8_t{1}, kPcRelativeSigned4, written ? kUnsigned4 : kOmitted, written ? kHeaderRelativeSigned4 : kOmitted}) {
    out.Byte(byte);
  }
  out.Distance(0);
  if (written) {
    out.U32(static_cast<uint32_t>(functions.size()));
    for (size_t i = 0; i < functions.size(); ++i) {
      out.DistanceFrom(header, code + functions[i].begin);
      out.DistanceFrom(header, static_cast<int64_t>(entries[i]));
    }
  } else {
    for (int i = 0; i < kHeaderPaddingBytes; ++i) out.Byte(0);
  }
  EhFrame frame;
  frame.header_bytes = out.size() - static_cast<size_t>(header);
  frame.bytes = out.Take();
  return frame;
}

}  // namespace clrsampler
