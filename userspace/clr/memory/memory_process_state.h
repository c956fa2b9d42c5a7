// All that is known of one process whose runtime's memory is read. Internal to MemoryMethods.
#ifndef CLRSAMPLER_CLR_MEMORY_MEMORY_PROCESS_STATE_H_
#define CLRSAMPLER_CLR_MEMORY_MEMORY_PROCESS_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "clr/memory/heap_owners.h"
#include "clr/memory/memory_methods.h"
#include "clr/memory/method_line_reader.h"
#include "clr/memory/methods_by_start.h"
#include "clr/memory/target_images.h"
#include "clr/memory/transient_heaps.h"
#include "clrsampler/wire.h"
#include "process/mappings_pace.h"

namespace clrsampler {

struct MemoryMethods::Known {
  uint64_t end = 0;
  FrameId frame = 0;
  bool transient = false;
  bool stub = false;
  bool ended = false;  // a method was compiled to its place since
  uint64_t owner = 0;  // HeapOwner::number, of a method of an assembly
  MethodCode code;     // of transient ones: what must still be there
  std::string name;    // of dynamic methods
  uint64_t start = 0;
  std::shared_ptr<const MethodLines> lines;  // nullptr: it has none
  std::shared_ptr<const std::string> bytes;  // of its code; nullptr: they are not kept
  std::vector<CodeUnwind> unwind;            // likewise
  // When it was seen there; a permanent method was and will be there always.
  MonotonicTime from = MonotonicTime::Min();
  MonotonicTime until = MonotonicTime::Max();
};

// The sampler noted this with one sample.
struct MemoryMethods::Moment {
  uint64_t start = 0, end = 0;
  uint64_t header = 0;
  std::array<std::byte, sizeof(wire_code_snapshot::identity)> identity{};
  std::string name;  // empty: it has none, or it could not be read
  bool cut = false;  // the name may be longer

  bool IsOf(const Known& known) const {
    return known.transient && known.code.header == header && known.code.identity == identity;
  }
  bool HasNameOf(const Known& known) const { return known.name == name || (cut && absl::StartsWith(known.name, name)); }
};

struct MemoryMethods::ProcessState {
  explicit ProcessState(AssemblyPdbs* pdbs) : lines(pdbs) {}

  bool has_code = false;  // made in the process; most processes of a host have none
  bool is_dotnet = false;
  MonotonicTime opened;
  std::unique_ptr<MemoryReader> memory;  // nullptr: may not be read
  std::unique_ptr<TargetImages> images;
  std::unique_ptr<RuntimeMemory> runtime;  // nullptr: not attached (yet)
  Mapping image;                           // of the attached one's code
  std::string build;                       // which one that is
  ElfMachine machine = ElfMachine::kX64;
  bool unverified = false;
  absl::Status status = absl::UnavailableError("it has compiled nothing yet");  // OK: attached
  std::string refusal;                                                          // why never; else that may change
  MappingsPace tried;                                                           // when a runtime was looked for
  MonotonicTime next_attempt;
  int attempts = 0;
  int contradictions = 0;  // of these
  uint64_t generation = 1;

  // The answer that was read at an address after a sample of it, and the times between which it was there.
  struct Stub {
    FrameId frame = 0;
    MonotonicTime from = MonotonicTime::Min();
    MonotonicTime until = MonotonicTime::Min();
    bool gone = true;  // something else was read there since
  };

  MethodsByStart<Known> known;
  absl::btree_map<MonotonicTime, std::vector<Moment>> moments;
  size_t moment_count = 0;
  absl::flat_hash_map<uint64_t, Stub> stubs;    // that may be freed
  absl::flat_hash_set<uint64_t> settled;        // addresses inside a permanent method
  absl::flat_hash_set<uint64_t> named_earlier;  // addresses that an earlier source names, as of its generation
  uint64_t earlier_generation = 0;
  absl::flat_hash_set<uint64_t> foreign;          // starts of file mappings that hold no managed code
  absl::flat_hash_map<uint64_t, FrameId> failed;  // why the last look at an address gave nothing

  size_t methods = 0;
  size_t kept_bytes = 0;  // of code and its unwind data
  TransientHeaps heaps;
  HeapOwners owners;
  MethodLineReader lines;
  uint64_t seen_mappings = 0;  // generation that has no code
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_MEMORY_PROCESS_STATE_H_
