// Finds the piece of the runtime's code that an address belongs to: its map of code ranges, and within a code heap the
// method.
//
// Source: dotnet/runtime src/coreclr/vm/codeman.h (RangeSectionMap: five levels of 256 entries, RangeSectionFragment,
// RangeSection, HeapList, RealCodeHeader), docs/design/datacontracts/ExecutionManager.md. Verified on 8.0.30, 9.0.19,
// 10.0.12 and 10.0.14.
#ifndef CLRSAMPLER_CLR_MEMORY_CODE_RANGES_H_
#define CLRSAMPLER_CLR_MEMORY_CODE_RANGES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "clr/memory/memory_probe.h"
#include "clr/memory/runtime_layout.h"
#include "status/thread_checker.h"

namespace clrsampler {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // exclusive

  bool contains(uint64_t address) const { return begin <= address && address < end; }
};

enum class CodeSectionKind : uint8_t {
  kCodeHeap,     // JIT-compiled methods
  kPrecompiled,  // an R2R image
  kStubs,        // machine code of the runtime's own
};

struct CodeSection {
  AddressRange range;
  CodeSectionKind kind = CodeSectionKind::kStubs;
  bool collectible = false;  // can be freed while the process runs
  uint64_t heap_list = 0;    // of kCodeHeap
  uint64_t r2r_module = 0;   // of kPrecompiled: Module*
  uint32_t stub_kind = 0;    // of kStubs
};

// Where the methods of a code heap are noted (formats/runtime/nibble_map.h).
struct CodeHeap {
  AddressRange used;
  uint64_t map_base = 0;
  uint64_t nibble_map = 0;
};

// The owner of a code heap.
struct HeapOwner {
  AddressRange heap;
  // The number of the LoaderAllocator that it belongs to as long as both live. No other one of the process ever has
  // this number. 0: nothing can be read or believed.
  uint64_t number = 0;
};

// The code of one compiled method, funclets included.
struct MethodCode {
  AddressRange range;
  uint64_t header = 0;  // RealCodeHeader
  uint64_t method_desc = 0;
  // The bytes of the header, debug, exception and GC information included. Other bytes are another method. The same
  // bytes are not always the same one. Methods of one shape that follow each other can get the same places for all of
  // it (seen on 8, 9 and 10), so their names must be read as well.
  std::array<std::byte, 48> identity{};
  uint32_t stub_kind = 0;  // not 0: a stub in a code heap, no method
};

// Code that can't be freed (sections that are not collectible, and heaps in them but for their growth) is read once and
// kept. Main loop only.
class CodeRanges {
 public:
  // `map` is the address of the range section map. `runtime` is where the runtime's image is mapped: the JIT manager of
  // every section must be an object of a class in there. Borrows `layout`.
  CodeRanges(const RuntimeLayout& layout, uint64_t map, AddressRange runtime)
      : layout_(layout), map_(map), runtime_(runtime) {}

  // nullopt with an unfailed probe: the address is not the runtime's code.
  std::optional<CodeSection> FindSection(MemoryProbe& probe, uint64_t address);

  // As it is now.
  std::optional<CodeHeap> HeapOf(MemoryProbe& probe, const CodeSection& section) const;

  // The owner of a collectible heap. Its number has to be above that of the owner of permanent heaps, which every other
  // one comes after: a word that is the same in both is no number.
  HeapOwner OwnerOf(MemoryProbe& probe, const CodeSection& heap);

  // nullopt with an unfailed probe: no method is there (freed, or between two).
  std::optional<MethodCode> FindMethod(MemoryProbe& probe, const CodeSection& heap, uint64_t address);

  // The method that begins at `start`.
  std::optional<MethodCode> MethodAt(MemoryProbe& probe, const CodeSection& heap, uint64_t start) const;

  // All sections; at most kMaxSections. The probe needs a budget of some thousand reads for the first time; later ones
  // read the map's tables, and what is new or can be freed.
  std::vector<CodeSection> Sections(MemoryProbe& probe);
  // Where methods and stubs begin in a code heap: the first `most`. A map that is made up tells any number of them.
  std::vector<uint64_t> Starts(MemoryProbe& probe, const CodeSection& heap, size_t most) const;

  // Bytes of a function whose RUNTIME_FUNCTION has no end; `base` is where its addresses count from.
  static uint32_t LengthByUnwindData(MemoryProbe& probe, uint64_t base, uint32_t unwind_data);

 private:
  static constexpr size_t kMaxSections = 16384;

  // Through the section map: the lowest of its tables that there was. Tables are made when something is to lie behind
  // them and stay as long as the runtime, so that only what a slot says has to be read again.
  struct Way {
    uint64_t table = 0;
    int level = 0;
  };

  // Fragments behind a slot of a lowest table, none of which can be freed. New ones come first, so that as long as the
  // first is the same, all are.
  struct Chain {
    uint64_t first = 0;
    absl::InlinedVector<uint64_t, 1> sections;
  };

  uint64_t LoaderAllocatorNumber(MemoryProbe& probe, const CodeSection& heap) const;
  uint64_t FragmentsAt(MemoryProbe& probe, uint64_t address);
  std::optional<CodeSection> ReadSection(MemoryProbe& probe, uint64_t section);
  bool IsOfRuntime(MemoryProbe& probe, uint64_t jit_manager);
  std::optional<CodeHeap> HeapAround(MemoryProbe& probe, const CodeSection& section, uint64_t address);
  struct Listing {
    std::vector<uint64_t> sections;                 // addresses of RangeSections, some of them several times
    std::vector<std::pair<uint64_t, Chain>> fresh;  // by address of the slot: those that were not remembered
  };
  void CollectLevel(MemoryProbe& probe, uint64_t table, int level, Listing& listing) const;
  void CollectFragments(MemoryProbe& probe, uint64_t slot, uint64_t first, Listing& listing) const;
  void Remember(uint64_t slot, Chain chain);

  const RuntimeLayout& layout_;
  uint64_t map_;
  AddressRange runtime_;
  uint64_t permanent_owner_ = 0;                               // number; 0: not read yet
  absl::flat_hash_map<uint64_t, CodeSection> permanent_;       // by address of the RangeSection
  absl::btree_map<uint64_t, CodeSection> permanent_by_begin_;  // the same by begin, those that an address was found in
  absl::flat_hash_map<uint64_t, CodeHeap> heaps_;              // by address of the HeapList, of permanent sections
  absl::InlinedVector<uint64_t, 4> jit_managers_;              // objects of the runtime's own classes
  absl::flat_hash_map<uint64_t, Way> ways_;                    // by address without the bits below kLowestShift
  absl::flat_hash_map<uint64_t, Chain> chains_;                // by address of the slot
  [[no_unique_address]] ThreadChecker main_loop_;
};

// "VSD_DispatchStub": the runtime's word for the code in a range list or behind a stub header, as its perf map writes
// it.
const char* StubKindName(uint32_t major, uint32_t kind);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLR_MEMORY_CODE_RANGES_H_
