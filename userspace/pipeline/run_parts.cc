#include "pipeline/run_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "capture/sampling_period.h"
#include "clr/memory/memory_methods.h"
#include "os/tape_answer.h"
#include "process/cpu_time.h"
#include "process/proc_root.h"
#include "process/target_memory.h"
#include "status/status.h"
#include "symbols/kernel_symbols.h"

namespace clrsampler {

RunParts::RunParts(const RecordOptions& record_options, std::unique_ptr<SymbolServer> server,
                   std::shared_ptr<FileBroker> file_broker)
    : options(record_options),
      tape(options.tape),
      symbol_server(std::move(server)),
      broker(std::move(file_broker)),
      clock(tape),
      targets(options.pids, options.command, options.sampling_hz(), kProcRoot, tape, notices),
      images(tape, &clock),
      table(kProcRoot, clock, tape, broker.get()),
      kernel(
          frames, options.names, [this](auto addresses) { return LookUpInKernel(addresses); },
          KernelSymbols(options.names, [this] { return Taped(tape, KernelSymbols::ReadProcKallsyms, "kallsyms"); })),
      runtimes(images, RuntimeDiscovery::CacheBy::kFile),
      perf_maps(options.perf_maps, clock, notices, broker.get()),
      sources(MakeSources(
          {.frames = frames,
           .images = images,
           .runtimes = runtimes,
           .notices = notices,
           .clock = clock,
           .names = options.names,
           .symbol_files = symbol_server.get(),
           .transient_code = [this](const Process& process, const auto& code,
                                    auto heaps) { PublishTransientCode(process.key.tgid, code, heaps); },
           .perf_map_promised = [this](ProcessKey key) { return perf_maps.IsOn(key) || perf_maps.IsComing(key); },
           .try_unknown_runtime = options.try_unknown_runtime,
           .lines = options.lines,
           .line_helper = options.line_helper,
           .keep_code = options.keep_code,
           .broker = broker.get(),
           .tape = tape})),
      symbolizer(sources.borrowed(), frames, sources.line_sources(), &notices),
      unwinder({.unwind_data = options.unwind_data, .max_frames = options.max_frames, .keep = options.keep_stacks},
               sources, images, symbolizer, clock),
      stack_symbolizer(symbolizer, kernel, frames, /*with_places=*/options.async_stacks),
      threads(PartsOfThreads()),
      rate(options.sampling_hz(), options.windows ? options.windows->limits : RateLimits{}) {
  if (broker != nullptr) broker->ReportTo(&notices);
  if (options.keep_code) KeepCode();
  if (options.async_stacks) {
    async.emplace(AsyncCallers::Parts{
        .memory = *sources.memory,
        .frames = frames,
        .budget = symbolizer.budget(),
        .tell = [this](const Process& process,
                       const std::optional<wire_async_layouts>& layout) { PublishAsyncLayout(process, layout); },
        .observe = [this](const Process& process,
                          const ObservedSample& sample) { symbolizer.Observe(process, sample); },
        .name = [this](const Process& process, const UserFrame& frame,
                       MonotonicTime time) { return stack_symbolizer.NameOf(process, frame, time); }});
  }
}

ThreadContexts::Parts RunParts::PartsOfThreads() {
  return {.images = images,
          .runtimes = runtimes,
          .notices = notices,
          .open = [this](uint32_t pid) -> absl::StatusOr<std::unique_ptr<MemoryReader>> {
            return TargetMemory::Open(kProcRoot, pid, tape, broker.get());
          },
          .tell =
              [this](uint32_t pid, const wire_thread_variable& variable) {
                return capture->SetThreadVariable(static_cast<pid_t>(pid), variable);
              },
          .take_back = [this](uint32_t pid) { capture->ForgetThreadVariable(static_cast<pid_t>(pid)); }};
}

void RunParts::Prepare(uint32_t pid) {
  main_loop_.Check();
  const MonotonicTime now = clock.Now();
  symbolizer.CatchUp(table.FindOrScan(pid, 0), now, now);
  if (async) async->Learn(*table.Find(pid));
  threads.Observe(*table.Find(pid), now);
  if (hooks) hooks->HookRuntimeOf(*table.Find(pid));
}

void RunParts::KeepCode() {
  code_log.emplace();
  symbolizer.SetManagedFrameObserver([this](const FrameQuery& query, FrameId plain, FrameId frame) {
    if (const std::optional<CodeBody> body = sources.CodeOf(query)) {
      code_log->Note(query, plain, frame, *body);
    } else {
      code_log->NoteWithout();
    }
  });
}

RunParts::~RunParts() {
  if (broker != nullptr) broker->ReportTo(nullptr);
}

absl::StatusOr<std::vector<std::string>> RunParts::LookUpInKernel(std::span<const uint64_t> addresses) {
  const auto look_up = [&]() -> absl::StatusOr<std::vector<std::string>> {
    if (kernel_lookup_ == nullptr) {
      ASSIGN_OR_RETURN(kernel_lookup_, KernelNameLookup::Create());
    }
    return kernel_lookup_->LookUp(addresses);
  };
  if (tape == nullptr) return look_up();
  return Taped(tape, look_up, "kernel names ", absl::StrJoin(addresses, " "));
}

void RunParts::PublishTransientCode(uint32_t tgid, const wire_transient_code& code,
                                    std::span<const wire_transient_heap> heaps) {
  if (const absl::Status told = capture->SetTransientCode(static_cast<pid_t>(tgid), code, heaps); !told.ok()) {
    notices.Add("no_snapshots", "", absl::StrCat("not all short-lived methods have names: ", told.message()));
  }
}

void RunParts::PublishAsyncLayout(const Process& process, const std::optional<wire_async_layouts>& layout) {
  if (!layout) {
    notices.Add("no_async_callers", absl::StrCat(process.key.tgid),
                absl::StrCat("async methods of process ", process.key.tgid, " (", process.comm,
                             ") have no callers: how its runtime keeps them is not known"),
                "--async-stacks knows .NET 8 to 11");
    return;
  }
  if (const absl::Status told = capture->SetAsyncLayout(static_cast<pid_t>(process.key.tgid), *layout); !told.ok()) {
    notices.Add("no_async_callers", "", absl::StrCat("not all async methods have their callers: ", told.message()));
  }
}

void RunParts::UpdateClock() {
  main_loop_.Check();
  if (!capture->sampling()) return;
  const absl::StatusOr<HostCpuTime> host = ReadHostCpuTime(kProcRoot, tape);
  if (!host.ok()) return;
  const wire_counters counters = capture->counters();
  clock_account.Update(*host, counters.hits - std::min(counters.hits, counters.idle), SamplingPeriodNs(rate.hz()));
  targets.expected().SetHostBusyNs(host->busy_ns);
}

void RunParts::CountAccount() {
  main_loop_.Check();
  counts.AddTo(account,
               {*capture, hooks ? &*hooks : nullptr, waits ? &*waits : nullptr,
                thread_creations ? &*thread_creations : nullptr, *intake, kernel, targets.expected(), clock_account,
                unwinder, *sources.memory, *sources.precompiled, options.perf_maps.everywhere ? &perf_maps : nullptr,
                sources.pdbs.get(), sources.native_lines, async ? &*async : nullptr, threads, notices});
}

}  // namespace clrsampler
