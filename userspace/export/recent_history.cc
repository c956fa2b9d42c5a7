#include "export/recent_history.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "export/window_profile.h"
#include "profile/window_owners.h"
#include "status/status.h"
#include "store/history_lists.h"
#include "store/lane_builder.h"
#include "store/lane_nodes.h"

namespace clrsampler {
namespace {

constexpr size_t kMostNotices = 50;
constexpr absl::string_view kOthers = "[others]";

void AddTo(FrameCounts& sum, const FrameCounts& more) {
  sum.named += more.named;
  sum.unnamed += more.unnamed;
}

// Steps of equal length, at least that of a window.
class Steps {
 public:
  Steps(const std::vector<SharedWindow>& windows, size_t most) {
    if (windows.empty()) return;
    // In any order: the clock may have been set back between two of them.
    begin_ = windows.front()->begin_unix_ns;
    uint64_t end = begin_;
    uint64_t length = 1;
    for (const SharedWindow& window : windows) {
      begin_ = std::min(begin_, window->begin_unix_ns);
      end = std::max(end, window->end_unix_ns);
      length = std::max(length, window->end_unix_ns - std::min(window->begin_unix_ns, window->end_unix_ns));
    }
    const uint64_t range = std::max<uint64_t>(end - begin_, 1);
    const uint64_t many = std::max<uint64_t>(most, 1);
    length_ = std::max(length, (range + many - 1) / many);
    count_ = static_cast<size_t>((range + length_ - 1) / length_);
  }
  uint64_t begin() const { return begin_; }
  uint64_t length() const { return length_; }
  size_t count() const { return count_; }
  size_t Of(const Window& window) const {
    const uint64_t since = window.begin_unix_ns - std::min(begin_, window.begin_unix_ns);
    return std::min(static_cast<size_t>(since / length_), count_ - 1);
  }

 private:
  uint64_t begin_ = 0, length_ = 0;
  size_t count_ = 0;
};

void Resize(TimelineSeries& series, size_t steps) {
  series.cores.resize(steps);
  series.pause_ns.resize(steps);
  series.suspend_ns.resize(steps);
  series.compile_ns.resize(steps);
  series.allocated_bytes.resize(steps);
  series.wait_ns.resize(steps);
}

void AddSeries(TimelineSeries& sum, const TimelineSeries& more) {
  for (size_t i = 0; i < sum.cores.size(); ++i) {
    sum.cores[i] += more.cores[i];
    sum.pause_ns[i] += more.pause_ns[i];
    sum.suspend_ns[i] += more.suspend_ns[i];
    sum.compile_ns[i] += more.compile_ns[i];
    sum.allocated_bytes[i] += more.allocated_bytes[i];
    sum.wait_ns[i] += more.wait_ns[i];
  }
  sum.dotnet |= more.dotnet;
}

struct RankedSeries {
  TimelineSeries series;
  uint64_t cpu_ns = 0, other_ns = 0;  // as the store ranks them
};
// By name, pid and start of a process, or by container.
using SeriesByKey = std::map<std::tuple<std::string, uint32_t, uint64_t>, RankedSeries>;

RankedSeries& SeriesOf(const WindowProcess& process, TimelineBy by, size_t steps, SeriesByKey& series) {
  const bool own = by == TimelineBy::kProcess;
  RankedSeries& ranked = series[own ? std::tuple(process.comm, process.pid, process.started_boot_ns)
                                    : std::tuple(process.container, uint32_t{0}, uint64_t{0})];
  TimelineSeries& one = ranked.series;
  one.label = own ? process.comm : process.container;
  one.container = process.container;
  one.pid = own ? process.pid : 0;
  one.dotnet |= !process.runtime.empty();
  Resize(one, steps);
  return ranked;
}

// The CPU time of each of the window's processes, or of its threads that are meant.
std::vector<uint64_t> CpuTimes(const Window& window, const HistorySelection& selection) {
  std::vector<uint64_t> cpu_ns(window.processes.size(), 0);
  if (!selection.thread) {
    for (size_t i = 0; i < cpu_ns.size(); ++i) cpu_ns[i] = window.processes[i].total_cpu_ns();
    return cpu_ns;
  }
  const WindowOwners owners(window);
  const std::vector<bool> threads = SelectedThreads(window, window.cpu, selection);
  std::vector<std::optional<size_t>> owner(threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i]) owner[i] = owners.Of(window.cpu, window.cpu.threads[i]);
  }
  for (size_t row = 0; row < window.cpu.samples.size(); ++row) {
    const std::optional<size_t> process = owner[window.cpu.samples.thread[row]];
    if (process) cpu_ns[*process] += window.cpu.samples.weight_of(row);
  }
  return cpu_ns;
}

