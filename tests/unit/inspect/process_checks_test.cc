#include "inspect/process_checks.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "status/status.h"
#include "unit/inspect/sample_facts.h"

namespace clrsampler {
namespace {

// The worst finding of a check; a missing one is a pass with the text "(none)".
Finding Worst(const ProcessFacts& facts, absl::string_view check) {
  Finding worst{FindingLevel::kPass, "", "(none)", ""};
  for (const Finding& finding : CheckProcess(facts)) {
    if (finding.check == check && (worst.what == "(none)" || finding.level > worst.level)) worst = finding;
  }
  return worst;
}

TEST(ProcessChecksTest, AHealthyProcessPassesEveryLine) {
  for (const Finding& finding : CheckProcess(HealthyProcess())) {
    EXPECT_EQ(finding.level, FindingLevel::kPass) << finding.what;
    EXPECT_EQ(finding.fix, "") << finding.what;
  }
  EXPECT_EQ(Worst(HealthyProcess(), "runtime").what, ".NET 10.0.14, framework-dependent, x64, glibc, server GC");
}

TEST(ProcessChecksTest, AnEmulatedProgramFailsForItsNamesAndPromisesNothingElse) {
  const Finding names = Worst(EmulatedProgram(), "names");
  EXPECT_EQ(names.level, FindingLevel::kFail);
  EXPECT_EQ(names.what, "names: poor (no source): arm64 program under emulation: names are not possible");
  EXPECT_TRUE(absl::StartsWith(names.fix, "profile it on such a machine")) << names.fix;
  EXPECT_EQ(Worst(EmulatedProgram(), "runtime").what, ".NET 10.0.14, emulated, arm64, glibc, server GC");
  for (const absl::string_view check : {"memory", "diagnostics_socket", "perf_map_directory", "runtime_defect"}) {
    EXPECT_EQ(Worst(EmulatedProgram(), check).what, "(none)") << check;
  }
}

// Ten moments of a pool of 8 workers, `waiting` of which wait, with so much work left lying at each.
ProcessFacts WithPool(uint32_t waiting, std::vector<std::optional<uint64_t>> queued, uint32_t most = 64) {
  ProcessFacts facts = HealthyProcess();
  facts.pool.emplace();
  for (const std::optional<uint64_t>& items : queued) {
    facts.pool->moments.push_back(
        {{.min_workers = 2, .max_workers = most, .workers = 8, .working = 8, .wanted = 8, .queued = items},
         8,
         waiting});
  }
  return facts;
}

TEST(ProcessChecksTest, APoolWhoseWorkersWaitWhileWorkIsLeftLyingIsStarved) {
  const Finding starved = Worst(WithPool(8, {12, 13, 14}), "thread_pool");
  EXPECT_EQ(starved.level, FindingLevel::kWarn);
  EXPECT_EQ(
      starved.what,
      "thread pool: 8 workers of at most 64, 8 of them with work, 14 work items queued: it is starved, its workers "
      "wait while work is left lying");
  EXPECT_EQ(starved.fix, "clrsampler threadpool --pid 4711 says where they wait");
  EXPECT_TRUE(absl::EndsWith(Worst(WithPool(7, {1}, 8), "thread_pool").what, "it has all that it may have"));
}

TEST(ProcessChecksTest, APoolIsNotStarvedWhileItWorksOrHasNoWork) {
  const Finding busy = Worst(WithPool(3, {12, 13, 14}), "thread_pool");
  EXPECT_EQ(busy.level, FindingLevel::kWarn);
  EXPECT_TRUE(absl::EndsWith(busy.what, "those with work are busy")) << busy.what;
  const Finding calm = Worst(WithPool(8, {12, 0, 14}), "thread_pool");
  EXPECT_EQ(calm.level, FindingLevel::kPass);
  EXPECT_TRUE(absl::EndsWith(calm.what, "not starved")) << calm.what;
}

// Ten moments of a pool that lets 8 of its 20 workers work, of which so many have work and run.
ProcessFacts WithIdleWorkersAboveTheGoal(uint32_t working, uint32_t running) {
  ProcessFacts facts = HealthyProcess();
  facts.pool.emplace();
  for (int i = 0; i < 10; ++i) {
    const PoolState state = {
        .min_workers = 2, .max_workers = 64, .workers = 20, .working = working, .wanted = 8, .queued = 14};
    facts.pool->moments.push_back({.state = state, .seen = 20, .waiting = 20 - running});
  }
  return facts;
}

TEST(ProcessChecksTest, IdleWorkersThatThePoolLetsNotWorkHelpNobody) {
  const Finding starved = Worst(WithIdleWorkersAboveTheGoal(8, 1), "thread_pool");
  EXPECT_EQ(starved.level, FindingLevel::kWarn);
  EXPECT_EQ(
      starved.what,
      "thread pool: 20 workers of at most 64, 8 of them with work, 14 work items queued: it is starved, its workers "
      "wait while work is left lying; the pool lets only 8 work for now");
}

TEST(ProcessChecksTest, IdleWorkersAreNotCountedAsWaiting) {
  const Finding busy = Worst(WithIdleWorkersAboveTheGoal(8, 3), "thread_pool");
  EXPECT_EQ(busy.level, FindingLevel::kWarn);
  EXPECT_TRUE(absl::EndsWith(busy.what, "those with work are busy; the pool lets only 8 work for now")) << busy.what;
}

TEST(ProcessChecksTest, APoolThatMayLetAnIdleWorkerWorkIsNotStarved) {
  EXPECT_EQ(Worst(WithIdleWorkersAboveTheGoal(7, 0), "thread_pool").level, FindingLevel::kPass);
  ProcessFacts drained = WithIdleWorkersAboveTheGoal(8, 0);
  drained.pool->moments[3].state.queued = 0;
  EXPECT_EQ(Worst(drained, "thread_pool").level, FindingLevel::kPass);
}

TEST(ProcessChecksTest, OfAPoolWhoseQueuesAreNotKnownNothingIsClaimed) {
  const Finding unknown = Worst(WithPool(8, {std::nullopt}), "thread_pool");
  EXPECT_EQ(unknown.level, FindingLevel::kPass);
  EXPECT_TRUE(absl::EndsWith(unknown.what, "its queues can't be read")) << unknown.what;
  EXPECT_EQ(Worst(HealthyProcess(), "thread_pool").what, "(none)");
}

TEST(ProcessChecksTest, WhatIsNoPassSaysWhatToDo) {
  ProcessFacts facts = HealthyProcess({10, 0, 12});
  facts.memory = absl::PermissionDeniedError("memory of process 4711: Operation not permitted");
  facts.environment.perf_map_enabled = 2;
  facts.environment.enable_diagnostics = 0;
  facts.environment.profiler = "/opt/profiler.so";
  facts.perf_map_directory.read_only = true;
  facts.tracer_pid = 99;
  facts.age_seconds = 1;
  int warnings = 0;
  for (const Finding& finding : CheckProcess(facts)) {
    if (finding.level == FindingLevel::kPass) continue;
    EXPECT_NE(finding.fix, "") << finding.what;
    ++warnings;
  }
  EXPECT_GE(warnings, 8);
}

TEST(ProcessChecksTest, ADefectWarnsWhereItIsAtWork) {
  ProcessFacts facts = HealthyProcess({10, 0, 12});
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kPass);
  facts.environment.perf_map_enabled = 3;
  facts.perf_map.live = true;
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kPass) << "the perf map alone is whole on 10.0.12";
  facts.environment.perf_map_enabled = 1;
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kWarn);
  EXPECT_NE(Worst(facts, "runtime_defect").what.find("dotnet/runtime#113943"), std::string::npos);
  facts.runtime->version = {10, 0, 14};
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kPass);
}

