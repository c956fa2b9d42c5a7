#include "pipeline/recorder.h"
#include "pipeline/agent_sandbox.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "capture/feature_report.h"
#include "capture/live_capture.h"
#include "capture/recorded_capture.h"
#include "capture/side_band.h"
#include "clr/memory/memory_methods.h"
#include "container_runtime/cri_process.h"
#include "os/tape_answer.h"
#include "pipeline/dotnet_hint.h"
#include "pipeline/loop_pace.h"
#include "pipeline/process_events.h"
#include "pipeline/run_parts.h"
#include "pipeline/run_session.h"
#include "pipeline/runtime_watch_options.h"
#include "pipeline/sample_handler.h"
#include "pipeline/serve_session.h"
#include "process/file_broker.h"
#include "process/proc_root.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// New samples are looked at this often while others are given names: the code that they ran may be gone in a moment.
// The names of the first second of a program were held until its runtime could be read. They took 50 ms at once.
constexpr uint64_t kMaxUnseenNs = 3'000'000;

// An exited process is kept this long: threads that die last may be sampled after the leader's exit event.
constexpr uint64_t kRetireNs = 2'000'000'000;

constexpr uint64_t kSweepNs = 60'000'000'000;  // how often it is asked whether processes are still there

constexpr uint64_t kSlowIterationNs = 250'000'000;  // how often processes' CPU clocks are read and new CPUs looked for

std::unique_ptr<Session> SessionFor(RunParts& parts, RunProfile& profile) {
  if (parts.options.windows) return std::make_unique<ServeSession>(parts, *parts.options.windows);
  return std::make_unique<RunSession>(parts, profile);
}

class RecorderImpl : public Recorder, private ProgramEnds::Listener {
 public:
  RecorderImpl(const RecordOptions& options, std::unique_ptr<SymbolServer> symbol_server,
               std::shared_ptr<FileBroker> broker)
      : parts_(options, std::move(symbol_server), std::move(broker)),
        profile_({.view = options.view,
                  .with_pid = IsWholeHost(options),
                  .keep_samples = options.keep_samples,
                  .wakers = options.wakers,
                  .min_wait_ns = options.min_wait_ns},
                 parts_.frames),
        session_(SessionFor(parts_, profile_)) {
    parts_.table.ends().Add(*this);
  }
  ~RecorderImpl() override { parts_.table.ends().Remove(*this); }

  absl::Status Init();
  absl::Status Run(const std::function<void(const RecordProgress&)>& progress) override;

  absl::Status WatchesPausesOf(uint32_t pid) override { return Watches(pid, &RuntimeWatch::CheckSuspensions); }
  absl::Status WatchesCompilationsOf(uint32_t pid) override { return Watches(pid, &RuntimeWatch::CheckCompilations); }
  absl::Status WatchesAllocationsOf(uint32_t pid) override { return Watches(pid, &RuntimeWatch::CheckAllocations); }
  absl::Status WatchesExceptionsOf(uint32_t pid) override { return Watches(pid, &RuntimeWatch::CheckExceptions); }

  const FrameTable& frames() const override { return parts_.frames; }
  const SourceFiles& source_files() const override { return parts_.sources.source_files(); }
  const CodeLog* code() const override { return parts_.code_log ? &*parts_.code_log : nullptr; }
  const StackTable& stacks() const override { return profile_.stacks(); }
  const Account& account() const override { return parts_.account; }
  const SampleLog& samples() const override { return profile_.samples(); }
  const EventLog& events() const override { return profile_.events(); }
  MonotonicTime began() const override { return parts_.started; }
  const StackRecording& kept_stacks() const override { return parts_.unwinder.kept(); }
  FreshStart wants_fresh_start() const override { return fresh_start_; }
  uint32_t command_pid() const override { return parts_.targets.command_pid(); }
  int stop_signal() const override { return stop_signal_; }

 private:
  absl::Status Watches(uint32_t pid, absl::Status (RuntimeWatch::*check)(ProcessKey) const) {
    const Process* process = parts_.table.Find(pid);
    if (parts_.hooks && process != nullptr) return ((*parts_.hooks).*check)(process->key);
    return absl::NotFoundError(absl::StrCat("process ", pid, " is not watched"));
  }
  absl::Status OpenCapture();
  bool Finished(MonotonicTime now);
  LoopPace::Inputs PaceInputs(MonotonicTime now);
  RecordProgress Progress(MonotonicTime now) const;
  void Iterate(MonotonicTime now);
  void SlowIteration(MonotonicTime now);
  void HandleUntil(MonotonicTime horizon);
  // False: it waits for something that is not read here.
  bool Handle(MonotonicTime time, const HeldItem& item);
  void HandleRuntimeItem(const RuntimeItem& item);
  void HandleWait(const wire_wait& wait);
  Process& ProcessOf(const auto& event) { return parts_.table.FindOrScan(event.tgid, event.process_start_ns); }
  void SumUpWaits(ProcessKey key);
  void HandleEvent(const SideBandEvent& event);
  void Retire(MonotonicTime before);
  void OnProgramEnd(ProcessKey key) override;
  void End();