void AddProcess(const WindowProcess& process, uint64_t cpu_ns, RankedSeries& ranked, size_t step) {
  ranked.cpu_ns += cpu_ns;
  ranked.other_ns += process.pause_ns + process.compile_ns + WaitedForThreadsNs(process.waits);
  TimelineSeries& one = ranked.series;
  one.cores[step] += static_cast<double>(cpu_ns);
  one.pause_ns[step] += process.pause_ns;
  one.suspend_ns[step] += process.suspend_ns;
  one.compile_ns[step] += process.compile_ns;
  one.allocated_bytes[step] += process.allocated_bytes;
  one.wait_ns[step] += process.waits.waited_ns();
}

// The series with most CPU time come first, at most `most`. If there are more, the last one is of all others. Those in
// which nothing happened are left out.
std::vector<TimelineSeries> LargestSeries(SeriesByKey&& series, size_t most, size_t steps) {
  std::vector<RankedSeries> ranked;
  for (auto& [key, one] : series) {
    if (one.cpu_ns + one.other_ns > 0) ranked.push_back(std::move(one));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedSeries& a, const RankedSeries& b) {
    return std::pair(a.cpu_ns, a.other_ns) > std::pair(b.cpu_ns, b.other_ns);
  });
  most = std::max<size_t>(most, 1);
  const size_t named = ranked.size() <= most ? ranked.size() : most - 1;
  std::vector<TimelineSeries> largest;
  for (size_t i = 0; i < named; ++i) largest.push_back(std::move(ranked[i].series));
  if (named == ranked.size()) return largest;
  TimelineSeries& others = largest.emplace_back();
  others.label = std::string(kOthers);
  Resize(others, steps);
  for (size_t i = named; i < ranked.size(); ++i) AddSeries(others, ranked[i].series);
  return largest;
}

// The time of a thread in a window, by state.
struct LaneTime {
  uint32_t thread = 0;
  LaneCategory state = LaneCategory::kOther;
  uint64_t begin_unix_ns = 0, end_unix_ns = 0;
  uint64_t ns = 0;
};

void AddLaneTimes(const Window& window, const ProfileModel& model, const std::string& method, LaneBuilder& builder,
                  std::vector<LaneTime>& times) {
  const LaneNodes nodes(
      model.nodes, model.frames, [&](StringIndex index) { return model.text(index); }, method);
  const WindowOwners owners(window);
  std::map<std::pair<ThreadIndex, LaneCategory>, uint64_t> sums;
  for (size_t i = 0; i < model.samples.size(); ++i) {
    const ModelSample sample = model.samples.at(i);
    if (!nodes.Counts(sample.stack)) continue;
    const bool runs = model.meta.view == ProfileView::kCpu;
    sums[{sample.thread, runs ? nodes.Running(sample.stack) : nodes.Waiting(sample.stack)}] += sample.weight;
  }
  for (const auto& [state, ns] : sums) {
    const ModelThread& thread = model.threads[state.first];
    HistoryLanes::Thread own = {.pid = thread.pid,
                                .tid = thread.tid,
                                .comm = std::string(model.text(thread.comm)),
                                .container = "",
                                .name = std::string(model.text(thread.name))};
    if (const std::optional<size_t> owner = owners.Of(model, thread))
      own.container = window.processes[*owner].container;
    times.push_back({builder.Thread(own, 0), state.second, window.begin_unix_ns, window.end_unix_ns, ns});
  }
}

class RecentHistory : public History {
 public:
  explicit RecentHistory(RecentWindows& windows) : windows_(windows) {}

