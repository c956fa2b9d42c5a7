#include "pipeline/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "capture/cpu_list.h"
#include "capture/drop_counters.h"
#include "capture/feature_report.h"
#include "capture/kernel_name_lookup.h"
#include "capture/sampler.h"
#include "capture/side_band.h"
#include "clr/memory/memory_methods.h"
#include "clr/runtime_discovery.h"
#include "formats/proc/status_text.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "os/own_usage.h"
#include "pipeline/account_counts.h"
#include "pipeline/dotnet_hint.h"
#include "pipeline/expected_samples.h"
#include "pipeline/file_pages.h"
#include "pipeline/runtime_watch.h"
#include "pipeline/sampling_rate.h"
#include "pipeline/source_order.h"
#include "pipeline/stack_namer.h"
#include "pipeline/stack_unwinder.h"
#include "pipeline/stop_events.h"
#include "pipeline/target_command.h"
#include "pipeline/thread_start.h"
#include "pipeline/window_series.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "profile/hold_queue.h"
#include "status/notices.h"
#include "status/status.h"
#include "symbols/kernel_symbols.h"
#include "symbols/resolver.h"
#include "unwind/frame_chain.h"

namespace clrsampler {
namespace {

constexpr char kProcRoot[] = "/proc";

// One turn of the loop at rest. Short enough that a perf-map line is dated within 50 ms, long enough to cost nothing:
// 20 turns a second of a dozen system calls.
constexpr int kTurnMs = 50;

// The same while perf-map lines replace each other faster than that. Of a program whose methods live for 20 ms, 19 % of
// the managed frames had no name with turns of 50 ms, 3.5 % with turns of 5 ms, at 3 ms more of CPU time a second.
constexpr int kShortTurnMs = 5;

// New samples are looked at this often while others are given names: what they ran may be gone in a moment. The names
// of the first second of a program, held until its runtime could be read, took 50 ms at once.
constexpr uint64_t kMaxUnseenNs = 3'000'000;

// An exited process is kept this long: threads that die last may be sampled after the leader's exit event.
constexpr uint64_t kRetireNs = 2'000'000'000;

// Events of runtimes are taken only while fewer items wait: 20 MB of events, some 200 MB with stacks of 4 KiB.
constexpr size_t kMaxQueued = 50'000;

// The longest that a sample waits for its names; by then they are lost or will never come.
constexpr uint64_t kMaxHoldNs = 2'000'000'000;

constexpr uint64_t kJitStacksRingBytes = 16 << 20;

// Of the ring in a continuous run, at least: a second of a program that starts, whose compilations come with stacks.
// Twice that is in the agent's memory, as the ring is mapped twice.
constexpr uint64_t kWindowsRingBytes = 4 << 20;

// What one process's hooks may report in a continuous run, on average: 650 pauses a second, or 2,000 compilations. At
// once: what a large program compiles while it starts, 12,000 methods, 2,000 of them with stacks; less than kMaxQueued.
constexpr uint32_t kHookHitsASecond = 4000;
constexpr uint32_t kHookHitsAtOnce = 40'000;

// A recorder that takes too much memory is replaced, but not again and again.
constexpr uint64_t kFreshStartNs = 600'000'000'000;

constexpr uint64_t kSweepNs = 60'000'000'000;  // how often it is asked whether processes are still there

constexpr uint64_t kSlowTurnNs = 250'000'000;  // how often CPU clocks are read and new CPUs looked for

using SampleBytes = std::vector<uint64_t>;  // a record, kept aligned
using Item = std::variant<SampleBytes, SideBandEvent, RuntimeItem>;

Mapping MappingOf(const SideBandEvent& event) {
  Mapping mapping;
  mapping.start = event.start;
  mapping.end = event.start + event.length;
  mapping.file_offset = event.page_offset;
  mapping.device_major = event.device_major;
  mapping.device_minor = event.device_minor;
  mapping.inode = event.inode;
  mapping.path = event.path;
  mapping.kind = ClassifyMapping(mapping.path, mapping.inode);
  return mapping;
}

class RecorderImpl : public Recorder {
 public:
  RecorderImpl(const RecordOptions& options, std::unique_ptr<SymbolServer> symbol_server)
      : options_(options),
        symbol_server_(std::move(symbol_server)),
        table_(kProcRoot, clock_),
        kernel_(
            frames_, options.names, [this](auto addresses) { return LookUpInKernel(addresses); },
            KernelSymbols(options.names)),
        runtimes_(images_, RuntimeDiscovery::CacheBy::kFile),
        sources_(
            MakeSources({frames_, images_, runtimes_, notices_, clock_, options.names, symbol_server_.get(),
                         [this](const Process& process, const auto& code, auto heaps) {
                           TellTransientCode(process.key.tgid, code, heaps);
                         },
                         // The next best source: the runtime writes a perf map while we sample.
                         [this](const Process& process) { perf_maps_.Wanted(process, PerfMapWish::kMemoryUnreadable); },
                         [this](ProcessKey key) { return perf_maps_.IsOn(key) || perf_maps_.IsComing(key); }})),
        resolver_(sources_.borrowed(), frames_),
        unwinder_({options.replay, options.max_frames, options.keep_stacks}, sources_, images_, resolver_, clock_),
        namer_(resolver_, kernel_, frames_),
        perf_maps_(options.perf_maps, clock_, notices_),
        expected_(kProcRoot, options.frequency_hz),
        run_(options.view, options.pids.empty() && options.command.empty(), options.keep_samples),
        windows_(options.windows ? options.windows->lengths : WindowLengths{}, frames_, notices_, clock_),
        sink_(options.windows ? static_cast<SampleSink&>(windows_.builder()) : run_),
        rate_(options.frequency_hz, options.windows ? options.windows->limits : RateLimits{}) {}

