// Names of managed code of processes that were started with nothing special: a FrameSource over the memory of their
// runtimes (runtime_memory.h).
//
// Time: memory says what is there now, a sample wants to know what was there then.
//  - Code of ordinary assemblies never moves and is never replaced: what is there now was there then.
//  - Dynamic methods and collectible assemblies are freed, and their addresses used again. Such a method names a sample
//    only if it was seen at its address both not later than the sample and not earlier, and nothing else in between.
//    Two readings show that, or what the sampler itself noted of it at the moment of the sample (wire_code_snapshot).
//    The note of the very sample decides, whatever was seen before and later.
//    The code of assemblies is freed with their LoaderAllocator, all at once: what two readings find of one owner in a
//    heap has been there all the time.
// So a name is right or missing, never a guess.
//
// How to drive it: Observe for each sample as soon as it arrives, while the code still exists; Resolve later, also
// after the process has ended. Main loop only.
#ifndef CLRSAMPLER_CLR_MEMORY_MEMORY_METHODS_H_
#define CLRSAMPLER_CLR_MEMORY_MEMORY_METHODS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "clr/lines/assembly_pdbs.h"
#include "clr/lines/method_lines.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/transient_heaps.h"
#include "clr/memory/unlisted_code.h"
#include "clr/runtime_discovery.h"
#include "formats/names/frame_text.h"
#include "os/clock.h"
#include "process/image_files.h"
#include "process/per_process.h"
#include "process/target_memory.h"
#include "status/notices.h"
#include "status/thread_checker.h"
#include "symbols/code_source.h"
#include "symbols/frame_source.h"
#include "symbols/line_source.h"

namespace clrsampler {

// Behind names that rest on structures which nobody has measured.
inline constexpr absl::string_view kUnverified = " [unverified runtime]";

struct MemoryMethodsOptions {
  NameStyle names = NameStyle::kShort;
  // Opens the memory of a process.
  std::function<absl::StatusOr<std::unique_ptr<MemoryReader>>(const Process&)> open_memory;  // empty: TargetMemory
  // Told where a process keeps transient code, whenever that changes; may be empty. The heaps are in order.
  std::function<void(const Process&, const wire_transient_code&, std::span<const wire_transient_heap>)> transient_code;
  // The tables of the precompiled image in whose file an address lies, from a reader that has them already; empty:
  // nobody, and the comparison with CoreLib reads them for itself.
  std::function<R2rTables(const Process&, const Mapping&, uint64_t address)> tables_at;
  // Runtimes that are newer than all known ones, or may be, are read as the newest of them. Names carry kUnverified.
  bool try_unknown_runtime = false;
  // Where the lines of methods come from; nullptr: nobody asks for any. Borrowed.
  AssemblyPdbs* pdbs = nullptr;
  bool keep_code = false;  // of the methods that samples meet; for BodyOf
  // A source that is asked before this one and promises names: what it names is not looked for in memory. Borrowed; may
  // be nullptr.
  FrameSource* earlier = nullptr;
};

struct MemoryMethodsCounters {
  uint64_t attached = 0;         // processes whose runtime could be read
  uint64_t refused = 0;          // and those where it could not
  uint64_t not_self_tested = 0;  // of the attached ones: CoreLib's image could not be compared with
  uint64_t lookups = 0;          // addresses that were followed through memory
  uint64_t methods = 0;
  uint64_t stubs = 0;
  uint64_t transient = 0;                           // methods that may be freed
  uint64_t replaced = 0;                            // of these: found to be another one later
  uint64_t metadata_copied = 0;                     // modules without a file
  std::array<uint64_t, kProbeFailures> failures{};  // by ProbeFailure
  MemoryCounters memory;                            // reads and bytes
  uint64_t il_maps = 0;                             // MethodLineReader::maps_read
  uint64_t il_maps_failed = 0;                      // and maps_failed
  // Answers without a name.
  uint64_t not_there_any_more = 0;
  uint64_t changed_while_read = 0;
  uint64_t snapshots = 0;         // notes of the sampler on transient code
  uint64_t snapshots_gone = 0;    // of these: without a name, so that they prove nothing
  uint64_t without_snapshot = 0;  // a transient method that was not seen before the sample

