// From raw samples to whole stacks, and to names: what the agent does with each sample, on recordings of real programs
// (tests/testdata/stacks). Everything is known already, as in a recording that runs for a while.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/recorded_samples.h"
#include "pipeline/stack_symbolizer.h"

namespace clrsampler {
namespace {

constexpr uint32_t kMaxFrames = 512;

void Finish(benchmark::State& state, const RecordedSamples& all) {
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(all.samples.size()));
  state.counters["frames_a_sample"] = static_cast<double>(all.frames) / static_cast<double>(all.samples.size());
}

void BM_Replay(benchmark::State& state, const char* ending) {
  const RecordedSamples& all = *LoadRecordedSamples(ending);
  if (all.samples.empty()) return state.SkipWithError("no recordings");
  StackUnwinder replay({kMaxFrames});
  UserStack stack;
  for (auto _ : state) {
    for (const RecordedSamples::Sample& sample : all.samples) {
      replay.Walk(sample.raw, *sample.code, stack);
      if (stack.frames.size() != sample.expected->frames.size()) return state.SkipWithError("a wrong stack");
    }
  }
  Finish(state, all);
}

// Names every address; a steady program.
class SteadySource : public FrameSource {
 public:
  explicit SteadySource(FrameTable& frames) : frames_(frames) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    return Resolution{frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump,
                                           "Shop.Method" + std::to_string(query.lookup_address), "Shop", ""})};
  }
  uint64_t Generation(ProcessKey) const override { return 1; }

 private:
  FrameTable& frames_;
};

void BM_ReplayAndName(benchmark::State& state, const char* ending) {
  const RecordedSamples& all = *LoadRecordedSamples(ending);
  if (all.samples.empty()) return state.SkipWithError("no recordings");
  FrameTable frames;
  SteadySource source(frames);
  Symbolizer symbolizer({&source}, frames);
  KernelSymbolizer kernel(frames, NameStyle::kShort, nullptr,
                          KernelSymbols(NameStyle::kShort, [] { return std::string(); }));
  StackSymbolizer stack_symbolizer(symbolizer, kernel, frames);
  Process process(ProcessKey{7, 1}, TargetFiles("/nonexistent", 7));
  StackUnwinder replay({kMaxFrames});
  UserStack stack;
  for (auto _ : state) {
    for (const RecordedSamples::Sample& sample : all.samples) {
      replay.Walk(sample.raw, *sample.code, stack);
      const NamedStack& named = stack_symbolizer.Name(process, sample.raw, stack, {1});
      if (named.frames.size() < sample.expected->frames.size()) return state.SkipWithError("a wrong stack");
    }
  }
  Finish(state, all);
}

BENCHMARK_CAPTURE(BM_Replay, all, "");
BENCHMARK_CAPTURE(BM_Replay, json, "10.0.14-json");
BENCHMARK_CAPTURE(BM_Replay, async, "10.0.14-async");
BENCHMARK_CAPTURE(BM_Replay, regex, "10.0.14-regex");
BENCHMARK_CAPTURE(BM_Replay, gc, "10.0.14-gc");
BENCHMARK_CAPTURE(BM_Replay, chains, "10.0.14-chains");
BENCHMARK_CAPTURE(BM_ReplayAndName, all, "");
BENCHMARK_CAPTURE(BM_ReplayAndName, json, "10.0.14-json");
BENCHMARK_CAPTURE(BM_ReplayAndName, async, "10.0.14-async");

}  // namespace
}  // namespace clrsampler