  absl::Status Append(const Window& window) override {
    windows_.Add(std::make_shared<const Window>(window));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Maintain(uint64_t) override { return false; }

  absl::StatusOr<HistorySpan> Span() override {
    HistorySpan span;
    const std::vector<SharedWindow> all = windows_.All();
    if (all.empty()) return span;
    span.oldest_unix_ns = all.front()->begin_unix_ns;
    span.newest_unix_ns = all.back()->end_unix_ns;
    span.windows = all.size();
    return span;
  }

  absl::StatusOr<ProfileModel> Profile(const HistorySelection& selection, ProfileView view) override {
    WindowProfile profile(selection, view, true);
    for (const SharedWindow& window : windows_.All()) RETURN_IF_ERROR(profile.Add(*window));
    return std::move(profile).Build();
  }

  absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection& selection, TimelineBy by, size_t max_steps,
                                                size_t max_series) override {
    const std::vector<SharedWindow> windows = In(selection);
    const Steps steps(windows, max_steps);
    clrsampler::Timeline timeline;
    timeline.begin_unix_ns = steps.begin();
    timeline.step_ns = steps.length();
    timeline.steps = steps.count();
    timeline.covered_ns.assign(steps.count(), 0);
    SeriesByKey series;
    for (const SharedWindow& window : windows) {
      const size_t step = steps.Of(*window);
      timeline.covered_ns[step] += window->end_unix_ns - window->begin_unix_ns;
      const std::vector<uint64_t> cpu_ns = CpuTimes(*window, selection);
      for (size_t i = 0; i < window->processes.size(); ++i) {
        const WindowProcess& process = window->processes[i];
        if (!Selects(selection, process)) continue;
        if (process.waits != WaitTimes()) {
          timeline.states.resize(steps.count());
          AddTimes(timeline.states[step], process.waits);
        }
        AddProcess(process, cpu_ns[i], SeriesOf(process, by, steps.count(), series), step);
      }
    }
    timeline.series = LargestSeries(std::move(series), max_series, steps.count());
    for (TimelineSeries& one : timeline.series) {
      for (size_t i = 0; i < one.cores.size(); ++i) {
        if (timeline.covered_ns[i] > 0) one.cores[i] /= static_cast<double>(timeline.covered_ns[i]);
      }
    }
    return timeline;
  }

  absl::StatusOr<HistoryLanes> Lanes(const HistorySelection& selection, const LaneQuestion& question) override {
    const std::vector<SharedWindow> windows = In(selection);
    const Steps steps(windows, question.max_steps);
    LaneBuilder builder(steps.begin(), std::max<uint64_t>(steps.length(), 1), steps.count());
    std::vector<LaneTime> times;
    for (const SharedWindow& window : windows) {
      for (const ProfileView view : {ProfileView::kCpu, ProfileView::kOffCpu}) {
        WindowProfile profile(selection, view, false);
        RETURN_IF_ERROR(profile.Add(*window));
        ASSIGN_OR_RETURN(const ProfileModel model, std::move(profile).Build());
        AddLaneTimes(*window, model, question.method, builder, times);
      }
    }
    for (const LaneTime& time : times) builder.Rank(time.thread, time.ns);
    builder.Choose(question.max_threads);
    for (const SharedWindow& window : windows) builder.Cover(window->begin_unix_ns, window->end_unix_ns);
    for (const LaneTime& time : times) {
      builder.Fill(time.thread, time.state, time.begin_unix_ns, time.end_unix_ns, time.ns);
    }
    return std::move(builder).Build();
  }

  absl::StatusOr<HistoryPauses> Pauses(const HistorySelection& selection, size_t limit) override {
    HistoryPauses pauses;
    for (const SharedWindow& window : In(selection)) {
      for (const WindowProcess& process : window->processes) {
        if (!Selects(selection, process) || selection.thread) continue;
        pauses.count += process.pauses;
        pauses.pause_ns += process.pause_ns;
        pauses.suspend_ns += process.suspend_ns;
      }
      for (const WindowPause& pause : window->pauses) {
        const WindowProcess& process = window->processes[pause.process];
        if (!Selects(selection, process) || !SelectsThread(selection, pause.tid, pause.thread_name)) continue;
        if (selection.thread) {
          ++pauses.count;
          pauses.pause_ns += pause.pause_ns;
          pauses.suspend_ns += pause.suspend_ns;
        }
        ++pauses.count_by_kind[pause.kind];
        pauses.longest.push_back({pause, process.pid, process.comm, process.container});
      }
    }
    std::stable_sort(pauses.longest.begin(), pauses.longest.end(),
                     [](const HistoryPause& a, const HistoryPause& b) { return a.pause.pause_ns > b.pause.pause_ns; });
    if (pauses.longest.size() > limit) pauses.longest.resize(limit);
    return pauses;
  }

