// Compiling a whole image's CFI, and looking rows up on demand and compiled. Budget: 5 MB of .eh_frame in 60 ms.
//
// CLRSAMPLER_CORECLR names a libcoreclr.so; without it the one under /usr/share/dotnet or /usr/lib/dotnet is taken.
// libLLVM-14 has 5.0 MB of .eh_frame that a compiler wrote, so nothing is made up.
#include <benchmark/benchmark.h>
#include <glob.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "formats/elf/cfi_table.h"
#include "os/file_io.h"
#include "os/mapped_file.h"

namespace clrsampler {
namespace {

std::string Path(int64_t image) {
  if (image == 0) {
    if (const char* path = std::getenv("CLRSAMPLER_CORECLR")) return path;
  }
  const char* patterns[] = {"/usr/{share,lib}/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so",
                            "/lib/*-linux-gnu/libLLVM-*.so.1", "/lib/*-linux-gnu/libc.so.6"};
  glob_t found{};
  const std::string path = glob(patterns[image], GLOB_BRACE, nullptr, &found) == 0 ? found.gl_pathv[0] : "";
  globfree(&found);
  return path;
}

MappedFile MapOf(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd.ok()) return MappedFile();
  auto map = MappedFile::Map(fd->get(), 0, 0, uint64_t{1} << 32);
  return map.ok() ? *std::move(map) : MappedFile();
}

void BM_Open(benchmark::State& state) {
  const std::string path = Path(state.range(0));
  for (auto _ : state) {
    const MappedFile file = MapOf(path);  // mapped anew each time, as for a new image: page faults count
    const auto image = ElfImage::Parse(file.bytes());
    if (!image.ok()) return state.SkipWithError("unreadable");
    const auto table = CfiTable::Open(*image);
    if (!table.ok() || !table->on_demand()) return state.SkipWithError("no .eh_frame_hdr");
  }
  state.SetLabel(path);
}
BENCHMARK(BM_Open)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void BM_Compile(benchmark::State& state) {
  const std::string path = Path(state.range(0));
  size_t section = 0, rows = 0, bytes = 0;
  for (auto _ : state) {
    const MappedFile file = MapOf(path);
    const auto image = ElfImage::Parse(file.bytes());
    if (!image.ok()) return state.SkipWithError("unreadable");
    section = image->FindSection(".eh_frame")->size;
    const auto table = CfiTable::OpenCompiled(*image);
    if (!table.ok() || table->compiled()->damaged() != 0) return state.SkipWithError("not all of it was compiled");
    rows = table->compiled()->size();
    bytes = table->memory_bytes();
  }
  state.SetLabel(path);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * section));
  state.counters["section_bytes"] = static_cast<double>(section);
  state.counters["rows"] = static_cast<double>(rows);
  state.counters["table_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_Compile)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

// Addresses inside random functions; `hot`: of the few that a loop's stack has, else all over the image.
void LookUp(benchmark::State& state, bool compiled, bool hot) {
  const MappedFile file = MapOf(Path(state.range(0)));
  const auto image = ElfImage::Parse(file.bytes());
  if (!image.ok()) return state.SkipWithError("unreadable");
  const auto table = compiled ? CfiTable::OpenCompiled(*image) : CfiTable::Open(*image);
  const auto functions = EhFrameTable::Parse(*image);
  if (!table.ok() || !functions.ok()) return state.SkipWithError("no table");
  std::mt19937 random(1);
  std::vector<uint64_t> addresses;
  while (addresses.size() < (hot ? 64u : 100'000u)) {
    const auto function = functions->Description(random() % functions->size());
    if (!function.ok()) continue;
    addresses.push_back(function->start.value + random() % (function->end.value - function->start.value));
  }
  size_t next = 0;
  for (auto _ : state) {
    const CfiAnswer answer = table->At({addresses[next]});
    if (answer.coverage != CfiCoverage::kRow) state.SkipWithError("not found");
    benchmark::DoNotOptimize(answer);
    next = next + 1 == addresses.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}
void BM_OnDemand(benchmark::State& state) { LookUp(state, false, false); }
void BM_OnDemandHot(benchmark::State& state) { LookUp(state, false, true); }
void BM_Compiled(benchmark::State& state) { LookUp(state, true, false); }
void BM_CompiledHot(benchmark::State& state) { LookUp(state, true, true); }
BENCHMARK(BM_OnDemand)->DenseRange(0, 1);
BENCHMARK(BM_OnDemandHot)->DenseRange(0, 1);
BENCHMARK(BM_Compiled)->DenseRange(0, 1);
BENCHMARK(BM_CompiledHot)->DenseRange(0, 1);

}  // namespace
}  // namespace clrsampler
