#include "inspect/process_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "inspect/naming_outlook.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// A busy service writes some 20 MB of perf map; a jitdump ten times that.
constexpr uint64_t kLittleSpaceBytes = 64 << 20;
// Start-up of a large application takes seconds.
constexpr double kStartUpSeconds = 10;

constexpr uint32_t kPerfMapAndJitdump = 1, kJitdumpOnly = 2;  // values of PerfMapEnabled

void AddFinding(Findings& findings, FindingLevel level, absl::string_view check, std::string what,
                absl::string_view fix = "") {
  findings.push_back({level, std::string(check), std::move(what), std::string(fix)});
}

bool IsCoreClr(const ProcessFacts& facts) {
  return facts.runtime->kind == RuntimeImageKind::kCoreClr || facts.runtime->kind == RuntimeImageKind::kSingleFileHost;
}

bool JitdumpIsOn(const ProcessFacts& facts) {
  const auto& value = facts.environment.perf_map_enabled;
  return facts.jitdump.live || value == kPerfMapAndJitdump || value == kJitdumpOnly;
}

bool PerfMapIsOn(const ProcessFacts& facts) {
  return facts.perf_map.live || JitdumpIsOn(facts) || facts.environment.perf_map_enabled.value_or(0) != 0;
}

std::string Megabytes(uint64_t bytes) { return absl::StrCat(bytes >> 20, " MB"); }

void CheckRuntime(const ProcessFacts& facts, Findings& findings) {
  const DotNetRuntime& runtime = *facts.runtime;
  std::string text = absl::StrCat(runtime.kind == RuntimeImageKind::kMono ? "Mono" : ".NET ", runtime.version.Text(),
                                  ", ", DeploymentFormText(runtime.form), ", ", MachineText(runtime.machine), ", ",
                                  LibcText(runtime.libc), ", ", GcFlavourText(facts.gc), " GC");
  if (runtime.standalone_gc) absl::StrAppend(&text, " from ", runtime.standalone_gc->path);
  if (runtime.composite.value_or(false)) absl::StrAppend(&text, ", composite images");
  if (runtime.bundle_compressed) absl::StrAppend(&text, ", compressed bundle");
  if (runtime.version.known()) {
    AddFinding(findings, FindingLevel::kPass, "runtime", std::move(text));
  } else {
    AddFinding(findings, FindingLevel::kWarn, "runtime", std::move(text),
               "names come from perf map and images only; DOTNET_PerfMapEnabled=3 at its start");
  }
}

void CheckNames(const ProcessFacts& facts, Findings& findings) {
  const NamingOutlook outlook = OutlookOf(facts);
  std::string what = absl::StrCat("names: ", NamingWordText(outlook.word), " (",
                                  outlook.sources.empty() ? "no source" : absl::StrJoin(outlook.sources, ", "), ")");
  if (!outlook.reason.empty()) absl::StrAppend(&what, ": ", outlook.reason);
  absl::string_view fix = "";
  if (facts.runtime->emulated()) {
    fix = "profile it on such a machine; here its frames are the emulator's, and code that was translated has no name";
  } else if (facts.runtime->kind == RuntimeImageKind::kNativeAot) {
    fix = "lay the PROGRAM.dbg of the publish folder beside the program, or publish with StripSymbols=false";
  } else if (absl::IsPermissionDenied(facts.memory)) {
    fix = "run as root or with cap_sys_ptrace, or start the process with DOTNET_PerfMapEnabled=3";
  } else {
    fix = "start the process with DOTNET_PerfMapEnabled=3, or have it write a perf map with --enable-perf-map";
  }
  const FindingLevel level = outlook.word == NamingWord::kPoor   ? FindingLevel::kFail
                             : outlook.word == NamingWord::kFull ? FindingLevel::kPass
                                                                 : FindingLevel::kWarn;
  AddFinding(findings, level, "names", std::move(what), level == FindingLevel::kPass ? "" : fix);
}

// Whether the defect can strike in the process as it is now.
bool IsTriggered(const RuntimeDefect& defect, const ProcessFacts& facts) {
  switch (defect.kind) {
    case DefectKind::kJitdumpDies:
      return JitdumpIsOn(facts);
    case DefectKind::kPerfMapDeadlock:
      return PerfMapIsOn(facts);
    case DefectKind::kEarlyPerfMapCrash:
      return facts.age_seconds < kStartUpSeconds;
    case DefectKind::kGluedPerfMapLines:
    case DefectKind::kEnableSkipsStubs:
    case DefectKind::kSocketLeftBehind:
      return false;
  }
  return false;
}