  RunParts parts_;
  RunProfile profile_;  // empty in windows
  const std::unique_ptr<Session> session_;
  std::optional<SampleHandler> handler_;
  LoopIteration iteration_;
  MonotonicTime last_slow_iteration_;
  MonotonicTime last_sweep_;
  int stop_signal_ = 0;
  FreshStart fresh_start_ = FreshStart::kNone;
};

absl::Status RecorderImpl::OpenCapture() {
  const RecordOptions& options = parts_.options;
  if (parts_.tape != nullptr && parts_.tape->plays()) {
    parts_.capture = std::make_unique<RecordedCapture>(nullptr, *parts_.tape, nullptr);
    return absl::OkStatus();
  }
  const FeatureReport features = ProbeFeatures(options.verbose ? ProbeDepth::kEverything : ProbeDepth::kSampler);
  if (options.verbose) {
    for (const Feature& feature : features.features) {
      options.verbose(absl::StrCat("feature ", feature.name, ": ", feature.present ? "yes" : "no",
                                   feature.detail.empty() ? "" : " (", feature.detail,
                                   feature.detail.empty() ? "" : ")"));
    }
  }
  ASSIGN_OR_RETURN(parts_.capture, LiveCapture::Create(SamplerOptionsFor(options), features));
  if (parts_.tape != nullptr) {
    parts_.capture = std::make_unique<RecordedCapture>(
        std::move(parts_.capture), *parts_.tape,
        [this](const SideBandEvent& event) { return parts_.targets.Concerns(event); });
  }
  return absl::OkStatus();
}

absl::Status RecorderImpl::Init() {
  const RecordOptions& options = parts_.options;
  RETURN_IF_ERROR(parts_.targets.Check());
  if (parts_.tape == nullptr) RETURN_IF_ERROR(parts_.perf_maps.Start());
  RETURN_IF_ERROR(OpenCapture());
  if (EventsFor(options).any()) {
    parts_.hooks.emplace(RuntimeWatchOptionsFor(parts_, *session_), parts_.runtimes, parts_.images, parts_.notices,
                         parts_.symbolizer, parts_.frames, parts_.clock);
  }
  if (HasWaits(options)) {
    parts_.waits.emplace([this](const ObservedWait& wait) { session_->sink().AddWait(wait); }, parts_.frames);
  }
  if (options.on_thread_created) parts_.thread_creations.emplace(options.on_thread_created, parts_.frames);

  ASSIGN_OR_RETURN(StopEvents stop, StopEvents::Create(parts_.tape));
  parts_.stop.emplace(std::move(stop));
  for (const int fd : parts_.capture->wake_fds()) RETURN_IF_ERROR(parts_.stop->WatchReadable(fd));
  RETURN_IF_ERROR(parts_.targets.Follow(*parts_.capture, *parts_.stop));

  RuntimeWatch* hooks = parts_.hooks ? &*parts_.hooks : nullptr;
  parts_.intake.emplace(
      Intake::Parts{*parts_.capture, parts_.targets, parts_.table, parts_.unwinder, *parts_.sources.memory, hooks,
                    parts_.async ? &*parts_.async : nullptr, parts_.threads, parts_.account, parts_.notices},
      SamplesKeptFor(options), HookEventsFor(options), Intake::kQueuedBytes + options.ring_bytes);
  handler_.emplace(
      SampleHandler::Parts{parts_.table, parts_.symbolizer, parts_.unwinder, parts_.stack_symbolizer, parts_.frames,
                           parts_.perf_maps, parts_.rate, hooks, parts_.waits ? &*parts_.waits : nullptr,
                           parts_.thread_creations ? &*parts_.thread_creations : nullptr,
                           parts_.code_log ? &*parts_.code_log : nullptr, parts_.async ? &*parts_.async : nullptr,
                           parts_.threads, session_->sink(), parts_.account, parts_.notices},
      [this](const Process& process) { return session_->Selects(process); }, options.mark_suspension);

  const std::vector<uint32_t> likely =
      !parts_.targets.whole_host()
          ? options.pids
          : Taped(
                parts_.tape, [this] { return ProcessesLikeDotNet(kProcRoot, parts_.broker.get()); }, "like .NET");
  for (const uint32_t pid : likely) parts_.Prepare(pid);
  if (parts_.targets.command_pid() != 0) parts_.table.FindOrScan(parts_.targets.command_pid(), 0);
  return absl::OkStatus();
}

