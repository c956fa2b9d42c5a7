// All that `clrsampler serve` does with the samples of a large host, in one program: raw samples of real programs
// (tests/testdata/stacks) are parsed, unwound, named, put into windows, counted and kept. 64 CPUs at 99 Hz: 63,360
// samples in 10 s, of 500 processes with 50,000 methods each, of which few are hot. Reading names from the processes'
// memory is not part of it: jit_bench, pe_bench and names_bench have that.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/recorded_samples.h"
#include "export/metrics.h"
#include "pipeline/stack_symbolizer.h"
#include "pipeline/window_builder.h"
#include "store/history.h"

namespace clrsampler {
namespace {

constexpr uint32_t kProcesses = 500;
constexpr uint64_t kMethods = 50'000;  // of a process
constexpr int kSamples = 64 * 99 * 10;
constexpr uint64_t kWindowNs = 10'000'000'000;
constexpr uint64_t kUnix = 1'700'000'000'000'000'000;

// Names every address by one of its process's methods.
class MethodSource : public FrameSource {
 public:
  explicit MethodSource(FrameTable& frames) : frames_(frames) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    const uint64_t method = (query.lookup_address * 0x9e3779b97f4a7c15 >> 32) % kMethods;
    return Resolution{frames_.Intern(Frame{FrameKind::kJit, NameSource::kRuntimeMemory,
                                           absl::StrCat("Shop.Service", query.process.key.tgid % 40, ".Orders.Handler",
                                                        method / 12, "<Order>.Step", method, "(System.String, int)"),
                                           "Shop", "OptimizedTier1"})};
  }
  uint64_t Generation(ProcessKey) const override { return 1; }

 private:
  FrameTable& frames_;
};

class ReplayedHost {
 public:
  // One sample in `rare_each` is of something rare.
  ReplayedHost(const RecordedSamples& recorded, uint32_t rare_each) : recorded_(recorded), rare_each_(rare_each) {
    for (uint32_t p = 0; p < kProcesses; ++p) {
      Process& process = processes_.emplace_back(ProcessKey{1000 + p, 1 + p}, TargetFiles("/nonexistent", 1000 + p));
      process.comm = absl::StrCat("service-", p % 40);
      process.started_boot_ns = uint64_t{p + 1} * 10'000'000;
    }
  }

  void AddWindow(uint64_t begin_ns, WindowBuilder& builder) {
    for (uint64_t i = 0; i < kSamples; ++i) {
      const auto rank = static_cast<size_t>(share_(random_) * share_(random_) * kProcesses);
      const Process& process = processes_[rank];
      // A program does mostly the same, and now and then something rare: each variant of a recorded stack has other
      // methods.
      const uint64_t variant = random_() % rare_each_ == 0 ? random_() % 50 : 0;
      const RecordedSamples::Sample& sample = recorded_.samples[random_() % recorded_.samples.size()];
      replay_.Walk(sample.raw, *sample.code, stack_);
      for (UserFrame& frame : stack_.frames) {
        frame.address += variant << 36;
        frame.lookup_address += variant << 36;
      }
      const NamedStack& named = stack_symbolizer_.Name(process, sample.raw, stack_, {begin_ns});
      wire_cpu_sample head = sample.raw.sample();
      head.tgid = process.key.tgid;
      head.tid = head.tgid + static_cast<uint32_t>(random_() % 8);
      head.header.time_ns = begin_ns + kWindowNs / kSamples * i;
      std::snprintf(head.comm, sizeof head.comm, ".NET TP Worker");
      builder.Add(
          {process, head, named.frames, std::nullopt, named.sources, PausePhase::kNone, stack_.end, 10'101'010});
    }
  }

  FrameTable frames;

 private:
  const RecordedSamples& recorded_;
  const uint32_t rare_each_;
  std::deque<Process> processes_;
  MethodSource source_{frames};
  Symbolizer symbolizer_{{&source_}, frames};
  KernelSymbolizer kernel_{frames, NameStyle::kShort, nullptr,
                           KernelSymbols(NameStyle::kShort, [] { return std::string(); })};
  StackSymbolizer stack_symbolizer_{symbolizer_, kernel_, frames};
  StackUnwinder replay_{{512}};
  UserStack stack_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<double> share_{0, 1};
};

void BM_Host(benchmark::State& state) {
  const RecordedSamples& recorded = *LoadRecordedSamples("");
  if (recorded.samples.empty()) return state.SkipWithError("no recordings");
  ReplayedHost host(recorded, static_cast<uint32_t>(state.range(0)));
  std::string folder = (std::filesystem::temp_directory_path() / "host_replay_bench_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder");
  auto history = History::Open(folder + "/history.db", {}, [](const std::string&) {});
  if (!history.ok()) return state.SkipWithError(std::string(history.status().message()).c_str());
  const std::unique_ptr<Metrics> metrics = Metrics::Make({.version = "bench"});
  WindowBuilder builder(host.frames);
  uint64_t begin_ns = 1'000'000'000, number = 0;
  for (auto _ : state) {
    builder.Begin({begin_ns}, kUnix + begin_ns);
    host.AddWindow(begin_ns, builder);
    WindowBuilder::Taken taken = builder.Take(kWindowNs);
    if (!taken.lost.empty()) return state.SkipWithError("a view of the window is lost");
    Window& window = taken.window;
    begin_ns += kWindowNs;
    window.number = ++number;
    window.end_unix_ns = kUnix + begin_ns;
    metrics->Observe(window);
    if (const absl::Status kept = (*history)->Append(window); !kept.ok()) return state.SkipWithError("Append");
    if (!(*history)->Maintain(window.end_unix_ns).ok()) return state.SkipWithError("Maintain");
    if (number % 3 == 0) malloc_trim(0);  // as the recorder does
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["samples"] = kSamples;
  state.counters["frames"] = static_cast<double>(host.frames.size());
  if (const auto span = (*history)->Span(); span.ok()) {
    state.counters["MiB_a_day"] = static_cast<double>(span->bytes) / 1048576.0 * 8640 / static_cast<double>(number);
  }
  history->reset();
  std::filesystem::remove_all(folder);
}
BENCHMARK(BM_Host)->Arg(200)->Unit(benchmark::kMillisecond)->Iterations(12);

}  // namespace
}  // namespace clrsampler
