// Indexing images and looking addresses up, beside bcc on the same files; kernel symbols beside a bare scan of the
// text.
#include <bcc/bcc_elf.h>
#include <bcc/bcc_syms.h>
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <random>

#include "formats/elf/eh_frame.h"
#include "formats/elf/elf_symbols.h"
#include "formats/proc/kallsyms_text.h"
#include "os/file_io.h"
#include "os/mapped_file.h"
#include "symbols/demangle.h"
#include "symbols/kernel_symbols.h"

namespace clrsampler {
namespace {

std::string Path(int image) {
  const char* patterns[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6",
                            "/usr/share/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so",
                            "/lib/x86_64-linux-gnu/libLLVM-14.so.1"};
  glob_t found{};
  const std::string path = glob(patterns[image], 0, nullptr, &found) == 0 ? found.gl_pathv[0] : "";
  globfree(&found);
  return path;
}

MappedFile MapOf(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd.ok()) return MappedFile();
  auto map = MappedFile::Map(fd->get(), 0, 0, uint64_t{1} << 32);
  return map.ok() ? *std::move(map) : MappedFile();
}

void BM_IndexImage(benchmark::State& state) {
  const std::string path = Path(static_cast<int>(state.range(0)));
  size_t ranges = 0, bytes = 0;
  for (auto _ : state) {
    const MappedFile file = MapOf(path);  // mapped anew each time, as for a new image: page faults count
    const auto image = ElfImage::Parse(file.bytes());
    if (!image.ok()) {
      state.SkipWithError("unreadable");
      return;
    }
    const ElfSymbols symbols = ElfSymbols::Build(*image, *image);
    ranges = symbols.size();
    bytes = symbols.memory_bytes();
  }
  state.SetLabel(path);
  state.counters["ranges"] = static_cast<double>(ranges);
  state.counters["index_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_IndexImage)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

int CountSymbol(const char*, uint64_t, uint64_t, void* count) {
  ++*static_cast<size_t*>(count);
  return 0;
}

void BM_IndexImageBcc(benchmark::State& state) {
  const std::string path = Path(static_cast<int>(state.range(0)));
  size_t symbols = 0;
  for (auto _ : state) {
    symbols = 0;
    bcc_symbol_option option{};
    option.use_symbol_type = (1 << STT_FUNC) | (1 << STT_GNU_IFUNC);
    if (bcc_elf_foreach_sym(path.c_str(), CountSymbol, &option, &symbols) != 0) state.SkipWithError("bcc failed");
  }
  state.SetLabel(path);
  state.counters["symbols"] = static_cast<double>(symbols);
}
BENCHMARK(BM_IndexImageBcc)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

// Middles of libstdc++'s functions in random order; the library is loaded in this process.
std::vector<uint64_t> Middles(const ElfSymbols& symbols) {
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const FunctionSymbol range = symbols.At(i);
    addresses.push_back(range.start.value + (range.end.value - range.start.value) / 2);
  }
  std::shuffle(addresses.begin(), addresses.end(), std::mt19937(1));
  return addresses;
}

uint64_t BaseOfLibstdcxx() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&std::terminate), &info);
  return reinterpret_cast<uint64_t>(info.dli_fbase);
}

void BM_LookUp(benchmark::State& state) {
  const MappedFile file = MapOf(Path(1));
  const auto image = ElfImage::Parse(file.bytes());
  const ElfSymbols symbols = ElfSymbols::Build(*image, *image);
  const std::vector<uint64_t> addresses = Middles(symbols);
  size_t next = 0;
  for (auto _ : state) {
    const auto symbol = symbols.Find({addresses[next]});
    if (!symbol) state.SkipWithError("not found");
    benchmark::DoNotOptimize(symbol);
    next = next + 1 == addresses.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_LookUp);

void BM_LookUpBcc(benchmark::State& state) {
  const MappedFile file = MapOf(Path(1));
  const auto image = ElfImage::Parse(file.bytes());
  const std::vector<uint64_t> addresses = Middles(ElfSymbols::Build(*image, *image));
  const uint64_t base = BaseOfLibstdcxx();
  bcc_symbol_option option{};
  option.use_symbol_type = (1 << STT_FUNC) | (1 << STT_GNU_IFUNC);
  void* cache = bcc_symcache_new(getpid(), &option);
  size_t next = 0;
  for (auto _ : state) {
    bcc_symbol symbol{};
    if (bcc_symcache_resolve_no_demangle(cache, base + addresses[next], &symbol) != 0) state.SkipWithError("not found");
    benchmark::DoNotOptimize(symbol);
    next = next + 1 == addresses.size() ? 0 : next + 1;
  }
  bcc_free_symcache(cache, getpid());
}
BENCHMARK(BM_LookUpBcc);

void BM_FunctionStart(benchmark::State& state) {
  const MappedFile file = MapOf(Path(2));
  const auto image = ElfImage::Parse(file.bytes());
  if (!image.ok()) {
    state.SkipWithError("no .NET runtime");
    return;
  }
  const auto functions = EhFrameTable::Parse(*image);
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < functions->size(); ++i) addresses.push_back(functions->FunctionStart(i).value);
  std::shuffle(addresses.begin(), addresses.end(), std::mt19937(1));
  size_t next = 0;
  for (auto _ : state) {
    const auto function = functions->Find({addresses[next]});
    if (!function) state.SkipWithError("not found");
    benchmark::DoNotOptimize(function);
    next = next + 1 == addresses.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_FunctionStart);

void BM_DemangleShort(benchmark::State& state) {
  const MappedFile file = MapOf(Path(1));
  const auto image = ElfImage::Parse(file.bytes());
  const ElfSymbols symbols = ElfSymbols::Build(*image, *image);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DemangleShort(symbols.At(next).name));
    next = next + 1 == symbols.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_DemangleShort);

void BM_ReadKallsyms(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(KernelSymbols::ReadProcKallsyms());
}
BENCHMARK(BM_ReadKallsyms)->Unit(benchmark::kMillisecond);

void BM_ScanKallsyms(benchmark::State& state) {
  const std::string text = *KernelSymbols::ReadProcKallsyms();
  size_t lines = 0;
  for (auto _ : state) {
    lines = 0;
    for (const char* at = text.data();
         (at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(text.data() + text.size() - at)))) !=
         nullptr;
         ++at)
      ++lines;
    benchmark::DoNotOptimize(lines);
  }
  state.counters["lines"] = static_cast<double>(lines);
}
BENCHMARK(BM_ScanKallsyms)->Unit(benchmark::kMillisecond);

void BM_ParseKallsyms(benchmark::State& state) {
  const std::string text = *KernelSymbols::ReadProcKallsyms();
  size_t code = 0;
  for (auto _ : state) {
    code = 0;
    ForEachKallsymsLine(text, [&](const KallsymsLine& line) { code += line.is_code() ? 1 : 0; });
    benchmark::DoNotOptimize(code);
  }
  state.counters["code_symbols"] = static_cast<double>(code);
}
BENCHMARK(BM_ParseKallsyms)->Unit(benchmark::kMillisecond);

void BM_IndexKallsyms(benchmark::State& state) {
  const std::string text = *KernelSymbols::ReadProcKallsyms();
  size_t bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::string copy = text;
    state.ResumeTiming();
    KernelSymbols symbols(NameStyle::kShort, [&] { return absl::StatusOr<std::string>(std::move(copy)); });
    benchmark::DoNotOptimize(symbols.Resolve(0xffffffff81001000));
    bytes = symbols.memory_bytes();
  }
  state.counters["index_bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_IndexKallsyms)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clrsampler
