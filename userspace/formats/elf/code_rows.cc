#include "formats/elf/code_rows.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/elf/relative_relocations.h"
#include "formats/x64/instruction.h"

namespace clrsampler {
namespace {

using Flow = X64Instruction::Flow;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;
using Index = uint32_t;  // of a byte of code

constexpr Index kNowhere = UINT32_MAX;
constexpr uint32_t kNoState = UINT32_MAX, kNoFunction = UINT32_MAX;
constexpr int32_t kEntryDepth = 8;       // the return address
constexpr int32_t kMaxDepth = 1 << 24;   // no stack frame is larger
constexpr int32_t kRedZone = 128;        // below sp; psABI 3.2.2
constexpr int kPasses = 6;               // each learns one more level of functions that do not return
constexpr size_t kMaxPaddingBytes = 32;  // between functions
constexpr uint64_t kStepsForEachByte = 4;
constexpr size_t kMaxArms = 1024;  // of a switch
constexpr Index kAlignment = 16;   // of functions that nothing leads to

// What is known before an instruction. Distances are from the CFA, which lies `depth` above sp.
struct State {
  int32_t depth = kEntryDepth;
  bool depth_known = true;
  bool fp_is_callers = true;
  bool has_frame = false;  // rbp points to CFA - frame
  bool has_slot = false;   // the caller's rbp lies at CFA - slot
  bool outermost = false;  // nothing called this code
  int32_t frame = 0;
  int32_t slot = 0;

