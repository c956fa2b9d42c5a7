#include "clr/hooks/allocation_scan_arm64.h"

#include <array>
#include <cstdint>
#include <utility>

#include "formats/byte_reader.h"

namespace clrsampler::arm64 {
namespace {

constexpr size_t kInstructionBytes = sizeof(uint32_t);
constexpr uint32_t kSinkSlot = 14;

// Instructions; "any" leaves out the registers.
constexpr uint32_t kNop = 0xd503201f;
constexpr uint32_t kCompareLimit = 0xf140641f;                   // cmp x0, #25, lsl #12
constexpr uint32_t kSetLow = 0x52920000, kSetHigh = 0x72a00020;  // mov w0, #0x9000; movk w0, #1, lsl #16: the same
constexpr uint32_t kCompareTwo = 0xeb00001f;                     // cmp x0, x0
constexpr uint32_t kCompareLevel = 0x7100141f;                   // cmp w0, #5: verbose events
constexpr uint32_t kMaskBit0 = 0x12000000;                       // and w0, w0, #1
constexpr uint32_t kCompareIfNotLess = 0x7a40a804;               // ccmp w0, #0, #4, ge
constexpr uint32_t kLoad = 0xf9400000;                           // ldr x0, [x0]
constexpr uint32_t kLoadSlot = kLoad | kSinkSlot << 10;
constexpr uint32_t kAnyBase = 0xfffffc1f;                 // of Rn
constexpr uint32_t kAnyTwo = 0xffe0fc1f;                  // of Rn and Rm
constexpr uint32_t kAnyLoad = 0xfffffc00;                 // of Rn and Rt
constexpr uint32_t kZero = 31, kFramePointer = 29;        // the first is sp in addresses
constexpr uint32_t kFirstKept = 19, kReturnAddress = 30;  // a call keeps x19 to x29 (AAPCS64, 6.1.1)

constexpr size_t kMaxSteps = 96;          // a report has 36 instructions at most
constexpr size_t kMaxBeforeCompare = 24;  // instructions from where the limit is set to the comparison; 13 in 11.0.0
constexpr size_t kMaxAfterCompare = 6;    // instructions between the comparison and its branch
constexpr size_t kMaxInReport = 14;       // and from there to the next thing that is looked for

uint32_t At(std::span<const std::byte> code, size_t index) {
  return LoadAt<uint32_t>(code, index * kInstructionBytes).value_or(0);  // 0 is no instruction (udf)
}

uint32_t To(uint32_t instruction) { return instruction & 31; }            // Rd, Rt
uint32_t From(uint32_t instruction) { return instruction >> 5 & 31; }     // Rn
uint32_t Second(uint32_t instruction) { return instruction >> 16 & 31; }  // Rm
bool IsWide(uint32_t instruction) { return instruction >> 31 != 0; }      // of data processing: x, not w

// A signed field of an instruction: its lowest bit, and how many there are.
int64_t Field(uint32_t instruction, int low, int bits) {
  return static_cast<int64_t>(uint64_t{instruction} << (64 - low - bits)) >> (64 - bits);
}

bool IsCall(uint32_t instruction) { return (instruction & 0xfc000000) == 0x94000000; }
bool IsIndirect(uint32_t instruction) { return (instruction & 0xffdffc1f) == 0xd61f0000; }  // br, blr
bool IsIndirectCall(uint32_t instruction) { return (instruction & 0xfffffc1f) == 0xd63f0000; }
bool IsByCondition(uint32_t instruction) { return (instruction & 0xff000010) == 0x54000000; }
// tbz or tbnz of bit 0 of a w register
bool IsByBit0(uint32_t instruction) { return (instruction & 0xfef80000) == 0x36000000; }
bool IsByZero(uint32_t instruction) { return (instruction & 0x7e000000) == 0x34000000; }
bool IsByAnyBit(uint32_t instruction) { return (instruction & 0x7e000000) == 0x36000000; }
bool IsJump(uint32_t instruction) { return (instruction & 0xfc000000) == 0x14000000; }
bool GoesOn(uint32_t instruction) {  // with the next instruction
  return instruction != 0 && !IsCall(instruction) && !IsJump(instruction) && !IsByCondition(instruction) &&
         !IsByZero(instruction) && !IsByAnyBit(instruction) && (instruction & 0xfe000000) != 0xd6000000;
}

// The condition of b.cond and csel.
enum Condition : uint32_t { kNotEqual = 1, kHigher = 8, kNotHigher = 9, kNotLess = 10, kLess = 11 };
bool IsBranchIf(uint32_t instruction, Condition condition) {
  return IsByCondition(instruction) && (instruction & 15) == condition;
}

// Whether the branch at `index` leads to an instruction of the function, and to which.
std::optional<size_t> TargetOf(std::span<const std::byte> code, size_t index) {
  const uint32_t instruction = At(code, index);
  const int64_t words = IsByCondition(instruction) ? Field(instruction, 5, 19) : Field(instruction, 5, 14);
  const int64_t target = static_cast<int64_t>(index) + words;
  if (target < 0 || static_cast<uint64_t>(target) >= code.size() / kInstructionBytes) return std::nullopt;
  return static_cast<size_t>(target);
}

VirtualAddress Callee(uint32_t call, VirtualAddress at) {
  return {at.value + static_cast<uint64_t>(Field(call, 0, 26)) * kInstructionBytes};
}

bool SetsFlags(uint32_t instruction) {
  const uint32_t kind = instruction & 0x3f000000;
  return kind == 0x31000000 || kind == 0x2b000000 ||                                              // adds, subs
         (instruction & 0x7f800000) == 0x72000000 || (instruction & 0x7f000000) == 0x6a000000 ||  // ands
         (instruction & 0x3fe00000) == 0x3a400000;                                                // ccmp
}

// csel x, xzr, xSUM, hi, or the same with swapped operands: the sum begins anew above the limit.
bool BeginsAnew(uint32_t instruction, uint32_t sum) {
  const uint32_t above = 0x9a800000 | sum << 16 | kHigher << 12 | kZero << 5;
  const uint32_t not_above = 0x9a800000 | kZero << 16 | kNotHigher << 12 | sum << 5;
  return (instruction & ~uint32_t{31}) == above || (instruction & ~uint32_t{31}) == not_above;
}

ProbeValue InRegister(uint32_t number) { return {ProbeValue::Kind::kRegister, static_cast<int32_t>(number)}; }

// The content of a register, as far as it is known.
struct Value {
  enum class Role : uint8_t { kNone, kSink, kTable, kSlot };  // on the way to the call: what a call gave, and so on
  ProbeValue place;
  bool whole = false;  // all 64 bits are from there
  Role role = Role::kNone;
};

// Follows what registers hold, as far as it comes from what they and the frame held at the probe.
class Values {
 public:
  Values() {
    for (uint32_t i = 0; i < kZero; ++i) registers_[i] = {InRegister(i), true};
    registers_[kZero] = {{ProbeValue::Kind::kConstant, 0}, true};
  }

