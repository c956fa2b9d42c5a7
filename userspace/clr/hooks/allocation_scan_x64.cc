#include "clr/hooks/allocation_scan_x64.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>

#include "formats/byte_reader.h"
#include "formats/x64/instruction.h"

namespace clrsampler::x64 {
namespace {

constexpr uint32_t kLimit = 100 * 1024 + 1;  // "above 100 KB"
constexpr uint8_t kLevel = 5;                // of verbose events
constexpr int8_t kSlot = 14 * 8;

// Machine numbers of registers, and the DWARF numbers that probes use (psABI, figure 3.36).
enum Register : uint8_t {
  kAx = 0,
  kCx = 1,
  kDx = 2,
  kBp = 5,
  kSi = 6,
  kDi = 7,
  kR8 = 8,
  kR9 = 9,
  kR10 = 10,
  kR11 = 11
};
constexpr std::array<uint8_t, 16> kDwarf = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::array kClobbered = {kAx, kCx, kDx, kSi, kDi, kR8, kR9, kR10, kR11};

constexpr size_t kMaxSteps = 96;        // a report has 48 instructions at most
constexpr size_t kMaxAfterCompare = 6;  // instructions between the comparison and its branch
constexpr size_t kMaxInReport = 12;     // and from there to the next thing that is looked for

// The parts of an instruction with a ModRM byte that are of use here.
struct Parts {
  bool two_bytes = false;  // opcode 0F xx
  uint8_t opcode = 0;
  bool wide = false, simd = false;
  uint8_t reg = 0, rm = 0;  // with the bits of REX
  uint8_t mod = 0;
  bool base_only = false;    // memory at a register, without an index
  int32_t displacement = 0;  // of memory
  size_t operand_end = 0;    // where an immediate begins
};

std::optional<Parts> PartsOf(std::span<const std::byte> code, const X64Instruction& instruction) {
  const auto byte = [&](size_t at) { return at < instruction.bytes ? static_cast<uint8_t>(code[at]) : uint8_t{0}; };
  Parts parts;
  size_t at = 0;
  while (byte(at) == 0x66 || byte(at) == 0xf2 || byte(at) == 0xf3) {
    parts.simd = true;
    ++at;
  }
  uint8_t rex = 0;
  if ((byte(at) & 0xf0) == 0x40) rex = byte(at++);
  parts.wide = (rex & 8) != 0;
  if (byte(at) == 0x0f) {
    parts.two_bytes = true;
    ++at;
  }
  parts.opcode = byte(at++);
  if (at >= instruction.bytes) {
    parts.rm = static_cast<uint8_t>((parts.opcode & 7) | (rex & 1) << 3);
    parts.operand_end = at;
    return parts;
  }
  const uint8_t modrm = byte(at++);
  parts.mod = modrm >> 6;
  parts.reg = static_cast<uint8_t>((modrm >> 3 & 7) | (rex & 4) << 1);
  parts.rm = static_cast<uint8_t>((modrm & 7) | (rex & 1) << 3);
  parts.base_only = parts.mod != 3 && (modrm & 7) != 4 && !(parts.mod == 0 && (modrm & 7) == 5);
  if (parts.mod != 3 && (modrm & 7) == 4) ++at;
  if (parts.mod == 1) {
    parts.displacement = (LoadAt<uint8_t>(code, at).value_or(0) ^ 0x80) - 0x80;  // signed
    at += 1;
  } else if (parts.mod == 2 || (parts.mod == 0 && (modrm & 7) == 5)) {
    parts.displacement = LoadAt<int32_t>(code, at).value_or(0);
    at += 4;
  }
  parts.operand_end = at;
  return parts;
}

// One instruction in its place.
struct Step {
  size_t at = 0;
  X64Instruction instruction;
  Parts parts;

