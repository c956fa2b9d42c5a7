#include "store/window_record.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"

namespace clrsampler {
namespace {

class TakingApart {
 public:
  TakingApart(const Window& window, ChapterBuilder& chapter) : window_(window), chapter_(chapter) {}

  WindowRecord Run() {
    record_.begin_unix_ns = window_.begin_unix_ns;
    record_.end_unix_ns = std::max(window_.begin_unix_ns, window_.end_unix_ns);
    AddProcesses();
    AddRows(window_.cpu, record_.rows[0]);
    AddRows(window_.jit, record_.rows[1]);
    AddRows(window_.suspend_delay, record_.rows[2]);
    AddRows(window_.allocations, record_.rows[3]);
    AddRows(window_.waits, record_.rows[4]);
    AddPauses();
    AddMethods();
    AddAccount();
    MergeTallies(record_.tallies);  // a process that is there twice
    return std::move(record_);
  }

 private:
  void AddProcesses() {
    for (const WindowProcess& process : window_.processes) {
      const ChapterProcess own = {.pid = process.pid,
                                  .started_boot_ns = process.started_boot_ns,
                                  .comm = chapter_.String(process.comm),
                                  .runtime = chapter_.String(process.runtime),
                                  .container = chapter_.String(process.container),
                                  .container_id = chapter_.String(process.container_id),
                                  .pod_uid = chapter_.String(process.pod_uid),
                                  .uid = process.uid};
      by_pid_[process.pid].push_back(processes_.size());
      own_.push_back(own);
      processes_.push_back(chapter_.Process(own));
      ProcessTally& tally = record_.tallies.emplace_back();
      static_cast<ProcessCounts&>(tally) = process;
      tally.process = processes_.back();
    }
  }

  // The window's process that a thread belongs to. A pid that is there twice was reused; names then tell.
  uint32_t ProcessOf(const ProfileModel& model, const ModelThread& thread) {
    const StringIndex comm = chapter_.String(model.text(thread.comm));
    const StringIndex container = chapter_.String(model.text(thread.container_id));
    const auto found = by_pid_.find(thread.pid);
    if (found == by_pid_.end()) {
      return chapter_.Process({.pid = thread.pid, .comm = comm, .container_id = container});
    }
    for (const size_t index : found->second) {
      if (own_[index].comm == comm && own_[index].container_id == container) return processes_[index];
    }
    return processes_[found->second.back()];
  }

  void AddRows(const ProfileModel& model, std::map<uint32_t, std::vector<StackRow>>& by_process) {
    const std::vector<NodeIndex> nodes = chapter_.Nodes(model);
    struct Thread {
      uint32_t number;
      std::vector<StackRow>* rows;
    };
    std::vector<Thread> threads;
    for (const ModelThread& thread : model.threads) {
      const uint32_t process = ProcessOf(model, thread);
      const StringIndex name = chapter_.String(model.text(thread.name));
      threads.push_back({chapter_.Thread({process, thread.tid, name}), &by_process[process]});
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
      RecordPause& own = record_.pauses.emplace_back();
      own.process = processes_[pause.process];
      own.requested_unix_ns = pause.requested_unix_ns;
      own.suspend_ns = pause.suspend_ns;
      own.pause_ns = pause.pause_ns;
      own.kind = chapter_.String(pause.kind);
      own.reason = chapter_.String(pause.reason);
      own.gc_reason = chapter_.String(pause.gc_reason);
      own.generation = pause.generation;
      own.gc_index = pause.gc_index;
      own.induced = pause.induced;
      own.tid = pause.tid;
      own.thread_name = chapter_.String(pause.thread_name);
      for (const Culprit& culprit : pause.culprits) {
        own.culprits.push_back({chapter_.String(culprit.method), culprit.tid, culprit.delay_ns, culprit.samples});
      }
      ++record_.tallies[pause.process].pauses_by_kind[own.kind];
    }
    record_.account.pauses_left_out = window_.pauses_left_out + MergePauses(record_.pauses, Window::kMaxPauses);
  }

  void AddMethods() {
    for (const WindowMethod& method : window_.methods) {
      if (method.process >= processes_.size()) continue;
      record_.methods.push_back({.process = processes_[method.process],
                                 .method = chapter_.String(method.method),
                                 .tier = chapter_.String(method.tier),
                                 .count = method.count,
                                 .total_ns = method.total_ns,
                                 .longest_ns = method.longest_ns,
                                 .bytes = method.bytes});
    }
    record_.account.methods_left_out = window_.methods_left_out + MergeMethods(record_.methods, Window::kMaxMethods);
  }

  void AddAccount() {
    const Account& from = window_.account;
    RecordAccount& to = record_.account;
    to.covered_ns = record_.end_unix_ns - record_.begin_unix_ns;
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
    for (const auto& [reason, count] : from.lost) to.lost[chapter_.String(reason)] = count;
    for (const auto& [kind, count] : from.notice_counts) to.notice_counts[chapter_.String(kind)] = count;
    const size_t notices = std::min(from.notices.size(), kMaxRecordNotices);
    for (auto notice = from.notices.end() - static_cast<ptrdiff_t>(notices); notice != from.notices.end(); ++notice) {
      to.notices.push_back(chapter_.String(notice->message));
    }
    // When the rate changed within the window is not known: the changes are spread over it.
    const std::vector<uint32_t>& rates = window_.frequencies_hz;
    for (size_t i = 0; i < std::min(rates.size(), kMaxRecordRates); ++i) {
      to.rates.push_back({record_.begin_unix_ns + to.covered_ns / rates.size() * i, rates[i]});
    }
    if (rates.empty() && window_.frequency_hz != 0) to.rates = {{record_.begin_unix_ns, window_.frequency_hz}};
  }

  const Window& window_;
  ChapterBuilder& chapter_;
  WindowRecord record_;
  std::vector<ChapterProcess> own_;  // of each of the window's processes
  std::vector<uint32_t> processes_;  // likewise: its number
  absl::flat_hash_map<uint32_t, std::vector<size_t>> by_pid_;
};

}  // namespace

WindowRecord TakeApart(const Window& window, ChapterBuilder& chapter) { return TakingApart(window, chapter).Run(); }

}  // namespace clrsampler