  absl::Status Init();
  absl::Status Run(const std::function<void(const RecordProgress&)>& progress) override;

  absl::Status WatchesPausesOf(uint32_t pid) override {
    const Process* process = table_.Find(pid);
    if (!hooks_ || process == nullptr) return absl::NotFoundError(absl::StrCat("process ", pid, " is not watched"));
    return hooks_->SeesSuspensions(process->key);
  }
  absl::Status WatchesCompilationsOf(uint32_t pid) override {
    const Process* process = table_.Find(pid);
    if (!hooks_ || process == nullptr) return absl::NotFoundError(absl::StrCat("process ", pid, " is not watched"));
    return hooks_->SeesCompilations(process->key);
  }

  const FrameTable& frames() const override { return frames_; }
  const StackTable& stacks() const override { return run_.stacks(); }
  const Account& account() const override { return account_; }
  const SampleLog& samples() const override { return run_.samples(); }
  MonotonicTime began() const override { return started_; }
  const StackRecording& kept_stacks() const override { return unwinder_.kept(); }
  bool wants_fresh_start() const override { return rate_.helpless() && clock_.Now().ns - started_.ns >= kFreshStartNs; }
  int stop_signal() const override { return stop_signal_; }

 private:
  bool whole_host() const { return options_.pids.empty() && options_.command.empty(); }
  absl::StatusOr<std::vector<std::string>> LookUpInKernel(std::span<const uint64_t> addresses);
  absl::Status FindTargets();
  bool Finished(MonotonicTime now);
  void Turn(MonotonicTime now);
  void SlowTurn(MonotonicTime now);
  void Drain();
  void TakeRecord(std::span<const std::byte> record);
  void TakeStack(std::span<const std::byte> record);
  template <typename Event>
  void TakeRuntimeEvent(std::span<const std::byte> record);
  void HandleRuntimeItem(const RuntimeItem& item);
  void TakeEvent(SideBandEvent event);
  void TellTransientCode(uint32_t tgid, const wire_transient_code& code, std::span<const wire_transient_heap> heaps);
  void Follow(uint32_t pid);
  void HandleEvent(const SideBandEvent& event);
  void HandleUntil(MonotonicTime horizon);
  // False: its names are still being read; it shall come again.
  bool HandleSample(MonotonicTime time, const SampleBytes& bytes);
  void Retire(MonotonicTime before);
  void NoteRuntime(const Process& process);
  void Lose(absl::string_view reason, uint64_t count = 1) { account_.lost[std::string(reason)] += count; }
  bool Selected(const Process& process) const {
    return !in_windows() || !options_.windows->selects || options_.windows->selects(process);
  }
  // Of one that may have left the table: then it is part of a window that has seen it.
  bool SelectedKey(ProcessKey key) {
    if (!in_windows() || !options_.windows->selects) return true;
    const Process* process = table_.Find(key.tgid);
    return process != nullptr && process->key == key ? Selected(*process) : windows_.builder().Has(key);
  }
  bool in_windows() const { return options_.windows.has_value(); }
  bool wants_roles() const { return options_.roles && options_.view == RecordView::kCpu && !options_.only_blame; }
  bool wants_pauses() const {
    return options_.on_pause != nullptr || options_.view == RecordView::kPause ||
           options_.view == RecordView::kSuspendDelay || options_.mark_suspension || wants_roles();
  }
  bool wants_jit() const {
    return options_.on_compilation != nullptr || options_.view == RecordView::kJit || wants_roles();
  }
  bool wants_jit_stacks() const {
    return options_.on_compilation != nullptr || options_.view == RecordView::kJit || (in_windows() && wants_jit());
  }
  void StartHooks();
  void Write(NamedSample named);
  std::span<const FrameId> Marked(const NamedSample& named, const std::optional<RuntimeWatch::Role>& role);
  void TakePause(const ObservedPause& observed);
  void TakeCompilation(const NamedCompilation& compilation);
  void CutWindows(MonotonicTime until);
  void CutWindow(MonotonicTime end);
  void ControlRate(MonotonicTime now);
  void CountAccount();
  void Forget(ProcessKey key);
  void GiveLateNames();
  void CloseAccount();

  const RecordOptions options_;
  const std::unique_ptr<SymbolServer> symbol_server_;        // nullptr: no server is named
  const ResourceLimits limits_ = ResourceLimits::Current();  // before capture raises some of them for itself
  SystemClock clock_;
  Notices notices_;
  FrameTable frames_;
  ImageFiles images_;
  ProcessTable table_;
  std::unique_ptr<KernelNameLookup> kernel_lookup_;  // loaded at the first kernel address
  KernelNamer kernel_;
  RuntimeDiscovery runtimes_;
  Sources sources_;
  Resolver resolver_;
  StackUnwinder unwinder_;
  StackNamer namer_;
  PerfMapLeases perf_maps_;
  ExpectedSamples expected_;
  RunProfile run_;
  WindowSeries windows_;
  SampleSink& sink_;  // one of these two
  SamplingRate rate_;
  FilePages file_pages_;  // in windows
  Account account_;       // of the run, or of the window at hand
  AccountCounts counts_;

