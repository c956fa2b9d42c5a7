#include "formats/elf/data_flow.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "formats/byte_reader.h"
#include "formats/elf/abstract_state.h"
#include "formats/x64/instruction.h"

namespace clrsampler {
namespace {

using Index = CodeIndex;
using State = AbstractState;
using Flow = X64Instruction::Flow;
using Stack = X64Instruction::Stack;
using Fp = X64Instruction::Fp;

constexpr size_t kMaxArms = 1024;  // of a switch
constexpr Index kAlignment = 16;   // of functions that nothing leads to
// Each may show where other functions begin. Code can be made so that it shows one a round; musl's takes few.
constexpr int kMaxRounds = 64;

class DataFlow {
 public:
  DataFlow(const ElfImage& image, const CodeAreas& code, const FunctionStarts& starts, CallKnowledge& known)
      : image_(image), code_(code), starts_(starts), known_(known) {
    graph_.function_at.assign(code_.bytes(), kNoFunction);
    graph_.state_of.assign(code_.bytes(), kNoState);
    graph_.function_of.assign(code_.bytes(), kNoFunction);
    ends_.assign(code_.bytes() + 1, kNoEnd);
    budget_ = kStepsForEachByte * code_.bytes();
  }

  ControlFlowGraph Run() && {
    FollowKnown();
    FollowTaken();
    Sweep();
    for (uint32_t i = 0; i < graph_.functions.size(); ++i) graph_.ShortenShared(i);
    return std::move(graph_);
  }

 private:
  // Paths of one function that are believed, or rejected, as a whole.
  struct Trial {
    explicit Trial(uint32_t of) : function(of) {}
    uint32_t function;
    bool refused = false;
    bool returns = false;  // as in FlowFunction
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

  uint32_t Intern(const State& state) {
    if (last_interned_ < graph_.states.size() && graph_.states[last_interned_] == state) return last_interned_;
    const auto [found, fresh] = state_ids_.try_emplace(state, static_cast<uint32_t>(graph_.states.size()));
    if (fresh) graph_.states.push_back(state);
    return last_interned_ = found->second;
  }

  // The functions that symbols and calls show.
  void FollowKnown() {
    for (const Index start : starts_.symbols) Discover(start);
    // They have an order of their own, not the hash's: the first path that is followed decides where paths contradict
    // each other.
    std::vector<Index> called(known_.called.begin(), known_.called.end());
    std::sort(called.begin(), called.end());
    for (const Index start : called) Discover(start);
    const Index entry = starts_.entry;
    if (entry != kNoCode && Clears(entry)) FollowFunction(AddFunction(entry), Intern(State()));
    FollowDiscovered();
  }

  // Functions whose address is held somewhere: nothing runs into them from above.
  void FollowTaken() {
    taken_.insert(taken_.end(), starts_.pointers.begin(), starts_.pointers.end());
    bool more = true;
    for (int round = 0; more && round < kMaxRounds; ++round) {
      more = false;
      std::sort(taken_.begin(), taken_.end());
      taken_.erase(std::unique(taken_.begin(), taken_.end()), taken_.end());
      const std::vector<Index> candidates = std::move(taken_);
      taken_.clear();
      for (const Index candidate : candidates) {
        if (graph_.Reached(candidate)) continue;
        if (!BeginsBehindAnEnd(candidate)) {
          taken_.push_back(candidate);
          continue;
        }
        Discover(candidate);
        FollowDiscovered();
        more = true;
      }
    }
  }

  bool Clears(Index at) const {
    const auto instruction = code_.AreaOf(at).Decode(at);
    return instruction && instruction->fp == Fp::kCleared;
  }

  // Places that nothing led to. Compilers let functions begin behind the end of other code. Whether one does is judged
  // by how it ends.
  void Sweep() {
    for (const CodeArea& area : code_.all()) {
      for (Index at = area.first; area.Contains(at); ++at) {
        if (ends_[at] != kEnd || graph_.Reached(at)) continue;
        const Index start = BehindPadding(area, at);
        if (start == kNoCode || area.AddressOf(start) % kAlignment != 0) continue;
        if (graph_.Reached(start) || graph_.Begins(start)) continue;
        const auto function = static_cast<uint32_t>(graph_.functions.size());
        graph_.functions.push_back({.start = start, .guessed = true, .continues_in = {}});
        TryPath(function, start, Intern(State()));
        FollowDiscovered();
      }
    }
  }