TEST(ProcessChecksTest, EarlyEnableWarnsOnlyInAYoungProcess) {
  ProcessFacts facts = HealthyProcess({8, 0, 30});
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kPass);
  facts.age_seconds = 1;
  EXPECT_EQ(Worst(facts, "runtime_defect").level, FindingLevel::kWarn);
}

TEST(ProcessChecksTest, NamelessCodeFails) {
  ProcessFacts facts = HealthyProcess();
  facts.memory = absl::PermissionDeniedError("no");
  facts.runtime->precompiled = false;
  EXPECT_EQ(Worst(facts, "names").level, FindingLevel::kFail);
  facts = HealthyProcess({9, 0, 20});
  facts.runtime->kind = RuntimeImageKind::kNativeAot;
  EXPECT_EQ(Worst(facts, "names").level, FindingLevel::kFail);
  EXPECT_EQ(Worst(facts, "runtime_defect").what, "(none)") << "defects of CoreCLR are none of NativeAOT";
}

TEST(ProcessChecksTest, MemoryIsJudgedByWhatARecordingWouldFind) {
  ProcessFacts facts = HealthyProcess();
  facts.memory = absl::UnavailableError("it has compiled nothing yet");
  EXPECT_EQ(Worst(facts, "memory").level, FindingLevel::kPass);
  EXPECT_EQ(Worst(facts, "memory").what, "memory reading: not yet: it has compiled nothing yet");
  facts.memory = absl::PermissionDeniedError("the memory of process 4711 may not be read");
  EXPECT_NE(Worst(facts, "memory").fix.find("cap_sys_ptrace"), std::string::npos);
  facts.memory = absl::FailedPreconditionError("its contract Loader has version c2, known is c1");
  EXPECT_EQ(Worst(facts, "memory").what, "memory reading: its contract Loader has version c2, known is c1");
  EXPECT_NE(Worst(facts, "memory").fix.find("--enable-perf-map"), std::string::npos);
}