  std::unique_ptr<Sampler> sampler_;
  SideBand side_band_;
  std::vector<FrameId> marked_;
  std::optional<RuntimeWatch> hooks_;  // after sampler_: its probes run the sampler's programs
  std::optional<StopEvents> stop_;
  std::optional<TargetCommand> command_;

  absl::flat_hash_set<uint32_t> followed_;  // the targets, and children of the command; unused for the whole host
  HoldQueue<Item> queue_;
  MonotonicTime started_;
  MonotonicTime turn_started_;
  MonotonicTime horizon_;  // all events up to here have been taken
  MonotonicTime last_slow_turn_;
  MonotonicTime last_sweep_;
  MonotonicTime last_rate_control_;
  double ring_fill_ = 0;        // the fullest since then
  size_t waiting_samples_ = 0;  // in the queue
  int stop_signal_ = 0;
  uint64_t handled_ = 0, named_ = 0;  // RecordProgress
  bool last_chance_ = false;          // the run is over: nothing waits any longer
};

absl::Status RecorderImpl::Init() {
  for (const uint32_t pid : options_.pids) {
    if (access(absl::StrCat(kProcRoot, "/", pid).c_str(), F_OK) != 0) {
      return WithHint(absl::NotFoundError(absl::StrCat("no process ", pid)),
                      "ps -e lists processes; inside a container the ids are others than on the host");
    }
    const absl::StatusOr<std::string> text = ReadWholeFile(absl::StrCat(kProcRoot, "/", pid, "/status"), 1 << 20);
    const absl::StatusOr<StatusText> status = text.ok() ? ParseStatus(*text) : text.status();
    if (status.ok() && status->tgid != pid) {
      return WithHint(absl::InvalidArgumentError(absl::StrCat(pid, " is a thread of process ", status->tgid)),
                      absl::StrCat("--pid ", status->tgid));
    }
  }
  RETURN_IF_ERROR(perf_maps_.Start());
  const FeatureReport features = ProbeFeatures(options_.verbose ? ProbeDepth::kEverything : ProbeDepth::kSampler);
  if (options_.verbose) {
    for (const Feature& feature : features.features) {
      options_.verbose(absl::StrCat("feature ", feature.name, ": ", feature.present ? "yes" : "no",
                                    feature.detail.empty() ? "" : " (", feature.detail,
                                    feature.detail.empty() ? "" : ")"));
    }
  }
  SamplerOptions sampler_options;
  sampler_options.frequency_hz = static_cast<int>(options_.frequency_hz);
  sampler_options.ring_bytes = options_.ring_bytes;
  sampler_options.gap_words = options_.gap_words;
  sampler_options.max_frames = options_.max_frames;
  sampler_options.word_limit = options_.stack_words;
  sampler_options.filter_processes = !whole_host();
  sampler_options.follow_children = !options_.command.empty();
  sampler_options.suspension_hooks = wants_pauses();
  sampler_options.jit_hooks = wants_jit();
  sampler_options.jit_stacks = wants_jit_stacks();
  if (in_windows()) {
    sampler_options.hook_hits_a_second = kHookHitsASecond;
    sampler_options.hook_hits_at_once = kHookHitsAtOnce;
  }
  // A program that starts compiles a thousand methods a second, each with a stack of some KiB.
  if (wants_jit_stacks() && options_.ring_bytes == 0) {
    sampler_options.ring_bytes = in_windows() ? kWindowsRingBytes : kJitStacksRingBytes;
    const absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
    const int online = cpus.ok() ? static_cast<int>(cpus->size()) : 1;
    sampler_options.ring_bytes =
        std::max(sampler_options.ring_bytes, DefaultRingBytes(online, sampler_options.frequency_hz));
  }
  absl::StatusOr<std::unique_ptr<Sampler>> sampler = Sampler::Create(sampler_options, features);
  if (!sampler.ok()) return sampler.status();
  sampler_ = *std::move(sampler);
  if (wants_pauses() || wants_jit()) StartHooks();

  RETURN_IF_ERROR(side_band_.Start());

  absl::StatusOr<StopEvents> stop = StopEvents::Create();
  if (!stop.ok()) return stop.status();
  stop_.emplace(*std::move(stop));
  RETURN_IF_ERROR(stop_->WatchReadable(sampler_->ring_fd()));
  RETURN_IF_ERROR(stop_->WatchReadable(side_band_.poll_fd()));
  return FindTargets();
}

void RecorderImpl::StartHooks() {
  RuntimeWatchOptions options;
  options.hooks.suspensions = wants_pauses();
  options.hooks.compilations = wants_jit();
  options.hooks.attach = [this](wire_hook hook, bool member, const std::string& path, uint64_t offset) {
    return sampler_->AttachHook(hook, member, path, offset);
  };
  options.roles = wants_roles();
  options.jit_stacks = wants_jit_stacks();
  options.names = options_.names;
  options.on_pause = [this](const ObservedPause& observed) { TakePause(observed); };
  options.on_collection = [this](ProcessKey key, const GcDone& done) {
    if (SelectedKey(key)) sink_.AddCollection(key, done);
  };
  if (options_.on_compilation || in_windows()) {
    options.jit.on_compilation = [this](const NamedCompilation& compilation) { TakeCompilation(compilation); };
  }
  options.jit.on_stack = [this](const Process& process, std::span<const FrameId> frames, uint64_t own_ns) {
    if (Selected(process)) sink_.AddCompiledStack(process, frames, own_ns);
  };
  hooks_.emplace(std::move(options), runtimes_, images_, notices_, resolver_, frames_, clock_);
}

absl::StatusOr<std::vector<std::string>> RecorderImpl::LookUpInKernel(std::span<const uint64_t> addresses) {
  if (kernel_lookup_ == nullptr) {
    absl::StatusOr<std::unique_ptr<KernelNameLookup>> lookup = KernelNameLookup::Create();
    if (!lookup.ok()) return lookup.status();
    kernel_lookup_ = *std::move(lookup);
  }
  return kernel_lookup_->LookUp(addresses);
}

absl::Status RecorderImpl::FindTargets() {
  for (const uint32_t pid : options_.pids) {
    if (const absl::Status watched = stop_->WatchProcess(pid); !watched.ok()) {
      return WithHint(absl::NotFoundError(absl::StrCat("process ", pid, " exited before sampling began")),
                      "start it by way of clrsampler: clrsampler -- COMMAND");
    }
    RETURN_IF_ERROR(sampler_->Track(static_cast<pid_t>(pid)));
    followed_.insert(pid);
    // Sources that must prepare themselves do it before the first sample.
    const MonotonicTime now = clock_.Now();
    resolver_.CatchUp(table_.FindOrScan(pid, 0), now, now);
    if (hooks_) hooks_->Look(*table_.Find(pid));
  }
  if (whole_host()) {
    // As above: the sampler shall know of their short-lived code from the first sample on.
    const MonotonicTime now = clock_.Now();
    for (const uint32_t pid : ProcessesLikeDotNet(kProcRoot)) {
      resolver_.CatchUp(table_.FindOrScan(pid, 0), now, now);
      if (hooks_) hooks_->Look(*table_.Find(pid));
    }
  }
  if (options_.command.empty()) return absl::OkStatus();
  absl::StatusOr<TargetCommand> command = TargetCommand::Start(options_.command, limits_);
  if (!command.ok()) return command.status();
  command_.emplace(*std::move(command));
  RETURN_IF_ERROR(sampler_->Track(static_cast<pid_t>(command_->pid())));
  followed_.insert(command_->pid());
  table_.FindOrScan(command_->pid(), 0);
  return stop_->WatchProcess(command_->pid());
}

absl::Status RecorderImpl::Run(const std::function<void(const RecordProgress&)>& progress) {
  RETURN_IF_ERROR(sampler_->Start());
  started_ = turn_started_ = last_slow_turn_ = last_sweep_ = last_rate_control_ = clock_.Now();
  if (in_windows()) {
    windows_.Begin();
    counts_.Begin();  // an earlier recorder of this process has counted what was used until now
  }
  if (whole_host()) expected_.StartHost();
  for (const uint32_t pid : options_.pids) expected_.StartProcess(pid, false);
  if (command_.has_value()) {
    expected_.StartProcess(command_->pid(), true);
    RETURN_IF_ERROR(command_->Release());
  }

  MonotonicTime next_progress = started_;
  MonotonicTime now = started_;
  while (!Finished(now)) {
    int wait_ms = resolver_.WantsShortTurns(now) ? kShortTurnMs : kTurnMs;
    if (options_.duration_ns.has_value()) {
      const uint64_t left_ns = started_.ns + *options_.duration_ns - now.ns;
      wait_ms = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(wait_ms), left_ns / 1'000'000 + 1));
    }
    stop_->Wait(wait_ms);
    now = clock_.Now();
    Turn(now);
    if (now >= next_progress && progress) {
      uint64_t lost = 0;
      for (const auto& [reason, count] : account_.lost) lost += count;
      progress({static_cast<double>(now.ns - started_.ns) / 1e9, account_.samples_taken, handled_, named_, lost});
      next_progress.ns = now.ns + 1'000'000'000;
    }
  }
  // A command that still runs is ours: end it as Ctrl-C on a terminal would have, unless a terminal did. Many programs
  // take a second signal for "at once".
  if (command_.has_value() && !command_->PollExited() && stop_->signalled() && !stop_->signal_of_terminal()) {
    command_->Signal(stop_->signal_number());
  }