  size_t end() const { return at + instruction.bytes; }
  int64_t target() const { return static_cast<int64_t>(end()) + instruction.distance; }
};

std::optional<Step> StepAt(std::span<const std::byte> code, size_t at) {
  if (at >= code.size()) return std::nullopt;
  const std::optional<X64Instruction> instruction = DecodeX64(code.subspan(at));
  if (!instruction) return std::nullopt;
  const std::optional<Parts> parts = PartsOf(code.subspan(at), *instruction);
  if (!parts) return std::nullopt;
  return Step{at, *instruction, *parts};
}

// cmp r64, 0x19001: the register's number.
std::optional<uint8_t> ComparedWithLimit(std::span<const std::byte> code, const Step& step) {
  const Parts& parts = step.parts;
  if (parts.two_bytes || !parts.wide) return std::nullopt;
  if (parts.opcode == 0x3d) {  // rax has an encoding of its own
    return LoadAt<uint32_t>(code, step.end() - 4) == kLimit ? std::optional<uint8_t>(kAx) : std::nullopt;
  }
  if (parts.opcode != 0x81 || (parts.reg & 7) != 7 || parts.mod != 3) return std::nullopt;
  if (LoadAt<uint32_t>(code, step.at + parts.operand_end) != kLimit) return std::nullopt;
  return parts.rm;
}

// cmp r32, 5 or cmp dword [r], 5
bool ComparesLevel(std::span<const std::byte> code, const Step& step) {
  const Parts& parts = step.parts;
  return !parts.two_bytes && !parts.wide && parts.opcode == 0x83 && (parts.reg & 7) == 7 &&
         LoadAt<uint8_t>(code, step.at + parts.operand_end) == kLevel;
}

// test dword, 1 or and r32, 1
bool TestsKeyword(std::span<const std::byte> code, const Step& step) {
  const Parts& parts = step.parts;
  if (parts.two_bytes || parts.wide) return false;
  const size_t at = step.at + parts.operand_end;
  if (parts.opcode == 0xf7 && (parts.reg & 7) == 0) return LoadAt<uint32_t>(code, at) == 1;
  if (parts.opcode == 0xf6 && (parts.reg & 7) == 0) return LoadAt<uint8_t>(code, at) == 1;
  return parts.opcode == 0x83 && (parts.reg & 7) == 4 && LoadAt<uint8_t>(code, at) == 1;
}

// The condition of a conditional jump, as the opcode has it: 2 below, 3 not below, 4 equal, 5 not equal, c less, d not
// less. 0xff: it is none.
uint8_t ConditionOf(const Step& step) {
  if (step.instruction.flow != X64Instruction::Flow::kBranch) return 0xff;
  const uint8_t high = step.parts.opcode & 0xf0;
  return high == 0x70 || (step.parts.two_bytes && high == 0x80) ? step.parts.opcode & 15 : 0xff;
}
constexpr uint8_t kBelow = 2, kNotEqual = 5, kNotLess = 0xd;

bool IsConditionalMove(const Step& step) {
  return step.parts.two_bytes && (step.parts.opcode & 0xf0) == 0x40 && step.parts.wide;
}

// Follows the content of registers and of the frame, as far as it comes from their content at the probe.
class Values {
 public:
  Values() {
    for (size_t i = 0; i < registers_.size(); ++i) registers_[i] = {ProbeValue::Kind::kRegister, kDwarf[i]};
  }

  const ProbeValue& at(uint8_t machine_register) const { return registers_[machine_register & 15]; }

  void AfterCall() {
    for (const Register clobbered : kClobbered) registers_[clobbered] = {};
  }

