#include "formats/elf/cfi_program.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "formats/elf/dwarf_cursor.h"

namespace clrsampler {
namespace {

// DWARF's numbers of registers.
constexpr int64_t kGeneralRegisters = 16;  // of x86-64, as samples carry them
constexpr uint64_t kX64Rbp = 6, kX64Rsp = 7, kArm64X29 = 29, kArm64Sp = 31;

// DW_CFA_*. The first three hold an operand in their low six bits.
constexpr uint8_t kHighMask = 0xc0, kAdvanceLoc = 0x40, kOffset = 0x80, kRestore = 0xc0;
constexpr uint8_t kNop = 0x00, kSetLoc = 0x01, kAdvanceLoc1 = 0x02, kAdvanceLoc2 = 0x03, kAdvanceLoc4 = 0x04;
constexpr uint8_t kOffsetExtended = 0x05, kRestoreExtended = 0x06, kUndefined = 0x07, kSameValue = 0x08;
constexpr uint8_t kRegister = 0x09, kRememberState = 0x0a, kRestoreState = 0x0b, kDefCfa = 0x0c;
constexpr uint8_t kDefCfaRegister = 0x0d, kDefCfaOffset = 0x0e, kDefCfaExpression = 0x0f, kExpression = 0x10;
constexpr uint8_t kOffsetExtendedSf = 0x11, kDefCfaSf = 0x12, kDefCfaOffsetSf = 0x13, kValOffset = 0x14;
constexpr uint8_t kValOffsetSf = 0x15, kValExpression = 0x16, kAdvanceLoc8 = 0x1d;
constexpr uint8_t kNegateRaStateWithPc = 0x2c, kNegateRaState = 0x2d;  // arm64; pointer authentication
constexpr uint8_t kGnuArgsSize = 0x2e, kGnuNegativeOffsetExtended = 0x2f;

// DW_OP_*.
constexpr uint8_t kOpDeref = 0x06, kOpMul = 0x1e, kOpPlus = 0x22, kOpPlusUconst = 0x23, kOpLit0 = 0x30, kOpLit8 = 0x38;
constexpr uint8_t kOpBreg0 = 0x70, kOpBreg31 = 0x8f;
// Behind "rsp + 8" in the CFA of a lazy PLT: "+ ((rip & 15) >= N) << 3" with N as DW_OP_litN in the middle.
constexpr uint8_t kPltBefore[] = {0x80, 0x00, 0x3f, 0x1a}, kPltAfter[] = {0x2a, 0x33, 0x24, 0x22};
constexpr int64_t kWord = 8;

// The x86-64 kernel's signal context as glibc's __restore_rt describes it; laid out in unwind/cfi_step.cc.
constexpr int64_t kContextRbp = 120, kContextRsp = 160, kContextRip = 168;

struct BregExpression {
  uint64_t reg = 0;
  int64_t offset = 0;
  std::span<const std::byte> rest;
};

std::optional<BregExpression> ReadBreg(std::span<const std::byte> expression) {
  DwarfCursor cursor(expression, {0});
  const uint8_t operation = cursor.Take<uint8_t>();
  const int64_t offset = cursor.TakeSleb();
  if (!cursor.ok() || operation < kOpBreg0 || operation > kOpBreg31) return std::nullopt;
  return BregExpression{static_cast<uint64_t>(operation - kOpBreg0), offset, cursor.rest()};
}

bool Is(std::span<const std::byte> bytes, std::span<const uint8_t> expected) {
  return std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end(),
                    [](std::byte a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

std::optional<int64_t> PltThreshold(std::span<const std::byte> rest) {
  constexpr size_t kBytes = sizeof kPltBefore + 1 + sizeof kPltAfter;
  if (rest.size() != kBytes || !Is(rest.first(sizeof kPltBefore), kPltBefore)) return std::nullopt;
  if (!Is(rest.last(sizeof kPltAfter), kPltAfter)) return std::nullopt;
  const uint8_t literal = static_cast<uint8_t>(rest[sizeof kPltBefore]);
  if (literal < kOpLit0 || literal > kOpLit0 + 15) return std::nullopt;
  return literal - kOpLit0;
}

bool Fits(int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; }

}  // namespace

// One run over a CIE's or an FDE's instructions.
class CfiRun {
 public:
  using State = CfiProgram::State;
  using Rule = CfiProgram::Rule;
  using Where = CfiProgram::Where;
  using Cfa = CfiProgram::Cfa;

  CfiRun(const CfiProgram& program, std::span<const std::byte> instructions, VirtualAddress at, const State& start,
         const State* initial)
      : program_(program), cursor_(instructions, at), state_(start), initial_(initial) {}

  const State& state() const { return state_; }

  // Up to the next move to another address. False: the end, or damage; see ok(). `location` may move past every end.
  bool Next(uint64_t& location) {
    while (ok_ && !cursor_.at_end()) {
      const uint8_t operation = cursor_.Take<uint8_t>();
      const uint8_t low = operation & ~kHighMask;
      switch (operation & kHighMask) {
        case kAdvanceLoc:
          if (Advance(location, low)) return true;
          continue;
        case kOffset:
          SetAtCfa(low, Factored(cursor_.TakeUleb()));
          continue;
        case kRestore:
          Restore(low);
          continue;
        default:
          break;
      }
      if (Execute(operation, location)) return true;
    }
    if (!cursor_.ok()) ok_ = false;
    return false;
  }
  bool ok() const { return ok_; }

 private:
  // A sum or product that does not fit becomes one that no row can hold.
  static constexpr int64_t kTooLarge = INT64_MAX;

  int64_t Factored(int64_t value) const {
    int64_t product;
    return __builtin_mul_overflow(value, program_.common_.data_alignment, &product) ? kTooLarge : product;
  }
  int64_t Factored(uint64_t value) const { return Factored(Bounded(value)); }
  static int64_t Bounded(uint64_t value) { return static_cast<int64_t>(std::min<uint64_t>(value, kTooLarge)); }

  // True: the location has changed.
  bool Advance(uint64_t& location, uint64_t count) {
    uint64_t bytes;
    if (__builtin_mul_overflow(count, program_.common_.code_alignment, &bytes) ||
        __builtin_add_overflow(location, bytes, &location)) {
      location = UINT64_MAX;
    }
    return bytes != 0 || location == UINT64_MAX;
  }

  void Set(uint64_t reg, Where where, int64_t offset = 0) {
    if (Rule* rule = program_.RuleOf(state_, reg)) *rule = {offset, where};
  }
  void SetAtCfa(uint64_t reg, int64_t offset) { Set(reg, Where::kAtCfa, offset); }

  void Restore(uint64_t reg) {
    Rule* rule = program_.RuleOf(state_, reg);
    if (rule == nullptr) return;
    State initial = initial_ != nullptr ? *initial_ : State();
    *rule = *program_.RuleOf(initial, reg);
  }

  void DefineCfa(uint64_t reg, int64_t offset) {
    state_.cfa = Cfa::kRegister;
    state_.cfa_register = reg;
    state_.cfa_offset = offset;
  }

  // `+ 8 * register`, the word there + 8: OpenSSL's multiplications, whose frames are as long as the numbers. nullopt:
  // something else.
  static std::optional<uint64_t> IndexRegister(std::span<const std::byte> rest) {
    const std::optional<BregExpression> index = ReadBreg(rest);
    static constexpr uint8_t kTimesWordDerefPlusWord[] = {kOpLit8, kOpMul, kOpPlus, kOpDeref, kOpPlusUconst, kWord};
    if (!index || index->offset != 0 || !Is(index->rest, kTimesWordDerefPlusWord)) return std::nullopt;
    return index->reg;
  }

  void DefineCfaByExpression(std::span<const std::byte> expression) {
    state_.cfa = Cfa::kUnknown;
    state_.cfa_offset = 0;
    const std::optional<BregExpression> breg = ReadBreg(expression);
    if (!breg) return;
    const bool by_sp = breg->reg == program_.sp_register_, by_fp = breg->reg == program_.fp_register_;
    static constexpr uint8_t kDeref[] = {kOpDeref};
    static constexpr uint8_t kDerefPlusWord[] = {kOpDeref, kOpPlusUconst, kWord};
    if (by_fp && Is(breg->rest, kDeref)) {
      state_.cfa = Cfa::kFpDeref;
      state_.cfa_offset = breg->offset;
    } else if (by_sp && Is(breg->rest, kDerefPlusWord)) {
      state_.cfa = Cfa::kSpDeref;
      state_.cfa_offset = breg->offset;
    } else if (const auto index = IndexRegister(breg->rest); by_sp && index) {
      state_.cfa = Cfa::kSpIndexed;
      state_.cfa_register = *index;
      state_.cfa_offset = breg->offset;
    } else if (by_sp && Is(breg->rest, kDeref) && breg->offset == kContextRsp) {
      state_.cfa = Cfa::kSignalContext;
    } else if (const auto threshold = PltThreshold(breg->rest); by_sp && breg->offset == kWord && threshold) {
      state_.cfa = Cfa::kPlt;
      state_.cfa_offset = *threshold;
    }
  }

  void SetByExpression(uint64_t reg, std::span<const std::byte> expression) {
    const std::optional<BregExpression> breg = ReadBreg(expression);
    Where where = Where::kElsewhere;
    if (breg && breg->rest.empty()) {
      if (breg->reg == program_.sp_register_) where = Where::kAtSp;
      if (breg->reg == program_.fp_register_) where = Where::kAtFp;
    }
    Set(reg, where, breg ? breg->offset : 0);
  }

  // The operations with operands of their own. True: the location has changed.
  bool Execute(uint8_t operation, uint64_t& location) {
    switch (operation) {
      case kNop:
        return false;
      case kSetLoc: {
        const uint64_t target = cursor_.TakePointer(program_.common_.pointer_encoding).value;
        if (target < location) return Damaged();
        return Advance1(location, target - location);
      }
      case kAdvanceLoc1:
        return Advance(location, cursor_.Take<uint8_t>());
      case kAdvanceLoc2:
        return Advance(location, cursor_.Take<uint16_t>());
      case kAdvanceLoc4:
        return Advance(location, cursor_.Take<uint32_t>());
      case kAdvanceLoc8:
        return Advance(location, cursor_.Take<uint64_t>());
      case kNegateRaState:
      case kNegateRaStateWithPc:
        // Return addresses are stripped of their signature whether or not they have one.
        return program_.machine_ == ElfMachine::kArm64 ? false : Damaged();
      case kGnuArgsSize:
        cursor_.TakeUleb();
        return false;
      default:
        return ExecuteOnRegister(operation);
    }
  }

  // Those that say where one register is.
  bool ExecuteOnRegister(uint8_t operation) {
    uint64_t reg = 0;
    switch (operation) {
      case kOffsetExtended:
        reg = cursor_.TakeUleb();
        SetAtCfa(reg, Factored(cursor_.TakeUleb()));
        return false;
      case kOffsetExtendedSf:
        reg = cursor_.TakeUleb();
        SetAtCfa(reg, Factored(cursor_.TakeSleb()));
        return false;
      case kGnuNegativeOffsetExtended:
        reg = cursor_.TakeUleb();
        SetAtCfa(reg, Factored(-Bounded(cursor_.TakeUleb())));
        return false;
      case kRestoreExtended:
        Restore(cursor_.TakeUleb());
        return false;
      case kUndefined:
        Set(cursor_.TakeUleb(), Where::kUndefined);
        return false;
      case kSameValue:
        Set(cursor_.TakeUleb(), Where::kSame);
        return false;
      case kRegister:
        reg = cursor_.TakeUleb();
        Set(reg, Where::kRegister, static_cast<int64_t>(std::min<uint64_t>(cursor_.TakeUleb(), UINT32_MAX)));
        return false;
      case kValOffset:
        reg = cursor_.TakeUleb();
        cursor_.TakeUleb();
        Set(reg, Where::kElsewhere);
        return false;
      case kValOffsetSf:
        reg = cursor_.TakeUleb();
        cursor_.TakeSleb();
        Set(reg, Where::kElsewhere);
        return false;
      case kExpression:
        reg = cursor_.TakeUleb();
        SetByExpression(reg, cursor_.TakeBlock(cursor_.TakeUleb()));
        return false;
      case kValExpression:
        reg = cursor_.TakeUleb();
        cursor_.Skip(cursor_.TakeUleb());
        Set(reg, Where::kElsewhere);
        return false;
      default:
        return ExecuteOnWhole(operation);
    }
  }

  // Those that set the CFA, or everything.
  bool ExecuteOnWhole(uint8_t operation) {
    uint64_t reg = 0;
    switch (operation) {
      case kDefCfa:
        reg = cursor_.TakeUleb();
        DefineCfa(reg, Bounded(cursor_.TakeUleb()));
        return false;
      case kDefCfaSf:
        reg = cursor_.TakeUleb();
        DefineCfa(reg, Factored(cursor_.TakeSleb()));
        return false;
      case kDefCfaRegister:
        reg = cursor_.TakeUleb();
        if (state_.cfa == Cfa::kRegister) state_.cfa_register = reg;
        return false;
      case kDefCfaOffset:
        state_.cfa_offset = Bounded(cursor_.TakeUleb());
        if (state_.cfa != Cfa::kRegister) state_.cfa = Cfa::kUnknown;
        return false;
      case kDefCfaOffsetSf:
        state_.cfa_offset = Factored(cursor_.TakeSleb());
        if (state_.cfa != Cfa::kRegister) state_.cfa = Cfa::kUnknown;
        return false;
      case kDefCfaExpression:
        DefineCfaByExpression(cursor_.TakeBlock(cursor_.TakeUleb()));
        return false;
      case kRememberState:
        if (remembered_.size() == CfiProgram::kMaxRemembered) return Damaged();
        remembered_.push_back(state_);
        return false;
      case kRestoreState:
        if (remembered_.empty()) return Damaged();
        state_ = remembered_.back();
        remembered_.pop_back();
        return false;
      default:
        return Damaged();
    }
  }

  static bool Advance1(uint64_t& location, uint64_t bytes) {
    location += bytes;
    return bytes != 0;
  }

  bool Damaged() {
    ok_ = false;
    return false;
  }

  const CfiProgram& program_;
  DwarfCursor cursor_;
  State state_;
  const State* initial_;
  absl::InlinedVector<State, 2> remembered_;
  bool ok_ = true;
};

CfiProgram::CfiProgram(ElfMachine machine, const CommonEntry& common)
    : machine_(machine),
      fp_register_(machine == ElfMachine::kX64 ? kX64Rbp : kArm64X29),
      sp_register_(machine == ElfMachine::kX64 ? kX64Rsp : kArm64Sp),
      common_(common) {
  if (common.instructions.size() > kMaxCommonBytes) return;
  CfiRun run(*this, common.instructions, common.instructions_at, State(), nullptr);
  uint64_t location = 0;
  ok_ = !run.Next(location) && run.ok();  // a CIE has no addresses to move between
  if (ok_) initial_ = run.state();
}

CfiProgram::Rule* CfiProgram::RuleOf(State& state, uint64_t reg) const {
  if (reg == common_.return_register) return &state.ra;
  if (reg == fp_register_) return &state.fp;
  if (reg == sp_register_) return &state.sp;
  return nullptr;
}

CfiRow CfiProgram::Reduce(const State& state, bool signal_frame) const {
  CfiRow row;
  const auto reduce = [&](const Rule& rule, bool is_fp, RegisterRule& kind, int32_t& offset) {
    kind = RegisterRule::kUnsupported;
    if (rule.where == Where::kUnstated || rule.where == Where::kSame) kind = RegisterRule::kSame;
    if (rule.where == Where::kUndefined) kind = RegisterRule::kUndefined;
    if (rule.where == Where::kAtCfa && Fits(rule.offset)) kind = RegisterRule::kAtCfaOffset;
    if (rule.where == Where::kRegister && !is_fp && machine_ == ElfMachine::kX64 && rule.offset < kGeneralRegisters) {
      kind = RegisterRule::kInRegister;
      offset = static_cast<int32_t>(rule.offset);
    }
    if (rule.where == Where::kAtFp && is_fp && Fits(rule.offset)) kind = RegisterRule::kAtFpOffset;
    if (kind == RegisterRule::kAtCfaOffset || kind == RegisterRule::kAtFpOffset) {
      offset = static_cast<int32_t>(rule.offset);
    }
  };
  reduce(state.fp, /*is_fp=*/true, row.fp, row.fp_offset);
  reduce(state.ra, /*is_fp=*/false, row.ra, row.ra_offset);
  if (Fits(state.cfa_offset)) {
    // The CFA is below sp, which is nonsense. The delay-load helpers of libcoreclr have this behind their first return.
    // The rows of one way out go on there for the other.
    if (state.cfa == Cfa::kRegister && state.cfa_register == sp_register_ && state.cfa_offset >= 0) {
      row.cfa = CfaRule::kSpOffset;
    }
    if (state.cfa == Cfa::kRegister && state.cfa_register == fp_register_) row.cfa = CfaRule::kFpOffset;
    if (state.cfa == Cfa::kRegister && row.cfa == CfaRule::kUnsupported && machine_ == ElfMachine::kX64 &&
        state.cfa_register != sp_register_ && state.cfa_register < kGeneralRegisters) {
      row.cfa = CfaRule::kRegister;
      row.cfa_register = static_cast<uint8_t>(state.cfa_register);
    }
    if (state.cfa == Cfa::kSpDeref) row.cfa = CfaRule::kSpDeref;
    if (state.cfa == Cfa::kSpIndexed && machine_ == ElfMachine::kX64 && state.cfa_register < kGeneralRegisters) {
      row.cfa = CfaRule::kSpIndexed;
      row.cfa_register = static_cast<uint8_t>(state.cfa_register);
    }
    if (state.cfa == Cfa::kFpDeref) row.cfa = CfaRule::kFpDeref;
    if (state.cfa == Cfa::kPlt) row.cfa = CfaRule::kPlt;
  }
  // The caller's sp is the CFA unless another rule is given for it.
  if (state.sp.where != Where::kUnstated && state.sp.where != Where::kSame) row.cfa = CfaRule::kUnsupported;
  if (row.cfa != CfaRule::kUnsupported) row.cfa_offset = static_cast<int32_t>(state.cfa_offset);
  if (!signal_frame) return row;
  const auto in_context = [](const Rule& rule, int64_t offset) {
    return rule.where == Where::kAtSp && rule.offset == offset;
  };
  row.signal_frame =
      machine_ == ElfMachine::kArm64 ||
      (state.cfa == Cfa::kSignalContext && in_context(state.fp, kContextRbp) && in_context(state.ra, kContextRip));
  return row;
}

bool CfiProgram::ForEachRow(const FrameDescription& function, Visitor visit) const {
  if (!ok_ || function.instructions.size() > kMaxInstructionBytes) return false;
  CfiRun run(*this, function.instructions, function.instructions_at, initial_, &initial_);
  uint64_t location = function.start.value, start = location;
  while (run.Next(location)) {
    // The next move overwrites the state that was in force before it, so the state is given out now.
    const uint64_t end = std::min(location, function.end.value);
    if (!visit({start}, {end}, Reduce(run.state(), common_.signal_frame))) return true;
    if (location >= function.end.value) return true;
    start = location;
  }
  if (!run.ok()) return false;
  visit({start}, function.end, Reduce(run.state(), common_.signal_frame));
  return true;
}

std::optional<CfiRow> CfiProgram::RowAt(const FrameDescription& function, VirtualAddress address) const {
  if (!ok_ || function.instructions.size() > kMaxInstructionBytes) return std::nullopt;
  CfiRun run(*this, function.instructions, function.instructions_at, initial_, &initial_);
  uint64_t location = function.start.value;
  while (run.Next(location)) {
    if (location > address.value) break;
  }
  if (!run.ok()) return std::nullopt;
  return Reduce(run.state(), common_.signal_frame);
}

}  // namespace clrsampler