  const Value& at(uint32_t number) const { return registers_[number & 31]; }

  void AfterCall() {
    for (uint32_t i = 0; i < kFirstKept; ++i) Set(i, {});
    Set(kReturnAddress, {});
    Set(0, {.role = Value::Role::kSink});
  }

  // False: it is none of the instructions that reports are made of.
  bool Execute(uint32_t instruction) {
    return instruction == kNop || Compute(instruction) || AccessOne(instruction) || AccessTwo(instruction);
  }

 private:
  void Set(uint32_t number, const Value& value) {
    if (number != kZero) registers_[number] = value;  // zero stays, and sp is not followed
  }

  bool Compute(uint32_t instruction) {
    if ((instruction & 0x7fe0ffe0) == 0x2a0003e0) {  // mov
      Value value = registers_[Second(instruction)];
      if (!IsWide(instruction)) value = {value.place, value.place.kind == ProbeValue::Kind::kConstant};
      Set(To(instruction), value);
      return true;
    }
    if ((instruction & 0x7fe00000) == 0x52800000) {  // mov, a number of 16 bits
      Set(To(instruction), {{ProbeValue::Kind::kConstant, static_cast<int32_t>(instruction >> 5 & 0xffff)}, true});
      return true;
    }
    if ((instruction & 0x3fe00000) == 0x3a400000) return true;            // ccmp
    const bool is_address = (instruction & 0x1f000000) == 0x10000000;     // adr, adrp
    const bool is_sum = (instruction & 0x1f000000) == 0x11000000;         // add, sub, cmp with a number
    const bool is_sum_of_two = (instruction & 0x1f000000) == 0x0b000000;  // the same with a register
    const bool is_mask = (instruction & 0x1f800000) == 0x12000000;        // and, orr with a number
    const bool is_choice = (instruction & 0x3fe00800) == 0x1a800000;      // csel, csinc
    if (!is_address && !is_sum && !is_sum_of_two && !is_mask && !is_choice) return false;
    Set(To(instruction), {});
    return true;
  }