  // False: it is none of the instructions that reports are made of.
  bool Execute(std::span<const std::byte> code, const Step& step) {
    const Parts& parts = step.parts;
    if (parts.two_bytes) return parts.opcode == 0x1f || parts.opcode == 0xef || parts.opcode == 0x57;  // nop, xmm = 0
    switch (parts.opcode & 0xf8) {
      case 0x50:  // push
        return true;
      case 0x58:  // pop
        registers_[parts.rm] = {};
        return true;
      case 0xb8:  // mov r32, n
        registers_[parts.rm] = {ProbeValue::Kind::kConstant, LoadAt<int32_t>(code, step.end() - 4).value_or(0)};
        return !parts.wide;
      default:
        break;
    }
    switch (parts.opcode) {
      case 0x89:  // mov to the second operand
        if (parts.mod == 3) {
          registers_[parts.rm] = registers_[parts.reg];
        } else {
          Store(parts);
        }
        return true;
      case 0x8b:  // mov from it
        registers_[parts.reg] = parts.mod == 3 ? registers_[parts.rm] : Loaded(parts);
        return true;
      case 0x31:  // xor
      case 0x33:
        registers_[parts.opcode == 0x31 ? parts.rm : parts.reg] =
            parts.mod == 3 && parts.reg == parts.rm ? ProbeValue{ProbeValue::Kind::kConstant, 0} : ProbeValue{};
        return parts.mod == 3;
      case 0x8d:  // lea
      case 0x63:  // movsxd
        registers_[parts.reg] = {};
        return true;
      case 0x39:  // cmp
      case 0x3b:
      case 0x85:  // test
      case 0xf7:
      case 0xf6:
        return parts.opcode < 0xf0 || (parts.reg & 7) == 0;
      case 0x81:
      case 0x83:  // add, and and so on; cmp changes nothing
        if ((parts.reg & 7) != 7 && parts.mod == 3) registers_[parts.rm] = {};
        return (parts.reg & 7) == 7 || parts.mod == 3;
      default:
        return false;
    }
  }

 private:
  void Store(const Parts& parts) {
    // A store elsewhere may have changed unknown words. But a report has none: it would go to the stack.
    if (parts.base_only && parts.rm == kBp)
      stored_[parts.displacement] = parts.wide ? registers_[parts.reg] : ProbeValue{};
  }
  ProbeValue Loaded(const Parts& parts) const {
    if (!parts.base_only || parts.rm != kBp) return {};
    const auto stored = stored_.find(parts.displacement);
    if (stored != stored_.end()) return stored->second;
    return {ProbeValue::Kind::kFrame, parts.displacement};
  }