absl::Status RecorderImpl::Run(const std::function<void(const RecordProgress&)>& progress) {
  RETURN_IF_ERROR(parts_.capture->Start());
  MonotonicTime now = parts_.clock.Now();
  parts_.started = iteration_.started = last_slow_iteration_ = last_sweep_ = now;
  session_->Begin();
  parts_.UpdateClock();
  RETURN_IF_ERROR(parts_.targets.Begin());
  RETURN_IF_ERROR(parts_.stop->GuardThisThread());

  LoopPace pace(now);
  MonotonicTime next_progress = now;
  while (!Finished(now)) {
    int wait_ms = pace.WaitMs(now, PaceInputs(now));
    if (parts_.options.duration_ns.has_value()) {
      const uint64_t left_ns = parts_.started.ns + *parts_.options.duration_ns - now.ns;
      wait_ms = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(wait_ms), left_ns / 1'000'000 + 1));
    }
    parts_.stop->Wait(wait_ms);
    now = parts_.clock.Now();
    Iterate(now);
    if (now >= next_progress && progress) {
      progress(Progress(now));
      next_progress.ns = now.ns + 1'000'000'000;
    }
  }
  End();
  return absl::OkStatus();
}

void RecorderImpl::End() {
  parts_.targets.EndCommand();
  stop_signal_ = parts_.stop->signal_number();
  parts_.targets.expected().Update();
  parts_.UpdateClock();
  session_->StopsSampling();
  if (parts_.hooks) parts_.hooks->StopsSampling();
  parts_.capture->StopSampling();
  parts_.account.duration_seconds = static_cast<double>(parts_.clock.Now().ns - parts_.started.ns) / 1e9;
  parts_.targets.CountCommand();
  parts_.intake->Drain();
  parts_.sources.AwaitLines(parts_.clock);
  iteration_.last_chance = true;
  iteration_.started = parts_.clock.Now();
  HandleUntil(MonotonicTime::Max());
  parts_.table.ForEach([this](Process& process) { session_->Describe(process); });
  if (parts_.hooks) parts_.hooks->Finish();
  if (parts_.thread_creations) parts_.thread_creations->Reach(MonotonicTime::Max());
  if (parts_.waits) {
    parts_.waits->Finish();
    for (const ProcessKey key : parts_.waits->processes()) SumUpWaits(key);
  }
  if (parts_.tape == nullptr) parts_.perf_maps.Finish();
  session_->Finish();
  parts_.stop.reset();  // a second Ctrl-C may now end a writer that waits for a reader which does not read
}

RecordProgress RecorderImpl::Progress(MonotonicTime now) const {
  uint64_t lost = 0;
  for (const auto& [reason, count] : parts_.account.lost) lost += count;
  // A recording's account gets the kernel's own losses at its end.
  if (!parts_.options.windows) {
    const wire_counters counters = parts_.capture->counters();
    lost = std::accumulate(std::begin(counters.drops), std::end(counters.drops), lost);
  }
  return {static_cast<double>(now.ns - parts_.started.ns) / 1e9, parts_.account.samples_taken, handler_->handled(),
          handler_->named(), lost};
}

LoopPace::Inputs RecorderImpl::PaceInputs(MonotonicTime now) {
  LoopPace::Inputs inputs;
  inputs.short_iterations = parts_.symbolizer.WantsShortIterations(now);
  inputs.may_idle = session_->may_idle() && parts_.symbolizer.MayIdle();
  inputs.news = parts_.intake->news();
  if (!inputs.may_idle) return inputs;
  bool told_of_methods = true;
  parts_.table.ForEach([&](const Process& process) {
    told_of_methods &=
        !parts_.sources.memory->IsDotNet(process.key) || (parts_.hooks && parts_.hooks->ReportsMethods(process.key));
  });
  // Most of the methods that a sample is the first to show were compiled long ago.
  if (!told_of_methods) inputs.news += parts_.unwinder.code_met();
  return inputs;
}

