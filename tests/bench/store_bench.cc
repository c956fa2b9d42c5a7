// The costs of a history: CPU time of a window, memory, bytes a day as windows, minutes and hours, and answers.
//
// ordinary: 2 cores at 19 Hz, 20 .NET processes, a day of windows. large: 6,000 samples a second of 500 processes with
// 50,000 methods, an hour.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "os/heap.h"
#include "store/history.h"
#include "store/sqlite.h"
#include "unit/store/made_up_host.h"

namespace clrsampler {
namespace {

using test_support::MadeUpHost;
using test_support::MadeUpHostOptions;

constexpr uint64_t kSecond = 1'000'000'000, kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr uint64_t kBegin = 1'790'000'000 * kSecond / kHour * kHour;
constexpr double kMiB = 1 << 20;

struct Host {
  MadeUpHostOptions options;
  size_t windows;
};
const Host kOrdinary = {{.samples = 380,
                         .processes = 20,
                         .programs = 6,
                         .methods = 20'000,
                         .requests = 20,
                         .pauses = 40,
                         .compilations = 20},
                        8640};
const Host kLarge = {{.samples = 60'000,
                      .processes = 500,
                      .programs = 50,
                      .threads = 20,
                      .methods = 50'000,
                      .requests = 20,
                      .pauses = 1000,
                      .compilations = 500},
                     180};

double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int64_t StatusBytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == key && status >> kib) return kib << 10;
  }
  return 0;
}

// The bytes of the heap that are in use, and how far the process's memory rises while something runs.
int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}
template <typename Work>
int64_t RiseOf(Work work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5\n";  // resets the peak
  const int64_t before = StatusBytes("VmRSS:");
  work();
  return StatusBytes("VmHWM:") - before;
}

class Store {
 public:
  Store() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    history_ = *History::Open(path(), {.max_bytes = uint64_t{64} << 30}, [](const std::string&) { std::abort(); });
  }
  ~Store() {
    history_ = nullptr;
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/history.db"; }
  History& operator*() { return *history_; }
  History* operator->() { return history_.get(); }
  // Counts pages in use.
  double live_mib() const {
    SqliteConnection connection = *SqliteConnection::Open(path(), SQLITE_OPEN_READONLY);
    return static_cast<double>((*connection.Number("PRAGMA page_count") - *connection.Number("PRAGMA freelist_count")) *
                               4096) /
           kMiB;
  }
  double kib(absl::string_view sum) const {
    SqliteConnection connection = *SqliteConnection::Open(path(), SQLITE_OPEN_READONLY);
    return static_cast<double>(*connection.Number(sum)) / 1024;
  }

 private:
  std::string folder_ = std::filesystem::temp_directory_path() / "clrsampler-store-bench-XXXXXX";
  std::unique_ptr<History> history_;
};

