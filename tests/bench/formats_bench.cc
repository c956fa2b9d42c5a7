// Each format written and read: one million samples of one hundred thousand stacks, and the memory that it takes.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/memory_gauge.h"
#include "formats/profile/profile_reader.h"
#include "output/profile_writer.h"
#include "unit/output/made_up_profile.h"

namespace clrsampler {
namespace {

const ProfileModel& Million() {
  static const auto* model = new ProfileModel(test_support::MadeUpProfile(
      {.samples = 1'000'000, .stacks = 100'000, .methods = 3000, .depth = 40, .processes = 2, .threads = 16}));
  return *model;
}

void BM_Write(benchmark::State& state, const char* format) {
  const ProfileModel& model = Million();
  const std::unique_ptr<ProfileWriter> writer = WriterOfFormat(format)->make({});
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const MemoryGauge memory;
    const absl::Status written = writer->Write(model, [&](absl::string_view piece) {
      bytes += piece.size();
      return absl::OkStatus();
    });
    if (!written.ok() || bytes == 0) state.SkipWithError("nothing written");
    state.counters["memory_MiB"] = memory.peak_mib();
  }
  state.counters["file_MiB"] = static_cast<double>(bytes) / (1 << 20);
  state.counters["nodes"] = static_cast<double>(model.nodes.size());
}
BENCHMARK_CAPTURE(BM_Write, folded, "folded")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Write, json, "json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Write, pprof, "pprof")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Write, speedscope, "speedscope")->Unit(benchmark::kMillisecond);

void BM_Read(benchmark::State& state, const char* format) {
  std::string file;
  (void)WriterOfFormat(format)->make({})->Write(Million(), [&](absl::string_view piece) {
    file.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  for (auto _ : state) {
    const MemoryGauge memory;
    const absl::StatusOr<ProfileModel> model = ReadProfile(file);
    if (!model.ok() || model->total_weight != 1'000'000) state.SkipWithError("lost samples");
    state.counters["memory_MiB"] = memory.peak_mib();
  }
}
BENCHMARK_CAPTURE(BM_Read, folded, "folded")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Read, json, "json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Read, pprof, "pprof")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Read, speedscope, "speedscope")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clrsampler