bool RecorderImpl::Finished(MonotonicTime now) {
  if (parts_.stop->signalled() || parts_.stop->targets_gone() || parts_.capture->ended()) return true;
  if (parts_.options.duration_ns.has_value() && now.ns - parts_.started.ns >= *parts_.options.duration_ns) return true;
  fresh_start_ = session_->WantsFreshStart(now);
  return fresh_start_ != FreshStart::kNone;
}

void RecorderImpl::Iterate(MonotonicTime now) {
  // All that happened before the last iteration has reached its ring by now. Under load iterations follow each other at
  // once, and an event can be read only a moment after its time.
  const MonotonicTime horizon{std::min(iteration_.started.ns, now.ns - SideBand::kSettleNs)};
  iteration_.started = now;
  if (parts_.symbol_server != nullptr) parts_.symbol_server->Poll(parts_.notices);
  session_->BeginIteration(now);
  parts_.intake->Drain();
  if (parts_.tape == nullptr) parts_.perf_maps.Poll(parts_.table, now);
  if (parts_.hooks) {
    parts_.table.ForEach([this](Process& process) { parts_.hooks->HookRuntimeOf(process); });
    parts_.hooks->Tick(now);
    parts_.hooks->DropBefore(parts_.intake->OldestOr(iteration_.horizon));
  }
  HandleUntil(horizon);
  // Nothing from before the horizon waits any more, except records that wait for their names.
  session_->Reach(parts_.intake->OldestOr(horizon));
  if (parts_.thread_creations) parts_.thread_creations->Reach(parts_.intake->OldestOr(horizon));
  if (now.ns - last_slow_iteration_.ns >= kSlowIterationNs) SlowIteration(now);
}

void RecorderImpl::HandleUntil(MonotonicTime horizon) {
  iteration_.horizon = parts_.horizon = horizon;
  bool paused = false;
  MonotonicTime drained = parts_.clock.Now();
  uint64_t handling_ns = kMaxUnseenNs;
  do {
    if (paused && !iteration_.last_chance) {
      const MonotonicTime begin = parts_.clock.Now();
      parts_.intake->Drain();
      drained = parts_.clock.Now();
      // If more comes than can be looked at, half of the time is for waiting records. The rest is lost, and counted.
      handling_ns = std::max(kMaxUnseenNs, drained.ns - begin.ns);
    }
    paused = false;
    bool first = true;
    parts_.intake->PopUntil(horizon, [&](MonotonicTime time, const HeldItem& item) {
      // One record is always handled, so that this ends.
      if (paused) return false;
      if (std::exchange(first, false)) drained = parts_.clock.Now();  // the queue has been put in order meanwhile
      paused = parts_.clock.Now().ns - drained.ns >= handling_ns;
      session_->Reach(time);
      if (Handle(time, item)) return true;
      paused = false;
      return false;
    });
  } while (paused);
}

bool RecorderImpl::Handle(MonotonicTime time, const HeldItem& item) {
  if (const auto* sample = std::get_if<std::unique_ptr<HeldSample>>(&item)) {
    return handler_->Handle(time, *(*sample)->raw, (*sample)->early, iteration_);
  }
  if (const auto* event = std::get_if<RuntimeItem>(&item)) {
    HandleRuntimeItem(*event);
  } else if (const auto* wait = std::get_if<wire_wait>(&item)) {
    HandleWait(*wait);
  } else if (const auto* thread = std::get_if<wire_thread>(&item)) {
    if (parts_.thread_creations) parts_.thread_creations->Handle(ProcessOf(*thread).key, *thread);
  } else {
    HandleEvent(std::get<SideBandEvent>(item));
  }
  return true;
}

void RecorderImpl::SlowIteration(MonotonicTime now) {
  last_slow_iteration_ = now;
  parts_.targets.expected().Update();
  const FollowedCpus cpus =
      parts_.capture->FollowCpus([] { return ReadHostCpuTime(kProcRoot).value_or(HostCpuTime()).cpu_busy_ns; });
  for (const int cpu : cpus.restarted) {
    parts_.notices.Add("stopped_cpu", absl::StrCat(cpu),
                       absl::StrCat("sampling of CPU ", cpu,
                                    " had stopped, and was started again: the CPU was switched off and "
                                    "on, or the machine slept"));
  }
  if (!cpus.status.ok()) {
    parts_.notices.Add("new_cpu", "", absl::StrCat("a CPU came online and can't be sampled: ", cpus.status.message()));
  }
  if (now.ns - last_sweep_.ns >= kSweepNs) {
    last_sweep_ = now;
    parts_.table.Sweep();
  }
  if (now.ns > kRetireNs) Retire({now.ns - kRetireNs});
  session_->SlowIteration(now);
}

