// Names of managed code read from the memory of a running CoreCLR: nothing is asked of the target, nothing is written
// to it and nothing is stopped.
//
//   address -> code range -> method start -> code header -> MethodDesc -> MethodTable -> module -> metadata
//
// It runs meanwhile, so every answer is what the memory says now. `Find` says how long an answer can be relied on. A
// permanent method stays where it is until the process ends. A transient one (dynamic, or of a collectible assembly)
// may be gone a moment later, and its `code.identity` tells whether it still is the same.
#ifndef CLRSAMPLER_CLR_MEMORY_RUNTIME_MEMORY_H_
#define CLRSAMPLER_CLR_MEMORY_RUNTIME_MEMORY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "clr/memory/code_ranges.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/precompiled_methods.h"
#include "clr/memory/runtime_layout.h"
#include "clr/memory/runtime_modules.h"
#include "clr/memory/runtime_self_test.h"
#include "clr/memory/runtime_types.h"
#include "status/thread_checker.h"

namespace clrsampler {

// Where a runtime is in a process, by what its image exports (clr/runtime_discovery.h).
struct RuntimePlace {
  uint32_t major = 0;
  ElfMachine machine = ElfMachine::kX64;
  AddressRange image;       // as mapped, first to last byte
  uint64_t dac_table = 0;   // address of g_dacTable
  uint64_t descriptor = 0;  // address of DotNetRuntimeContractDescriptor; 0: not exported
  // A runtime that is newer than all known ones, or has no version (0), is read as the newest of them, if its
  // descriptor fits and the self test finds CoreLib's methods as they are.
  bool try_newer = false;
  // Changes the layout before it is used; for tests that show that wrong offsets give no wrong names.
  std::function<void(RuntimeLayout&)> alter_layout;
  // The tables of the precompiled image that begins at an address, from a reader that has them already; used before
  // Attach returns. Empty, or nullptr: they are read for the test alone.
  std::function<R2rTables(uint64_t base)> tables_at;
  // Whether the process was told to optimise nothing (JITMinOpts). Asked once, when a method is met that takes no part
  // in tiering. Empty: it was not.
  std::function<bool()> compiles_with_min_opts;
};

// Addresses of variables of the runtime; 0: not known.
struct RuntimeVariables {
  uint64_t thread_store = 0;  // ThreadStore*
  uint64_t object_type = 0;   // MethodTable* of System.Object
  uint64_t sync_table = 0;    // SyncTableEntry*
};

struct RuntimeMemoryCounters {
  uint64_t lookups = 0;
  uint64_t methods = 0;
  uint64_t stubs = 0;
  std::array<uint64_t, kProbeFailures> failures{};  // by ProbeFailure
};

// The code at an address.
struct ManagedCode {
  enum class Kind : uint8_t {
    kNone,         // not the runtime's code
    kNoMethod,     // in a code heap, but in no method: freed, or between two
    kMethod,       // JIT-compiled
    kPrecompiled,  // R2R
    kStub,         // `name.method` is its kind
  };
  Kind kind = Kind::kNone;
  AddressRange range;  // of kMethod and kPrecompiled: the method's code; of others what is known to be the same
  bool transient = false;
  MethodCode code;  // of kMethod
  MethodName name;  // with tier
  uint32_t token = 0;
  std::shared_ptr<const RuntimeModule> module;  // that the token is of; of kMethod
  HeapOwner owner;                              // of the heap of a method of a collectible assembly
};

// The same without a name. `code` is that of kMethod, and of the kStub that lie in code heaps.
struct RuntimeCode {
  ManagedCode::Kind kind = ManagedCode::Kind::kNone;
  bool transient = false;
  MethodCode code;
};

// One process. Main loop only.
class RuntimeMemory {
 public:
  // Reads what the runtime says of itself, and tests on known methods whether this reader understands it; `proven`:
  // this very build has passed the test in another process, so that a few methods will do. Errors: Unimplemented or
  // FailedPrecondition (a runtime that can't be read: the message says why), Unavailable (it has not begun yet, or is
  // gone: try again later). Aborted: it contradicts itself, as it may while it changes; try again a few times. `copies`
  // outlives it.
  static absl::StatusOr<std::unique_ptr<RuntimeMemory>> Attach(const RuntimePlace& place, MemoryReader& memory,
                                                               const MappedContentFinder& files, MetadataCopies& copies,
                                                               bool proven);
  ~RuntimeMemory();

  // nullopt: it could not be read this time; `last_failure` says why.
  std::optional<ManagedCode> Find(uint64_t address);
  // A method that the compiler is through with and that the runtime has not published yet: what Find will say of its
  // first address, without a tier. Only for code that is never freed. nullopt as above.
  std::optional<ManagedCode> Unpublished(uint64_t method_desc);
  // The type of objects with this MethodTable, in the runtime's own notation. nullopt as above.
  std::optional<std::string> TypeName(uint64_t method_table);
  // The same in parts; nullopt also where it is no class that an assembly defines.
  std::optional<RuntimeType> TypeOf(uint64_t method_table);
  // The assembly of the runtime's own classes; nullptr: none of its code is precompiled, or it could not be read.
  std::shared_ptr<const RuntimeModule> CoreLib();
  // Cheaper, most of all for an address that Find found a moment ago, and without a say in the counters of names.
  // nullopt as above.
  std::optional<RuntimeCode> FindCode(uint64_t address);
  // Whether the method whose code was found before is still the one there.
  bool Stands(const MethodCode& code);
  // A new iteration of the main loop: some more may be read of what a target changes all the time.
  void NextIteration();