  bool clean() const { return depth_known && depth == kEntryDepth && fp_is_callers && !outermost; }
  friend bool operator==(const State&, const State&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const State& s) {
    return H::combine(std::move(h), s.depth, s.depth_known, s.fp_is_callers, s.has_frame, s.has_slot, s.outermost,
                      s.frame, s.slot);
  }
};

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

// What the instruction makes of it. False: it contradicts itself.
bool Apply(const X64Instruction& instruction, State& state) {
  const int64_t value = instruction.value;
  switch (instruction.fp) {
    case Fp::kSame:
      break;
    case Fp::kPushed:
      if (!MoveSp(state, -8)) return false;
      if (state.fp_is_callers && state.depth_known) {
        state.has_slot = true;
        state.slot = state.depth;
        // From here on it counts as changed: some paths to what follows may have changed it, and others not yet.
        state.fp_is_callers = false;
      }
      return true;
    case Fp::kPopped: {
      const bool restores = state.depth_known && state.has_slot && state.slot == state.depth;
      LoseFp(state);
      state.fp_is_callers = restores;
      if (restores) LoseSlot(state);
      return MoveSp(state, 8);
    }
    case Fp::kFromSp:
      LoseFp(state);
      // Else it is no frame pointer, but points to some variable.
      if (state.depth_known && state.has_slot && state.depth - value == state.slot) {
        state.has_frame = true;
        state.frame = static_cast<int32_t>(state.depth - value);
      }
      return true;
    case Fp::kStored:
      if (state.depth_known && state.fp_is_callers && IsSane(state.depth - value) &&
          state.depth - value > kEntryDepth) {
        state.has_slot = true;
        state.slot = static_cast<int32_t>(state.depth - value);
      } else if (state.depth_known && state.has_slot && state.depth - value == state.slot) {
        LoseSlot(state);
      }
      return true;
    case Fp::kLoaded: {
      const bool restores = state.depth_known && state.has_slot && state.depth - value == state.slot;
      LoseFp(state);
      state.fp_is_callers = restores;
      return true;
    }
    case Fp::kCleared:
    case Fp::kOther:
      LoseFp(state);
      break;
  }
  switch (instruction.stack) {
    case Stack::kSame:
      return true;
    case Stack::kAdd:
      return MoveSp(state, value);
    case Stack::kFromFp: {
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
    case Stack::kLeave: {
      if (!state.has_frame || state.frame < 8) {
        LoseFp(state);
        LoseDepth(state);
        return true;
      }
      const bool restores = state.has_slot && state.slot == state.frame;
      state.depth = state.frame - 8;
      state.depth_known = true;
      LoseFp(state);
      state.fp_is_callers = restores;
      if (restores) LoseSlot(state);
      return true;
    }
    case Stack::kOther:
      LoseDepth(state);
      return true;
  }
  return true;
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

// Of code that began without a return address.
CfiRow OutermostRow() {
  CfiRow row;
  row.cfa = CfaRule::kSpOffset;
  row.cfa_offset = kEntryDepth;
  row.ra = RegisterRule::kUndefined;
  row.fp = RegisterRule::kUndefined;
  return row;
}

class RowMaker {
 public:
  explicit RowMaker(const ElfImage& image) : image_(image) {}

  absl::StatusOr<CodeRows> Run() {
    if (image_.machine() != ElfMachine::kX64)
      return absl::UnimplementedError("instructions of this machine are not read");
    for (const ElfSection& section : image_.sections()) {
      if ((section.flags & SHF_EXECINSTR) == 0 || (section.flags & SHF_ALLOC) == 0) continue;
      const auto bytes = image_.SectionBytes(section);
      if (!bytes || bytes->empty() || bytes->size() > UINT64_MAX - section.address.value) continue;
      if (bytes->size() > CodeRows::kMaxCodeBytes - code_bytes_) {
        return absl::ResourceExhaustedError("more code than is followed");
      }
      areas_.push_back({section.address.value, *bytes, 0});
      code_bytes_ += bytes->size();
    }
    if (areas_.empty()) return absl::NotFoundError("it has no code");
    std::sort(areas_.begin(), areas_.end(), [](const Area& a, const Area& b) { return a.address < b.address; });
    for (size_t i = 1; i < areas_.size(); ++i) {
      if (areas_[i].address - areas_[i - 1].address < areas_[i - 1].bytes.size()) {
        return absl::DataLossError("two sections of code have the same addresses");
      }
      areas_[i].first = areas_[i - 1].first + static_cast<Index>(areas_[i - 1].bytes.size());
    }
    CollectKnownAddresses();
    if (symbols_.empty()) return absl::NotFoundError("no function is known to begin in its code");
    size_t known = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
      FollowAll();
      NoteWhatReturns();
      if (no_return_.size() == known) break;
      known = no_return_.size();
    }
    return Rows();
  }

 private:
  struct Area {
    uint64_t address;
    std::span<const std::byte> bytes;
    Index first;  // of its bytes
  };
  struct Function {
    Index start;
    uint32_t shares = kNoFunction;  // its code with this one
    bool refused = false;
    bool guessed = false;             // that it begins there
    bool returns = false;             // it may
    bool has_return = false;          // it does
    std::vector<Index> continues_in;  // jumps to these functions
  };
  // Paths of one function that are believed, or not, as a whole.
  struct Trial {
    explicit Trial(uint32_t of) : function(of) {}
    uint32_t function;
    bool refused = false;
    bool returns = false;  // as in Function
    bool has_return = false;
    std::vector<Index> reached;
    std::vector<Index> ended, went_on;  // how instructions end
    std::vector<Index> called, taken, continues_in;
    std::vector<uint32_t> met;                             // functions
    std::vector<std::pair<Index, uint32_t>> left;          // to be followed: with the state
    std::vector<std::pair<Index, uint32_t>> behind_calls;  // to be followed if what is found there agrees
  };
  struct Pending {
    uint32_t function;
    Index at;
    uint32_t state;
  };

  Index At(uint64_t address) const {
    const auto above = std::upper_bound(areas_.begin(), areas_.end(), address,
                                        [](uint64_t value, const Area& area) { return value < area.address; });
    if (above == areas_.begin()) return kNowhere;
    const Area& area = *(above - 1);
    const uint64_t inside = address - area.address;
    return inside < area.bytes.size() ? area.first + static_cast<Index>(inside) : kNowhere;
  }
  const Area& AreaOf(Index at) const {
    const auto above = std::upper_bound(areas_.begin(), areas_.end(), at,
                                        [](Index value, const Area& area) { return value < area.first; });
    return *(above - 1);
  }
  std::optional<X64Instruction> Decode(const Area& area, Index at) const {
    return DecodeX64(area.bytes.subspan(at - area.first));
  }

  void CollectKnownAddresses() {
    for (const auto& table : {image_.symtab(), image_.dynsym()}) {
      if (!table) continue;
      const size_t count = std::min<size_t>(table->size(), CodeRows::kMaxCodeBytes);
      for (size_t i = 0; i < count; ++i) {
        const ElfSymbol symbol = table->At(i);
        if ((symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC) || symbol.section == SHN_UNDEF) continue;
        if (const Index at = At(symbol.address.value); at != kNowhere) symbols_.push_back(at);
      }
    }
    const auto entry = LoadAt<uint64_t>(image_.bytes(), offsetof(Elf64_Ehdr, e_entry));
    if (entry && *entry != 0) entry_ = At(*entry);
    std::erase(symbols_, entry_);
    std::sort(symbols_.begin(), symbols_.end());
    symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
    if (const auto relocations = RelativeRelocations::Read(image_); relocations.ok()) {
      for (const RelativeRelocation& row : relocations->all()) {
        if (const Index at = At(row.target.value); at != kNowhere) pointers_.push_back(at);
      }
    }
  }

  bool Begins(Index at) const { return at < code_bytes_ && function_at_[at] != kNoFunction; }

  uint32_t Intern(const State& state) {
    if (last_interned_ < states_.size() && states_[last_interned_] == state) return last_interned_;
    const auto [found, fresh] = state_ids_.try_emplace(state, static_cast<uint32_t>(states_.size()));
    if (fresh) states_.push_back(state);
    return last_interned_ = found->second;
  }

  // --- following ---

  void FollowAll() {
    states_.clear();
    state_ids_.clear();
    functions_.clear();
    function_at_.assign(code_bytes_, kNoFunction);
    state_of_.assign(code_bytes_, kNoState);
    function_of_.assign(code_bytes_, kNoFunction);
    ends_.assign(code_bytes_ + 1, kNoEnd);
    taken_.clear();
    budget_ = kStepsForEachByte * code_bytes_;
    for (const Index start : symbols_) Discover(start);
    // In an order of their own, not the hash's: what is followed first decides where paths contradict each other.
    std::vector<Index> called(called_.begin(), called_.end());
    std::sort(called.begin(), called.end());
    for (const Index start : called) Discover(start);
    if (entry_ != kNowhere && Clears(entry_)) FollowFunction(AddFunction(entry_), Intern(State()));
    FollowDiscovered();
    // A function whose address is held somewhere: nothing runs into it from above.
    taken_.insert(taken_.end(), pointers_.begin(), pointers_.end());
    bool more = true;
    while (more) {
      more = false;
      std::sort(taken_.begin(), taken_.end());
      taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
      const std::vector<Index> candidates = std::move(taken_);
      taken_.clear();
      for (const Index candidate : candidates) {
        if (state_of_[candidate] != kNoState) continue;
        if (!BeginsBehindAnEnd(candidate)) {
          taken_.push_back(candidate);
          continue;
        }
        Discover(candidate);
        FollowDiscovered();
        more = true;
      }
    }
    Sweep();
  }

  bool Clears(Index at) const {
    const auto instruction = Decode(AreaOf(at), at);
    return instruction && instruction->fp == Fp::kCleared;
  }

  // What nothing led to: behind the end of other code, compilers let functions begin. Whether one does is judged by how
  // it ends.
  void Sweep() {
    for (const Area& area : areas_) {
      for (Index at = area.first; at - area.first < area.bytes.size(); ++at) {
        if (ends_[at] != kEnd || state_of_[at] != kNoState) continue;
        const Index start = BehindPadding(area, at);
        if (start == kNowhere || (area.address + (start - area.first)) % kAlignment != 0) continue;
        if (state_of_[start] != kNoState || Begins(start)) continue;
        const auto function = static_cast<uint32_t>(functions_.size());
        functions_.push_back({.start = start, .guessed = true, .continues_in = {}});
        TryPath(function, start, Intern(State()));
        FollowDiscovered();
      }
    }
  }

  uint32_t AddFunction(Index start) {
    if (function_at_[start] == kNoFunction) {
      function_at_[start] = static_cast<uint32_t>(functions_.size());
      functions_.push_back({.start = start, .continues_in = {}});
    }
    return function_at_[start];
  }
  void Discover(Index start) {
    if (Begins(start)) return;
    AddFunction(start);
    discovered_.push_back(start);
  }
  // First what is sure to be a function's code, then what lies behind its calls.
  void FollowDiscovered() {
    const uint32_t entry = Intern(State());
    while (true) {
      if (!discovered_.empty()) {
        const Index start = discovered_.back();
        discovered_.pop_back();
        FollowFunction(function_at_[start], entry);
      } else if (!behind_calls_.empty()) {
        const Pending pending = behind_calls_.back();
        behind_calls_.pop_back();
        TryPath(pending.function, pending.at, pending.state);
      } else {
        return;
      }
    }
  }

  // A path that may be none: behind a call that may not return, or an arm of a switch.
  void TryPath(uint32_t function, Index at, uint32_t state) {
    if (Begins(at)) return;
    if (state_of_[at] != kNoState) {
      if (state_of_[at] == state) Share(function, function_of_[at]);
      return;
    }
    Trial trial(function);
    trial.left.emplace_back(at, state);
    Follow(trial);
    if (trial.refused) {
      Undo(trial);
    } else {
      Keep(trial);
    }
  }

  uint32_t Shared(uint32_t function) const {
    while (functions_[function].shares != kNoFunction) function = functions_[function].shares;
    return function;
  }
  void Share(uint32_t a, uint32_t b) {
    a = Shared(a);
    b = Shared(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    functions_[b].shares = a;
  }

  // From its first instruction on, in this state.
  void FollowFunction(uint32_t function, uint32_t state) {
    const Index start = functions_[function].start;
    if (state_of_[start] != kNoState) {
      if (state_of_[start] != state) functions_[function].refused = true;
      return Share(function, function_of_[start]);
    }
    Trial trial(function);
    trial.left.emplace_back(start, state);
    Follow(trial);
    if (trial.refused) functions_[function].refused = true;
    Keep(trial);
  }

  void Keep(const Trial& trial) {
    Function& function = functions_[trial.function];
    function.returns = function.returns || trial.returns;
    function.has_return = function.has_return || trial.has_return;
    function.continues_in.insert(function.continues_in.end(), trial.continues_in.begin(), trial.continues_in.end());
    for (const uint32_t other : trial.met) Share(trial.function, other);
    for (const Index end : trial.ended) ends_[end] = kEnd;
    for (const Index end : trial.went_on) {
      if (ends_[end] == kNoEnd) ends_[end] = kGoesOn;
    }
    taken_.insert(taken_.end(), trial.taken.begin(), trial.taken.end());
    for (const auto& [at, state] : trial.behind_calls) behind_calls_.push_back({trial.function, at, state});
    if (trial.refused) return;
    for (const Index start : trial.called) {
      Discover(start);
      called_.insert(start);
    }
  }
  void Undo(const Trial& trial) {
    for (const Index at : trial.reached) {
      state_of_[at] = kNoState;
      function_of_[at] = kNoFunction;
    }
  }

  void Follow(Trial& trial) {
    while (!trial.left.empty() && !trial.refused) {
      const auto [at, state] = trial.left.back();
      trial.left.pop_back();
      FollowPath(trial, at, states_[state]);
    }
  }

  void FollowPath(Trial& trial, Index at, State state) {
    const Area& area = AreaOf(at);
    const Index area_end = area.first + static_cast<Index>(area.bytes.size());
    const auto refuse = [&] { trial.refused = true; };
    uint64_t table = 0;  // data whose address was taken last
    while (true) {
      if (at >= area_end || budget_ == 0) return refuse();
      --budget_;
      if (at != functions_[trial.function].start && Begins(at)) return Continue(trial, at, state);
      if (state_of_[at] != kNoState) return Meet(trial, at, state);
      const std::optional<X64Instruction> instruction = Decode(area, at);
      if (!instruction) return refuse();
      if (instruction->fp == Fp::kCleared && state.fp_is_callers && !state.has_slot) {
        // Nothing called what begins here: a thread or a process.
        state.outermost = true;
        LoseSlot(state);
      }
      const uint32_t id = Intern(state);
      state_of_[at] = id;
      function_of_[at] = trial.function;
      trial.reached.push_back(at);
      const Index next = at + instruction->bytes;
      const uint64_t next_address = area.address + (next - area.first);
      if (instruction->address_taken) {
        const Index taken = At(next_address + static_cast<uint64_t>(int64_t{*instruction->address_taken}));
        if (taken != kNowhere) trial.taken.push_back(taken);
        if (taken == kNowhere) {
          table = next_address + static_cast<uint64_t>(int64_t{*instruction->address_taken});
          tables_.insert(table);
        }
      }
      const Index target = At(next_address + static_cast<uint64_t>(int64_t{instruction->distance}));
      switch (instruction->flow) {
        case Flow::kReturn:
          trial.ended.push_back(next);
          trial.returns = trial.has_return = true;
          if (!state.clean() || instruction->stack != Stack::kSame) refuse();
          return;
        case Flow::kIndirectJump:
          trial.ended.push_back(next);
          trial.returns = true;
          if (table != 0) AddArms(trial, area, table, id);
          return;
        case Flow::kStop:
          trial.ended.push_back(next);
          return;
        case Flow::kJump:
          trial.ended.push_back(next);
          return Jump(trial, target, state);
        case Flow::kBranch:
          Jump(trial, target, state);
          break;
        case Flow::kCall:
          if (target == kNowhere || target == next) return refuse();  // the latter to learn its own address
          trial.called.push_back(target);
          if (no_return_.contains(target)) {
            trial.ended.push_back(next);
            return;
          }
          if (next < area_end) trial.behind_calls.emplace_back(next, id);
          trial.went_on.push_back(next);
          return;
        case Flow::kIndirectCall:
          if (next < area_end) trial.behind_calls.emplace_back(next, id);
          trial.went_on.push_back(next);
          return;
        case Flow::kNext:
          break;
      }
      trial.went_on.push_back(next);
      if (!Apply(*instruction, state)) return refuse();
      at = next;
    }
  }

  // The table of a switch has distances from its first byte. Where it ends is not known: an arm is believed if it
  // agrees with all that is known of its code.
  void AddArms(Trial& trial, const Area& area, uint64_t table, uint32_t state) {
    const auto bytes = image_.BytesFrom({table});
    if (!bytes) return;
    absl::flat_hash_set<Index> arms;
    for (size_t i = 0; i < kMaxArms; ++i) {
      const auto distance = LoadAt<int32_t>(*bytes, i * sizeof(int32_t));
      if (!distance || *distance == 0 || (i > 0 && tables_.contains(table + i * sizeof(int32_t)))) return;
      const uint64_t address = table + static_cast<uint64_t>(int64_t{*distance});
      if (address < area.address || address - area.address >= area.bytes.size()) return;
      const Index arm = At(address);
      if (arms.insert(arm).second) trial.behind_calls.emplace_back(arm, state);
    }
  }

  void Jump(Trial& trial, Index target, const State& state) {
    if (target == kNowhere) {
      trial.refused = true;
    } else if (Begins(target)) {
      Continue(trial, target, state);
    } else if (state_of_[target] != kNoState) {
      Meet(trial, target, state);
    } else {
      trial.left.emplace_back(target, Intern(state));
    }
  }

  // With the code of a function that is known to begin there.
  void Continue(Trial& trial, Index start, const State& state) {
    if (!state.clean()) trial.refused = true;
    trial.continues_in.push_back(start);
  }

  void Meet(Trial& trial, Index at, const State& state) {
    if (states_[state_of_[at]] != state) trial.refused = true;
    trial.met.push_back(function_of_[at]);
  }

  bool BeginsBehindAnEnd(Index start) const {
    const Area& area = AreaOf(start);
    for (Index end = start; start - end <= kMaxPaddingBytes; --end) {
      if (ends_[end] == kGoesOn || (end != start && state_of_[end] != kNoState)) return false;
      if (ends_[end] == kEnd) return IsPadding(area, end, start);
      if (end == area.first) return IsPadding(area, end, start);
    }
    return false;
  }
  static bool IsPadding(const Area& area, Index at, Index end) { return BehindPadding(area, at, end) == end; }
  // Where what only fills space ends, or `end`; kNowhere: not within the area, or there is too much of it.
  static Index BehindPadding(const Area& area, Index at, Index end = kNowhere) {
    for (const Index begin = at; at < end && at - begin <= kMaxPaddingBytes;) {
      if (at - area.first >= area.bytes.size()) return kNowhere;
      const size_t bytes = X64PaddingBytes(area.bytes.subspan(at - area.first));
      if (bytes == 0) return at;
      at += static_cast<Index>(bytes);
    }
    return at == end ? at : kNowhere;
  }

  // --- what follows from it ---

  void NoteWhatReturns() {
    returning_.clear();
    for (bool more = true; more;) {
      more = false;
      for (const Function& function : functions_) {
        if (function.refused || returning_.contains(function.start)) continue;
        const bool goes_on = std::any_of(function.continues_in.begin(), function.continues_in.end(),
                                         [&](Index next) { return returning_.contains(next); });
        if (!function.has_return && !goes_on) continue;
        returning_.insert(function.start);
        more = true;
      }
    }
    std::vector<bool> returns(functions_.size());
    // Shared code returns for all that share it.
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (functions_[i].returns || functions_[i].refused) returns[Shared(static_cast<uint32_t>(i))] = true;
    }
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < functions_.size(); ++i) {
        const uint32_t whole = Shared(static_cast<uint32_t>(i));
        if (returns[whole]) continue;
        for (const Index next : functions_[i].continues_in) {
          if (!returns[Shared(function_at_[next])]) continue;
          returns[whole] = more = true;
          break;
        }
      }
    }
    no_return_.clear();
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (!returns[Shared(static_cast<uint32_t>(i))]) no_return_.insert(functions_[i].start);
    }
  }