  std::array<ProbeValue, 16> registers_;
  std::map<int32_t, ProbeValue> stored_;  // in the frame, since the probe
};

// The arguments of a call of the event sink.
struct Report {
  ProbeValue bytes, kind, object;
  bool level = false, keyword = false;
};

// From `at` on to the call of the sink. A test of the keyword's bit is followed to where it is set.
std::optional<Report> FollowToReport(std::span<const std::byte> code, size_t at) {
  Values values;
  Report report;
  bool slot_loaded = false, tested = false, asked = false;
  for (size_t steps = 0; steps < kMaxSteps; ++steps) {
    const std::optional<Step> step = StepAt(code, at);
    if (!step) return std::nullopt;
    at = step->end();
    using Flow = X64Instruction::Flow;
    const bool through_slot = step->parts.base_only && step->parts.displacement == kSlot;
    switch (step->instruction.flow) {
      case Flow::kCall:
        values.AfterCall();
        continue;
      case Flow::kBranch:
        if (tested && ConditionOf(*step) == kNotEqual) {
          if (step->target() < 0 || static_cast<uint64_t>(step->target()) >= code.size()) return std::nullopt;
          at = static_cast<size_t>(step->target());
        }
        tested = false;
        continue;
      case Flow::kIndirectCall:
        // A collector in a library of its own asks the runtime for the sink.
        if (!through_slot && !slot_loaded && step->parts.base_only && report.keyword && !asked) {
          asked = true;
          values.AfterCall();
          continue;
        }
        [[fallthrough]];
      case Flow::kIndirectJump:
        if (!through_slot && !slot_loaded) return std::nullopt;
        report.bytes = values.at(kSi);
        report.kind = values.at(kDx);
        report.object = values.at(kR8);
        return report;
      case Flow::kNext:
        break;
      default:
        return std::nullopt;
    }
    report.level |= ComparesLevel(code, *step);
    tested = TestsKeyword(code, *step);
    report.keyword |= tested;
    slot_loaded |= step->parts.opcode == 0x8b && !step->parts.two_bytes && step->parts.wide && through_slot;
    if (!values.Execute(code, *step)) return std::nullopt;
  }
  return std::nullopt;
}

// The branch over the report, behind the comparison `compare`.
std::optional<Step> BranchBehind(std::span<const std::byte> code, const Step& compare, AllocationReports& found) {
  std::optional<Step> step = StepAt(code, compare.end());
  for (size_t i = 0; i < kMaxAfterCompare && step && ConditionOf(*step) != kBelow; ++i) {
    if (IsConditionalMove(*step)) {
      ++found.resets;
      return std::nullopt;
    }
    if (step->instruction.flow != X64Instruction::Flow::kNext) return std::nullopt;
    step = StepAt(code, step->end());
  }
  return step && ConditionOf(*step) == kBelow ? step : std::nullopt;
}

// The report that stands behind the comparison `compare`, whose sum is in `sum`.
void LookBehind(std::span<const std::byte> code, VirtualAddress start, const Step& compare, uint8_t sum,
                AllocationReports& found) {
  const std::optional<Step> branch = BranchBehind(code, compare, found);
  if (!branch) return;
  bool level = false;
  size_t at = branch->end();
  for (size_t i = 0; i < kMaxInReport; ++i) {
    const std::optional<Step> next = StepAt(code, at);
    if (!next) return;
    const Step& step = *next;
    at = step.end();
    if (step.instruction.flow == X64Instruction::Flow::kCall) {
      // Arguments are moved in between. A call right away is another use of the limit.
      if (i > 0 && !level) found.called.push_back({start.value + static_cast<uint64_t>(step.target())});
      return;
    }
    if (level && ConditionOf(step) == kNotLess) {
      const std::optional<Report> report = FollowToReport(code, static_cast<size_t>(step.target()));
      const ProbeValue bytes{ProbeValue::Kind::kRegister, kDwarf[sum]};
      if (report && report->keyword && report->bytes == bytes && report->object.kind != ProbeValue::Kind::kUnknown) {
        found.sites.push_back({step.at, {report->bytes, report->kind, report->object}});
      } else {
        ++found.unknown_sites;
      }
      return;
    }
    level |= ComparesLevel(code, step);
    if (step.instruction.flow != X64Instruction::Flow::kNext) return;
  }
}

}  // namespace

bool MayReportAllocations(std::span<const std::byte> code) {
  const std::array<std::byte, 4> limit = {std::byte{kLimit & 0xff}, std::byte{kLimit >> 8 & 0xff},
                                          std::byte{kLimit >> 16 & 0xff}, std::byte{0}};
  return std::search(code.begin(), code.end(), limit.begin(), limit.end()) != code.end();
}

AllocationReports FindAllocationReports(std::span<const std::byte> code, VirtualAddress start) {
  AllocationReports found;
  size_t at = 0;
  while (found.followed <= kMaxFollowed) {
    const std::optional<Step> step = StepAt(code, at);
    if (!step) break;
    if (const std::optional<uint8_t> sum = ComparedWithLimit(code, *step)) {
      ++found.followed;
      LookBehind(code, start, *step, *sum, found);
    }
    at = step->end();
  }
  return found;
}

std::optional<AllocationFacts> FactsOfReport(std::span<const std::byte> code) {
  const std::optional<Report> report = FollowToReport(code, 0);
  if (!report || !report->level || !report->keyword) return std::nullopt;
  const auto is = [](const ProbeValue& value, Register machine) {
    return value == ProbeValue{ProbeValue::Kind::kRegister, kDwarf[machine]};
  };
  const auto in = [](Register machine) { return ProbeValue{ProbeValue::Kind::kRegister, kDwarf[machine]}; };
  // (bytes, generation, object, size), behind the heap where there are several.
  if (is(report->bytes, kDi) && is(report->object, kDx)) return AllocationFacts{in(kDi), in(kSi), in(kDx)};
  if (is(report->bytes, kSi) && is(report->object, kCx))
    return AllocationFacts{in(kSi), in(kDx), in(kCx), /*of_one_heap=*/true};
  return std::nullopt;
}

}  // namespace clrsampler::x64