void CheckDefects(const ProcessFacts& facts, Findings& findings) {
  if (!IsCoreClr(facts)) return;
  for (const RuntimeDefect* defect : DefectsOf(facts.runtime->version)) {
    const bool triggered = IsTriggered(*defect, facts);
    const std::string upstream = defect->upstream.empty() ? "" : absl::StrCat(" (", defect->upstream, ")");
    AddFinding(findings, triggered ? FindingLevel::kWarn : FindingLevel::kPass, "runtime_defect",
               absl::StrCat(triggered ? "defect of this runtime: " : "defect of this runtime, not at work now: ",
                            defect->summary, upstream),
               triggered ? defect->way_out : "");
  }
}

void CheckMemory(const ProcessFacts& facts, Findings& findings) {
  if (!IsCoreClr(facts)) return;
  if (facts.memory.ok()) {
    AddFinding(findings, FindingLevel::kPass, "memory", "memory reading: possible");
  } else if (absl::IsUnavailable(facts.memory)) {
    AddFinding(findings, FindingLevel::kPass, "memory",
               absl::StrCat("memory reading: not yet: ", facts.memory.message()));
  } else if (absl::IsPermissionDenied(facts.memory)) {
    AddFinding(findings, FindingLevel::kWarn, "memory", absl::StrCat("memory reading: ", facts.memory.message()),
               "run as root, or with cap_sys_ptrace and kernel.yama.ptrace_scope below 3");
  } else {
    AddFinding(findings, FindingLevel::kWarn, "memory", absl::StrCat("memory reading: ", facts.memory.message()),
               "--enable-perf-map, or DOTNET_PerfMapEnabled=3 at its start, names what it compiles");
  }
}

void CheckSocket(const ProcessFacts& facts, Findings& findings) {
  if (!IsCoreClr(facts)) return;
  const EnvironmentFacts& environment = facts.environment;
  const std::string hint = HintOf(facts.socket);
  constexpr absl::string_view kFix = "none needed, unless the perf map is to be switched on from outside";
  if (environment.enable_diagnostics == 0u || environment.enable_diagnostics_ipc == 0u) {
    AddFinding(findings, FindingLevel::kWarn, "diagnostics_socket",
               absl::StrCat("diagnostics socket: switched off by DOTNET_EnableDiagnostics",
                            environment.enable_diagnostics == 0u ? "" : "_IPC", "=0"),
               kFix);
  } else if (facts.socket.ok()) {
    AddFinding(findings, FindingLevel::kPass, "diagnostics_socket",
               absl::StrCat("diagnostics socket: ", facts.socket_path));
  } else {
    AddFinding(findings, FindingLevel::kWarn, "diagnostics_socket",
               absl::StrCat("diagnostics socket: ", absl::IsNotFound(facts.socket)
                                                        ? absl::StrCat("none at ", facts.socket_path)
                                                        : std::string(facts.socket.message())),
               hint.empty() ? kFix : hint);
  }
}

void CheckDirectory(const ProcessFacts& facts, Findings& findings) {
  if (!IsCoreClr(facts)) return;
  const DirectoryFacts& directory = facts.perf_map_directory;
  // It only matters to users who write there.
  const FindingLevel trouble = PerfMapIsOn(facts) ? FindingLevel::kWarn : FindingLevel::kPass;
  const auto add = [&](absl::string_view what, absl::string_view fix) {
    AddFinding(findings, trouble, "perf_map_directory", absl::StrCat("perf map directory ", directory.path, ": ", what),
               trouble == FindingLevel::kPass ? "" : fix);
  };
  if (absl::IsUnavailable(directory.status)) {
    add(directory.status.message(), "put it on a volume or a tmpfs, for a container by --tmpfs /tmp");
  } else if (!directory.status.ok()) {
    add(absl::IsNotFound(directory.status) ? "does not exist" : std::string(directory.status.message()),
        "make it, or set DOTNET_PerfMapJitDumpPath to another");
  } else if (directory.read_only) {
    add("is on a read-only file system", "set DOTNET_PerfMapJitDumpPath to a folder that can be written");
  } else if (!directory.writable) {
    add("is not writable for the process", "set DOTNET_PerfMapJitDumpPath to a folder that can be written");
  } else if (directory.free_bytes < kLittleSpaceBytes) {
    add(absl::StrCat("only ", Megabytes(directory.free_bytes), " free"),
        "make room; a full disk cuts the perf map off");
  } else {
    AddFinding(findings, FindingLevel::kPass, "perf_map_directory",
               absl::StrCat("perf map directory ", directory.path, ": ", Megabytes(directory.free_bytes), " free"));
  }
}

