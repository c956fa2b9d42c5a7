#include "pipeline/sample_unwinder.h"

#include <algorithm>
#include <cstring>

#include "clr/jit_methods.h"
#include "clr/memory/memory_methods.h"

namespace clrsampler {

SampleUnwinder::SampleUnwinder(SampleUnwinderOptions options, const Sources& sources, ImageFiles& images,
                               Symbolizer& symbolizer, const Clock& clock)
    : options_(options),
      symbolizer_(symbolizer),
      jit_(
          [this, memory = sources.memory](ProcessKey key) {
            // Managed code of arm64 keeps frame records. Its words beside them are not read.
            return memory == nullptr || options_.machine != ElfMachine::kX64 ? nullptr : memory->RuntimeOf(key);
          },
          clock),
      r2r_(sources.precompiled, sources.read_memory),
      elf_(images),
      arm64_(sources.read_memory,
             [memory = sources.memory](ProcessKey key) { return memory != nullptr && memory->IsDotNet(key); }),
      code_(jit_, r2r_, elf_, options_.machine == ElfMachine::kArm64 ? &arm64_ : nullptr,
            [this, memory = sources.memory](ProcessKey key) {
              return options_.machine == ElfMachine::kX64 && memory != nullptr && memory->IsDotNet(key);
            }),
      unwinder_({.max_frames = options.max_frames, .machine = options.machine}),
      preview_({.max_frames = options.max_frames, .machine = options.machine}) {}

// Shows the code of `stack` to all sources that must look while it is there, except the code that was shown of this
// sample before.
void SampleUnwinder::Show(const Process& process, const RawStack& sample, const UserStack& stack,
                          std::span<const wire_code_snapshot> snapshots, std::span<const uint64_t> shown) {
  addresses_.clear();
  for (const UserFrame& frame : stack.frames) {
    // Both lists go from the leaf to the root. Frames that the two ways to unwind see in another order come twice.
    if (!shown.empty() && shown.front() == frame.lookup_address) {
      shown = shown.subspan(1);
    } else {
      addresses_.push_back(frame.lookup_address);
    }
  }
  if (addresses_.empty()) return;
  const ObservedSample observed{addresses_, snapshots, MonotonicTime{sample.sample().header.time_ns}};
  symbolizer_.Observe(process, observed);
  if (options_.unwind_data) code_.Observe(process, observed);
}

void SampleUnwinder::Observe(const Process& process, const RawStack& stack, EarlyStack& early) {
  main_loop_.Check();
  early.version.reset();
  WalkFrameChain(stack, early.stack);
  Show(process, stack, early.stack, stack.snapshots(), {});
  if (!options_.unwind_data) return;
  // With the data of these frames unwinding finds those that the chain skips.
  const size_t by_chain = early.stack.frames.size();
  preview_.Walk(stack, code_.For(process, MonotonicTime{stack.sample().header.time_ns}), early.stack);
  early.counters = preview_.TakeCounters();
  if (code_.answers_last()) early.version = code_.VersionOf(process);
  if (early.stack.frames.size() > by_chain) {
    shown_.swap(addresses_);
    Show(process, stack, early.stack, {}, shown_);
  }
}

const UserStack& SampleUnwinder::Walk(const Process& process, const RawStack& stack, const EarlyStack& early) {
  main_loop_.Check();
  if (early.version && options_.keep == 0 && *early.version == code_.VersionOf(process)) {
    unwinder_.Count(early.counters);
    return early.stack;
  }
  if (options_.unwind_data) {
    CodeFinder& code = code_.For(process, MonotonicTime{stack.sample().header.time_ns});
    if (options_.keep == 0) {
      unwinder_.Walk(stack, code, stack_);
      return stack_;
    }
    CodeRecorder recorder(code, kept_);
    unwinder_.Walk(stack, recorder, stack_);
    Keep(stack);
  } else {
    WalkFrameChain(stack, stack_);
  }
  return stack_;
}

void SampleUnwinder::Keep(const RawStack& stack) {
  const bool doubtful = stack_.end != StackEnd::kComplete ||
                        std::any_of(stack_.frames.begin(), stack_.frames.end(),
                                    [](const UserFrame& frame) { return frame.doubt != FrameDoubt::kNone; });
  RecordedStack* slot = nullptr;
  if (kept_.stacks.size() < options_.keep) {
    slot = &kept_.stacks.emplace_back();
  } else if (doubtful && kept_doubtful_ < kept_.stacks.size()) {
    slot = &kept_.stacks[kept_doubtful_];  // in place of one without doubt, or of an older one
  }
  if (slot == nullptr) return;
  if (doubtful) {
    std::swap(*slot, kept_.stacks[kept_doubtful_]);
    slot = &kept_.stacks[kept_doubtful_++];
  }
  const std::span<const std::byte> bytes = stack.bytes();
  slot->record.resize(bytes.size() / sizeof(uint64_t));
  std::memcpy(slot->record.data(), bytes.data(), slot->record.size() * sizeof(uint64_t));
  slot->result = stack_;
}

std::map<std::string, uint64_t> SampleUnwinder::Counters() const {
  if (!options_.unwind_data) return {};
  const UnwindCounters& unwound = unwinder_.counters();
  const auto found = [&](FrameOrigin origin) { return unwound.by_origin[static_cast<size_t>(origin)]; };
  uint64_t frames = 0;
  for (const uint64_t count : unwound.by_origin) frames += count;
  return {{"frames", frames},
          {"sampled", found(FrameOrigin::kSampled)},
          {"chain", found(FrameOrigin::kChain)},
          {"unwind_info", found(FrameOrigin::kUnwindInfo)},
          {"table", found(FrameOrigin::kTable)},
          {"stub", found(FrameOrigin::kStub)},
          {"fallback", found(FrameOrigin::kFallback)},
          {"checked", unwound.checked},
          {"contradictions", unwound.contradictions},
          {"missing_words", unwound.missing_words},
          {"unsupported", unwound.unsupported},
          {"no_data", unwound.no_data},
          {"no_code", unwound.no_code},
          {"lost", unwound.lost},
          {"jit_methods", jit_.counters().methods},
          {"jit_transient", jit_.counters().transient},
          {"jit_failed", jit_.counters().failed},
          {"jit_from_snapshots", jit_.counters().from_snapshots},
          {"jit_without_snapshot", jit_.counters().without_snapshot},
          {"arm64_leaves", arm64_.counters().leaves},
          {"arm64_without_frame", arm64_.counters().without_frame},
          {"arm64_unreadable", arm64_.counters().unreadable},
          {"r2r_functions", r2r_.counters().functions},
          {"r2r_damaged", r2r_.counters().damaged},
          {"r2r_unreadable", r2r_.counters().unreadable},
          {"debug_files_unchecked", elf_.counters().debug_files_unchecked},
          {"cache_bytes", code_.heap_bytes()}};
}

}  // namespace clrsampler
