// Records the questions of a reader of names to the memory of a real process, as test data: record_memory PID R2RMAP
// FILE. tests/testdata/memory/make.sh runs it.
//
// The process stands still and writes a perf map, whose rows are the truth about the names of what it has compiled.
// R2RMAP is the compiler's own list of zoo.dll. Rows are taken whose names need the metadata of small assemblies only.
// A range longer than kMostBytes is not readable here, nor will it be in the test.
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clr/memory/runtime_memory.h"
#include "clr/memory/target_images.h"
#include "clr/runtime_discovery.h"
#include "formats/names/frame_text.h"
#include "os/file_io.h"
#include "process/process_table.h"
#include "process/target_memory.h"
#include "unit/clr/memory/recorded_memory.h"

namespace clrsampler {
namespace {

class RecordingMemory : public MemoryReader {
 public:
  explicit RecordingMemory(MemoryReader& real) : real_(real) {}
  bool Read(uint64_t address, std::span<std::byte> into) override {
    if (into.size() > RecordedMemory::kMostBytes || !real_.Read(address, into)) return false;
    for (size_t i = 0; i < into.size(); ++i) bytes_[address + i] = into[i];
    return true;
  }
  // Pieces of {u64 address, u32 length, bytes}, by address.
  std::string Pieces() const {
    std::string text;
    for (auto at = bytes_.begin(); at != bytes_.end();) {
      const uint64_t begin = at->first;
      std::string piece;
      for (; at != bytes_.end() && at->first == begin + piece.size(); ++at) piece += static_cast<char>(at->second);
      const auto length = static_cast<uint32_t>(piece.size());
      text.append(reinterpret_cast<const char*>(&begin), sizeof begin);
      text.append(reinterpret_cast<const char*>(&length), sizeof length);
      text += piece;
    }
    return text;
  }