void CheckAttached(const ProcessFacts& facts, Findings& findings) {
  if (facts.tracer_pid != 0) {
    AddFinding(findings, FindingLevel::kWarn, "tracer", absl::StrCat("traced by process ", facts.tracer_pid),
               "a stopped process yields no samples; let the debugger go on or detach it");
  }
  if (!facts.environment.profiler.empty()) {
    AddFinding(findings, FindingLevel::kWarn, "profiler",
               absl::StrCat("another profiler is loaded: ", facts.environment.profiler),
               "its work shows in the profile; unset CORECLR_ENABLE_PROFILING to measure without it");
  }
  if (facts.perf_map.live || facts.jitdump.live) {
    AddFinding(
        findings, FindingLevel::kPass, "perf_map",
        absl::StrCat("perf map: ",
                     facts.perf_map.live ? absl::StrCat(facts.perf_map.path, ", ", Megabytes(facts.perf_map.bytes),
                                                        facts.perf_map_is_ours ? ", switched on by clrsampler" : "")
                                         : "",
                     facts.perf_map.live && facts.jitdump.live ? "; " : "",
                     facts.jitdump.live ? absl::StrCat(facts.jitdump.path, ", ", Megabytes(facts.jitdump.bytes)) : ""));
  } else if (facts.environment.perf_map_enabled.value_or(0) != 0 && facts.runtime.has_value() && IsCoreClr(facts)) {
    AddFinding(findings, FindingLevel::kWarn, "perf_map",
               "perf map: asked for by DOTNET_PerfMapEnabled and not being written",
               "see the lines on the jitdump and on the perf map directory");
  }
}

void CheckUnwindData(const ProcessFacts& facts, Findings& findings) {
  if (!facts.unwind.has_value()) return;
  const UnwindFacts& unwind = *facts.unwind;
  constexpr uint64_t kLittleCodeBytes = 4096;
  constexpr char kFix[] =
      "callers of its functions may be missing; install its debug symbols, or build it with "
      "-fasynchronous-unwind-tables or -fno-omit-frame-pointer";
  // A long list helps nobody who reads it; the folder and the first names do.
  constexpr size_t kMaxListed = 8;
  uint64_t code_bytes = 0, covered_bytes = 0, by_code = 0, partly = 0;
  for (const UnwindFacts::Extent& image : unwind.extents) {
    code_bytes += image.code_bytes;
    covered_bytes += image.covered_bytes;
    by_code += image.by_code;
    // 0.8: what compilers give unwind data for is 97 % of a library and more; of musl's libc 87 % follow from its code.
    if (image.covered_bytes >= 0.8 * image.code_bytes) continue;
    // Start-up code has no unwind data, and glibc's libdl.so.2 is little else: 289 bytes, librt.so.1 689.
    if (image.code_bytes - std::min(image.code_bytes, image.covered_bytes) < kLittleCodeBytes) continue;
    if (++partly > kMaxListed) continue;
    AddFinding(findings, FindingLevel::kWarn, "unwind_data",
               absl::StrFormat("unwind data: for %.1f %% of the code of %s",
                               100.0 * image.covered_bytes / image.code_bytes, image.path),
               kFix);
  }
  if (unwind.unusable.empty() && partly == 0) {
    std::string text = absl::StrCat("unwind data: all of ", unwind.images, " native images have it");
    if (code_bytes != 0)
      absl::StrAppendFormat(&text, ", for %.1f %% of their code", 100.0 * covered_bytes / code_bytes);
    if (by_code != 0)
      absl::StrAppend(&text, "; ", by_code, by_code == 1 ? " has" : " have", " it by their instructions");
    AddFinding(findings, FindingLevel::kPass, "unwind_data", text);
    return;
  }
  for (size_t i = 0; i < unwind.unusable.size() && i < kMaxListed; ++i) {
    AddFinding(findings, FindingLevel::kWarn, "unwind_data",
               absl::StrCat("unwind data: none that can be used in ", unwind.unusable[i].path, ": ",
                            unwind.unusable[i].reason),
               kFix);
  }
  if (unwind.unusable.size() > kMaxListed) {
    AddFinding(
        findings, FindingLevel::kWarn, "unwind_data",
        absl::StrCat("unwind data: none that can be used in ", unwind.unusable.size() - kMaxListed, " more images"),
        "see the lines above");
  }
}