  stop_signal_ = stop_->signal_number();
  expected_.Update();
  sampler_->StopSampling();
  account_.duration_seconds = static_cast<double>(clock_.Now().ns - started_.ns) / 1e9;
  if (command_.has_value() && command_->PollExited()) expected_.SetChildCpuNs(command_->cpu_ns());
  Drain();
  last_chance_ = true;
  turn_started_ = clock_.Now();
  HandleUntil(MonotonicTime::Max());
  Retire(MonotonicTime::Max());
  if (hooks_) hooks_->Finish();
  perf_maps_.Finish();
  if (in_windows()) {
    CutWindow(std::max(clock_.Now(), windows_.begin()));
  } else {
    CloseAccount();
  }
  stop_.reset();  // a second Ctrl-C may now end a writer that waits for a reader which does not read
  return absl::OkStatus();
}

bool RecorderImpl::Finished(MonotonicTime now) {
  if (stop_->signalled() || stop_->targets_gone() || wants_fresh_start()) return true;
  return options_.duration_ns.has_value() && now.ns - started_.ns >= *options_.duration_ns;
}

void RecorderImpl::Turn(MonotonicTime now) {
  // All that happened before the last turn has reached its ring by now. Under load turns follow each other at once, and
  // an event can be read only a moment after its time.
  const MonotonicTime horizon{std::min(turn_started_.ns, now.ns - SideBand::kSettleNs)};
  turn_started_ = now;
  if (symbol_server_ != nullptr) symbol_server_->Poll(notices_);
  Drain();
  perf_maps_.Poll(table_, now);
  if (hooks_) {
    table_.ForEach([this](Process& process) { hooks_->Look(process); });
    hooks_->DropBefore(queue_.OldestOr(horizon_));
  }
  HandleUntil(horizon);
  // Nothing of before the horizon waits any more, but for what waits for its names.
  if (in_windows()) CutWindows(queue_.OldestOr(horizon));
  if (now.ns - last_slow_turn_.ns >= kSlowTurnNs) SlowTurn(now);
}