  absl::StatusOr<HistoryMethods> Methods(const HistorySelection& selection, size_t limit) override {
    RETURN_IF_ERROR(CheckMethodSelection(selection));
    HistoryMethods methods;
    std::map<std::tuple<uint32_t, std::string, std::string, std::string>, HistoryMethod> by_name;
    for (const SharedWindow& window : In(selection)) {
      for (const WindowProcess& process : window->processes) {
        if (!Selects(selection, process)) continue;
        methods.count += process.compilations;
        methods.total_ns += process.compile_ns;
      }
      for (const WindowMethod& method : window->methods) {
        const WindowProcess& process = window->processes[method.process];
        if (!Selects(selection, process)) continue;
        const auto [found, added] =
            by_name.try_emplace(std::tuple(process.pid, process.comm, method.method, method.tier),
                                HistoryMethod{method, process.pid, process.comm, process.container});
        if (added) continue;
        WindowMethod& sum = found->second.method;
        sum.count += method.count;
        sum.total_ns += method.total_ns;
        sum.longest_ns = std::max(sum.longest_ns, method.longest_ns);
        sum.bytes += method.bytes;
      }
    }
    for (auto& [name, method] : by_name) methods.methods.push_back(std::move(method));
    std::stable_sort(
        methods.methods.begin(), methods.methods.end(),
        [](const HistoryMethod& a, const HistoryMethod& b) { return a.method.total_ns > b.method.total_ns; });
    if (methods.methods.size() > limit) methods.methods.resize(limit);
    return methods;
  }

  absl::StatusOr<HistoryHealth> Health(uint64_t from_unix_ns, uint64_t to_unix_ns) override {
    HistorySelection range;
    range.from_unix_ns = from_unix_ns;
    range.to_unix_ns = to_unix_ns;
    HistoryHealth health;
    std::set<std::string> said;
    const std::vector<SharedWindow> windows = In(range);
    for (const SharedWindow& window : windows) {
      const Account& account = window->account;
      health.covered_ns += window->end_unix_ns - window->begin_unix_ns;
      health.samples_expected += account.samples_expected;
      health.samples_taken += account.samples_taken;
      health.samples_written += account.samples_written;
      for (const auto& [reason, count] : account.lost) health.lost[reason] += count;
      AddTo(health.managed, account.managed);
      AddTo(health.native, account.native);
      AddTo(health.kernel, account.kernel);
      health.stacks_complete += account.stacks_complete;
      health.stacks_truncated += account.stacks_truncated;
      health.stacks_broken += account.stacks_broken;
      health.self_cpu_seconds += account.self_cpu_seconds;
      health.peak_rss_bytes = std::max(health.peak_rss_bytes, account.self_peak_rss_bytes);
      health.bpf_map_bytes = account.bpf_map_bytes;
      for (const auto& [kind, count] : account.notice_counts) health.notice_counts[kind] += count;
      if (health.rates.empty() || health.rates.back().hz != window->frequency_hz) {
        health.rates.push_back({window->begin_unix_ns, window->frequency_hz});
      }
    }
    for (size_t i = windows.size(); i-- > 0;) {
      for (const Notice& notice : windows[i]->account.notices) {
        if (health.notices.size() == kMostNotices) return health;
        if (said.insert(notice.message).second) health.notices.push_back(notice.message);
      }
    }
    return health;
  }

  void EndQuestions() override {}  // some windows in memory: answered at once

 private:
  std::vector<SharedWindow> In(const HistorySelection& selection) const {
    std::vector<SharedWindow> windows;
    for (SharedWindow& window : windows_.All()) {
      if (window->begin_unix_ns >= selection.from_unix_ns && window->begin_unix_ns < selection.to_unix_ns) {
        windows.push_back(std::move(window));
      }
    }
    return windows;
  }

  RecentWindows& windows_;
};

}  // namespace

std::unique_ptr<History> MakeRecentHistory(RecentWindows& windows) { return std::make_unique<RecentHistory>(windows); }

}  // namespace clrsampler
