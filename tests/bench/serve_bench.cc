// The work of `clrsampler serve` with named samples, window by window: WindowBuilder, metrics, history. A host with 64
// CPUs at 99 Hz: 63,360 samples in 10 s, of 500 processes with 100 methods that are met each (50,000 in all), stacks of
// 30 to 60 frames of which few paths are hot. The steps before (unwinding and naming) are in replay_bench.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "export/metrics.h"
#include "pipeline/window_builder.h"
#include "store/history.h"

namespace clrsampler {
namespace {

constexpr int kProcesses = 500;
constexpr int kMethods = 100;  // of a process
constexpr int kSamples = 64 * 99 * 10;
constexpr int kPaths = 60;  // of a process
constexpr uint64_t kWindowNs = 10'000'000'000;

// A program: paths through its methods, the first ones hot (Zipf).
struct MadeUpHost {
  explicit MadeUpHost(FrameTable& frames) {
    std::mt19937 random(1);
    for (int p = 0; p < kProcesses; ++p) {
      processes.emplace_back(ProcessKey{static_cast<uint32_t>(1000 + p), static_cast<uint32_t>(p + 1)},
                             TargetFiles("/nonexistent", static_cast<uint32_t>(1000 + p)));
      processes.back().comm = absl::StrCat("service-", p % 40);
      processes.back().first_seen = {1};
      std::vector<FrameId> methods;
      for (int m = 0; m < kMethods; ++m) {
        methods.push_back(frames.Intern({FrameKind::kJit, NameSource::kRuntimeMemory,
                                         absl::StrCat("Shop.Service", p, ".Orders.Handler", m, "<Order>.Total"), "Shop",
                                         "OptimizedTier1"}));
      }
      paths.emplace_back();
      for (int i = 0; i < kPaths; ++i) {
        // Paths of a program begin alike.
        std::vector<FrameId> path(paths.back().empty() ? std::vector<FrameId>()
                                                       : paths.back()[random() % paths.back().size()]);
        path.resize(std::min<size_t>(path.size(), random() % 40));
        const size_t depth = 30 + random() % 31;
        while (path.size() < depth) path.push_back(methods[random() % methods.size()]);
        paths.back().push_back(std::move(path));
      }
    }
  }
  std::vector<Process> processes;
  std::vector<std::vector<std::vector<FrameId>>> paths;  // by process
};

void AddWindow(const MadeUpHost& host, std::mt19937& random, uint64_t begin_ns, WindowBuilder& builder) {
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < kSamples; ++i) {
    const auto process = static_cast<size_t>(share(random) * share(random) * kProcesses);
    const auto path = static_cast<size_t>(std::pow(share(random), 3) * kPaths);
    wire_cpu_sample sample{};
    sample.tgid = host.processes[process].key.tgid;
    sample.tid = sample.tgid + static_cast<uint32_t>(random() % 8);
    sample.header.time_ns = begin_ns + kWindowNs / kSamples * static_cast<uint64_t>(i);
    std::snprintf(sample.comm, sizeof sample.comm, ".NET TP Worker");
    // The leaf varies: methods call many small ones.
    std::vector<FrameId> frames = host.paths[process][path];
    frames.back() = host.paths[process][random() % kPaths].back();
    builder.Add(
        {host.processes[process], sample, frames, std::nullopt, 0, PausePhase::kNone, StackEnd::kComplete, 10'101'010});
  }
}

void BM_Windows(benchmark::State& state) {
  FrameTable frames;
  const MadeUpHost host(frames);
  std::mt19937 random(7);
  std::string folder = (std::filesystem::temp_directory_path() / "serve_bench_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder");
  auto history = History::Open(folder + "/history.db", {}, [](const std::string&) {});
  if (!history.ok()) return state.SkipWithError(std::string(history.status().message()).c_str());
  const std::unique_ptr<Metrics> metrics = Metrics::Make({.version = "bench"});
  WindowBuilder builder(frames);
  uint64_t begin_ns = 1'000'000'000, number = 0;
  constexpr uint64_t kUnix = 1'700'000'000'000'000'000;
  for (auto _ : state) {
    builder.Begin({begin_ns}, kUnix + begin_ns);
    AddWindow(host, random, begin_ns, builder);
    WindowBuilder::Taken taken = builder.Take(kWindowNs);
    if (!taken.lost.empty()) return state.SkipWithError("a view of the window is lost");
    Window& window = taken.window;
    begin_ns += kWindowNs;
    window.number = ++number;
    window.end_unix_ns = kUnix + begin_ns;
    metrics->Observe(window);
    if (const absl::Status kept = (*history)->Append(window); !kept.ok()) return state.SkipWithError("Append");
    if (!(*history)->Maintain(window.end_unix_ns).ok()) return state.SkipWithError("Maintain");
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["samples"] = kSamples;
  const auto span = (*history)->Span();
  if (span.ok()) {
    state.counters["MiB_a_day"] = static_cast<double>(span->bytes) / 1048576.0 * 8640 / static_cast<double>(number);
  }
  history->reset();
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_Windows)->Unit(benchmark::kMillisecond)->Iterations(90);

}  // namespace
}  // namespace clrsampler