void RecorderImpl::HandleUntil(MonotonicTime horizon) {
  horizon_ = horizon;
  bool paused = false;
  MonotonicTime drained = clock_.Now();
  uint64_t handling_ns = kMaxUnseenNs;
  do {
    if (paused && !last_chance_) {
      const MonotonicTime begin = clock_.Now();
      Drain();
      drained = clock_.Now();
      // Where more comes than can be looked at, half of the time is for what has waited: the rest is lost, and counted.
      handling_ns = std::max(kMaxUnseenNs, drained.ns - begin.ns);
    }
    paused = false;
    bool first = true;
    queue_.PopUntil(horizon, [&](MonotonicTime time, const Item& item) {
      // Always one, so that this ends.
      if (paused) return false;
      if (std::exchange(first, false)) drained = clock_.Now();  // the queue has been put in order meanwhile
      paused = clock_.Now().ns - drained.ns >= handling_ns;
      if (in_windows()) CutWindows(time);
      if (const auto* sample = std::get_if<SampleBytes>(&item)) {
        if (HandleSample(time, *sample)) {
          --waiting_samples_;
          return true;
        }
        paused = false;  // it waits for something that is not read here
        return false;
      }
      if (const auto* event = std::get_if<RuntimeItem>(&item)) {
        HandleRuntimeItem(*event);
        return true;
      }
      HandleEvent(std::get<SideBandEvent>(item));
      return true;
    });
  } while (paused);
}

void RecorderImpl::SlowTurn(MonotonicTime now) {
  last_slow_turn_ = now;
  expected_.Update();
  for (const absl::Status& status : {sampler_->AttachNewCpus(), side_band_.AttachNewCpus()}) {
    if (!status.ok())
      notices_.Add("new_cpu", "", absl::StrCat("a CPU came online and can't be sampled: ", status.message()));
  }
  if (now.ns - last_sweep_.ns >= kSweepNs) {
    last_sweep_ = now;
    table_.Sweep();
  }
  if (now.ns > kRetireNs) Retire({now.ns - kRetireNs});
  if (in_windows()) {
    file_pages_.Look(now);
    ControlRate(now);
  }
}

// Side-band events first: a process that a sample names is announced before the sample is looked at.
void RecorderImpl::Drain() {
  side_band_.Drain(MonotonicTime::Max(), [this](const SideBandEvent& event) { TakeEvent(event); });
  const double waiting = static_cast<double>(sampler_->waiting_bytes());
  ring_fill_ = std::max(ring_fill_, waiting / static_cast<double>(sampler_->ring_bytes()));
  sampler_->Drain([this](std::span<const std::byte> record) { TakeRecord(record); });
}

void RecorderImpl::TakeEvent(SideBandEvent event) {
  if (event.kind == SideBandKind::kLost) {
    notices_.Add("side_band_lost", "",
                 "process events were lost; processes are read again, and their samples from before have no names",
                 "fewer short-lived processes at a time, or more CPU time for clrsampler");
    const MonotonicTime time = event.time;
    queue_.Push(time, Item(std::move(event)));
    return;
  }
  if (event.pid == 0)
    return;  // outside our pid namespace; taken together they would be one process, which they are not
  if (!whole_host()) {
    // Events come from all processes of the host; those of strangers end here.
    if (command_.has_value() && event.kind == SideBandKind::kFork && followed_.contains(event.parent_pid) &&
        followed_.insert(event.pid).second) {
      Follow(event.pid);
      expected_.StartProcess(event.pid, /*from_birth=*/true);
    }
    if (!followed_.contains(event.pid)) return;
    if (command_.has_value() && event.kind == SideBandKind::kExit && event.pid == event.tid)
      expected_.EndProcess(event.pid);
  }
  if (event.kind == SideBandKind::kComm && event.exec) table_.AnnounceExec(event.pid, event.time);
  if (event.kind == SideBandKind::kMmap) table_.AnnounceMapping(event.pid, MappingOf(event), event.time);
  const MonotonicTime time = event.time;
  queue_.Push(time, Item(std::move(event)));
}