void CheckHooks(const ProcessFacts& facts, Findings& findings) {
  if (!facts.hooks.has_value()) return;
  constexpr char kFix[] = "none needed for anything but `clrsampler pauses` and the views of pauses; docs/hooks.md";
  if (!facts.hooks->pauses.ok()) {
    AddFinding(findings, FindingLevel::kWarn, "pauses",
               absl::StrCat("pauses: can't be seen: ", facts.hooks->pauses.message()), kFix);
  } else if (!facts.hooks->collections.ok()) {
    AddFinding(findings, FindingLevel::kWarn, "pauses",
               absl::StrCat("pauses: seen, without generations: ", facts.hooks->collections.message()), kFix);
  } else {
    AddFinding(findings, FindingLevel::kPass, "pauses", "pauses: can be seen, with the collections in them");
  }
  if (facts.hooks->allocations.ok()) {
    AddFinding(findings, FindingLevel::kPass, "allocations", "allocations: can be seen, with the types of the objects");
  } else {
    AddFinding(findings, FindingLevel::kWarn, "allocations",
               absl::StrCat("allocations: can't be seen: ", facts.hooks->allocations.message()),
               "none needed for anything but `clrsampler allocs` and --event alloc; docs/allocations.md");
  }
  if (facts.hooks->exceptions.ok()) {
    AddFinding(findings, FindingLevel::kPass, "exceptions",
               "exceptions: can be seen, with their types and the methods that throw them");
  } else {
    AddFinding(
        findings, FindingLevel::kWarn, "exceptions",
        absl::StrCat("exceptions: can't be seen: ", facts.hooks->exceptions.message()),
        "none needed for anything but `clrsampler exceptions` and --event exception, which --source eventpipe sees, "
        "too; "
        "docs/exceptions.md");
  }
}

void CheckContainer(const ProcessFacts& facts, Findings& findings) {
  const CgroupIdentity& cgroup = facts.container.cgroup;
  if (!cgroup.in_container()) return;
  std::string text = absl::StrCat("container: ", facts.container.Label());
  if (!cgroup.pod_uid.empty()) absl::StrAppend(&text, ", pod ", cgroup.pod_uid, " (", PodQosText(cgroup.qos), ")");
  AddFinding(findings, FindingLevel::kPass, "container", std::move(text));
}

// At most a fifth of the workers with work ran. Idle ones do not run, so they count for neither side.
bool WorkersWait(const PoolMoment& moment) {
  constexpr double kMayRunShare = 0.2;
  return moment.seen > 0 && moment.seen - moment.waiting <= kMayRunShare * moment.state.working;
}

// Starved: at each moment work was left lying that no other worker may begin, and those with work waited.
void CheckPool(const ProcessFacts& facts, Findings& findings) {
  if (!facts.pool.has_value() || facts.pool->moments.empty()) return;
  const PoolState& last = facts.pool->moments.back().state;
  std::string what = absl::StrFormat("thread pool: %d workers of at most %d, %d of them with work", last.workers,
                                     last.max_workers, last.working);
  if (!last.queued) {
    AddFinding(findings, FindingLevel::kPass, "thread_pool", absl::StrCat(what, "; its queues can't be read"));
    return;
  }
  absl::StrAppendFormat(&what, ", %d work items queued", *last.queued);
  bool lying = true, waiting = true;
  for (const PoolMoment& moment : facts.pool->moments) {
    lying &= moment.state.leaves_work_lying();
    waiting &= WorkersWait(moment);
  }
  const std::string idle =
      last.working < last.workers ? absl::StrFormat("; the pool lets only %d work for now", last.wanted) : "";
  if (lying && waiting) {
    absl::StrAppend(&what, ": it is starved, its workers wait while work is left lying", idle,
                    last.is_full() ? "; it has all that it may have" : "");
    AddFinding(findings, FindingLevel::kWarn, "thread_pool", std::move(what),
               absl::StrCat("clrsampler threadpool --pid ", facts.pid, " says where they wait"));
  } else if (lying) {
    AddFinding(findings, FindingLevel::kWarn, "thread_pool", absl::StrCat(what, ": those with work are busy", idle),
               absl::StrCat("clrsampler record --pid ", facts.pid, " says with what"));
  } else {
    AddFinding(findings, FindingLevel::kPass, "thread_pool", absl::StrCat(what, ": not starved"));
  }
}

}  // namespace

Findings CheckProcess(const ProcessFacts& facts) {
  Findings findings;
  if (!facts.readable.ok()) {
    AddFinding(findings, FindingLevel::kFail, "readable",
               absl::StrCat(facts.threads.runtime_threads ? "a .NET process" : "a process",
                            " that can't be looked at: ", facts.readable.message()),
               HintOf(facts.readable));
    return findings;
  }
  if (!facts.runtime.has_value()) {
    AddFinding(findings, FindingLevel::kWarn, "runtime", "no .NET runtime is mapped: only native and kernel frames",
               "none, if it is a native program; else look whether it has just started: clrsampler ps");
    CheckUnwindData(facts, findings);
    return findings;
  }
  CheckRuntime(facts, findings);
  CheckNames(facts, findings);
  if (facts.runtime->emulated()) {
    CheckUnwindData(facts, findings);
    CheckContainer(facts, findings);
    return findings;
  }
  CheckMemory(facts, findings);
  CheckDefects(facts, findings);
  CheckSocket(facts, findings);
  CheckDirectory(facts, findings);
  CheckAttached(facts, findings);
  CheckUnwindData(facts, findings);
  CheckHooks(facts, findings);
  CheckPool(facts, findings);
  CheckContainer(facts, findings);
  return findings;
}

}  // namespace clrsampler
