// From raw sample records to folded text: what the agent does with each sample once it has left the ring.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "output/folded.h"
#include "pipeline/stack_symbolizer.h"
#include "profile/hold_queue.h"
#include "profile/run_model.h"
#include "profile/stack_table.h"
#include "unit/unwind/raw_record.h"

namespace clrsampler {
namespace {

// Names every address; a steady program, whose methods do not change.
class SteadySource : public FrameSource {
 public:
  explicit SteadySource(FrameTable& frames) : frames_(frames) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    return Resolution{
        frames_.Intern(Frame{FrameKind::kJit, NameSource::kJitdump,
                             "Shop.Orders.Handlers.Method" + std::to_string(query.lookup_address >> 8), "Shop", ""})};
  }
  uint64_t Generation(ProcessKey) const override { return 1; }

 private:
  FrameTable& frames_;
};

constexpr int kFrames = 30;  // a JSON workload has 20 to 39

std::vector<std::vector<uint64_t>> MakeRecords(int distinct) {
  std::mt19937_64 random(1);
  std::vector<std::vector<uint64_t>> records;
  for (int i = 0; i < distinct; ++i) {
    RawRecord record;
    record.header.ip = 0x7f0000000000 + random() % 3000 * 256;
    record.header.tgid = 7;
    record.header.stop = WIRE_STOP_END;
    for (int frame = 1; frame < kFrames; ++frame) {
      record.Frame(0x7ffc00000000 + static_cast<uint64_t>(frame) * 128, 0, 0x7f0000000010 + random() % 3000 * 256,
                   std::vector<uint64_t>(10));
    }
    const auto bytes = record.Bytes();
    std::vector<uint64_t> words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    records.push_back(std::move(words));
  }
  return records;
}

void BM_SamplesToFolded(benchmark::State& state) {
  const auto records = MakeRecords(static_cast<int>(state.range(0)));
  constexpr size_t kSamples = 1'000'000;
  for (auto _ : state) {
    FrameTable frames;
    SteadySource source(frames);
    Symbolizer symbolizer({&source}, frames);
    KernelSymbolizer kernel(frames, NameStyle::kShort, nullptr,
                            KernelSymbols(NameStyle::kShort, [] { return std::string(); }));
    StackSymbolizer stack_symbolizer(symbolizer, kernel, frames);
    Process process(ProcessKey{7, 1}, TargetFiles("/nonexistent", 7));
    StackTable stacks;
    const LabelId label = stacks.InternLabel("web");
    UserStack user;
    for (size_t i = 0; i < kSamples; ++i) {
      const auto& words = records[i % records.size()];
      const RawStack raw = *RawStack::Parse(std::as_bytes(std::span<const uint64_t>(words)));
      WalkFrameChain(raw, user);
      symbolizer.CatchUp(process, {i}, {1});
      stacks.Add(stacks.Intern(label, stack_symbolizer.Name(process, raw, user, {i}).frames), 1);
    }
    size_t bytes = 0;
    (void)FoldedWriter().Write(*CountedRunModel(frames, stacks, {}), [&](absl::string_view text) {
      bytes += text.size();
      return absl::OkStatus();
    });
    if (stacks.total() != kSamples || bytes == 0) state.SkipWithError("lost samples");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kSamples));
}
BENCHMARK(BM_SamplesToFolded)->Arg(1'000)->Arg(20'000)->Unit(benchmark::kMillisecond);

void BM_HoldQueue(benchmark::State& state) {
  std::mt19937 random(3);
  uint64_t now = 0;
  HoldQueue<std::vector<uint64_t>> queue;
  for (auto _ : state) {
    for (int i = 0; i < 600; ++i) queue.Push({now + random() % 50'000'000}, std::vector<uint64_t>(500));
    now += 50'000'000;
    queue.PopUntil({now}, [](MonotonicTime, const auto&) { return true; });
  }
  state.SetItemsProcessed(state.iterations() * 600);
}
BENCHMARK(BM_HoldQueue);

}  // namespace
}  // namespace clrsampler