 private:
  MemoryReader& real_;
  std::map<uint64_t, std::byte> bytes_;
};

// Rows of the perf map that are read, with the address that is asked for.
std::string NamedRows(RuntimeMemory& runtime, const std::string& perf_map) {
  constexpr size_t kMostOfATier = 16;
  std::map<std::string, size_t> of_tier;
  std::string rows;
  for (const absl::string_view line : absl::StrSplit(perf_map, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    uint64_t start = 0, bytes = 0;
    if (parts.size() != 3 || !absl::SimpleHexAtoi(parts[0], &start) || !absl::SimpleHexAtoi(parts[1], &bytes)) continue;
    if (!absl::StrContains(parts[2], "[zoo]") || absl::StrContains(parts[2], "System.")) continue;
    if (absl::StrContains(parts[2], "IL_STUB")) continue;  // whose parameters memory does not say
    const std::string tier(parts[2].substr(parts[2].rfind('[')));
    if (of_tier[tier] >= kMostOfATier) continue;
    const uint64_t address = start + bytes / 2 / 4 * 4;
    const std::optional<ManagedCode> found = runtime.Find(address);
    // A method that was freed keeps its row.
    if (!found || found->range.begin != start || found->transient || !runtime.Find(start)) continue;
    ++of_tier[tier];
    absl::StrAppend(&rows, absl::Hex(address), " ", parts[2], "\n");
  }
  return rows;
}

// Whether the list writes the method with what stands for its variables, which the metadata does not say.
bool IsInstantiation(const MethodName& name, absl::string_view row) {
  return absl::StrContains(row, '`') || absl::StrContains(FrameText(name, NameStyle::kFull), "M0");
}

// Rows of the compiler's list, of methods that the runtime has prepared.
std::string PrecompiledRows(RuntimeMemory& runtime, TargetImages& images, const std::string& list) {
  std::map<uint32_t, absl::string_view> names;
  for (const absl::string_view line : absl::StrSplit(list, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    uint32_t rva = 0;
    if (parts.size() != 3 || !absl::SimpleHexAtoi(parts[0], &rva) || parts[2].empty()) continue;
    names[rva] = parts[2];
  }
  std::string rows;
  for (const CodeSection& section : runtime.Sections()) {
    const Mapping* mapping = images.FileMappingAt(section.range.begin);
    if (section.kind != CodeSectionKind::kPrecompiled || mapping == nullptr) continue;
    if (!absl::EndsWith(mapping->path, "/zoo.dll")) continue;
    for (const RuntimeMemory::PreparedMethod& method : runtime.PreparedMethods(section)) {
      const auto name = names.find(static_cast<uint32_t>(method.entry_point - section.range.begin));
      const std::optional<ManagedCode> found = runtime.Find(method.entry_point + 4);
      if (name == names.end() || !found || IsInstantiation(found->name, name->second)) continue;
      absl::StrAppend(&rows, absl::Hex(method.entry_point + 4), " [r2r] ", name->second, "\n");
    }
  }
  return rows;
}

bool WritePacked(const std::string& text, const char* path) {
  std::string packed(compressBound(text.size()), '\0');
  uLongf bytes = packed.size();
  const auto* from = reinterpret_cast<const Bytef*>(text.data());
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &bytes, from, text.size(), Z_BEST_COMPRESSION) != Z_OK) {
    return false;
  }
  std::FILE* out = std::fopen(path, "wb");
  if (out == nullptr) return false;
  const auto unpacked = static_cast<uint32_t>(text.size());
  const bool written =
      std::fwrite(&unpacked, sizeof unpacked, 1, out) == 1 && std::fwrite(packed.data(), 1, bytes, out) == bytes;
  return (std::fclose(out) == 0) && written;
}

int Record(uint32_t pid, const char* list_path, const char* path) {
  SystemClock clock;
  ImageFiles images;
  ProcessTable table("/proc", clock);
  const Process& process = table.FindOrScan(pid, 0);
  RuntimeDiscovery discovery(images, RuntimeDiscovery::CacheBy::kFile);
  std::optional<DotNetRuntime> found = discovery.Find(process);
  if (!found) found = discovery.FindEmulated(process);
  auto real = TargetMemory::Open("/proc", pid);
  const auto perf_map = ReadWholeFile(absl::StrCat("/tmp/perf-", pid, ".map"), 256 << 20);
  const auto list = ReadWholeFile(list_path, 1 << 20);
  if (!found || !real.ok() || !perf_map.ok() || !list.ok()) return 1;
  RuntimePlace place;
  place.major = found->version.major;
  place.machine = found->machine;
  TargetImages target_images(process, images, clock);
  place.image = target_images.ImageAround(found->mapping);
  place.dac_table = found->AddressOf("g_dacTable").value_or(0);
  place.descriptor = found->AddressOf("DotNetRuntimeContractDescriptor").value_or(0);
  RecordingMemory memory(**real);
  MetadataCopies copies;
  auto runtime = RuntimeMemory::Attach(
      place, memory, [](uint64_t) { return std::optional<MappedContent>(); }, copies, false);
  if (!runtime.ok()) {
    std::fprintf(stderr, "%s\n", std::string(runtime.status().message()).c_str());
    return 1;
  }
  std::string text =
      absl::StrCat(place.major, " ", MachineText(place.machine), " ", absl::Hex(place.image.begin), " ",
                   absl::Hex(place.image.end), " ", absl::Hex(place.dac_table), " ", absl::Hex(place.descriptor), "\n",
                   NamedRows(**runtime, *perf_map), PrecompiledRows(**runtime, target_images, *list), "\n");
  text += memory.Pieces();
  return WritePacked(text, path) ? 0 : 1;
}

}  // namespace
}  // namespace clrsampler

int main(int argc, char** argv) {
  uint32_t pid = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[1], &pid)) return 2;
  return clrsampler::Record(pid, argv[2], argv[3]);
}
