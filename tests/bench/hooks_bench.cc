// Locating all hooks of a runtime. Budget: 100 ms and 16 MB, since it happens on the main loop when a runtime shows up.
//
// CLRSAMPLER_CORECLR names a libcoreclr.so, beside which libclrjit.so is, CLRSAMPLER_HOST a single-file program;
// without them those under /usr/share/dotnet or /usr/lib/dotnet are taken. Files are mapped anew each time, as for a
// new runtime: page faults count. `peak_bytes` is what is allocated at most, without the mapped files.
#include <benchmark/benchmark.h>
#include <glob.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "clr/hooks/hook_locator.h"
#include "os/file_io.h"
#include "os/mapped_file.h"

namespace {

size_t allocated = 0, peak = 0;

}  // namespace

void* operator new(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) std::abort();
  allocated += malloc_usable_size(block);
  peak = std::max(peak, allocated);
  return block;
}
void operator delete(void* block) noexcept {
  allocated -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }

namespace clrsampler {
namespace {

std::string Path(const char* variable, const char* pattern) {
  if (const char* path = std::getenv(variable)) return path;
  glob_t found{};
  const std::string path = glob(pattern, GLOB_BRACE, nullptr, &found) == 0 ? found.gl_pathv[0] : "";
  globfree(&found);
  return path;
}

MappedFile MapOf(const std::string& path) {
  auto fd = OpenForReading(path);
  if (!fd.ok()) return MappedFile();
  auto map = MappedFile::Map(fd->get(), 0, 0, uint64_t{1} << 32);
  return map.ok() ? *std::move(map) : MappedFile();
}

void Locate(benchmark::State& state, const std::string& runtime_path, const std::string& jit_path) {
  size_t most = 0;
  for (auto _ : state) {
    const size_t before = peak = allocated;
    const MappedFile runtime_file = MapOf(runtime_path), jit_file = jit_path.empty() ? MappedFile() : MapOf(jit_path);
    const auto runtime = ElfImage::Parse(runtime_file.bytes()), jit = ElfImage::Parse(jit_file.bytes());
    if (!runtime.ok()) return state.SkipWithError("unreadable");
    const RuntimeHooks hooks = LocateHooks({.runtime = &*runtime, .jit = jit.ok() ? &*jit : nullptr});
    for (const HookPoints& points : hooks.points) {
      if (!points.ok()) return state.SkipWithError(std::string(points.status().message()).c_str());
    }
    most = std::max(most, peak - before);
  }
  state.SetLabel(runtime_path);
  state.counters["peak_bytes"] = static_cast<double>(most);
}

void BM_Folder(benchmark::State& state) {
  const std::string runtime =
      Path("CLRSAMPLER_CORECLR", "/usr/{share,lib}/dotnet/shared/Microsoft.NETCore.App/*/libcoreclr.so");
  Locate(state, runtime, runtime.substr(0, runtime.rfind('/') + 1) + "libclrjit.so");
}
BENCHMARK(BM_Folder)->Unit(benchmark::kMillisecond);

void BM_SingleFileHost(benchmark::State& state) {
  Locate(state,
         Path("CLRSAMPLER_HOST",
              "/usr/{share,lib}/dotnet/packs/Microsoft.NETCore.App.Host.linux-*/*/runtimes/*/native/singlefilehost"),
         "");
}
BENCHMARK(BM_SingleFileHost)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clrsampler
