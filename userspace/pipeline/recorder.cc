#include "pipeline/recorder.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "capture/cpu_list.h"
#include "capture/feature_report.h"
#include "capture/kernel_name_lookup.h"
#include "capture/sampler.h"
#include "capture/sampling_period.h"
#include "capture/side_band.h"
#include "capture/trap_cost.h"
#include "clr/memory/memory_methods.h"
#include "clr/runtime_discovery.h"
#include "os/clock.h"
#include "os/own_usage.h"
#include "pipeline/account_counts.h"
#include "pipeline/clock_account.h"
#include "pipeline/dotnet_hint.h"
#include "pipeline/file_pages.h"
#include "pipeline/intake.h"
#include "pipeline/runtime_watch.h"
#include "pipeline/sample_handler.h"
#include "pipeline/sampling_rate.h"
#include "pipeline/source_order.h"
#include "pipeline/stack_namer.h"
#include "pipeline/stack_unwinder.h"
#include "pipeline/stop_events.h"
#include "pipeline/targets.h"
#include "pipeline/turn_pace.h"
#include "pipeline/window_series.h"
#include "process/cpu_time.h"
#include "process/image_files.h"
#include "process/process_table.h"
#include "status/notices.h"
#include "status/status.h"
#include "symbols/kernel_symbols.h"
#include "symbols/resolver.h"

namespace clrsampler {
namespace {

constexpr char kProcRoot[] = "/proc";

// New samples are looked at this often while others are given names: what they ran may be gone in a moment. The names
// of the first second of a program, held until its runtime could be read, took 50 ms at once.
constexpr uint64_t kMaxUnseenNs = 3'000'000;

// An exited process is kept this long: threads that die last may be sampled after the leader's exit event.
constexpr uint64_t kRetireNs = 2'000'000'000;

// A recorder that takes too much memory is replaced, but not again and again.
constexpr uint64_t kFreshStartNs = 600'000'000'000;

constexpr uint64_t kSweepNs = 60'000'000'000;  // how often it is asked whether processes are still there

constexpr uint64_t kSlowTurnNs = 250'000'000;  // how often processes' CPU clocks are read and new CPUs looked for

uint64_t BusyHits(const Sampler& sampler) {
  const wire_counters counters = sampler.counters();
  return counters.hits - std::min(counters.hits, counters.idle);
}

class RecorderImpl : public Recorder {
 public:
  RecorderImpl(const RecordOptions& options, std::unique_ptr<SymbolServer> symbol_server)
      : options_(options),
        symbol_server_(std::move(symbol_server)),
        targets_(options.pids, options.command, options.frequency_hz, kProcRoot, notices_),
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
        run_(options.view, IsWholeHost(options), options.keep_samples),
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
  absl::StatusOr<std::vector<std::string>> LookUpInKernel(std::span<const uint64_t> addresses);
  void Prepare(uint32_t pid);
  bool Finished(MonotonicTime now);
  TurnPace::Inputs PaceInputs(MonotonicTime now);
  void Turn(MonotonicTime now);
  void SlowTurn(MonotonicTime now);
  void HandleRuntimeItem(const RuntimeItem& item);
  void TellTransientCode(uint32_t tgid, const wire_transient_code& code, std::span<const wire_transient_heap> heaps);
  void HandleEvent(const SideBandEvent& event);
  void HandleUntil(MonotonicTime horizon);
  void Retire(MonotonicTime before);
  void NoteRuntime(const Process& process);
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
  void StartHooks();
  void TakePause(const ObservedPause& observed);
  void TakeCompilation(ProcessKey process, const NamedCompilation& compilation);
  void CutWindows(MonotonicTime until);
  void CutWindow(MonotonicTime end);
  void ControlRate(MonotonicTime now);
  void CountAccount();
  void UpdateClock();
  void Forget(ProcessKey key);
  void GiveLateNames();
  void CloseAccount();

  const RecordOptions options_;
  const RuntimeEvents events_ = EventsFor(options_);
  const std::unique_ptr<SymbolServer> symbol_server_;  // nullptr: no server is named
  SystemClock clock_;
  Notices notices_;
  Targets targets_;
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
  RunProfile run_;
  WindowSeries windows_;
  SampleSink& sink_;  // one of these two
  SamplingRate rate_;
  FilePages file_pages_;  // in windows
  Account account_;       // of the run, or of the window at hand
  AccountCounts counts_;
  ClockAccount clock_account_;

  std::unique_ptr<Sampler> sampler_;
  SideBand side_band_;
  std::optional<RuntimeWatch> hooks_;  // after sampler_: its probes run the sampler's programs
  std::optional<StopEvents> stop_;
  std::optional<Intake> intake_;
  std::optional<SampleHandler> handler_;