void RecorderImpl::TakeRecord(std::span<const std::byte> record) {
  wire_header header;
  if (record.size() < sizeof header) return Lose("damaged_record");
  std::memcpy(&header, record.data(), sizeof header);
  if (header.kind == WIRE_RUNTIME_EVENT) return TakeRuntimeEvent<wire_runtime_event>(record);
  if (header.kind == WIRE_COMPILED) return TakeRuntimeEvent<wire_compiled>(record);
  if (header.kind == WIRE_COMPILED_STACK) return queue_.size() < kMaxQueued ? TakeStack(record) : Lose("hook_backlog");
  if (header.kind != WIRE_CPU_SAMPLE) return;
  ++account_.samples_taken;
  account_.sample_bytes += record.size();
  wire_cpu_sample sample;
  if (record.size() < sizeof sample) return Lose("damaged_record");
  std::memcpy(&sample, record.data(), sizeof sample);
  if ((options_.only_blame && !hooks_->MayBeBlamed(sample.tgid)) || options_.view == RecordView::kJit) {
    ++account_.samples_set_aside;
    return;
  }
  TakeStack(record);
}

void RecorderImpl::TakeStack(std::span<const std::byte> record) {
  wire_cpu_sample sample;
  if (record.size() < sizeof sample) return Lose("damaged_record");
  std::memcpy(&sample, record.data(), sizeof sample);
  SampleBytes bytes((record.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  std::memcpy(bytes.data(), record.data(), record.size());
  if (sample.flags >> WIRE_SAMPLE_RETURNS_SHIFT != 0) {
    RestoreReturnAddresses(bytes, IsInTrampoline(table_.FindOrScan(sample.tgid, sample.process_start_ns), sample.ip));
    std::memcpy(&sample, bytes.data(), sizeof sample);
  }
  record = std::as_bytes(std::span(bytes)).first(std::min<size_t>(record.size(), sample.header.size));
  // A process that we have not heard of is read now: in a moment it may be gone.
  if ((sample.flags & (WIRE_SAMPLE_KTHREAD | WIRE_SAMPLE_OUTSIDE)) == 0) {
    Process& process = table_.FindOrScan(sample.tgid, sample.process_start_ns);
    if (const absl::StatusOr<RawStack> raw = RawStack::Parse(record); raw.ok()) unwinder_.Observe(process, *raw);
    if (!whole_host() && followed_.insert(sample.tgid).second) Follow(sample.tgid);
  }
  ++waiting_samples_;
  queue_.Push({sample.header.time_ns}, Item(std::move(bytes)));
}

template <typename Event>
void RecorderImpl::TakeRuntimeEvent(std::span<const std::byte> record) {
  Event event;
  if (record.size() < sizeof event) return Lose("damaged_record");
  std::memcpy(&event, record.data(), sizeof event);
  if (!hooks_) return;
  // How often a runtime is hit is the target's choice, and each hit may cost a look at its memory.
  if (queue_.size() >= kMaxQueued) return Lose("hook_backlog");
  Process& process = table_.FindOrScan(event.tgid, event.process_start_ns);
  if constexpr (std::is_same_v<Event, wire_compiled>) sources_.memory->NoteCompiled(process, event.entry);
  queue_.Push({event.header.time_ns}, Item(hooks_->Arrived(process, event)));
}

void RecorderImpl::HandleRuntimeItem(const RuntimeItem& item) {
  const auto* compiled = std::get_if<CompiledEvent>(&item);
  const auto* event = std::get_if<wire_runtime_event>(&item);
  const uint32_t tgid = compiled != nullptr ? compiled->event.tgid : event->tgid;
  const uint64_t start = compiled != nullptr ? compiled->event.process_start_ns : event->process_start_ns;
  Process& process = table_.FindOrScan(tgid, start);
  if (compiled != nullptr) resolver_.CatchUp(process, compiled->arrived, turn_started_);
  hooks_->Handle(process, item);
}

void RecorderImpl::TellTransientCode(uint32_t tgid, const wire_transient_code& code,
                                     std::span<const wire_transient_heap> heaps) {
  if (const absl::Status told = sampler_->SetTransientCode(static_cast<pid_t>(tgid), code, heaps); !told.ok()) {
    notices_.Add("no_witnesses", "", absl::StrCat("not all short-lived methods have names: ", told.message()));
  }
}

void RecorderImpl::Follow(uint32_t pid) {
  if (const absl::Status tracked = sampler_->Track(static_cast<pid_t>(pid)); !tracked.ok()) {
    notices_.Add("not_followed", "",
                 absl::StrCat("not all children of the command could be followed: ", tracked.message()));
  }
}

void RecorderImpl::HandleEvent(const SideBandEvent& event) {
  const MonotonicTime time = event.time;
  switch (event.kind) {
    case SideBandKind::kFork:
      table_.OnFork(event.pid, event.parent_pid, time);
      break;
    case SideBandKind::kComm:
      if (event.exec) {
        if (table_.OnExec(event.pid, event.comm, time)) Forget(table_.Find(event.pid)->key);
      } else if (event.pid == event.tid) {
        table_.OnComm(event.pid, event.comm, time);
      }
      break;
    case SideBandKind::kMmap:
      table_.OnMapping(event.pid, MappingOf(event), time);
      break;
    case SideBandKind::kExit:
      if (event.pid == event.tid) table_.OnExit(event.pid, time);
      break;
    case SideBandKind::kLost:
      table_.OnEventsLost(clock_.Now());
      break;
  }
}

bool RecorderImpl::HandleSample(MonotonicTime time, const SampleBytes& bytes) {
  const std::span<const std::byte> record = std::as_bytes(std::span<const uint64_t>(bytes));
  const absl::StatusOr<RawStack> raw = RawStack::Parse(record);
  if (!raw.ok()) {
    Lose("damaged_record");
    return true;
  }
  const wire_cpu_sample& sample = raw->sample();
  // Tasks that our pid namespace does not show share the number 0 and a process without mappings.
  const bool outside = (sample.flags & WIRE_SAMPLE_OUTSIDE) != 0;
  Process& process = table_.FindOrScan(sample.tgid, outside ? 0 : sample.process_start_ns);
  // Neither they nor kernel threads have a /proc entry with a name.
  if (outside || process.comm.empty()) process.comm.assign(sample.comm, strnlen(sample.comm, sizeof sample.comm));
  if (!Selected(process)) {
    ++account_.samples_set_aside;
    return true;
  }
  if (!last_chance_ && turn_started_.ns - time.ns < kMaxHoldNs && perf_maps_.IsComing(process.key)) return false;
  const bool has_stack = (sample.flags & WIRE_SAMPLE_KTHREAD) == 0 && sample.ip != 0;
  const bool may_wait = !last_chance_ && turn_started_.ns - time.ns < kMaxHoldNs;
  // Events that tell what was replaced between the sample and the scan may still be on their way.
  if (may_wait && has_stack && time < process.scanned && horizon_ < process.scanned) return false;
  if (has_stack && !resolver_.CatchUp(process, time, turn_started_)) {
    if (may_wait) return false;
    notices_.Add("names_late", absl::StrCat(process.key.tgid),
                 absl::StrCat("the maps of process ", process.key.tgid,
                              " could not be read in time; its newest methods may lack names"));
  }
  const UserStack& user = unwinder_.Walk(process, *raw);
  const NamedStack& named = namer_.Name(process, *raw, user, time);
  if (sample.header.kind == WIRE_COMPILED_STACK) {
    hooks_->CompiledStack(process, sample, named.frames);
    return true;
  }
  StackEnd end = user.end;
  if (end == StackEnd::kBroken && !named.frames.empty() && StartsThread(frames_.at(named.frames.front()))) {
    end = StackEnd::kComplete;  // libc's start code keeps data in the frame pointer; there is nothing above it
  }
  switch (end) {
    case StackEnd::kComplete:
      ++account_.stacks_complete;
      break;
    case StackEnd::kTruncated:
      ++account_.stacks_truncated;
      break;
    case StackEnd::kBroken:
      ++account_.stacks_broken;
      break;
  }
  ++account_.stack_stops[std::string(StopName(static_cast<wire_stop>(sample.stop)))];
  ++handled_;
  named_ += (named.sources & 1u << static_cast<unsigned>(NameSource::kNone)) == 0 ? 1 : 0;
  Write({process, sample, named.frames, std::nullopt, named.sources, PausePhase::kNone, end, rate_.PeriodAt(time)});
  return true;
}

void RecorderImpl::Write(NamedSample named) {
  std::optional<RuntimeWatch::Role> role;
  const std::span<const FrameId> plain = named.frames;
  if (hooks_) {
    named.phase = hooks_->PhaseOf(named.process.key);
    role = hooks_->RoleOf(named.process, named.sample, plain);
    if (role) named.role = role->frame;
    named.frames = Marked(named, role);
    hooks_->Sampled(named.process, named.sample, plain, named.frames);
  }
  ++(sink_.Add(named) ? account_.samples_written : account_.samples_set_aside);
}

std::span<const FrameId> RecorderImpl::Marked(const NamedSample& named, const std::optional<RuntimeWatch::Role>& role) {
  const PausePhase phase = options_.mark_suspension ? named.phase : PausePhase::kNone;
  if (phase == PausePhase::kNone && !role) return named.frames;
  marked_.assign(named.frames.begin(), named.frames.end());
  if (role) marked_.insert(marked_.begin() + static_cast<std::ptrdiff_t>(role->at), role->frame);
  if (phase != PausePhase::kNone) {
    const char* mark = phase == PausePhase::kStopped ? "[the world is stopped]" : "[threads are being stopped]";
    marked_.insert(marked_.begin(), frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, mark, "", ""}));
  }
  return marked_;
}

