#include "formats/elf/abstract_state.h"

namespace clrsampler {
namespace {

using State = AbstractState;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;

constexpr int32_t kMaxDepth = 1 << 24;  // no stack frame is larger
constexpr int32_t kRedZone = 128;       // below sp; psABI 3.2.2

void LoseFp(State& state) {
  state.fp_is_callers = state.has_frame = false;
  state.frame = 0;
}
void LoseSlot(State& state) {
  state.has_slot = false;
  state.slot = 0;
}
void LoseDepth(State& state) {
  state.depth_known = false;
  state.depth = 0;
}

bool IsSane(int64_t distance) { return distance > -kMaxDepth && distance < kMaxDepth; }

// False: there is no stack like that.
bool MoveSp(State& state, int64_t up) {
  if (!state.depth_known) return true;
  const int64_t depth = state.depth - up;
  if (depth < 0 || depth > kMaxDepth) return false;
  state.depth = static_cast<int32_t>(depth);
  if (state.has_slot && state.slot > state.depth + kRedZone) LoseSlot(state);
  return true;
}

void PushFp(State& state) {
  if (!state.fp_is_callers || !state.depth_known) return;
  state.has_slot = true;
  state.slot = state.depth;
  // From here on it counts as changed. Some paths to the code that follows may have changed it, and others not yet.
  state.fp_is_callers = false;
}

// rbp becomes a word of the stack; whether that one is the caller's.
void LoadFp(State& state, bool is_callers) {
  LoseFp(state);
  state.fp_is_callers = is_callers;
}

bool PopFp(State& state) {
  const bool restores = state.depth_known && state.has_slot && state.slot == state.depth;
  LoadFp(state, restores);
  if (restores) LoseSlot(state);
  return MoveSp(state, 8);
}

// Whether the word at sp + value is where the caller's rbp lies.
bool IsSlot(const State& state, int64_t value) {
  return state.depth_known && state.has_slot && state.depth - value == state.slot;
}

void SetFpFromSp(State& state, int64_t value) {
  LoseFp(state);
  // Else it is no frame pointer, but points to some variable.
  if (!IsSlot(state, value)) return;
  state.has_frame = true;
  state.frame = static_cast<int32_t>(state.depth - value);
}

void StoreFp(State& state, int64_t value) {
  if (state.depth_known && state.fp_is_callers && IsSane(state.depth - value) && state.depth - value > kEntryDepth) {
    state.has_slot = true;
    state.slot = static_cast<int32_t>(state.depth - value);
  } else if (IsSlot(state, value)) {
    LoseSlot(state);
  }
}

bool SetSpFromFp(State& state, int64_t value) {
  if (!state.has_frame) {
    LoseDepth(state);
    return true;
  }
  const int64_t depth = state.frame - value;
  if (depth < 0 || depth > kMaxDepth) return false;
  state.depth = static_cast<int32_t>(depth);
  state.depth_known = true;
  return true;
}

void Leave(State& state) {
  if (!state.has_frame || state.frame < 8) {
    LoseFp(state);
    LoseDepth(state);
    return;
  }
  const bool restores = state.has_slot && state.slot == state.frame;
  state.depth = state.frame - 8;
  state.depth_known = true;
  LoadFp(state, restores);
  if (restores) LoseSlot(state);
}

bool TransferSp(const X64Instruction& instruction, State& state) {
  switch (instruction.stack) {
    case Stack::kSame:
      break;
    case Stack::kAdd:
      return MoveSp(state, instruction.value);
    case Stack::kFromFp:
      return SetSpFromFp(state, instruction.value);
    case Stack::kLeave:
      Leave(state);
      break;
    case Stack::kOther:
      LoseDepth(state);
      break;
  }
  return true;
}

}  // namespace

bool Transfer(const X64Instruction& instruction, State& state) {
  switch (instruction.fp) {
    case Fp::kSame:
      break;
    case Fp::kPushed:
      if (!MoveSp(state, -8)) return false;
      PushFp(state);
      return true;
    case Fp::kPopped:
      return PopFp(state);
    case Fp::kFromSp:
      SetFpFromSp(state, instruction.value);
      return true;
    case Fp::kStored:
      StoreFp(state, instruction.value);
      return true;
    case Fp::kLoaded:
      LoadFp(state, IsSlot(state, instruction.value));
      return true;
    case Fp::kCleared:
    case Fp::kOther:
      LoseFp(state);
      break;
  }
  return TransferSp(instruction, state);
}

void MarkOutermost(const X64Instruction& instruction, State& state) {
  if (instruction.fp != Fp::kCleared || !state.fp_is_callers || state.has_slot) return;
  state.outermost = true;
  LoseSlot(state);
}

std::optional<CfiRow> RowOf(const State& state) {
  CfiRow row;
  row.ra_offset = -8;
  if (state.depth_known && state.depth >= kEntryDepth && state.depth % 8 == 0) {
    row.cfa = CfaRule::kSpOffset;
    row.cfa_offset = state.depth;
  } else if (!state.depth_known && state.has_frame && state.frame > 0) {
    row.cfa = CfaRule::kFpOffset;
    row.cfa_offset = state.frame;
  } else {
    return std::nullopt;
  }
  if (state.has_slot && (!state.depth_known || state.slot <= state.depth || !state.fp_is_callers)) {
    row.fp = RegisterRule::kAtCfaOffset;
    row.fp_offset = -state.slot;
  } else if (!state.fp_is_callers) {
    row.fp = RegisterRule::kUndefined;
  }
  return row;
}

CfiRow OutermostRow() {
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = kEntryDepth;
  row.ra = RegisterRule::kUndefined;
  row.fp = RegisterRule::kUndefined;
  return row;
}

}  // namespace clrsampler
