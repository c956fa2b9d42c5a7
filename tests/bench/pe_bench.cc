// Indexing and naming System.Private.CoreLib, the largest image of a framework. Budget: 30 ms and 2 MB for the index.
//
// CLRSAMPLER_CORELIB names the image; without it the newest one under /usr/share/dotnet or /usr/lib/dotnet is taken.
#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "formats/byte_reader.h"
#include "formats/pe/r2r_image.h"
#include "os/mapped_file.h"
#include "os/unique_fd.h"

namespace clrsampler {
namespace {

std::string CoreLibPath() {
  if (const char* path = std::getenv("CLRSAMPLER_CORELIB")) return path;
  std::string newest;
  for (const char* root : {"/usr/share/dotnet", "/usr/lib/dotnet"}) {
    std::error_code error;
    for (const auto& version :
         std::filesystem::directory_iterator(std::string(root) + "/shared/Microsoft.NETCore.App", error)) {
      newest = std::max(newest, version.path().string() + "/System.Private.CoreLib.dll");
    }
  }
  return newest;
}

const MappedFile* CoreLib(benchmark::State& state) {
  static MappedFile file = [] {
    const UniqueFd fd(open(CoreLibPath().c_str(), O_RDONLY | O_CLOEXEC));
    absl::StatusOr<MappedFile> mapped = MappedFile::Map(fd.get(), 0, 0, uint64_t{1} << 30);
    return mapped.ok() ? *std::move(mapped) : MappedFile();
  }();
  if (!file.bytes().empty()) return &file;
  state.SkipWithError("no CoreLib: set CLRSAMPLER_CORELIB");
  return nullptr;
}

class NoAssemblies : public AssemblyOpener {
 public:
  std::optional<OpenedAssembly> Open(absl::string_view) override { return std::nullopt; }
};

std::unique_ptr<R2rImage> Open(std::span<const std::byte> bytes) {
  absl::StatusOr<PeImage> pe = PeImage::Parse(bytes);
  if (!pe.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<R2rImage>> image = R2rImage::Open(*std::move(pe), "System.Private.CoreLib");
  return image.ok() ? *std::move(image) : nullptr;
}

// Headers, metadata tables, index; pages already in memory.
void BM_IndexCoreLib(benchmark::State& state) {
  const MappedFile* file = CoreLib(state);
  if (file == nullptr) return;
  for (auto _ : state) {
    const std::unique_ptr<R2rImage> image = Open(file->bytes());
    if (image == nullptr || image->function_count() < 30000) return state.SkipWithError("not read");
    state.counters["functions"] = image->function_count();
    state.counters["heap_bytes"] = static_cast<double>(image->heap_bytes());
  }
}
BENCHMARK(BM_IndexCoreLib)->Unit(benchmark::kMillisecond);

// The same with a new mapping each time: the page faults of a first look at the file are in it.
void BM_IndexCoreLibNewMapping(benchmark::State& state) {
  if (CoreLib(state) == nullptr) return;
  const UniqueFd fd(open(CoreLibPath().c_str(), O_RDONLY | O_CLOEXEC));
  for (auto _ : state) {
    const absl::StatusOr<MappedFile> file = MappedFile::Map(fd.get(), 0, 0, uint64_t{1} << 30);
    if (!file.ok() || Open(file->bytes()) == nullptr) return state.SkipWithError("not read");
  }
}
BENCHMARK(BM_IndexCoreLibNewMapping)->Unit(benchmark::kMillisecond);

std::vector<uint32_t> SomeAddresses(const R2rImage& image) {
  std::vector<uint32_t> addresses;
  uint64_t random = 1;
  while (addresses.size() < 4096) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const auto function = image.Function(static_cast<uint32_t>((random >> 32) % image.function_count()));
    addresses.push_back(function->begin + (function->end - function->begin) / 2);
  }
  return addresses;
}

void BM_FindFunction(benchmark::State& state) {
  const MappedFile* file = CoreLib(state);
  if (file == nullptr) return;
  const std::unique_ptr<R2rImage> image = Open(file->bytes());
  const std::vector<uint32_t> addresses = SomeAddresses(*image);
  size_t i = 0;
  for (auto _ : state) {
    const auto function = image->Find(addresses[i++ % addresses.size()]);
    if (!function || function->method == R2rFunction::kNoOwner) return state.SkipWithError("not found");
    benchmark::DoNotOptimize(function);
  }
}
BENCHMARK(BM_FindFunction);

void BM_NameFunction(benchmark::State& state) {
  const MappedFile* file = CoreLib(state);
  if (file == nullptr) return;
  const std::unique_ptr<R2rImage> image = Open(file->bytes());
  const std::vector<uint32_t> addresses = SomeAddresses(*image);
  NoAssemblies opener;
  size_t i = 0;
  for (auto _ : state) {
    const auto function = image->Find(addresses[i++ % addresses.size()]);
    const auto name = image->Name(function->method, opener);
    if (!name.ok() || name->name.method.empty()) return state.SkipWithError("not named");
    benchmark::DoNotOptimize(name);
  }
}
BENCHMARK(BM_NameFunction);

// The cost of a frame of a known method: find, then one hash look-up, as clr/r2r_methods does it.
void BM_NameFunctionMemoised(benchmark::State& state) {
  const MappedFile* file = CoreLib(state);
  if (file == nullptr) return;
  const std::unique_ptr<R2rImage> image = Open(file->bytes());
  const std::vector<uint32_t> addresses = SomeAddresses(*image);
  absl::flat_hash_map<uint32_t, uint32_t> names;
  for (uint32_t address : addresses) names.emplace(image->Find(address)->method, address);
  size_t i = 0;
  for (auto _ : state) {
    const auto function = image->Find(addresses[i++ % addresses.size()]);
    const auto name = names.find(function->method);
    if (name == names.end()) return state.SkipWithError("not found");
    benchmark::DoNotOptimize(name->second);
  }
}
BENCHMARK(BM_NameFunctionMemoised);

}  // namespace
}  // namespace clrsampler