void RecorderImpl::TakePause(const ObservedPause& observed) {
  if (!SelectedKey(observed.process)) return;
  const uint64_t written = sink_.AddPause(observed);
  account_.samples_written += written;
  account_.samples_set_aside -= written;
  if (options_.on_pause) options_.on_pause(observed);
}

void RecorderImpl::TakeCompilation(const NamedCompilation& compilation) {
  const Process* process = table_.Find(compilation.tgid);
  const ProcessKey key = process != nullptr ? process->key : ProcessKey{compilation.tgid, 0};
  if (!SelectedKey(key)) return;
  sink_.AddCompilation(key, compilation);
  if (options_.on_compilation) options_.on_compilation(compilation);
}

void RecorderImpl::ControlRate(MonotonicTime now) {
  if (now.ns - last_rate_control_.ns < 1'000'000'000) return;
  last_rate_control_ = now;
  RateInputs inputs;
  inputs.now = now;
  inputs.ring_fill = std::exchange(ring_fill_, 0);
  const wire_counters counters = sampler_->counters();
  // Events of hooks that are lost, or wait, come no less often at a lower rate.
  inputs.lost = counters.drops[WIRE_DROP_RING_FULL];
  inputs.queued = waiting_samples_;
  inputs.self_cpu_ns = OwnThreadCpuNs();
  inputs.memory_bytes = ReadOwnMemory().own_bytes;
  const std::optional<uint32_t> hz = rate_.Wanted(inputs);
  if (!hz) return;
  notices_.Add(*hz < rate_.hz() ? "rate_lowered" : "rate_raised", "", rate_.Reason(*hz));
  if (const absl::Status changed = sampler_->SetFrequency(static_cast<int>(*hz)); !changed.ok()) {
    notices_.Add("rate_not_changed", "", changed.message());
  }
  expected_.SetFrequency(*hz);
  rate_.Changed(clock_.Now(), *hz);
  rate_.DropBefore(queue_.OldestOr(horizon_));
}

void RecorderImpl::CutWindows(MonotonicTime until) {
  while (windows_.End() <= until) CutWindow(windows_.End());
}

void RecorderImpl::CutWindow(MonotonicTime end) {
  table_.ForEach([this](Process& process) { NoteRuntime(process); });
  CountAccount();
  options_.windows->on_window(windows_.Close(end, std::exchange(account_, {}), rate_.TakeWindow()));
}

void RecorderImpl::Retire(MonotonicTime before) {
  if (before == MonotonicTime::Max()) {
    table_.ForEach([this](Process& process) { NoteRuntime(process); });
    return;
  }
  table_.ForEach([&](Process& process) {
    if (process.exited < before) {
      NoteRuntime(process);
    }
  });
  for (const ProcessKey key : table_.Retire(before)) {
    windows_.builder().SetExited(key);
    Forget(key);
    if (table_.Find(key.tgid) == nullptr) sampler_->ForgetTransientCode(static_cast<pid_t>(key.tgid));
    // The number may be given to a stranger now.
    if (followed_.contains(key.tgid) && table_.Find(key.tgid) == nullptr) {
      followed_.erase(key.tgid);
      sampler_->Untrack(static_cast<pid_t>(key.tgid));
    }
  }
}

// What is known of its code: it has ended, or runs another program now.
void RecorderImpl::Forget(ProcessKey key) {
  resolver_.Forget(key);
  unwinder_.Forget(key);
  namer_.Forget(key);
  images_.Forget(key);
  if (hooks_) hooks_->Forget(key);
}

void RecorderImpl::NoteRuntime(const Process& process) {
  if (in_windows() ? !windows_.builder().Has(process.key) : run_.ledger().has_runtime(process.key)) return;
  const std::optional<DotNetRuntime> runtime = runtimes_.Find(process);
  const std::string version = runtime.has_value() ? runtime->version.Text() : "";
  if (in_windows()) {
    windows_.builder().Describe(process);
    windows_.builder().SetRuntime(process.key, version, hooks_ && hooks_->SeesSuspensions(process.key).ok());
  } else {
    run_.ledger().SetRuntime(process.key, version);
  }
}

// Functions that were written by their start because their symbols were still on the way.
void RecorderImpl::GiveLateNames() {
  if (symbol_server_ == nullptr) return;
  symbol_server_->Finish(notices_);
  absl::flat_hash_map<FrameId, FrameId> names;
  for (const std::unique_ptr<FrameSource>& source : sources_.in_order) source->AddLateNames(names);
  run_.ReplaceFrames(names);
  account_.symbol_server = symbol_server_->counters().ByName();
  account_.symbol_server["late_names"] = names.size();
}

void RecorderImpl::CloseAccount() {
  GiveLateNames();
  for (StackId id = 0; id < stacks().size(); ++id) {
    for (const FrameId frame : stacks().stack(id).frames) account_.CountFrame(frames_.at(frame), stacks().count(id));
  }
  if (account_.samples_taken == 0) {
    notices_.Add("no_samples", "", "nothing was sampled: the targets used too little CPU time for a single sample",
                 "sample while the program is under load, for longer, or with a higher --frequency");
  }
  if (samples().untimed() > 0) {
    notices_.Add(
        "samples_without_time", "",
        absl::StrCat(samples().untimed(), " samples are counted but have no time: the recording is longer than ",
                     SampleLog::kMaxTimed, " samples"),
        "record for a shorter time, or at a lower --frequency");
  }
  CountAccount();
  account_.processes = run_.ledger().Accounts();
}

void RecorderImpl::CountAccount() {
  counts_.AddTo(account_,
                {*sampler_, hooks_ ? &*hooks_ : nullptr, kernel_, expected_, unwinder_, *sources_.memory, notices_});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Create(const RecordOptions& options) {
  std::unique_ptr<SymbolServer> symbol_server;
  if (!options.symbols.servers.empty()) {
    absl::StatusOr<std::unique_ptr<SymbolServer>> started = SymbolServer::Start(options.symbols);
    if (!started.ok()) return started.status();
    symbol_server = *std::move(started);
  }
  auto recorder = std::make_unique<RecorderImpl>(options, std::move(symbol_server));
  RETURN_IF_ERROR(recorder->Init());
  return std::unique_ptr<Recorder>(std::move(recorder));
}

}  // namespace clrsampler
