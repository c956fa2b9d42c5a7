#include "apps/stack_selection.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "unwind/stack_unwinder.h"

namespace clrsampler {
namespace {

// The longest epilogue that is followed has 14 instructions, the longest of them 8 bytes.
constexpr uint64_t kLeafBytes = 14 * 8;
// The marks of a funclet's frame: its prologue, and three instructions.
constexpr uint64_t kFuncletBytes = 255 + 24;

absl::StatusOr<RawStack> Raw(const RecordedStack& stack) {
  return RawStack::Parse(std::as_bytes(std::span(stack.record)));
}

UserStack Walk(const RecordedStack& stack, CodeFinder& code) {
  UserStack result;
  const absl::StatusOr<RawStack> raw = Raw(stack);
  if (raw.ok()) StackUnwinder({.max_frames = kRecordedMaxFrames}).Walk(*raw, code, result);
  return result;
}

// Each step of the unwind shows this: hashes of the kind of code, how its frame is left, and what came of it.
absl::flat_hash_set<uint64_t> Features(const StackRecording& recording, const RecordedStack& stack) {
  absl::flat_hash_set<uint64_t> features;
  RecordedCode code(recording);
  features.insert(absl::HashOf(stack.result.end, stack.result.frames.size() > kRecordedMaxFrames / 2));
  for (size_t i = 0; i < stack.result.frames.size(); ++i) {
    const UserFrame& frame = stack.result.frames[i];
    const CodeAt& at = code.At(frame.lookup_address);
    const auto next = i + 1 < stack.result.frames.size() ? static_cast<int>(stack.result.frames[i + 1].origin) : -1;
    const bool exact = frame.lookup_address == frame.address;
    features.insert(absl::HashOf("place", frame.lookup_address));
    features.insert(
        absl::HashOf(at.kind, at.mapped, at.has_row, at.between_rows, frame.origin, frame.doubt, next, exact));
    if (at.has_row)
      features.insert(absl::HashOf(at.row.cfa, at.row.fp, at.row.ra, at.row.signal_frame, exact, frame.doubt));
    if (at.has_leaf_row && exact) features.insert(absl::HashOf("epilogue", at.leaf_row.cfa, at.leaf_row.cfa_offset));
    if (at.managed == nullptr) continue;
    const ManagedFunction& function = *at.managed;
    uint64_t shape = absl::HashOf(function.funclet, function.osr, function.unwind.frame_register, frame.doubt);
    for (const UnwindCode& step : function.unwind.codes) shape = absl::HashOf(shape, step.op, step.reg == kUnwindRbp);
    features.insert(shape);
    // Leaves in prologues, in epilogues, and between them.
    if (!exact) continue;
    const uint64_t offset = frame.address - function.begin;
    const auto byte = offset < function.code.size() ? static_cast<int>(function.code[offset]) : -1;
    features.insert(absl::HashOf("leaf", offset < function.unwind.prologue_bytes ? offset : 1000, function.funclet));
    if (byte == 0xC3 || byte == 0x5D || byte == 0xC9) features.insert(absl::HashOf("epilogue", byte, function.osr));
  }
  return features;
}

bool IsText(uint64_t word) {
  int letters = 0, wide = 0, zeros_after = 0;
  bool ascii = true, utf16 = true;
  for (int i = 0; i < 8; ++i) {
    const auto byte = static_cast<uint8_t>(word >> 8 * i);
    const bool printable = byte >= 0x20 && byte < 0x7f;
    if (byte == 0) {
      ++zeros_after;
    } else {
      ascii &= printable && zeros_after == 0;
      ++letters;
    }
    if (i % 2 == 0) {
      utf16 &= printable || byte == 0;
      wide += printable;
    } else {
      utf16 &= byte == 0;
    }
  }
  return (ascii && letters >= 3) || (utf16 && wide >= 2);
}

// The user words without text and, from behind the last word that matters, zeroed: zeros cost nothing in a recording.
// Nothing here knows how they are laid out; whether the stack still comes out is what decides.
std::optional<RecordedStack> Reduced(const RecordedStack& stack, const StackRecording& recording) {
  constexpr size_t kHeader = sizeof(wire_cpu_sample) / sizeof(uint64_t);
  const absl::StatusOr<RawStack> raw = Raw(stack);
  if (!raw.ok()) return std::nullopt;
  wire_cpu_sample sample = raw->sample();
  const auto user = stack.record.begin() + static_cast<ptrdiff_t>(kHeader + sample.kernel_frames);
  RecordedStack reduced{{}, stack.result};
  reduced.record.assign(kHeader, 0);
  reduced.record.insert(reduced.record.end(), user, user + sample.user_words);
  sample.kernel_frames = 0;
  sample.snapshots = 0;
  std::memset(sample.comm, 0, sizeof sample.comm);
  std::memcpy(reduced.record.data(), &sample, sizeof sample);
  const auto still_holds = [&] { return WalkRecorded(recording, reduced) == stack.result; };
  for (uint64_t& word : std::span(reduced.record).subspan(kHeader)) {
    const uint64_t address = word & kUserAddressMask;
    const bool is_code = recording.code.contains(address) || recording.code.contains(address - 1);
    if (!is_code && IsText(word)) word = 0;
  }
  if (!still_holds()) return std::nullopt;
  // Finds by halves how much can be left out at the end.
  size_t needed = kHeader, size = reduced.record.size();
  while (needed < size) {
    const size_t middle = needed + (size - needed) / 2;
    const std::vector<uint64_t> whole = reduced.record;
    std::fill(reduced.record.begin() + static_cast<ptrdiff_t>(middle), reduced.record.end(), 0);
    if (still_holds()) {
      size = middle;
    } else {
      reduced.record = whole;
      needed = middle + 1;
    }
  }
  return reduced;
}

// Functions with the code that these stacks look at.
void TrimCode(StackRecording& recording) {
  absl::flat_hash_map<const ManagedFunction*, uint64_t> wanted;
  for (const RecordedStack& stack : recording.stacks) {
    for (const UserFrame& frame : stack.result.frames) {
      if (frame.lookup_address != frame.address) continue;
      const auto found = recording.code.find(frame.address);
      if (found == recording.code.end() || found->second.managed == nullptr) continue;
      const ManagedFunction& function = *found->second.managed;
      uint64_t& bytes = wanted[&function];
      bytes = std::max(bytes, frame.address - function.begin + kLeafBytes);
      if (function.funclet) bytes = std::max(bytes, kFuncletBytes);
    }
  }
  absl::flat_hash_map<const ManagedFunction*, std::shared_ptr<const ManagedFunction>> trimmed;
  for (auto& [address, answer] : recording.code) {
    if (answer.managed == nullptr) continue;
    std::shared_ptr<const ManagedFunction>& function = trimmed[answer.managed.get()];
    if (function == nullptr) {
      auto copy = std::make_shared<ManagedFunction>(*answer.managed);
      const auto found = wanted.find(answer.managed.get());
      const uint64_t bytes = found == wanted.end() ? 0 : found->second;
      copy->code = copy->code.first(std::min<uint64_t>(copy->code.size(), bytes));
      copy->keep_alive = answer.managed;  // whose code it is
      function = std::move(copy);
    }
    answer.managed = function;
  }
}

}  // namespace

bool IsDoubtful(const UserStack& stack) {
  return stack.end != StackEnd::kComplete ||
         std::any_of(stack.frames.begin(), stack.frames.end(),
                     [](const UserFrame& frame) { return frame.doubt != FrameDoubt::kNone; });
}

UserStack WalkRecorded(const StackRecording& recording, const RecordedStack& stack) {
  RecordedCode code(recording);
  return Walk(stack, code);
}

StackRecording SelectStacks(const StackRecording& recording, size_t count, StackChoice choice) {
  struct Candidate {
    RecordedStack stack;
    absl::flat_hash_set<uint64_t> features;
    double words = 0;
  };
  std::vector<Candidate> candidates;
  for (const RecordedStack& stack : recording.stacks) {
    if (choice != StackChoice::kAny && IsDoubtful(stack.result) != (choice == StackChoice::kDoubtful)) continue;
    std::optional<RecordedStack> reduced = Reduced(stack, recording);
    if (!reduced) continue;
    absl::flat_hash_set<uint64_t> features = Features(recording, *reduced);
    const auto zeros = std::count(reduced->record.begin(), reduced->record.end(), 0u);
    const double words = static_cast<double>(reduced->record.size()) - static_cast<double>(zeros);
    candidates.push_back({*std::move(reduced), std::move(features), words});
  }
  StackRecording selected;
  absl::flat_hash_set<uint64_t> shown;
  while (selected.stacks.size() < count) {
    const Candidate* best = nullptr;
    double best_score = 0;
    for (const Candidate& candidate : candidates) {
      const auto fresh = std::count_if(candidate.features.begin(), candidate.features.end(),
                                       [&](uint64_t feature) { return !shown.contains(feature); });
      // So that a deep stack must show more than a flat one.
      constexpr double kSmall = 256;
      const double score = static_cast<double>(fresh) / (kSmall + candidate.words);
      if (score <= best_score) continue;
      best_score = score;
      best = &candidate;
    }
    if (best == nullptr) break;
    shown.insert(best->features.begin(), best->features.end());
    selected.stacks.push_back(best->stack);
  }
  RecordedCode all(recording);
  CodeRecorder needed(all, selected);
  for (const RecordedStack& stack : selected.stacks) Walk(stack, needed);
  TrimCode(selected);
  std::erase_if(selected.stacks, [&](const RecordedStack& s) { return WalkRecorded(selected, s) != s.result; });
  return selected;
}

}  // namespace clrsampler
