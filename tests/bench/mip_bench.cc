// Machine IR Profiles of a million functions: read, merged, ordered, written, as YAML; and the memory that it takes.
//
// With MIP_BENCH_FILES=FOLDER it only writes the files there, for measuring the command as a whole.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "bench/memory_gauge.h"
#include "formats/byte_reader.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_merge.h"
#include "formats/mip/mip_order.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "unit/formats/mip/made_up_mip.h"

namespace clrsampler {
namespace {

constexpr size_t kFunctions = 1'000'000;

struct Files {
  std::string map, mip, raw, other_build;
};

// Names of 60 bytes, 0 to 6 blocks beside the entry.
const Files& Million() {
  static const Files* files = [] {
    test_support::MadeUpMip shape{.functions = kFunctions, .max_blocks = 6, .odd_names = false, .name_bytes = 60};
    auto* made = new Files;
    MipProfile profile = test_support::MadeUpProfile(shape);
    made->map = *MipMapBytes(profile, {});
    made->raw = test_support::MadeUpRaw(profile, 1);
    (void)MipRawMerger(profile, true).Merge(AsBytes(made->raw));
    made->mip = *MipBytes(profile);
    shape.header_bytes = 64;
    shape.counted = true;
    made->other_build = *MipBytes(test_support::MadeUpProfile(shape));
    return made;
  }();
  return *files;
}

absl::Status Count(size_t& bytes, absl::string_view piece) {
  bytes += piece.size();
  return absl::OkStatus();
}

// The work of `clrsampler mip merge` without the files: read, add, write.
template <typename Merge>
void MergeAll(benchmark::State& state, Merge&& merge) {
  const Files& files = Million();
  for (auto _ : state) {
    const MemoryGauge memory;
    absl::StatusOr<MipProfile> profile = ReadMip(AsBytes(files.mip), MipNaming::kLater);
    size_t bytes = 0;
    if (!profile.ok() || !merge(*profile) ||
        !WriteMip(*profile, MipLayout::kDocumented, [&](absl::string_view piece) { return Count(bytes, piece); })
             .ok() ||
        profile->functions.size() != kFunctions) {
      state.SkipWithError("not merged");
    }
    state.counters["memory_MiB"] = memory.peak_mib();
  }
  state.counters["file_MiB"] = static_cast<double>(files.mip.size()) / (1 << 20);
}

void BM_MergeRaw(benchmark::State& state) {
  MergeAll(state, [](MipProfile& profile) { return MipRawMerger(profile, true).Merge(AsBytes(Million().raw)).ok(); });
}
BENCHMARK(BM_MergeRaw)->Unit(benchmark::kMillisecond);

void BM_MergeProfileOfOneBuild(benchmark::State& state) {
  MergeAll(state, [](MipProfile& profile) { return MergeMip(profile, AsBytes(Million().mip)).ok(); });
}
BENCHMARK(BM_MergeProfileOfOneBuild)->Unit(benchmark::kMillisecond);

void BM_MergeProfileOfAnotherBuild(benchmark::State& state) {
  MergeAll(state, [](MipProfile& profile) { return MergeMip(profile, AsBytes(Million().other_build)).ok(); });
}
BENCHMARK(BM_MergeProfileOfAnotherBuild)->Unit(benchmark::kMillisecond);

void BM_Create(benchmark::State& state) {
  for (auto _ : state) {
    const MemoryGauge memory;
    const absl::StatusOr<MipMap> map = ReadMipMap(AsBytes(Million().map));
    size_t bytes = 0;
    if (!map.ok() || map->profile.functions.size() != kFunctions ||
        !WriteMip(map->profile, MipLayout::kDocumented, [&](absl::string_view piece) {
           return Count(bytes, piece);
         }).ok()) {
      state.SkipWithError("not created");
    }
    state.counters["memory_MiB"] = memory.peak_mib();
  }
}
BENCHMARK(BM_Create)->Unit(benchmark::kMillisecond);

void BM_Read(benchmark::State& state) {
  for (auto _ : state) {
    const MemoryGauge memory;
    if (!ReadMip(AsBytes(Million().mip)).ok()) state.SkipWithError("not read");
    state.counters["memory_MiB"] = memory.peak_mib();
  }
}
BENCHMARK(BM_Read)->Unit(benchmark::kMillisecond);

void BM_Order(benchmark::State& state) {
  const MipProfile profile = *ReadMip(AsBytes(Million().mip));
  for (auto _ : state) {
    if (MipFunctionOrder(profile).size() < kFunctions / 2) state.SkipWithError("lost functions");
  }
}
BENCHMARK(BM_Order)->Unit(benchmark::kMillisecond);

void BM_Document(benchmark::State& state, bool json, bool read) {
  const MipProfile profile = *ReadMip(AsBytes(Million().mip));
  std::string text;
  const auto write = [&] {
    text.clear();
    const MipSink sink = [&](absl::string_view piece) {
      text.append(piece.data(), piece.size());
      return absl::OkStatus();
    };
    return json ? WriteMipJson(profile, {}, sink) : WriteMipYaml(profile, {}, sink);
  };
  if (!write().ok()) state.SkipWithError("not written");
  for (auto _ : state) {
    if (read ? !ReadMipDocument(text).ok() : !write().ok()) state.SkipWithError("failed");
  }
  state.counters["file_MiB"] = static_cast<double>(text.size()) / (1 << 20);
}
BENCHMARK_CAPTURE(BM_Document, yaml_written, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Document, yaml_read, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Document, json_written, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Document, json_read, true, true)->Unit(benchmark::kMillisecond);

// Before the benchmarks, whose main is not ours.
const bool files_written = [] {
  const char* folder = std::getenv("MIP_BENCH_FILES");
  if (folder == nullptr) return false;
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(std::string(folder) + "/" + name, std::ios::binary) << bytes;
  };
  write("million.mipmap", Million().map);
  write("million.mip", Million().mip);
  write("million.mipraw", Million().raw);
  write("other_build.mip", Million().other_build);
  std::exit(0);
}();

}  // namespace
}  // namespace clrsampler