  // Whether a path leads from here to where the function returns.
  bool LeadsOut(Index from) {
    std::vector<Index> left{from};
    absl::flat_hash_set<Index> seen{from};
    bool out = false;
    const auto add = [&](Index to) {
      if (to == kNowhere || to >= code_bytes_ || Begins(to)) {
        out = true;
      } else if (seen.insert(to).second) {
        left.push_back(to);
      }
    };
    while (!left.empty() && !out) {
      const Index at = left.back();
      left.pop_back();
      if (out_budget_ == 0) return true;
      --out_budget_;
      if (state_of_[at] == kNoState) continue;  // behind a call that does not return
      const Area& area = AreaOf(at);
      const auto instruction = Decode(area, at);
      if (!instruction) return true;
      const Index next = at + instruction->bytes;
      const Index target =
          At(area.address + (next - area.first) + static_cast<uint64_t>(int64_t{instruction->distance}));
      switch (instruction->flow) {
        case Flow::kReturn:
        case Flow::kIndirectJump:
          return true;
        case Flow::kStop:
          break;
        case Flow::kBranch:
          add(target);
          add(next);
          break;
        case Flow::kJump:
          add(target);
          break;
        case Flow::kCall:
          if (!no_return_.contains(target)) add(next);
          break;
        case Flow::kIndirectCall:
        case Flow::kNext:
          add(next);
          break;
      }
    }
    return out;
  }