TEST(ProcessChecksTest, SocketSwitchedOffIsToldFromSocketMissing) {
  ProcessFacts facts = HealthyProcess();
  facts.socket = absl::NotFoundError("/tmp/dotnet-diagnostic-7-1");
  EXPECT_NE(Worst(facts, "diagnostics_socket").what.find("none at /tmp/dotnet-diagnostic-7-1"), std::string::npos);
  facts.socket = absl::FailedPreconditionError("/tmp/dotnet-diagnostic-7-1 lies on a file system that may not answer");
  EXPECT_NE(Worst(facts, "diagnostics_socket").what.find("may not answer"), std::string::npos);
  facts.environment.enable_diagnostics_ipc = 0;
  EXPECT_NE(Worst(facts, "diagnostics_socket").what.find("EnableDiagnostics_IPC=0"), std::string::npos);
  EXPECT_FALSE(AnyFails(CheckProcess(facts)));
}

TEST(ProcessChecksTest, ASocketThatMayNotAnswerSaysWhereToPutIt) {
  ProcessFacts facts = HealthyProcess();
  facts.socket = WithHint(absl::FailedPreconditionError("/tmp/x lies on a file system that may not answer"),
                          "put the folder of the socket on a volume");
  EXPECT_EQ(Worst(facts, "diagnostics_socket").level, FindingLevel::kWarn);
  EXPECT_EQ(Worst(facts, "diagnostics_socket").fix, "put the folder of the socket on a volume");
  facts.socket = absl::NotFoundError("/tmp/x");
  EXPECT_TRUE(absl::StartsWith(Worst(facts, "diagnostics_socket").fix, "none needed"));
}

TEST(ProcessChecksTest, ADirectoryThatIsThereNeedNotBeMade) {
  ProcessFacts facts = HealthyProcess();
  facts.environment.perf_map_enabled = 3;
  facts.perf_map_directory.status = absl::UnavailableError("it lies on a file system that may not answer");
  const Finding finding = Worst(facts, "perf_map_directory");
  EXPECT_EQ(finding.level, FindingLevel::kWarn);
  EXPECT_EQ(finding.what, "perf map directory /tmp: it lies on a file system that may not answer");
  EXPECT_TRUE(absl::StartsWith(finding.fix, "put it on a volume")) << finding.fix;
}

TEST(ProcessChecksTest, TheDirectoryMattersToThoseWhoWriteThere) {
  ProcessFacts facts = HealthyProcess();
  facts.perf_map_directory.free_bytes = 1 << 20;
  EXPECT_EQ(Worst(facts, "perf_map_directory").level, FindingLevel::kPass);
  facts.environment.perf_map_enabled = 3;
  EXPECT_EQ(Worst(facts, "perf_map_directory").level, FindingLevel::kWarn);
  facts.perf_map_directory.status = absl::NotFoundError("/tmp: No such file or directory");
  EXPECT_NE(Worst(facts, "perf_map_directory").what.find("does not exist"), std::string::npos);
}

TEST(ProcessChecksTest, WithoutARuntimeThereIsOneLineAndNoFailure) {
  ProcessFacts facts;
  facts.pid = 1;
  EXPECT_EQ(CheckProcess(facts).size(), 1u);
  EXPECT_FALSE(AnyFails(CheckProcess(facts)));
  facts.readable = WithHint(absl::PermissionDeniedError("no"), "ask");
  EXPECT_TRUE(AnyFails(CheckProcess(facts)));
  EXPECT_EQ(CheckProcess(facts)[0].fix, "ask");
}