void RecorderImpl::HandleRuntimeItem(const RuntimeItem& item) {
  Process* process = nullptr;
  if (const auto* compiled = std::get_if<CompiledEvent>(&item)) {
    process = &ProcessOf(compiled->event);
    parts_.symbolizer.CatchUp(*process, compiled->arrived, iteration_.started);
  } else if (const auto* event = std::get_if<wire_runtime_event>(&item)) {
    process = &ProcessOf(*event);
  } else {
    const auto* allocation = std::get_if<AllocationEvent>(&item);
    process = allocation != nullptr ? &ProcessOf(allocation->event) : &ProcessOf(std::get<ExceptionEvent>(item).event);
    if (!session_->Selects(*process)) return;
    session_->sink().Announce(*process);
  }
  parts_.hooks->Handle(*process, item);
}

void RecorderImpl::HandleWait(const wire_wait& wait) {
  Process& process = ProcessOf(wait);
  if (!parts_.waits || !session_->Selects(process)) return;
  session_->sink().Announce(process);
  // A thread may run again before the one that lets it go has told of the end of the pause.
  const MonotonicTime now{wait.header.time_ns};
  const auto since = parts_.hooks ? parts_.hooks->PausedSince(process.key, now) : std::nullopt;
  if (since) parts_.waits->NotePause(process.key, *since, now);
  parts_.waits->Handle(process, wait);
}

void RecorderImpl::HandleEvent(const SideBandEvent& event) {
  if (parts_.options.on_task_event) parts_.options.on_task_event(event);
  if (parts_.hooks && event.kind == SideBandKind::kExit) {
    if (const Process* const process = parts_.table.Find(event.pid)) parts_.hooks->EndThread(process->key, event.tid);
  }
  if (const std::optional<ProcessKey> replaced = ApplyToTable(event, parts_.clock, parts_.table)) {
    parts_.table.ends().Announce(*replaced);
  }
}

void RecorderImpl::Retire(MonotonicTime before) {
  parts_.table.ForEach([&](Process& process) {
    if (process.exited >= before) return;
    if (parts_.hooks) parts_.hooks->EndAllocations(process.key);
    session_->Describe(process);
  });
  for (const ProcessKey key : parts_.table.Retire(before)) {
    // Work that was still under way belongs to the process before it has ended.
    parts_.table.ends().Announce(key);
    if (parts_.waits) parts_.waits->End(key);
    session_->Ended(key);
    if (parts_.table.Find(key.tgid) != nullptr) continue;
    parts_.capture->ForgetTransientCode(static_cast<pid_t>(key.tgid));
    parts_.capture->ForgetAsyncLayout(static_cast<pid_t>(key.tgid));
    parts_.targets.Gone(key.tgid);
  }
}

// Ends what is no PerProcess: the process has ended, or runs another program now.
void RecorderImpl::OnProgramEnd(ProcessKey key) {
  if (parts_.hooks) parts_.hooks->End(key);
  if (parts_.waits) {
    parts_.waits->EndProgram(key);
    SumUpWaits(key);
  }
}

void RecorderImpl::SumUpWaits(ProcessKey key) {
  if (const WaitWatch::Threads threads = parts_.waits->TakeThreads(key); !threads.empty()) {
    session_->sink().SumUpThreads(key, threads);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Create(const RecordOptions& options) {
  std::unique_ptr<SymbolServer> symbol_server;
  if (!options.symbols.servers.empty()) {
    ASSIGN_OR_RETURN(symbol_server, SymbolServer::Start(options.symbols));
  }
  std::shared_ptr<FileBroker> broker = options.files;
  if (broker == nullptr && (options.tape == nullptr || !options.tape->plays())) {
    ASSIGN_OR_RETURN(broker, StartFileBroker());
  }
  RecordOptions with_helper = options;
  // A tape has no answers for it.
  if (options.tape == nullptr && options.line_helper == nullptr) with_helper.line_helper = LineHelperFor(options.lines);
  if (options.tape == nullptr && options.cri_helper == nullptr && !options.cri_socket.empty()) {
    with_helper.cri_helper = StartCriHelper(options.cri_socket);
  }
  auto recorder = std::make_unique<RecorderImpl>(with_helper, std::move(symbol_server), std::move(broker));
  RETURN_IF_ERROR(recorder->Init());
  return std::unique_ptr<Recorder>(std::move(recorder));
}

}  // namespace clrsampler