  // Instructions inside others, as behind a lock prefix that is jumped over, must say the same.
  void RefuseOverlaps() {
    for (const Area& area : areas_) {
      Index outer = area.first, end = area.first;
      for (Index at = area.first; at - area.first < area.bytes.size(); ++at) {
        if (state_of_[at] == kNoState) continue;
        const auto instruction = Decode(area, at);
        if (!instruction) continue;
        if (at < end && state_of_[at] != state_of_[outer]) {
          functions_[function_of_[at]].refused = functions_[function_of_[outer]].refused = true;
        }
        if (at + instruction->bytes > end) {
          outer = at;
          end = at + instruction->bytes;
        }
      }
    }
  }

  // Which instructions are proved: those that lead to where the function returns, and those that its first one leads to
  // by way of nothing but functions that return.
  void Prove(const std::vector<bool>& refused) {
    proved_.assign(code_bytes_, 0);
    const auto is_code = [&](Index at) {
      return at < code_bytes_ && state_of_[at] != kNoState && !refused[Shared(function_of_[at])];
    };
    for (const Function& function : functions_) {
      if (!function.guessed && is_code(function.start)) proved_[function.start] |= kFromAbove;
    }
    for (bool more = true, up = true; more; up = !up) {
      more = false;
      for (uint64_t i = 0; i < code_bytes_; ++i) {
        const Index at = static_cast<Index>(up ? code_bytes_ - 1 - i : i);
        if (!is_code(at)) continue;
        const Area& area = AreaOf(at);
        const auto instruction = Decode(area, at);
        if (!instruction) continue;
        const Index next = at + instruction->bytes;
        const Index target =
            At(area.address + (next - area.first) + static_cast<uint64_t>(int64_t{instruction->distance}));
        const Flow flow = instruction->flow;
        const bool calls = flow == Flow::kCall || flow == Flow::kIndirectCall;
        const bool jumps = flow == Flow::kJump || flow == Flow::kBranch;
        const bool goes_on = flow == Flow::kNext || flow == Flow::kBranch || calls;
        bool leads_out = flow == Flow::kReturn;
        const auto look = [&](Index to, bool sure) {
          if (to != kNowhere && Begins(to)) leads_out = leads_out || sure;
          if (!is_code(to)) return;
          if (sure && (proved_[to] & kFromBelow) != 0 && states_[state_of_[to]] == After(at, *instruction))
            leads_out = true;
          if (sure && (proved_[at] & kFromAbove) != 0 && (proved_[to] & kFromAbove) == 0) {
            proved_[to] |= kFromAbove;
            more = true;
          }
        };
        if (jumps) look(target, true);
        // Who compiled a call of an imported function may know that it does not return, and let other code follow. Of
        // a function pointer nobody knows.
        const bool returns =
            flow == Flow::kCall ? returning_.contains(target) : flow != Flow::kIndirectCall || !instruction->by_ip;
        if (goes_on) look(next, returns);
        if (leads_out && (proved_[at] & kFromBelow) == 0) {
          proved_[at] |= kFromBelow;
          more = true;
        }
      }
      if (!up && !more) break;
      if (up) more = true;  // both ways at least once
    }
  }
  State After(Index at, const X64Instruction& instruction) const {
    State state = states_[state_of_[at]];
    if (instruction.flow == Flow::kNext) Apply(instruction, state);
    return state;
  }