TEST(ProcessChecksTest, ImagesWithoutUnwindDataAreListed) {
  ProcessFacts facts = HealthyProcess();
  EXPECT_EQ(Worst(facts, "unwind_data").what, "(none)") << "nobody has looked";
  facts.unwind.emplace();
  facts.unwind->images = 31;
  EXPECT_EQ(Worst(facts, "unwind_data").level, FindingLevel::kPass);
  EXPECT_NE(Worst(facts, "unwind_data").what.find("31"), std::string::npos);
  facts.unwind->unusable.push_back({"/opt/libfast.so", "no .eh_frame"});
  const Finding finding = Worst(facts, "unwind_data");
  EXPECT_EQ(finding.level, FindingLevel::kWarn);
  EXPECT_NE(finding.what.find("/opt/libfast.so: no .eh_frame"), std::string::npos);
  for (int i = 0; i < 100; ++i) facts.unwind->unusable.push_back({"/opt/" + std::to_string(i), "no .eh_frame"});
  int lines = 0;
  bool rest = false;
  for (const Finding& each : CheckProcess(facts)) {
    lines += each.check == "unwind_data";
    rest |= each.what.find("93 more") != std::string::npos;
  }
  EXPECT_EQ(lines, 9);
  EXPECT_TRUE(rest);
  facts.runtime.reset();
  EXPECT_EQ(Worst(facts, "unwind_data").level, FindingLevel::kWarn) << "native programs are unwound, too";
}

TEST(ProcessChecksTest, UnwindDataIsComparedWithTheCode) {
  ProcessFacts facts = HealthyProcess();
  facts.unwind.emplace();
  facts.unwind->images = 2;
  facts.unwind->extents = {{"/lib/libgood.so", 1000, 990, false}, {"/lib/ld-musl-x86_64.so.1", 1000, 870, true}};
  Finding finding = Worst(facts, "unwind_data");
  EXPECT_EQ(finding.level, FindingLevel::kPass);
  EXPECT_EQ(finding.what,
            "unwind data: all of 2 native images have it, for 93.0 % of their code; 1 has it by their instructions");
  facts.unwind->extents.push_back({"/lib/libdl.so.2", 289, 29, false});
  EXPECT_EQ(Worst(facts, "unwind_data").level, FindingLevel::kPass) << "a stub of a library";
  // A table that says next to nothing is none.
  facts.unwind->extents[1] = {"/lib/ld-musl-x86_64.so.1", 403348, 2265, false};
  finding = Worst(facts, "unwind_data");
  EXPECT_EQ(finding.level, FindingLevel::kWarn);
  EXPECT_EQ(finding.what, "unwind data: for 0.6 % of the code of /lib/ld-musl-x86_64.so.1");
  EXPECT_NE(finding.fix.find("debug symbols"), std::string::npos);
}

TEST(ProcessChecksTest, PausesThatCanNotBeSeenAreAWarningWithTheEvidenceThatFailed) {
  ProcessFacts facts = HealthyProcess();
  EXPECT_EQ(Worst(facts, "pauses").what, "(none)") << "nobody has looked";
  facts.hooks.emplace();
  EXPECT_EQ(Worst(facts, "pauses").level, FindingLevel::kPass);
  facts.hooks->collections = absl::NotFoundError("no table of the collector");
  EXPECT_EQ(Worst(facts, "pauses").level, FindingLevel::kWarn);
  EXPECT_NE(Worst(facts, "pauses").what.find("without generations: no table of the collector"), std::string::npos);
  facts.hooks->pauses = absl::NotFoundError("no tracepoint of that name");
  EXPECT_NE(Worst(facts, "pauses").what.find("can't be seen: no tracepoint of that name"), std::string::npos);
}

TEST(ProcessChecksTest, AllocationsThatCanNotBeSeenAreAWarning) {
  ProcessFacts facts = HealthyProcess();
  facts.hooks.emplace();
  EXPECT_EQ(Worst(facts, "allocations").level, FindingLevel::kPass);
  facts.hooks->allocations = absl::NotFoundError("nothing reports a sum");
  EXPECT_EQ(Worst(facts, "allocations").level, FindingLevel::kWarn);
  EXPECT_NE(Worst(facts, "allocations").what.find("can't be seen: nothing reports a sum"), std::string::npos);
  EXPECT_EQ(Worst(facts, "exceptions").level, FindingLevel::kPass);
  facts.hooks->exceptions = absl::NotFoundError("no entry point is called SfiInit");
  EXPECT_EQ(Worst(facts, "exceptions").level, FindingLevel::kWarn);
  EXPECT_NE(Worst(facts, "exceptions").what.find("can't be seen: no entry point"), std::string::npos);
}

}  // namespace
}  // namespace clrsampler