  uint32_t AddFunction(Index start) {
    if (graph_.function_at[start] == kNoFunction) {
      graph_.function_at[start] = static_cast<uint32_t>(graph_.functions.size());
      graph_.functions.push_back({.start = start, .continues_in = {}});
    }
    return graph_.function_at[start];
  }
  void Discover(Index start) {
    if (graph_.Begins(start)) return;
    AddFunction(start);
    discovered_.push_back(start);
  }
  // Code that surely belongs to a function comes first, then the code behind its calls.
  void FollowDiscovered() {
    const uint32_t entry = Intern(State());
    while (true) {
      if (!discovered_.empty()) {
        const Index start = discovered_.back();
        discovered_.pop_back();
        FollowFunction(graph_.function_at[start], entry);
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
    if (graph_.Begins(at)) return;
    if (graph_.Reached(at)) {
      if (graph_.state_of[at] == state) Share(function, graph_.function_of[at]);
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

  void Share(uint32_t a, uint32_t b) {
    a = graph_.ShortenShared(a);
    b = graph_.ShortenShared(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    graph_.functions[b].shares = a;
  }

  // From its first instruction on, in this state.
  void FollowFunction(uint32_t function, uint32_t state) {
    const Index start = graph_.functions[function].start;
    if (graph_.Reached(start)) {
      if (graph_.state_of[start] != state) graph_.functions[function].refused = true;
      return Share(function, graph_.function_of[start]);
    }
    Trial trial(function);
    trial.left.emplace_back(start, state);
    Follow(trial);
    if (trial.refused) graph_.functions[function].refused = true;
    Keep(trial);
  }

  void Keep(const Trial& trial) {
    FlowFunction& function = graph_.functions[trial.function];
    function.returns = function.returns || trial.returns;
    function.has_return = function.has_return || trial.has_return;
    function.continues_in.insert(function.continues_in.end(), trial.continues_in.begin(), trial.continues_in.end());
    for (const uint32_t other : trial.met) Share(trial.function, other);
    for (const Index end : trial.ended) ends_[end] = kEnd;
    for (const Index end : trial.went_on) {
      if (ends_[end] == kNoEnd) ends_[end] = kFallsThrough;
    }
    taken_.insert(taken_.end(), trial.taken.begin(), trial.taken.end());
    for (const auto& [at, state] : trial.behind_calls) behind_calls_.push_back({trial.function, at, state});
    if (trial.refused) return;
    for (const Index start : trial.called) {
      Discover(start);
      known_.called.insert(start);
    }
  }
  void Undo(const Trial& trial) {
    for (const Index at : trial.reached) {
      graph_.state_of[at] = kNoState;
      graph_.function_of[at] = kNoFunction;
    }
  }

  void Follow(Trial& trial) {
    while (!trial.left.empty() && !trial.refused) {
      const auto [at, state] = trial.left.back();
      trial.left.pop_back();
      FollowPath(trial, at, graph_.states[state]);
    }
  }

  void FollowPath(Trial& trial, Index at, State state) {
    const CodeArea& area = code_.AreaOf(at);
    const Index start = graph_.functions[trial.function].start;
    uint64_t table = 0;  // data whose address was taken last
    while (true) {
      if (at >= area.end() || budget_ == 0) return Refuse(trial);
      --budget_;
      if (at != start && graph_.Begins(at)) return Continue(trial, at, state);
      if (graph_.Reached(at)) return Meet(trial, at, state);
      const std::optional<X64Instruction> instruction = area.Decode(at);
      if (!instruction) return Refuse(trial);
      MarkOutermost(*instruction, state);
      Reach(trial, at, state);
      const Index next = at + instruction->bytes;
      if (instruction->address_taken) {
        NoteAddress(trial, area.AddressOf(next) + static_cast<uint64_t>(int64_t{*instruction->address_taken}), table);
      }
      if (!GoesOn(trial, {area, *instruction, at, next, table}, state)) return;
      trial.went_on.push_back(next);
      if (!Transfer(*instruction, state)) return Refuse(trial);
      at = next;
    }
  }

  static void Refuse(Trial& trial) { trial.refused = true; }

  void Reach(Trial& trial, Index at, const State& state) {
    graph_.state_of[at] = Intern(state);
    graph_.function_of[at] = trial.function;
    trial.reached.push_back(at);
  }

  void NoteAddress(Trial& trial, uint64_t address, uint64_t& table) {
    if (const Index taken = code_.At(address); taken != kNoCode) {
      trial.taken.push_back(taken);
      return;
    }
    table = address;
    known_.tables.insert(table);
  }

  // An instruction on a path.
  struct Step {
    const CodeArea& area;
    const X64Instruction& instruction;
    Index at, next;
    uint64_t table;  // 0: none
  };

  // Whether the path leads to the next instruction right away. Other ways are noted.
  bool GoesOn(Trial& trial, const Step& step, const State& state) {
    switch (step.instruction.flow) {
      case Flow::kNext:
        return true;
      case Flow::kBranch:
        Jump(trial, TargetOf(step), state);
        return true;
      case Flow::kReturn:
        trial.returns = trial.has_return = true;
        if (!state.clean() || step.instruction.stack != Stack::kSame) Refuse(trial);
        break;
      case Flow::kIndirectJump:
        trial.returns = true;
        if (step.table != 0) AddArms(trial, step.area, step.table, graph_.state_of[step.at]);
        break;
      case Flow::kStop:
        break;
      case Flow::kJump:
        Jump(trial, TargetOf(step), state);
        break;
      case Flow::kCall:
        Call(trial, step);
        return false;
      case Flow::kIndirectCall:
        ReturnTo(trial, step, graph_.state_of[step.at]);
        return false;
    }
    trial.ended.push_back(step.next);
    return false;
  }

  Index TargetOf(const Step& step) const { return code_.Target(step.area, step.next, step.instruction.distance); }

  void Call(Trial& trial, const Step& step) {
    const Index target = TargetOf(step);
    if (target == kNoCode || target == step.next) return Refuse(trial);  // the latter to learn its own address
    trial.called.push_back(target);
    if (known_.no_return.contains(target)) {
      trial.ended.push_back(step.next);
    } else {
      ReturnTo(trial, step, graph_.state_of[step.at]);
    }
  }

  static void ReturnTo(Trial& trial, const Step& step, uint32_t state) {
    if (step.next < step.area.end()) trial.behind_calls.emplace_back(step.next, state);
    trial.went_on.push_back(step.next);
  }

  // The table of a switch has distances from its first byte. Its end is not known. An arm is believed if it agrees with
  // everything that is known of its code.
  void AddArms(Trial& trial, const CodeArea& area, uint64_t table, uint32_t state) {
    const auto bytes = image_.BytesFrom({table});
    if (!bytes) return;
    absl::flat_hash_set<Index> arms;
    for (size_t i = 0; i < kMaxArms; ++i) {
      const auto distance = LoadAt<int32_t>(*bytes, i * sizeof(int32_t));
      if (!distance || *distance == 0 || (i > 0 && known_.tables.contains(table + i * sizeof(int32_t)))) return;
      const uint64_t address = table + static_cast<uint64_t>(int64_t{*distance});
      if (address < area.address || address - area.address >= area.bytes.size()) return;
      const Index arm = code_.At(address);
      if (arms.insert(arm).second) trial.behind_calls.emplace_back(arm, state);
    }
  }

  void Jump(Trial& trial, Index target, const State& state) {
    if (target == kNoCode) {
      trial.refused = true;
    } else if (graph_.Begins(target)) {
      Continue(trial, target, state);
    } else if (graph_.Reached(target)) {
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
    if (graph_.StateAt(at) != state) trial.refused = true;
    trial.met.push_back(graph_.function_of[at]);
  }

  bool BeginsBehindAnEnd(Index start) const {
    const CodeArea& area = code_.AreaOf(start);
    for (Index end = start; start - end <= kMaxPaddingBytes; --end) {
      if (ends_[end] == kFallsThrough || (end != start && graph_.Reached(end))) return false;
      if (ends_[end] == kEnd) return IsPadding(area, end, start);
      if (end == area.first) return IsPadding(area, end, start);
    }
    return false;
  }
  static bool IsPadding(const CodeArea& area, Index at, Index end) { return BehindPadding(area, at, end) == end; }

  enum End : uint8_t { kNoEnd, kFallsThrough, kEnd };  // how the instruction that ends there goes on

  const ElfImage& image_;
  const CodeAreas& code_;
  const FunctionStarts& starts_;
  CallKnowledge& known_;
  ControlFlowGraph graph_;
  uint32_t last_interned_ = kNoState;
  absl::flat_hash_map<State, uint32_t> state_ids_;
  std::vector<uint8_t> ends_;
  std::vector<Index> discovered_, taken_;
  std::vector<Pending> behind_calls_;
  uint64_t budget_ = 0;
};

}  // namespace

ControlFlowGraph FollowCode(const ElfImage& image, const CodeAreas& code, const FunctionStarts& starts,
                            CallKnowledge& known) {
  return DataFlow(image, code, starts, known).Run();
}

}  // namespace clrsampler
