// The profiler's own source of names (clr/r2r_methods.h) on a running process, judged by the [PreJIT] records of the
// jitdump that this process writes. Covers what files alone can't: images that are only in the process's memory.
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "checked_image.h"
#include "clr/jit_methods.h"
#include "clr/r2r_methods.h"
#include "formats/names/runtime_names.h"
#include "os/clock.h"
#include "process/process_table.h"

namespace clrsampler {

int CheckLiveProcess(const std::string& dump_path, uint32_t pid) {
  const absl::StatusOr<std::shared_ptr<MappedFile>> dump = MapWholeFile(dump_path);
  if (!dump.ok()) {
    std::printf("%s\n", dump.status().ToString().c_str());
    return 1;
  }
  const SystemClock clock;
  ProcessTable processes("/proc", clock);
  const Process& process = processes.FindOrScan(pid, 0);
  ImageFiles images;
  FrameTable frames;
  R2rMemoryOptions memory;
  memory.read_memory = ReadTargetMemory;
  R2rMethods methods(&images, &frames, NameStyle::kFull, std::move(memory));

  const std::span<const std::byte> bytes = (*dump)->bytes();
  std::set<std::pair<uint64_t, std::string>> seen;
  uint32_t equal = 0, wrong = 0, in_memory = 0;
  for (uint64_t offset = 40; LoadAt<uint64_t>(bytes, offset + 8).has_value();) {
    const uint64_t record = offset;
    const uint32_t size = *LoadAt<uint32_t>(bytes, record + 4);
    if (size < 16 || !SliceAt(bytes, record, size)) break;
    offset += size;
    if (LoadAt<uint32_t>(bytes, record) != 0u || size < 57) continue;
    const uint64_t address = *LoadAt<uint64_t>(bytes, record + 32);
    const std::string name(TextAt(bytes, record + 56, size - 56).value_or(""));
    if (!name.ends_with("[PreJIT]") || !seen.emplace(address, name).second) continue;
    const Mapping* mapping = process.mappings.Find(address);
    if (mapping != nullptr && mapping->kind == MappingKind::kJitMemory) ++in_memory;
    const auto resolution = methods.Resolve({process, mapping, address, address, process.first_seen});
    const std::string ours = resolution ? frames.at(resolution->frame).text : "(no answer)";
    const std::string theirs = FrameText(ParseRuntimeName(name), NameStyle::kFull);
    if (ours == theirs) {
      ++equal;
    } else if (++wrong <= 8) {
      std::printf("  runtime %s\n  ours    %s\n", theirs.c_str(), ours.c_str());
    }
  }
  const R2rMemoryCounters& copied = methods.memory_counters();
  std::printf(
      "%s PreJIT %zu equal %u wrong %u in-memory %u images %llu copied %llu copied-bytes %llu\n", dump_path.c_str(),
      seen.size(), equal, wrong, in_memory, static_cast<unsigned long long>(methods.counters().images),
      static_cast<unsigned long long>(copied.images_copied), static_cast<unsigned long long>(copied.bytes_copied));
  return static_cast<int>(wrong) + (seen.empty() ? 1 : 0);
}

}  // namespace clrsampler
