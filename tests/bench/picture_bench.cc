// Writers of pictures: a million samples in 100,000 distinct stacks. The result is judged by its size and by that
// nothing is lost; memory is what the process has at its peak beyond the profile itself.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "output/html.h"
#include "output/svg.h"

namespace clrsampler {
namespace {

constexpr size_t kStacks = 100'000, kSamples = 1'000'000;
constexpr uint32_t kThreads = 64;

// New stacks branch off somewhere from those that are there, up to six frames at a time: 350,000 nodes.
ProfileModel ManyStacks() {
  ProfileModelBuilder builder;
  std::mt19937 random(1);
  std::vector<ThreadIndex> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.push_back(builder.Thread({.pid = 1,
                                      .tid = i + 1,
                                      .comm = builder.String("Shop.Api"),
                                      .name = builder.String(absl::StrCat("worker ", i))}));
  }
  std::vector<FrameIndex> frames;
  for (int i = 0; i < 20'000; ++i) {
    frames.push_back(builder.Frame({.kind = ModelFrameKind::kJit,
                                    .name = builder.String(absl::StrCat("Shop.Inventory.Type", i / 9, ".Method", i)),
                                    .source = builder.String("memory"),
                                    .module = builder.String(absl::StrCat("Shop", i % 40)),
                                    .tier = builder.String("OptimizedTier1")}));
  }
  std::vector<NodeIndex> nodes = {kRootNode}, leaves;
  std::vector<int> depths = {0};
  while (leaves.size() < kStacks) {
    const size_t from = random() % nodes.size();
    if (depths[from] > 60) continue;
    NodeIndex node = nodes[from];
    const int more = 1 + static_cast<int>(random() % 6);
    for (int i = 1; i <= more; ++i) {
      node = builder.Node(node, frames[random() % frames.size()]);
      nodes.push_back(node);
      depths.push_back(depths[from] + i);
    }
    leaves.push_back(node);
  }
  for (size_t i = 0; i < kSamples; ++i) {
    // Most samples are of few stacks, and a stack mostly of one thread.
    const double share = std::generate_canonical<double, 32>(random);
    const auto leaf = static_cast<size_t>(share * share * static_cast<double>(kStacks));
    const size_t thread = random() % 4 == 0 ? random() % kThreads : leaf % kThreads;
    builder.Add({.time_ns = i * 1000, .thread = threads[thread], .stack = leaves[leaf]});
  }
  return *std::move(builder).Build();
}

const ProfileModel& Model() {
  static const auto* model = new ProfileModel(ManyStacks());
  return *model;
}

// "VmRSS" or "VmHWM", its peak
double MemoryMiB(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}

// Gives back what making the profile took, and forgets that peak. The result is what is in use.
double ResetPeak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  return MemoryMiB("VmRSS");
}

template <typename Writer>
void BM_Write(benchmark::State& state) {
  const ProfileModel& model = Model();
  const double before = ResetPeak();
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    const absl::Status written = Writer().Write(model, [&](absl::string_view text) {
      bytes += text.size();
      return absl::OkStatus();
    });
    if (!written.ok()) state.SkipWithError(written.ToString().c_str());
  }
  state.counters["output_MB"] = static_cast<double>(bytes) / 1e6;
  state.counters["more_MiB"] = MemoryMiB("VmHWM") - before;
}
BENCHMARK(BM_Write<HtmlWriter>)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Write<SvgWriter>)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clrsampler