  ProbeFailure last_failure() const { return last_failure_; }
  const char* last_detail() const { return last_detail_; }
  const RuntimeMemoryCounters& counters() const { return counters_; }
  const std::vector<std::string>& layout_differences() const { return differences_; }
  const RuntimeLayout& layout() const { return layout_; }
  // Where no descriptor tells them they are read, with three reads a call: names need none of them.
  RuntimeVariables variables() const;
  MemoryReader& memory() { return memory_; }
  RuntimeModules& modules() { return *modules_; }
  const RuntimeModules& modules() const { return *modules_; }
  const SelfTestReport& self_test() const { return self_test_; }

  // Where code lies that may be freed while the process runs.
  struct TransientHeap {
    AddressRange range;
    CodeHeap heap;
  };
  std::vector<TransientHeap> TransientHeaps();
  // The one that holds the address; absent: none does.
  std::optional<TransientHeap> TransientHeapAt(uint64_t address);

  // The owner of the heap that a method of a collectible assembly was compiled to; its code need not be published yet.
  // nullopt: it is no such method, or that could not be read.
  std::optional<HeapOwner> OwnerOfAssembly(uint64_t entry, uint64_t method_desc);

  // The same of what lies in the heap that holds the address, by one of its first methods. nullopt: those are no such
  // methods.
  std::optional<HeapOwner> OwnerOfHeap(uint64_t address);

  // For listings and tests: all code sections, and the starts in a code heap, at most 1,048,576 of them.
  std::vector<CodeSection> Sections();
  std::vector<uint64_t> Starts(const CodeSection& heap);
  // Entry points of precompiled methods that the runtime has prepared, with their MethodDescs.
  using PreparedMethod = PrecompiledMethods::Prepared;
  std::vector<PreparedMethod> PreparedMethods(const CodeSection& image) {
    MemoryProbe failed(memory_);
    return precompiled_->PreparedIn(image, failed);
  }

 private:
  RuntimeMemory(const RuntimePlace& place, MemoryReader& memory);

  absl::Status Start(const MappedContentFinder& files, MetadataCopies& copies, bool proven);
  absl::Status ReadDescriptor();
  absl::Status SelfTest(const MappedContentFinder& files, bool proven);
  absl::Status CompareSection(const CodeSection& section, R2rImage& image, AssemblyOpener& assemblies, size_t most);
  void LookForArguments(const std::vector<CodeSection>& sections);
  std::optional<MethodCode> CodeAt(MemoryProbe& probe, const CodeSection& heap, uint64_t address);
  struct Surroundings {
    uint64_t begin;
    std::span<const std::byte> bytes;
  };
  Surroundings ReadAround(uint64_t address, std::span<std::byte> buffer);
  absl::string_view StubName(uint32_t kind, uint64_t address);
  void NameStub(uint32_t kind, uint64_t address, ManagedCode& found);
  void NameCompiled(MemoryProbe& probe, const CodeSection& heap, uint64_t address, ManagedCode& found);
  bool NamePrecompiled(MemoryProbe& probe, const CodeSection& section, uint64_t address, ManagedCode& found);
  // `compiled`: nullptr for precompiled code. Empty: not known.
  std::string TierOf(MemoryProbe& probe, const RuntimeMethod& method, uint64_t method_desc, uint64_t code,
                     const MethodCode* compiled);
  // The tier of code that is never replaced by a better one. Empty: not known.
  std::string UntieredTierOf(const RuntimeMethod& method);
  // 0: it has none. nullopt: that is not known now.
  std::optional<uint64_t> VersionState(MemoryProbe& probe, const RuntimeMethod& method, uint64_t method_desc);
  bool RefreshVersionTable();  // false: the copy is not what the table is now

  // Reads of lists that are as long as the target says.
  static constexpr int kListBudget = 200'000;
  // The answers of Find about methods that are never freed, by address: unwind data of the same address is read next.
  static constexpr size_t kMaxRecent = 256;
  absl::flat_hash_map<uint64_t, RuntimeCode> recent_;
  const RuntimePlace place_;
  MemoryReader& memory_;
  RuntimeLayout layout_;
  std::vector<std::string> differences_;
  bool described_ = false;  // by a contract descriptor
  SelfTestReport self_test_;
  uint64_t range_map_ = 0;
  RuntimeVariables variables_;  // of the descriptor
  std::unique_ptr<CodeRanges> ranges_;
  std::unique_ptr<RuntimeModules> modules_;
  std::unique_ptr<RuntimeTypes> types_;
  std::unique_ptr<PrecompiledMethods> precompiled_;
  std::optional<bool> optimises_;  // not asked yet
  ProbeFailure last_failure_ = ProbeFailure::kNone;
  const char* last_detail_ = "";
  RuntimeMemoryCounters counters_;

  // .NET 8: MethodDesc -> MethodDescVersioningState, copied from the AppDomain's hash table.
  absl::flat_hash_map<uint64_t, uint64_t> version_states_;
  uint64_t version_table_ = 0;
  uint32_t version_count_ = 0;
  // The work of copying the table, in slots. A large program's first copy has room in it. It falls below zero by what
  // the last copy had too much, and NextIteration adds some.
  static constexpr int64_t kMostVersionWork = 4 << 20;
  int64_t version_work_left_ = kMostVersionWork;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_RUNTIME_MEMORY_H_