  std::map<std::string, uint64_t> ByName() const;  // as --stats writes them
};

class MemoryMethods : public FrameSource,
                      public SampleObserver,
                      public PolledSource,
                      public LineSource,
                      public CodeSource {
 public:
  // Borrows everything; all outlive it.
  MemoryMethods(MemoryMethodsOptions options, RuntimeDiscovery& runtimes, ImageFiles& images, FrameTable& frames,
                Notices& notices, const Clock& clock);
  ~MemoryMethods() override;

  std::optional<Resolution> Resolve(const FrameQuery& query) override;
  std::optional<SourcePlace> PlaceOf(const FrameQuery& query) override;
  std::optional<CodeBody> BodyOf(const FrameQuery& query) override;
  uint64_t Generation(ProcessKey key) const override;
  SampleObserver* observer() override { return this; }
  PolledSource* polled() override { return this; }

  void Observe(const Process& process, const ObservedSample& sample) override;
  void Poll(const Process& process, MonotonicTime now) override;
  // A method was compiled at this time: has the sampler told of its heap, if that may be freed and is a new one. A
  // dynamic method that was there before has gone.
  void NoteCompiled(const Process& process, uint64_t entry, uint64_t method_desc, MonotonicTime time);
  // The frame that says the type of an object, by the MethodTable that the object had at this moment. nullopt: it could
  // not be read. A program may have any number of types: the caller holds a NameBudget::Charge here and below.
  std::optional<FrameId> TypeFrame(const Process& process, uint64_t method_table);
  // The frame of a method that does not run, by its name; nullopt: names are not read from this process.
  std::optional<FrameId> MethodFrame(ProcessKey key, const MethodName& name);
  MonotonicTime CompleteUntil(ProcessKey) const override { return MonotonicTime::Max(); }
  // A .NET process is young, so that what it runs may be gone with it in a moment; or one loads assemblies that can be
  // freed.
  bool WantsShortIterations(MonotonicTime now) const override;

  // The reader of this process's runtime; nullptr: not attached, and `refusal` may say why.
  RuntimeMemory* RuntimeOf(ProcessKey key) const;
  std::string RefusalOf(ProcessKey key) const;
  // Whether names can be read from the process's memory, by trying now what a recording would; for those who list
  // processes. Unavailable: not yet, as its runtime has only begun. PermissionDenied: its memory is closed to us.
  // Others: its runtime is not known, or contradicts what is known.
  absl::Status Try(const Process& process);
  // Whether a .NET runtime that compiles code was found in it, readable or not.
  bool IsDotNet(ProcessKey key) const;
  MemoryMethodsCounters counters() const;
  size_t heap_bytes() const;  // copies of metadata

 private:
  struct ProcessState;
  struct Known;
  struct Moment;

  ProcessState* StateOf(ProcessKey key) const;  // nullptr: none was made
  ProcessState* TargetOf(const Process& process, MonotonicTime now);
  void Attach(const Process& process, ProcessState& state, MonotonicTime now);
  void Refuse(const Process& process, const DotNetRuntime& found, const absl::Status& status, ProcessState& state);
  absl::Status OpenMemory(const Process& process, ProcessState& state);
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> OpenRuntime(const Process& process, const DotNetRuntime& found,
                                                             uint64_t dac_table, ProcessState& state);
  std::string BuildOf(const Process& process, const DotNetRuntime& runtime);
  void NoteAttached(const Process& process, const DotNetRuntime& found, ProcessState& state);
  struct MethodRead {
    bool listed = true;                // one of the runtime's ranges holds the address
    std::optional<FrameId> stub = {};  // that may be freed
  };
  // Not again if seen since.
  MethodRead ReadMethod(const Process& process, ProcessState& state, uint64_t address, MonotonicTime since,
                        bool at_entry);
  // The times between which something was read.
  struct Reading {
    MonotonicTime before, after;
  };
  void Keep(const Process& process, ProcessState& state, uint64_t address, const ManagedCode& found, FrameId frame,
            const Reading& reading);
  static Known* LastSeen(ProcessState& state, uint64_t address, bool at_entry);
  void BoundMemory(ProcessState& state);
  // The first `count` that were seen at one address; there are as many.
  void DropOldest(ProcessState& state, std::vector<Known>& there, size_t count);
  FrameId FailureOf(const RuntimeMemory& runtime);
  static Resolution AnswerOf(const Known& known, MonotonicTime time);
  std::optional<Resolution> ResolveUnknown(const FrameQuery& query, ProcessState& state, bool is_file, bool readable);
  void NoteOwners(ProcessState& state, const std::vector<uint64_t>& heaps);
  void AddSnapshot(ProcessState& state, const wire_code_snapshot& snapshot, MonotonicTime time);
  bool Extend(ProcessState& state, const Moment& noted, uint64_t address, MonotonicTime time);
  static const Moment* MomentAt(const ProcessState& state, uint64_t address, MonotonicTime time);
  static const Known* KnownOf(const ProcessState& state, const Moment& moment, MonotonicTime time);
  static void NoteEnds(ProcessState& state, uint64_t entry, MonotonicTime time);
  TransientHeaps::Publish PublisherFor(const Process& process) const;
  const Known* FindKnown(ProcessState& state, uint64_t address, MonotonicTime time, bool at_entry) const;
  std::optional<FrameId> Unpublished(ProcessState& state, uint64_t address, uint64_t method_desc);
  void NoteStub(ProcessState& state, uint64_t address, FrameId frame, MonotonicTime sampled);
  std::optional<FrameId> FindUnlisted(const Process& process, ProcessState& state, const Mapping& mapping,
                                      uint64_t address, MonotonicTime sampled);
  void KeepCode(ProcessState& state, const ManagedCode& found, Known& known);
  FrameId FrameOf(const ProcessState& state, const ManagedCode& found);
  FrameId Unnamed(absl::string_view text);
  void AddCounters(const ProcessState& state, MemoryMethodsCounters& sum) const;

  MemoryMethodsOptions options_;
  RuntimeDiscovery& runtimes_;
  ImageFiles& images_;
  UnlistedCode unlisted_;
  FrameTable& frames_;
  Notices& notices_;
  const Clock& clock_;
  MetadataCopies copies_;
  PerProcess<std::unique_ptr<ProcessState>> states_;
  // Builds that passed the self test, by IdentityText of their image.
  absl::flat_hash_set<std::string> proven_;
  size_t kept_bytes_ = 0;  // of code, with its unwind data, of all targets
  MonotonicTime last_young_ = MonotonicTime::Min();
  MonotonicTime last_transient_ = MonotonicTime::Min();  // a new method of a collectible assembly was seen
  MemoryMethodsCounters counters_;                       // without those of the targets that are alive
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_MEMORY_METHODS_H_