  // ldr and str with a distance, which may be scaled, or with an index; not those that change the base.
  bool AccessOne(uint32_t instruction) {
    const bool is_scaled = (instruction & 0x3f000000) == 0x39000000;
    const bool is_unscaled = (instruction & 0x3f200c00) == 0x38000000;
    const bool is_indexed = (instruction & 0x3f200c00) == 0x38200800;
    if (!is_scaled && !is_unscaled && !is_indexed) return false;
    const uint32_t size = instruction >> 30, operation = instruction >> 22 & 3;
    if (operation == 0) {
      frame_is_kept_ = false;
      return true;
    }
    Value value;
    if (is_scaled && operation == 1) value = Loaded(instruction);
    const int64_t distance = is_scaled ? int64_t{instruction >> 10 & 0xfff} << size : Field(instruction, 12, 9);
    if (!is_indexed && operation == 1 && size >= 2 && frame_is_kept_ && HoldsFrame(From(instruction))) {
      value = {{ProbeValue::Kind::kFrame, static_cast<int32_t>(distance)}, size == 3};
    }
    Set(To(instruction), value);
    return true;
  }

  // The next step to the slot, if it is one.
  Value Loaded(uint32_t instruction) const {
    const Value::Role from = registers_[From(instruction)].role;
    if ((instruction & kAnyLoad) == kLoad && from == Value::Role::kSink) return {.role = Value::Role::kTable};
    if ((instruction & kAnyLoad) == kLoadSlot && from == Value::Role::kTable) return {.role = Value::Role::kSlot};
    return {};
  }

  // ldp and stp, in front of a function and at its end.
  bool AccessTwo(uint32_t instruction) {
    if ((instruction & 0x3e000000) != 0x28000000) return false;
    const bool changes_base = (instruction & 0x00800000) != 0, loads = (instruction & 0x00400000) != 0;
    if (changes_base) Set(From(instruction), {});
    if (loads) {
      Set(To(instruction), {});
      Set(instruction >> 10 & 31, {});
    } else {
      frame_is_kept_ = false;
    }
    return true;
  }

  bool HoldsFrame(uint32_t number) const {
    return registers_[number].whole && registers_[number].place == InRegister(kFramePointer);
  }

