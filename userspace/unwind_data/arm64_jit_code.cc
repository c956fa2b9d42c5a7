#include "unwind_data/arm64_jit_code.h"

#include <algorithm>
#include <array>

#include "formats/unwind/arm64_code.h"
#include "unwind_data/managed_functions.h"

namespace clrsampler {
namespace {

constexpr uint64_t kPageBytes = 4096;

// Return addresses less one are no addresses of instructions.
bool MayBeLeaf(uint64_t address) { return address % 4 == 0; }

}  // namespace

// nullptr: it can't be read.
const CodeAt* Arm64JitCode::Read(const Process& process, const Mapping& mapping, uint64_t address) {
  // The code there may be another program's by now.
  if (process.exec_announced != MonotonicTime::Max() || process.exited != MonotonicTime::Max()) return nullptr;
  std::array<std::byte, kArm64BytesBefore + kArm64BytesFrom> bytes;
  uint64_t begin = std::max(mapping.start, address - std::min<uint64_t>(address, kArm64BytesBefore));
  uint64_t end = std::min(mapping.end, address + kArm64BytesFrom);
  if (begin > address || address >= end) return nullptr;
  const auto read = [&] { return read_memory_(process.key.tgid, begin, std::span(bytes).first(end - begin)); };
  bool done = read();
  if (!done) {  // the pages beside may not be there
    const uint64_t page = address - address % kPageBytes;
    begin = std::max(begin, page);
    end = std::min(end, page + kPageBytes);
    done = read();
  }
  if (!done) {
    ++counters_.unreadable;
    return nullptr;
  }
  ProcessState& known = leaves_.Of(process);
  if (known.exec_count != process.exec_count || known.by_address.size() >= kMaxLeaves) known.by_address.clear();
  known.exec_count = process.exec_count;
  CodeAt& leaf = known.by_address[address];
  leaf = ManagedArm64(std::span(bytes).first(end - begin), begin, address);
  ++counters_.leaves;
  counters_.without_frame += leaf.has_row ? 1 : 0;
  return &leaf;
}

CodeAt Arm64JitCode::At(const FrameQuery& query) {
  main_loop_.Check();
  const Mapping* mapping = query.mapping;
  if (mapping == nullptr || mapping->kind != MappingKind::kJitMemory || !is_dotnet_(query.process.key)) return {};
  if (MayBeLeaf(query.lookup_address)) {
    const ProcessState* const known = leaves_.Find(query.process.key);
    if (known != nullptr && known->exec_count == query.process.exec_count) {
      const auto leaf = known->by_address.find(query.lookup_address);
      if (leaf != known->by_address.end()) return leaf->second;
    }
    if (const CodeAt* leaf = Read(query.process, *mapping, query.lookup_address)) return *leaf;
  }
  return ManagedArm64({}, query.lookup_address, query.lookup_address);
}

void Arm64JitCode::Observe(const Process& process, const ObservedSample& sample) {
  main_loop_.Check();
  if (sample.addresses.empty() || !MayBeLeaf(sample.addresses.front())) return;
  const Mapping* mapping = process.mappings.Find(sample.addresses.front());
  if (mapping == nullptr || mapping->kind != MappingKind::kJitMemory || !is_dotnet_(process.key)) return;
  Read(process, *mapping, sample.addresses.front());
}

}  // namespace clrsampler
