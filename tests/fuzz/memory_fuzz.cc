// The bytes are a target's memory: a major version, then pieces of {u32 offset, u32 length, bytes} from kBase on.
// Whatever they are, attaching and lookups end within their budgets.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "clr/memory/runtime_memory.h"
#include "unit/clr/memory/memory_pieces.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace clrsampler;
  if (size == 0) return 0;
  MemoryPieces memory({reinterpret_cast<const std::byte*>(data) + 1, size - 1});
  const uint32_t major = 8 + data[0] % 3;
  const auto require = [](bool condition) {
    if (!condition) __builtin_trap();
  };
  RuntimePlace place{major,
                     (data[0] & 0x40) != 0 ? ElfMachine::kArm64 : ElfMachine::kX64,
                     {MemoryPieces::kBase, MemoryPieces::kBase + 0x10000},
                     MemoryPieces::kBase + 0x1000,
                     MemoryPieces::kBase + 0x4000};
  MetadataCopies copies;
  const auto runtime = RuntimeMemory::Attach(place, memory, nullptr, copies, (data[0] & 0x80) != 0);
  require(memory.reads <= 250'000);
  if (!runtime.ok()) return 0;
  std::vector<uint64_t> addresses = {0, UINT64_MAX, MemoryPieces::kBase};
  for (const CodeSection& section : (*runtime)->Sections()) {
    if (addresses.size() > 32) break;
    addresses.insert(addresses.end(), {section.range.begin, section.range.begin + 0x110, section.range.end - 1});
    if (section.kind != CodeSectionKind::kCodeHeap) continue;
    const std::vector<uint64_t> starts = (*runtime)->Starts(section);
    for (size_t i = 0; i < std::min<size_t>(starts.size(), 8); ++i) addresses.push_back(starts[i]);
  }
  for (const uint64_t address : addresses) {
    const uint64_t before = memory.reads;
    const auto found = (*runtime)->Find(address);
    require(memory.reads - before <= 250'000);
    require(found.has_value() == ((*runtime)->last_failure() == ProbeFailure::kNone));
    if (found && found->kind == ManagedCode::Kind::kMethod) {
      require(found->range.contains(address));
      require(!found->name.method.empty() || found->token != 0);
    }
  }
  (*runtime)->TransientHeaps();
  return 0;
}