  std::array<Value, 32> registers_;
  // Nothing was stored since the probe: whatever it was, it may lie in the frame. No report stores before its call.
  bool frame_is_kept_ = true;
};

// The arguments of a call of the event sink.
struct Report {
  Value bytes, kind, object;
  bool level = false, keyword = false;
};

bool ComparesLevel(uint32_t instruction) { return (instruction & kAnyBase) == kCompareLevel; }

// cmp wL, #5; and wB, w, #1; ccmp wB, #0, #4, ge: "not equal" is the level and the bit.
bool TestsBoth(std::span<const std::byte> code, size_t index) {
  const uint32_t mask = At(code, index + 1), both = At(code, index + 2);
  return ComparesLevel(At(code, index)) && (mask & kAnyLoad) == kMaskBit0 && (both & kAnyBase) == kCompareIfNotLess &&
         From(both) == To(mask);
}

// The place where the way to the call goes on behind a branch: where the level is high enough and the keyword's bit is
// set. `straight` is the number of instructions before the branch that were executed one after the other. nullopt: it
// is another branch, or leads out of the function.
std::optional<size_t> FollowBranch(std::span<const std::byte> code, size_t index, size_t straight, Report& report) {
  const uint32_t instruction = At(code, index);
  if (IsByBit0(instruction)) {
    report.keyword = true;
    const bool if_set = (instruction & 0x01000000) != 0;
    return if_set ? TargetOf(code, index) : index + 1;
  }
  if (straight >= 3 && TestsBoth(code, index - 3) && IsBranchIf(instruction, kNotEqual)) {
    report.level = report.keyword = true;
    return TargetOf(code, index);
  }
  if (straight == 0 || !ComparesLevel(At(code, index - 1))) return std::nullopt;
  report.level = true;
  if (IsBranchIf(instruction, kLess)) return index + 1;
  return IsBranchIf(instruction, kNotLess) ? TargetOf(code, index) : std::nullopt;
}

// From the instruction `index` on to the call of the sink.
std::optional<Report> FollowToReport(std::span<const std::byte> code, size_t index) {
  Values values;
  Report report;
  size_t straight = 0;
  bool asked = false;
  for (size_t steps = 0; steps < kMaxSteps; ++steps) {
    const uint32_t instruction = At(code, index);
    const bool is_slot = values.at(From(instruction)).role == Value::Role::kSlot;
    // A collector in a library of its own asks the runtime for the sink.
    const bool asks = IsIndirectCall(instruction) && !is_slot && report.keyword && !std::exchange(asked, true);
    if (IsIndirect(instruction) && !asks) {
      if (!is_slot || values.at(0).role != Value::Role::kSink) return std::nullopt;
      report.bytes = values.at(1);
      report.kind = values.at(2);
      report.object = values.at(4);
      return report;
    }
    if (IsByCondition(instruction) || IsByAnyBit(instruction)) {
      const std::optional<size_t> next = FollowBranch(code, index, straight, report);
      if (!next) return std::nullopt;
      index = *next;
      straight = 0;
      continue;
    }
    if (IsCall(instruction) || asks) {
      values.AfterCall();
    } else if (!values.Execute(instruction)) {
      return std::nullopt;
    }
    ++index;
    ++straight;
  }
  return std::nullopt;
}

// cmp w, #5; b.ge
bool IsLevelBranch(std::span<const std::byte> code, size_t index) {
  return index > 0 && ComparesLevel(At(code, index - 1)) && IsBranchIf(At(code, index), kNotLess);
}

// The report that the branch at `index` leads to, which is taken where the level is high enough.
std::optional<Report> ReportBehind(std::span<const std::byte> code, size_t index) {
  const std::optional<size_t> rare = TargetOf(code, index);
  const std::optional<Report> report = rare ? FollowToReport(code, *rare) : std::nullopt;
  return report && report->keyword ? report : std::nullopt;
}

// The site at the branch `index`.
void AddSite(std::span<const std::byte> code, size_t index, bool sum_is_kept, uint32_t sum, AllocationReports& found) {
  const std::optional<Report> report = ReportBehind(code, index);
  const bool is_sum = report && report->bytes.whole && report->bytes.place == InRegister(sum);
  const bool has_object = report && report->object.whole &&
                          (report->object.place.kind == ProbeValue::Kind::kRegister ||
                           report->object.place.kind == ProbeValue::Kind::kFrame);
  if (!sum_is_kept || !is_sum || !has_object) {
    ++found.unknown_sites;
    return;
  }
  found.sites.push_back({index * kInstructionBytes, {report->bytes.place, report->kind.place, report->object.place}});
}

// The report that stands behind the branch over it, with the sum in `sum`.
void LookBehindBranch(std::span<const std::byte> code, VirtualAddress start, size_t branch, uint32_t sum,
                      AllocationReports& found) {
  Values values;
  bool understood = true;
  for (size_t i = branch + 1; i <= branch + kMaxInReport; ++i) {
    const uint32_t instruction = At(code, i);
    if (IsCall(instruction)) {
      // Arguments are moved in between. A call right away is another use of the limit.
      if (i > branch + 1) found.called.push_back(Callee(instruction, {start.value + i * kInstructionBytes}));
      return;
    }
    if (IsLevelBranch(code, i)) {
      const bool sum_is_kept = understood && values.at(sum).whole && values.at(sum).place == InRegister(sum);
      return AddSite(code, i, sum_is_kept, sum, found);
    }
    if (!GoesOn(instruction)) return;
    understood = values.Execute(instruction) && understood;
  }
}

// The register that is compared with the limit at `index`. The limit is part of the instruction, or was put into a
// register right before.
std::optional<uint32_t> ComparedWithLimit(std::span<const std::byte> code, size_t index) {
  const uint32_t compare = At(code, index);
  if ((compare & kAnyBase) == kCompareLimit) return From(compare);
  if ((compare & kAnyTwo) != kCompareTwo) return std::nullopt;
  const uint32_t limit = Second(compare);
  bool high = false;
  for (size_t i = index; i > 0 && index - i < kMaxBeforeCompare; --i) {
    const uint32_t instruction = At(code, i - 1);
    if (instruction == (kSetLow | limit)) return high ? std::optional(From(compare)) : std::nullopt;
    if (instruction != (kSetHigh | limit) && (!GoesOn(instruction) || To(instruction) == limit)) return std::nullopt;
    high |= instruction == (kSetHigh | limit);
  }
  return std::nullopt;
}

// Follows the branches behind the comparison of the sum in `sum` at `compare`.
void LookBehindCompare(std::span<const std::byte> code, VirtualAddress start, size_t compare, uint32_t sum,
                       AllocationReports& found) {
  for (size_t i = compare + 1; i <= compare + kMaxAfterCompare; ++i) {
    const uint32_t instruction = At(code, i);
    if (BeginsAnew(instruction, sum)) {
      ++found.resets;
      return;
    }
    if (IsBranchIf(instruction, kNotHigher)) return LookBehindBranch(code, start, i, sum, found);
    if (!GoesOn(instruction) || SetsFlags(instruction)) return;
  }
}

}  // namespace

bool MayReportAllocations(std::span<const std::byte> code) {
  for (size_t i = 0; i < code.size() / kInstructionBytes; ++i) {
    if (ComparedWithLimit(code, i) || IsLevelBranch(code, i)) return true;
  }
  return false;
}

AllocationReports FindAllocationReports(std::span<const std::byte> code, VirtualAddress start) {
  AllocationReports found;
  size_t reports = 0;  // behind any branch by the level
  for (size_t i = 0; i < code.size() / kInstructionBytes && found.followed <= kMaxFollowed; ++i) {
    if (const auto sum = ComparedWithLimit(code, i)) {
      ++found.followed;
      LookBehindCompare(code, start, i, *sum, found);
    }
    if (!IsLevelBranch(code, i)) continue;
    ++found.followed;
    if (ReportBehind(code, i)) ++reports;
  }
  // A report that stands behind no comparison is not understood either.
  const size_t known = found.sites.size() + found.unknown_sites;
  if (reports > known) found.unknown_sites += reports - known;
  return found;
}

std::optional<AllocationFacts> FactsOfReport(std::span<const std::byte> code) {
  const std::optional<Report> report = FollowToReport(code, 0);
  if (!report || !report->level || !report->keyword) return std::nullopt;
  const auto is = [](const Value& value, uint32_t number) { return value.whole && value.place == InRegister(number); };
  // (bytes, generation, object, size), behind the heap where there are several.
  if (is(report->bytes, 0) && is(report->object, 2)) {
    return AllocationFacts{InRegister(0), InRegister(1), InRegister(2)};
  }
  if (is(report->bytes, 1) && is(report->object, 3)) {
    return AllocationFacts{InRegister(1), InRegister(2), InRegister(3), /*of_one_heap=*/true};
  }
  return std::nullopt;
}

}  // namespace clrsampler::arm64