  void AddBounds(const std::vector<bool>& refused, std::vector<CodeFunction>& bounds) const {
    std::vector<uint8_t> sharing(functions_.size());
    for (size_t i = 0; i < functions_.size(); ++i) {
      uint8_t& count = sharing[Shared(static_cast<uint32_t>(i))];
      if (count < 2) ++count;
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      const Function& function = functions_[i];
      const uint32_t whole = Shared(static_cast<uint32_t>(i));
      const bool sure = !function.guessed || (proved_[function.start] & kFromBelow) != 0;
      if (refused[whole] || sharing[whole] > 1 || !sure) continue;
      const Area& area = AreaOf(function.start);
      Index end = function.start;
      while (end - area.first < area.bytes.size() && state_of_[end] != kNoState && Shared(function_of_[end]) == whole) {
        const auto instruction = Decode(area, end);
        if (!instruction) break;
        end += instruction->bytes;
      }
      if (end == function.start) continue;
      const uint64_t start = area.address + (function.start - area.first);
      bounds.push_back({{start}, {start + (end - function.start)}});
    }
    std::sort(bounds.begin(), bounds.end(),
              [](const CodeFunction& a, const CodeFunction& b) { return a.start < b.start; });
  }

  CodeRows Rows() {
    CodeRows result;
    result.code_bytes = code_bytes_;
    result.functions = functions_.size();
    RefuseOverlaps();
    std::vector<bool> refused(functions_.size());
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (functions_[i].refused) refused[Shared(static_cast<uint32_t>(i))] = true;
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (refused[Shared(static_cast<uint32_t>(i))]) ++result.refused;
    }
    Prove(refused);
    AddBounds(refused, result.bounds);
    out_budget_ = kStepsForEachByte * code_bytes_;
    for (const Area& area : areas_) {
      Index end = area.first;  // of the instruction before
      for (Index at = area.first; at - area.first < area.bytes.size(); ++at) {
        if (state_of_[at] == kNoState || refused[Shared(function_of_[at])]) continue;
        const auto instruction = Decode(area, at);
        if (!instruction || at < end) continue;  // inside another one: refused, if both were followed
        const State& state = states_[state_of_[at]];
        std::optional<CfiRow> row;
        if (state.outermost || (state.depth_known && state.depth == 0)) {
          if (!LeadsOut(at)) row = OutermostRow();
        } else {
          row = RowOf(state);
        }
        end = at + instruction->bytes;
        if (!row || proved_[at] == 0) continue;
        const uint64_t address = area.address + (at - area.first);
        result.row_bytes += instruction->bytes;
        if (!result.rows.empty() && result.rows.back().end.value == address && result.rows.back().row == *row) {
          result.rows.back().end.value += instruction->bytes;
        } else {
          result.rows.push_back({{address}, {address + instruction->bytes}, *row});
        }
      }
    }
    return result;
  }

  enum Proof : uint8_t { kFromAbove = 1, kFromBelow = 2 };
  enum End : uint8_t { kNoEnd, kGoesOn, kEnd };  // how the instruction that ends there goes on

  const ElfImage& image_;
  std::vector<Area> areas_;  // by address
  uint64_t code_bytes_ = 0;
  Index entry_ = kNowhere;
  std::vector<Index> symbols_, pointers_;
  // Functions, of the passes before.
  absl::flat_hash_set<Index> called_, no_return_, returning_;
  absl::flat_hash_set<uint64_t> tables_;  // addresses of data that code takes

  // Of one pass.
  std::vector<State> states_;
  uint32_t last_interned_ = kNoState;
  absl::flat_hash_map<State, uint32_t> state_ids_;
  std::vector<uint32_t> state_of_, function_of_;
  std::vector<uint8_t> ends_;
  std::vector<Function> functions_;
  std::vector<uint32_t> function_at_;  // that is known to begin there
  std::vector<Index> discovered_, taken_;
  std::vector<Pending> behind_calls_;
  uint64_t budget_ = 0, out_budget_ = 0;
  std::vector<uint8_t> proved_;
};

}  // namespace

absl::StatusOr<CodeRows> RowsOfCode(const ElfImage& image) { return RowMaker(image).Run(); }

}  // namespace clrsampler