  MonotonicTime started_;
  LoopTurn turn_;
  MonotonicTime last_slow_turn_;
  MonotonicTime last_sweep_;
  MonotonicTime last_rate_control_;
  int stop_signal_ = 0;
};

absl::Status RecorderImpl::Init() {
  RETURN_IF_ERROR(targets_.Check());
  RETURN_IF_ERROR(perf_maps_.Start());
  const FeatureReport features = ProbeFeatures(options_.verbose ? ProbeDepth::kEverything : ProbeDepth::kSampler);
  if (options_.verbose) {
    for (const Feature& feature : features.features) {
      options_.verbose(absl::StrCat("feature ", feature.name, ": ", feature.present ? "yes" : "no",
                                    feature.detail.empty() ? "" : " (", feature.detail,
                                    feature.detail.empty() ? "" : ")"));
    }
  }
  const absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
  absl::StatusOr<std::unique_ptr<Sampler>> sampler =
      Sampler::Create(SamplerOptionsFor(options_, cpus.ok() ? static_cast<int>(cpus->size()) : 1), features);
  if (!sampler.ok()) return sampler.status();
  sampler_ = *std::move(sampler);
  if (events_.any()) StartHooks();

  RETURN_IF_ERROR(side_band_.Start());

  absl::StatusOr<StopEvents> stop = StopEvents::Create();
  if (!stop.ok()) return stop.status();
  stop_.emplace(*std::move(stop));
  RETURN_IF_ERROR(stop_->WatchReadable(sampler_->ring_fd()));
  RETURN_IF_ERROR(stop_->WatchReadable(side_band_.poll_fd()));
  RETURN_IF_ERROR(targets_.Follow(*sampler_, *stop_));

  RuntimeWatch* hooks = hooks_ ? &*hooks_ : nullptr;
  const SamplesKept kept = options_.view == RecordView::kJit ? SamplesKept::kNone
                           : options_.only_blame             ? SamplesKept::kPossiblyBlamed
                                                             : SamplesKept::kAll;
  intake_.emplace(
      Intake::Parts{*sampler_, side_band_, targets_, table_, unwinder_, *sources_.memory, hooks, account_, notices_},
      kept);
  handler_.emplace(
      SampleHandler::Parts{table_, resolver_, unwinder_, namer_, frames_, perf_maps_, rate_, hooks, sink_, account_,
                           notices_},
      [this](const Process& process) { return Selected(process); }, options_.mark_suspension);

  for (const uint32_t pid : targets_.whole_host() ? ProcessesLikeDotNet(kProcRoot) : options_.pids) Prepare(pid);
  if (targets_.command_pid() != 0) table_.FindOrScan(targets_.command_pid(), 0);
  return absl::OkStatus();
}

// Sources that must prepare themselves do it before the first sample, and the sampler knows of short-lived code from it
// on.
void RecorderImpl::Prepare(uint32_t pid) {
  const MonotonicTime now = clock_.Now();
  resolver_.CatchUp(table_.FindOrScan(pid, 0), now, now);
  if (hooks_) hooks_->Look(*table_.Find(pid));
}

void RecorderImpl::StartHooks() {
  RuntimeWatchOptions options;
  options.hooks.suspensions = events_.pauses;
  options.hooks.resumed = events_.resumed;
  options.hooks.compilations = events_.compilations;
  // Who asks for compilations themselves gets all of each.
  options.hooks.rest_in_storms = !options_.on_compilation && options_.view != RecordView::kJit;
  options.hooks.attach = [this](wire_hook hook, bool member, const std::string& path, uint64_t offset) {
    return sampler_->AttachHook(hook, member, path, offset);
  };
  options.hooks.share = HookShareFor(options_);
  options.hooks.measure_trap = MeasureTrapNs;
  options.hooks.hits_of_others = [this] { return sampler_->HookHitsOfOthers(); };
  options.hooks.began = clock_.Now();
  options.roles = events_.roles;
  options.jit_stacks = events_.compilation_stacks;
  options.names = options_.names;
  options.on_pause = [this](const ObservedPause& observed) { TakePause(observed); };
  options.on_collection = [this](ProcessKey key, const GcDone& done) {
    if (SelectedKey(key)) sink_.AddCollection(key, done);
  };
  if (options_.on_compilation || in_windows()) {
    options.jit.on_compilation = [this](ProcessKey process, const NamedCompilation& compilation) {
      TakeCompilation(process, compilation);
    };
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

absl::Status RecorderImpl::Run(const std::function<void(const RecordProgress&)>& progress) {
  RETURN_IF_ERROR(sampler_->Start());
  started_ = turn_.started = last_slow_turn_ = last_sweep_ = last_rate_control_ = clock_.Now();
  if (in_windows()) {
    windows_.Begin();
    counts_.Begin();  // an earlier recorder of this process has counted what was used until now
  }
  UpdateClock();
  RETURN_IF_ERROR(targets_.Begin());

  TurnPace pace(started_);
  MonotonicTime next_progress = started_;
  MonotonicTime now = started_;
  while (!Finished(now)) {
    int wait_ms = pace.WaitMs(now, PaceInputs(now));
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
      progress({static_cast<double>(now.ns - started_.ns) / 1e9, account_.samples_taken, handler_->handled(),
                handler_->named(), lost});
      next_progress.ns = now.ns + 1'000'000'000;
    }
  }
  targets_.EndCommand();

  stop_signal_ = stop_->signal_number();
  targets_.expected().Update();
  UpdateClock();
  sampler_->StopSampling();
  account_.duration_seconds = static_cast<double>(clock_.Now().ns - started_.ns) / 1e9;
  targets_.CountCommand();
  intake_->Drain();
  turn_.last_chance = true;
  turn_.started = clock_.Now();
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

TurnPace::Inputs RecorderImpl::PaceInputs(MonotonicTime now) {
  TurnPace::Inputs inputs;
  inputs.short_turns = resolver_.WantsShortTurns(now);
  // Processes of a whole host may live for less than a turn; and who shows events as they come is to see them.
  inputs.may_rest =
      !targets_.whole_host() && !in_windows() && !options_.on_pause && !options_.on_compilation && resolver_.MayRest();
  inputs.news = intake_->news();
  if (!inputs.may_rest) return inputs;
  bool told_of_methods = true;
  table_.ForEach([&](const Process& process) {
    told_of_methods &= !sources_.memory->IsDotNet(process.key) || (hooks_ && hooks_->TellsOfMethods(process.key));
  });
  // Most of the methods that a sample is the first to show were compiled long ago.
  if (!told_of_methods) inputs.news += unwinder_.code_met();
  return inputs;
}

bool RecorderImpl::Finished(MonotonicTime now) {
  if (stop_->signalled() || stop_->targets_gone() || wants_fresh_start()) return true;
  return options_.duration_ns.has_value() && now.ns - started_.ns >= *options_.duration_ns;
}

void RecorderImpl::Turn(MonotonicTime now) {
  // All that happened before the last turn has reached its ring by now. Under load turns follow each other at once, and
  // an event can be read only a moment after its time.
  const MonotonicTime horizon{std::min(turn_.started.ns, now.ns - SideBand::kSettleNs)};
  turn_.started = now;
  if (symbol_server_ != nullptr) symbol_server_->Poll(notices_);
  intake_->Drain();
  perf_maps_.Poll(table_, now);
  if (hooks_) {
    table_.ForEach([this](Process& process) { hooks_->Look(process); });
    hooks_->Tick(now);
    hooks_->DropBefore(intake_->OldestOr(turn_.horizon));
  }
  HandleUntil(horizon);
  // Nothing of before the horizon waits any more, but for what waits for its names.
  if (in_windows()) CutWindows(intake_->OldestOr(horizon));
  if (now.ns - last_slow_turn_.ns >= kSlowTurnNs) SlowTurn(now);
}

void RecorderImpl::HandleUntil(MonotonicTime horizon) {
  turn_.horizon = horizon;
  bool paused = false;
  MonotonicTime drained = clock_.Now();
  uint64_t handling_ns = kMaxUnseenNs;
  do {
    if (paused && !turn_.last_chance) {
      const MonotonicTime begin = clock_.Now();
      intake_->Drain();
      drained = clock_.Now();
      // Where more comes than can be looked at, half of the time is for what has waited: the rest is lost, and counted.
      handling_ns = std::max(kMaxUnseenNs, drained.ns - begin.ns);
    }
    paused = false;
    bool first = true;
    intake_->PopUntil(horizon, [&](MonotonicTime time, const HeldItem& item) {
      // Always one, so that this ends.
      if (paused) return false;
      if (std::exchange(first, false)) drained = clock_.Now();  // the queue has been put in order meanwhile
      paused = clock_.Now().ns - drained.ns >= handling_ns;
      if (in_windows()) CutWindows(time);
      if (const auto* sample = std::get_if<std::unique_ptr<HeldSample>>(&item)) {
        if (handler_->Handle(time, *(*sample)->raw, (*sample)->early, turn_)) return true;
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
  targets_.expected().Update();
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  absl::Status attached = online.status();
  const auto busy_ns = [] { return ReadHostCpuTime(kProcRoot).value_or(HostCpuTime()).cpu_busy_ns; };
  if (attached.ok()) attached.Update(sampler_->AttachNewCpus(*online, busy_ns));
  if (online.ok()) attached.Update(side_band_.AttachNewCpus(*online, sampler_->silent_cpus()));
  for (const int cpu : sampler_->silent_cpus()) {
    notices_.Add("stopped_cpu", absl::StrCat(cpu),
                 absl::StrCat("sampling of CPU ", cpu,
                              " had stopped, and was started again: the CPU was switched off and "
                              "on, or the machine slept"));
  }
  if (!attached.ok()) {
    notices_.Add("new_cpu", "", absl::StrCat("a CPU came online and can't be sampled: ", attached.message()));
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

void RecorderImpl::HandleRuntimeItem(const RuntimeItem& item) {
  const auto* compiled = std::get_if<CompiledEvent>(&item);
  const auto* event = std::get_if<wire_runtime_event>(&item);
  const uint32_t tgid = compiled != nullptr ? compiled->event.tgid : event->tgid;
  const uint64_t start = compiled != nullptr ? compiled->event.process_start_ns : event->process_start_ns;
  Process& process = table_.FindOrScan(tgid, start);
  if (compiled != nullptr) resolver_.CatchUp(process, compiled->arrived, turn_.started);
  hooks_->Handle(process, item);
}

void RecorderImpl::TellTransientCode(uint32_t tgid, const wire_transient_code& code,
                                     std::span<const wire_transient_heap> heaps) {
  if (const absl::Status told = sampler_->SetTransientCode(static_cast<pid_t>(tgid), code, heaps); !told.ok()) {
    notices_.Add("no_witnesses", "", absl::StrCat("not all short-lived methods have names: ", told.message()));
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

void RecorderImpl::TakePause(const ObservedPause& observed) {
  if (!SelectedKey(observed.process)) return;
  const uint64_t written = sink_.AddPause(observed);
  account_.samples_written += written;
  account_.samples_set_aside -= written;
  if (options_.on_pause) options_.on_pause(observed);
}

void RecorderImpl::TakeCompilation(ProcessKey process, const NamedCompilation& compilation) {
  if (!SelectedKey(process)) return;
  sink_.AddCompilation(process, compilation);
  if (options_.on_compilation) options_.on_compilation(compilation);
}

void RecorderImpl::ControlRate(MonotonicTime now) {
  if (now.ns - last_rate_control_.ns < 1'000'000'000) return;
  last_rate_control_ = now;
  RateInputs inputs;
  inputs.now = now;
  inputs.ring_fill = intake_->TakeRingFill();
  const wire_counters counters = sampler_->counters();
  // Events of hooks that are lost, or wait, come no less often at a lower rate.
  inputs.lost = counters.drops[WIRE_DROP_RING_FULL];
  inputs.queued = intake_->waiting_samples();
  inputs.self_cpu_ns = OwnThreadCpuNs();
  inputs.memory_bytes = ReadOwnMemory().own_bytes;
  const std::optional<uint32_t> hz = rate_.Wanted(inputs);
  if (!hz) return;
  UpdateClock();
  notices_.Add(*hz < rate_.hz() ? "rate_lowered" : "rate_raised", "", rate_.Reason(*hz));
  if (const absl::Status changed = sampler_->SetFrequency(static_cast<int>(*hz)); !changed.ok()) {
    notices_.Add("rate_not_changed", "", changed.message());
  }
  targets_.expected().SetFrequency(*hz);
  rate_.Changed(clock_.Now(), *hz);
  rate_.DropBefore(intake_->OldestOr(turn_.horizon));
}

void RecorderImpl::CutWindows(MonotonicTime until) {
  while (windows_.End() <= until) CutWindow(windows_.End());
}

void RecorderImpl::CutWindow(MonotonicTime end) {
  UpdateClock();
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
    // What was still under way belongs to the process before it has ended.
    Forget(key);
    windows_.builder().SetExited(key);
    if (table_.Find(key.tgid) != nullptr) continue;
    sampler_->ForgetTransientCode(static_cast<pid_t>(key.tgid));
    targets_.Gone(key.tgid);
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

void RecorderImpl::UpdateClock() {
  if (!sampler_->sampling()) return;
  const absl::StatusOr<HostCpuTime> host = ReadHostCpuTime(kProcRoot);
  if (!host.ok()) return;
  clock_account_.Update(*host, BusyHits(*sampler_), SamplingPeriodNs(rate_.hz()));
  targets_.expected().SetHostBusyNs(host->busy_ns);
}

void RecorderImpl::CountAccount() {
  counts_.AddTo(account_, {*sampler_, hooks_ ? &*hooks_ : nullptr, *intake_, kernel_, targets_.expected(),
                           clock_account_, unwinder_, *sources_.memory, notices_});
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
