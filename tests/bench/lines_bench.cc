// The lines of 500 assemblies at once, as `serve --lines` may have them. Budget: 64 MB of heap.
//
// CLRSAMPLER_PDB names a portable PDB, which stands for each of the 500. Each method of each is asked for its lines,
// twice.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <malloc.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "clr/lines/assembly_lines.h"
#include "clr/lines/line_memory.h"
#include "clr/lines/pdb_bytes.h"
#include "formats/pdb/portable_pdb.h"
#include "os/mapped_file.h"
#include "os/unique_fd.h"
#include "process/image_files.h"

namespace clrsampler {
namespace {

constexpr size_t kAssemblies = 500;

// A mapping of its own.
std::shared_ptr<const ImageFile> Map(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  absl::StatusOr<MappedFile> mapped = MappedFile::Map(fd.get(), 0, 0, uint64_t{1} << 30);
  if (!mapped.ok()) return nullptr;
  auto file = std::make_shared<ImageFile>();
  file->content = *std::move(mapped);
  return file;
}

// As compilers put it into assemblies.
std::vector<std::byte> Embedded(std::span<const std::byte> pdb) {
  std::vector<std::byte> entry(8 + compressBound(pdb.size()));
  const auto size = static_cast<uint32_t>(pdb.size());
  std::memcpy(entry.data(), "MPDB", 4);
  std::memcpy(entry.data() + 4, &size, 4);
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(pdb.data()));
  stream.avail_in = size;
  stream.next_out = reinterpret_cast<Bytef*>(entry.data() + 8);
  stream.avail_out = static_cast<uInt>(entry.size() - 8);
  deflate(&stream, Z_FINISH);
  entry.resize(8 + stream.total_out);
  deflateEnd(&stream);
  return entry;
}

// Memory that is no file's.
double OwnMib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib / 1024;
  }
  return 0;
}

void AskAll(benchmark::State& state, bool embedded) {
  const char* path = std::getenv("CLRSAMPLER_PDB");
  const std::shared_ptr<const ImageFile> file = path == nullptr ? nullptr : Map(path);
  if (file == nullptr) return state.SkipWithError("CLRSAMPLER_PDB names no PDB");
  const absl::StatusOr<PortablePdb> pdb = PortablePdb::Open(file->bytes());
  if (!pdb.ok()) return state.SkipWithError("CLRSAMPLER_PDB names a file that is no portable PDB");
  const std::vector<std::byte> entry = embedded ? Embedded(file->bytes()) : std::vector<std::byte>();
  for (auto _ : state) {
    malloc_trim(0);
    const double before = OwnMib();
    double most = 0;
    uint64_t places = 0;
    LineMemory memory;
    std::vector<std::unique_ptr<AssemblyLines>> all;
    for (size_t i = 0; i < kAssemblies; ++i) {
      auto bytes = embedded ? PdbBytes::Embedded(memory, entry, nullptr, pdb->id())
                            : PdbBytes::OfFile(memory, Map(path), pdb->id());
      all.push_back(std::make_unique<AssemblyLines>(memory, *std::move(bytes)));
    }
    for (int round = 0; round < 2; ++round) {
      for (const auto& lines : all) {
        for (uint32_t rid = 1; rid <= pdb->method_count(); ++rid) places += lines->BeginOf(rid) ? 1 : 0;
        most = std::max(most, OwnMib());
      }
    }
    state.counters["lines"] = static_cast<double>(places);
    state.counters["counted_MiB"] = static_cast<double>(memory.bytes()) / (1 << 20);
    state.counters["heap_MiB"] = most - before;
  }
}

void BM_PdbsInFiles(benchmark::State& state) { AskAll(state, false); }
BENCHMARK(BM_PdbsInFiles)->Unit(benchmark::kMillisecond)->Iterations(1);

void BM_PdbsInAssemblies(benchmark::State& state) { AskAll(state, true); }
BENCHMARK(BM_PdbsInAssemblies)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace clrsampler