void BM_History(benchmark::State& state, const Host& host) {
  ReturnLargeBlocks();  // as the program does
  for (auto _ : state) {
    const int64_t heap_before = HeapBytes();
    Store store;
    MadeUpHost made_up(host.options, kBegin);
    double cpu = 0, worst = 0;
    int64_t held = 0, peak = 0;
    for (size_t i = 0; i < host.windows; ++i) {
      auto window = std::make_unique<Window>(made_up.Next());
      const int64_t with_window = HeapBytes();
      const bool measure = i % (host.windows / 20) == 0;
      int64_t store_bytes = 0;
      const auto append = [&] {
        const double before = ThreadCpuSeconds();
        if (!store->Append(*window).ok()) std::abort();
        const double used = ThreadCpuSeconds() - before;
        cpu += used;
        worst = std::max(worst, used);
      };
      if (measure) {
        const int64_t rise = RiseOf(append);
        store_bytes = HeapBytes() - with_window;
        window = nullptr;
        const int64_t now = HeapBytes() - heap_before;
        held = std::max(held, now);
        peak = std::max(peak, now - store_bytes + rise);
      } else {
        append();
      }
    }
    const double days = static_cast<double>(host.windows) * 10 / 86400;
    const double as_windows = store.live_mib();
    const auto windows = static_cast<double>(host.windows);
    state.counters["window_KiB_of_names"] = store.kib("SELECT sum(length(data)) FROM dictionary") / windows;
    state.counters["window_KiB_of_parts"] = store.kib("SELECT sum(length(data)) FROM part") / windows;
    state.counters["segments"] = store.kib("SELECT 1024 * max(segment) FROM record");
    const auto maintain = [&](uint64_t now) {
      double longest = 0;
      while (true) {
        const double before = ThreadCpuSeconds();
        const absl::StatusOr<bool> more = store->Maintain(now);
        if (!more.ok()) std::abort();
        longest = std::max(longest, ThreadCpuSeconds() - before);
        if (!*more) return longest * 1e3;
      }
    };
    std::string refused;
    const auto ask = [&](const char* name, auto question) {
      const absl::Time before = absl::Now();
      const int64_t rise = RiseOf([&] {
        // Some are too large to be answered, and say so.
        if (!question().ok()) refused += absl::StrCat(" ", name);
      });
      state.counters[absl::StrCat(name, "_ms")] = absl::ToDoubleMilliseconds(absl::Now() - before);
      state.counters[absl::StrCat(name, "_MiB")] = static_cast<double>(rise) / kMiB;
    };
    const uint64_t end = made_up.now_unix_ns();
    const HistorySelection hour = {.from_unix_ns = end - kHour, .to_unix_ns = end};
    const HistorySelection hour_of_one = {.from_unix_ns = end - kHour, .to_unix_ns = end, .pid = 1001};
    const HistorySelection all = {.from_unix_ns = kBegin, .to_unix_ns = end};
    ask("five_minutes", [&] {
      return store->Profile({.from_unix_ns = end - kHour / 12, .to_unix_ns = end}, ProfileView::kCpu).status();
    });
    ask("hour", [&] { return store->Profile(hour, ProfileView::kCpu).status(); });
    ask("hour_of_one", [&] { return store->Profile(hour_of_one, ProfileView::kCpu).status(); });
    ask("all", [&] { return store->Profile(all, ProfileView::kCpu).status(); });
    ask("timeline", [&] { return store->Timeline(all, TimelineBy::kProcess, 120, 12).status(); });
    ask("pauses", [&] { return store->Pauses(all, 200).status(); });
    ask("methods", [&] { return store->Methods(all, 200).status(); });

    const absl::StatusOr<ProfileModel> profile = store->Profile(hour, ProfileView::kCpu);
    if (profile.ok()) {
      state.counters["hour_rows"] = static_cast<double>(profile->samples.size());
      state.counters["hour_nodes"] = static_cast<double>(profile->nodes.size());
    }

    if (!refused.empty()) state.SetLabel(absl::StrCat("too large:", refused));
    state.counters["minute_ms"] = maintain(end + kDay);
    const double as_minutes = store.live_mib();
    state.counters["hour_rolled_ms"] = maintain(end + 8 * kDay);
    state.counters["window_cpu_ms"] = cpu / static_cast<double>(host.windows) * 1e3;
    state.counters["worst_window_ms"] = worst * 1e3;
    state.counters["held_MiB"] = static_cast<double>(held) / kMiB;
    state.counters["peak_MiB"] = static_cast<double>(peak) / kMiB;
    state.counters["day_of_windows_MiB"] = as_windows / days;
    state.counters["day_of_minutes_MiB"] = as_minutes / days;
    state.counters["day_of_hours_MiB"] = store.live_mib() / days;
  }
}
BENCHMARK_CAPTURE(BM_History, ordinary, kOrdinary)->Unit(benchmark::kSecond)->Iterations(1);
BENCHMARK_CAPTURE(BM_History, large, kLarge)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace clrsampler
