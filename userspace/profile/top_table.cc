#include "profile/top_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace clrsampler {

absl::string_view TopSortText(TopSort sort) {
  switch (sort) {
    case TopSort::kCpu:
      return "cpu";
    case TopSort::kPaused:
      return "pause";
    case TopSort::kCompiling:
      return "jit";
    case TopSort::kPid:
      return "pid";
    case TopSort::kName:
      return "name";
  }
  return "";
}

std::optional<TopSort> TopSortOf(absl::string_view text) {
  for (int i = 0; i < kTopSortCount; ++i) {
    if (TopSortText(static_cast<TopSort>(i)) == text) return static_cast<TopSort>(i);
  }
  return std::nullopt;
}

void TopTable::Add(std::shared_ptr<const Window> window) {
  windows_.push_back(std::move(window));
  uint64_t kept_ns = 0;
  for (const auto& kept : windows_) kept_ns += kept->cpu.meta.duration_ns;
  while (windows_.size() > 1 && kept_ns > span_ns_) {
    kept_ns -= windows_.front()->cpu.meta.duration_ns;
    windows_.pop_front();
  }
}

double TopTable::seconds() const {
  uint64_t ns = 0;
  for (const auto& window : windows_) ns += window->cpu.meta.duration_ns;
  return static_cast<double>(ns) / 1e9;
}

uint64_t TopTable::samples() const {
  uint64_t samples = 0;
  for (const auto& window : windows_) samples += window->account.samples_written;
  return samples;
}

uint64_t TopTable::lost() const {
  uint64_t lost = 0;
  for (const auto& window : windows_) {
    for (const auto& [reason, count] : window->account.lost) lost += count;
  }
  return lost;
}

FrameCounts TopTable::frames() const {
  FrameCounts sum;
  for (const auto& window : windows_) {
    for (const FrameCounts* counts : {&window->account.managed, &window->account.native, &window->account.kernel}) {
      sum.named += counts->named;
      sum.unnamed += counts->unnamed;
    }
  }
  return sum;
}

std::vector<TopProcess> TopTable::Processes(TopSort sort) const {
  struct Sum {
    WindowProcess process;
    uint64_t longest_pause_ns = 0;
  };
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Sum> sums;
  for (const auto& window : windows_) {
    for (const WindowProcess& process : window->processes) {
      Sum& sum = sums[{process.pid, process.started_boot_ns}];
      WindowProcess added = process;
      for (size_t i = 0; i < added.cpu_ns.size(); ++i) added.cpu_ns[i] += sum.process.cpu_ns[i];
      added.pauses += sum.process.pauses;
      added.pause_ns += sum.process.pause_ns;
      added.compilations += sum.process.compilations;
      added.compile_ns += sum.process.compile_ns;
      sum.process = std::move(added);
    }
    for (const WindowPause& pause : window->pauses) {
      if (pause.process >= window->processes.size()) continue;
      const WindowProcess& process = window->processes[pause.process];
      Sum& sum = sums[{process.pid, process.started_boot_ns}];
      sum.longest_pause_ns = std::max(sum.longest_pause_ns, pause.pause_ns);
    }
  }
  const double ns = std::max(seconds() * 1e9, 1.0);
  std::vector<TopProcess> rows;
  for (auto& [key, sum] : sums) {
    const WindowProcess& process = sum.process;
    TopProcess row;
    row.pid = process.pid;
    row.comm = process.comm;
    row.container = process.container;
    row.runtime = process.runtime;
    row.hooked = process.hooked;
    const auto cpu_ns = static_cast<double>(process.total_cpu_ns());
    row.cpus = cpu_ns / ns;
    for (size_t i = 0; i < row.shares.size(); ++i) {
      row.shares[i] = cpu_ns > 0 ? static_cast<double>(process.cpu_ns[i]) / cpu_ns : 0;
    }
    row.pauses_per_second = static_cast<double>(process.pauses) / ns * 1e9;
    row.paused = static_cast<double>(process.pause_ns) / ns;
    row.longest_pause_ns = sum.longest_pause_ns;
    row.compilations_per_second = static_cast<double>(process.compilations) / ns * 1e9;
    row.compiling = static_cast<double>(process.compile_ns) / ns;
    rows.push_back(std::move(row));
  }
  const auto key = [sort](const TopProcess& row) {
    return sort == TopSort::kPaused ? row.paused : sort == TopSort::kCompiling ? row.compiling : row.cpus;
  };
  std::sort(rows.begin(), rows.end(), [&](const TopProcess& a, const TopProcess& b) {
    if (sort == TopSort::kPid) return a.pid < b.pid;
    if (sort == TopSort::kName) return std::tie(a.comm, a.pid) < std::tie(b.comm, b.pid);
    return std::make_tuple(-key(a), -a.cpus, a.pid) < std::make_tuple(-key(b), -b.cpus, b.pid);
  });
  return rows;
}

TopMethods TopTable::Methods(std::optional<uint32_t> pid, NamelessLeaves nameless) const {
  MethodWeights weights(nameless);
  for (const auto& window : windows_) {
    const ProfileModel& model = window->cpu;
    if (!pid) {
      weights.Add(model);
      continue;
    }
    std::vector<uint8_t> wanted(model.samples.size());
    for (size_t row = 0; row < wanted.size(); ++row) {
      wanted[row] = model.threads[model.samples.thread[row]].pid == *pid ? 1 : 0;
    }
    if (!wanted.empty()) weights.Add(model, wanted);
  }
  return {weights.Sorted(), weights.total()};
}

}  // namespace clrsampler
