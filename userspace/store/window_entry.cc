#include "store/window_entry.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "profile/window_owners.h"

namespace clrsampler {
namespace {

class TakingApart {
 public:
  TakingApart(const Window& window, SegmentBuilder& segment) : window_(window), segment_(segment), owners_(window) {}

  WindowEntry Run() {
    entry_.begin_unix_ns = window_.begin_unix_ns;
    entry_.end_unix_ns = std::max(window_.begin_unix_ns, window_.end_unix_ns);
    AddProcesses();
    AddRows(window_.cpu, entry_.rows[0]);
    AddRows(window_.jit, entry_.rows[1]);
    AddRows(window_.suspend_delay, entry_.rows[2]);
    AddRows(window_.allocations, entry_.rows[3]);
    AddRows(window_.waits, entry_.rows[4]);
    AddPauses();
    AddMethods();
    AddAccount();
    MergeTallies(entry_.tallies);  // a process that is there twice
    return std::move(entry_);
  }

 private:
  void AddProcesses() {
    for (const WindowProcess& process : window_.processes) {
      const SegmentProcess own = {.pid = process.pid,
                                  .started_boot_ns = process.started_boot_ns,
                                  .comm = segment_.String(process.comm),
                                  .runtime = segment_.String(process.runtime),
                                  .container = segment_.String(process.container),
                                  .container_id = segment_.String(process.container_id),
                                  .pod_uid = segment_.String(process.pod_uid),
                                  .uid = process.uid};
      processes_.push_back(segment_.Process(own));
      ProcessTally& tally = entry_.tallies.emplace_back();
      static_cast<ProcessCounts&>(tally) = process;
      tally.process = processes_.back();
    }
  }

  uint32_t ProcessOf(const ProfileModel& model, const ModelThread& thread) {
    if (const std::optional<size_t> index = owners_.Of(model, thread)) return processes_[*index];
    return segment_.Process({.pid = thread.pid,
                             .comm = segment_.String(model.text(thread.comm)),
                             .container_id = segment_.String(model.text(thread.container_id))});
  }

  void AddRows(const ProfileModel& model, std::map<uint32_t, std::vector<StackRow>>& by_process) {
    const std::vector<NodeIndex> nodes = segment_.Nodes(model);
    struct Thread {
      uint32_t number;
      std::vector<StackRow>* rows;
    };
    std::vector<Thread> threads;
    for (const ModelThread& thread : model.threads) {
      const uint32_t process = ProcessOf(model, thread);
      const StringIndex name = segment_.String(model.text(thread.name));
      threads.push_back({segment_.Thread({process, thread.tid, name}), &by_process[process]});
    }
    const SampleColumns& samples = model.samples;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Thread& thread = threads[samples.thread[i]];
      thread.rows->push_back({thread.number, nodes[samples.stack[i]], samples.state_of(i), samples.weight_of(i)});
    }
    for (auto& [process, rows] : by_process) MergeRows(rows);
  }

  void AddPauses() {
    for (const WindowPause& pause : window_.pauses) {
      if (pause.process >= processes_.size()) continue;
      EntryPause& own = entry_.pauses.emplace_back();
      own.process = processes_[pause.process];
      own.requested_unix_ns = pause.requested_unix_ns;
      own.suspend_ns = pause.suspend_ns;
      own.pause_ns = pause.pause_ns;
      own.kind = segment_.String(pause.kind);
      own.reason = segment_.String(pause.reason);
      own.gc_reason = segment_.String(pause.gc_reason);
      own.generation = pause.generation;
      own.gc_index = pause.gc_index;
      own.induced = pause.induced;
      own.tid = pause.tid;
      own.thread_name = segment_.String(pause.thread_name);
      for (const Culprit& culprit : pause.culprits) {
        own.culprits.push_back({segment_.String(culprit.method), culprit.tid, culprit.delay_ns, culprit.samples});
      }
      ++entry_.tallies[pause.process].pauses_by_kind[own.kind];
    }
    entry_.account.pauses_left_out = window_.pauses_left_out + MergePauses(entry_.pauses, Window::kMaxPauses);
  }

  void AddMethods() {
    for (const WindowMethod& method : window_.methods) {
      if (method.process >= processes_.size()) continue;
      entry_.methods.push_back({.process = processes_[method.process],
                                .method = segment_.String(method.method),
                                .tier = segment_.String(method.tier),
                                .count = method.count,
                                .total_ns = method.total_ns,
                                .longest_ns = method.longest_ns,
                                .bytes = method.bytes});
    }
    entry_.account.methods_left_out = window_.methods_left_out + MergeMethods(entry_.methods, Window::kMaxMethods);
  }

  void AddAccount() {
    const Account& from = window_.account;
    EntryAccount& to = entry_.account;
    to.covered_ns = entry_.end_unix_ns - entry_.begin_unix_ns;
    to.samples_expected = from.samples_expected;
    to.samples_taken = from.samples_taken;
    to.samples_written = from.samples_written;
    to.managed = from.managed;
    to.native = from.native;
    to.kernel = from.kernel;
    to.stacks_complete = from.stacks_complete;
    to.stacks_truncated = from.stacks_truncated;
    to.stacks_broken = from.stacks_broken;
    to.self_cpu_ns = static_cast<uint64_t>(std::llround(std::max(0.0, from.self_cpu_seconds) * 1e9));
    to.peak_rss_bytes = window_.rss_bytes;
    to.bpf_map_bytes = from.bpf_map_bytes;
    for (const auto& [reason, count] : from.lost) to.lost[segment_.String(reason)] = count;
    for (const auto& [kind, count] : from.notice_counts) to.notice_counts[segment_.String(kind)] = count;
    const size_t notices = std::min(from.notices.size(), kMaxEntryNotices);
    for (auto notice = from.notices.end() - static_cast<ptrdiff_t>(notices); notice != from.notices.end(); ++notice) {
      to.notices.push_back(segment_.String(notice->message));
    }
    // The time at which the rate changed within the window is not known. The changes are spread over it.
    const std::vector<uint32_t>& rates = window_.frequencies_hz;
    for (size_t i = 0; i < std::min(rates.size(), kMaxEntryRates); ++i) {
      to.rates.push_back({entry_.begin_unix_ns + to.covered_ns / rates.size() * i, rates[i]});
    }
    if (rates.empty() && window_.frequency_hz != 0) to.rates = {{entry_.begin_unix_ns, window_.frequency_hz}};
  }

  const Window& window_;
  SegmentBuilder& segment_;
  WindowEntry entry_;
  const WindowOwners owners_;
  std::vector<uint32_t> processes_;  // the number of each of the window's processes
};

}  // namespace

WindowEntry TakeApart(const Window& window, SegmentBuilder& segment) { return TakingApart(window, segment).Run(); }

}  // namespace clrsampler
