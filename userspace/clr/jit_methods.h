// Names of code that was compiled in the target: a FrameSource over the jitdump and the perf map that its runtime
// writes.
//
// The jitdump speaks for the times that it is known to be complete for, because it has times itself. The perf map
// speaks when there is no jitdump, and for what came after a jitdump's end. An address in a jitdump that has ended may
// be another method's by now, so that without a perf map later samples have no name. A perf map that is written in
// blocks speaks for the time before its last block. Files are looked for only in processes that have compiled code in
// memory, and in the target's own mount namespace (jit_files.h).
//
// How to drive it: one object for all processes. Poll(process, now) is called once per loop iteration and process, and
// again while CompleteUntil is behind. Resolve is for frames whose mapping is JIT memory or unknown. ResolvePrecompiled
// is a last resort for precompiled code, which a jitdump also names. Forget is called at exec and after exit. Main loop
// only.
#ifndef CLRSAMPLER_CLR_JIT_METHODS_H_
#define CLRSAMPLER_CLR_JIT_METHODS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "clr/jitdump_tailer.h"
#include "clr/perf_map_tailer.h"
#include "clr/unnamed_jit_frames.h"
#include "formats/names/frame_text.h"
#include "process/per_process.h"
#include "process/target_memory.h"
#include "status/notices.h"
#include "symbols/frame_source.h"

namespace clrsampler {

struct JitMethodsOptions {
  NameStyle names = NameStyle::kShort;
  // Whether somebody has just seen to it that a process writes a perf map; may be empty.
  std::function<bool(ProcessKey)> perf_map_promised = nullptr;
  // Whether the runtime of a process writes its perf map in blocks; may be empty. nullopt: no runtime can be looked at.
  std::function<std::optional<bool>(const Process&)> perf_map_in_blocks = nullptr;
  size_t poll_budget_bytes = 4 << 20;  // per process, file and Poll
  ReadMemory read_memory = ReadTargetMemory;
};

struct JitMethodsCounters {
  TailCounters jitdump;
  TailCounters perf_map;
  uint64_t names_read = 0;     // distinct methods that samples hit
  uint64_t code_compared = 0;  // times that recorded code was compared with the target's memory
  uint64_t names_lost = 0;     // the file no longer held the name when it was wanted
  // Answers without a name, by reason.
  uint64_t no_map = 0;
  uint64_t not_in_map = 0;
  uint64_t ambiguous = 0;
};

class JitMethods : public FrameSource, public PolledSource, public NamePromiser {
 public:
  // Borrows `frames`, `notices` and `clock`; they outlive it.
  JitMethods(JitMethodsOptions options, FrameTable& frames, Notices& notices, const Clock& clock);
  ~JitMethods() override;

  // Answers for JIT memory, with a reason when there is no name; for an address without a known mapping only with a
  // name.
  std::optional<Resolution> Resolve(const FrameQuery& query) override;
  // The name from a jitdump's [PreJIT] record for an address in a file mapping: for a source order in which the image's
  // own tables come first.
  std::optional<Resolution> ResolvePrecompiled(const FrameQuery& query);

  // Stubs that `memory` names are shown by its name: the files name blocks of them, and give kinds of a block one word.
  // `memory` outlives this object, or is not asked any more.
  void PreferStubsOf(FrameSource& memory) { stubs_ = &memory; }

  uint64_t Generation(ProcessKey key) const override;
  PolledSource* polled() override { return this; }
  NamePromiser* promiser() override { return this; }

  bool NamesFrom(ProcessKey key, uint64_t lookup_address, MonotonicTime time) override;
  void Poll(const Process& process, MonotonicTime now) override;
  MonotonicTime CompleteUntil(ProcessKey key) const override;
  // A perf map in which code is replaced faster than it is read: for a second after an ambiguous answer.
  bool WantsShortIterations(MonotonicTime now) const override;
  // Not with a perf map: its lines have no times of their own.
  bool MayIdle() const override;

  JitMethodsCounters counters() const;

 private:
  struct ProcessState;
  struct Seen {
    uint64_t mappings_generation = 0;
    std::optional<std::string> marker;  // JitdumpMarkerDirectory of one that was mapped by then
    uint32_t exec_count = 0;
    std::unique_ptr<ProcessState> state;  // only for processes with compiled code
  };
  struct Found {
    MethodAnswer answer;
    NameSource source = NameSource::kNone;
  };

  ProcessState* TargetOf(ProcessKey key) const;
  void NoteMappings(const Process& process, Seen& seen, MonotonicTime now);
  absl::StatusOr<OpenedFile> OpenFirst(const Process& process, const ProcessState& state, absl::string_view name,
                                       std::string& directory) const;
  // A file may appear at any moment, and name what is sampled now.
  bool ExpectsFiles(ProcessKey key, const ProcessState& state, MonotonicTime now) const;
  void PollJitdump(const Process& process, ProcessState& state, MonotonicTime now);
  // Goes through all mappings, so it is asked when files are looked for, not at every iteration.
  void ChoosePerfMapForm(const Process& process, ProcessState& state);
  void BeginPerfMapAnew(ProcessState& state, bool in_blocks);
  void PollPerfMap(const Process& process, ProcessState& state, MonotonicTime now);
  // As messages call the process that files are of, and as notices tell processes apart.
  struct FileOwner {
    std::string text, subject;
  };
  void NoteTrouble(const Process& process, ProcessState& state);
  void NoteJitdumpState(const FileOwner& owner, const ProcessState& state);
  void NotePerfMapState(const FileOwner& owner, const ProcessState& state);
  Found Find(ProcessState& state, uint64_t address, MonotonicTime time);
  bool CodeStands(ProcessState& state, const MethodAnswer& answer, MonotonicTime time);
  std::optional<FrameId> NameOf(ProcessState& state, const Found& found);
  static void AddCounters(const ProcessState& state, JitMethodsCounters& sum);

  JitMethodsOptions options_;
  FrameTable& frames_;
  Notices& notices_;
  const Clock& clock_;
  FrameSource* stubs_ = nullptr;
  PerProcess<Seen> seen_;
  uint64_t targets_made_ = 0;
  std::vector<std::byte> scratch_;
  UnnamedJitFrames unnamed_;
  MonotonicTime last_ambiguous_ = MonotonicTime::Min();  // time of the sample
  JitMethodsCounters counters_;                          // without those of the tailers that are alive
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_JIT_METHODS_H_
