#include "clr/perf_map/perf_map_lease.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "clr/perf_map/perf_map_target.h"
#include "unit/clr/fake_runtime.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Command = DiagnosticsCommand;

class PerfMapLeaseTest : public testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make(uint64_t cap_bytes = 1 << 20) {
    leases_.reset();
    PerfMapLeaseOptions options;
    options.everywhere = true;
    options.cap_bytes = cap_bytes;
    options.directory = runtime_.leases();
    options.proc_root = runtime_.proc_root();
    options.guard_program = "";
    leases_ = std::make_unique<PerfMapLeases>(options, clock_, notices_);
    ASSERT_TRUE(leases_->Start().ok());
  }
  Process TheProcess() {
    Process process({runtime_.pid(), 1}, runtime_.files());
    process.namespace_pid = FakeRuntime::kNamespacePid;
    process.comm = "Shop";
    process.mappings.Insert({.start = 0x1000, .end = 0x2000, .kind = MappingKind::kFile, .path = "/x/libcoreclr.so"});
    return process;
  }
  // Steps until `done`, or for 100 s of the clock.
  template <typename Done>
  bool StepUntil(Done done) {
    const MonotonicTime began = clock_.Now();
    for (MonotonicTime now = began; now.ns < began.ns + 100'000'000'000; now = clock_.Now()) {
      leases_->Step(now);
      if (done()) return true;
      usleep(100);
    }
    return false;
  }
  bool SwitchOn() {
    leases_->Wanted(TheProcess());
    return StepUntil([&] { return leases_->IsOn({runtime_.pid(), 1}); });
  }
  std::vector<std::string> LeaseNames() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(runtime_.leases())) names.push_back(entry.path().filename());
    return names;
  }
  std::string Said() const {
    std::string text;
    for (const Notice& notice : notices_.kept()) absl::StrAppend(&text, notice.kind, ": ", notice.message, "\n");
    return text;
  }

  FakeRuntime runtime_;
  PatientClock clock_{runtime_};
  Notices notices_;
  std::unique_ptr<PerfMapLeases> leases_;
};

TEST_F(PerfMapLeaseTest, SwitchesOnAndOffAndLeavesNothing) {
  bool leased_before = false;
  runtime_.Serve([&](const DiagnosticsRequest& request) {
    if (request.command == Command::kEnablePerfMap) leased_before = LeaseNames().size() == 1;
    return runtime_.Behave(request);
  });
  ASSERT_TRUE(SwitchOn()) << Said();
  EXPECT_TRUE(leased_before);
  EXPECT_TRUE(fs::exists(runtime_.map()));
  leases_->Finish();
  EXPECT_FALSE(fs::exists(runtime_.map()));
  EXPECT_FALSE(runtime_.MapIsOn());
  EXPECT_THAT(LeaseNames(), IsEmpty());
  EXPECT_THAT(runtime_.commands(), ElementsAre(Command::kProcessInfo2, Command::kDisablePerfMap,
                                               Command::kEnablePerfMap, Command::kDisablePerfMap));
  EXPECT_EQ(Said(), "");
}

TEST_F(PerfMapLeaseTest, ARuntimeThatIsStillStartingGetsNoCommandAtAll) {
  runtime_.SetStarted(false);
  runtime_.Serve();
  leases_->Wanted(TheProcess());
  const MonotonicTime began = clock_.Now();
  for (uint64_t second = 0; second < 300; ++second) leases_->Step({began.ns + second * 1'000'000'000});
  runtime_.StopServer();
  EXPECT_THAT(runtime_.commands(), IsEmpty()) << "asked before it was up";
  fs::remove(runtime_.InTarget("/tmp") + runtime_.SocketName(runtime_.ticks()));
  runtime_.Serve();
  runtime_.SetStarted(true);
  clock_.Advance(300'000'000'000);
  EXPECT_TRUE(StepUntil([&] { return leases_->IsOn({runtime_.pid(), 1}); })) << Said();
}

TEST_F(PerfMapLeaseTest, AProcessOfLessThanASecondIsLeftAlone) {
  bool started = true;
  for (int i = 0; i < 100 && started; ++i) {  // where this test itself stands still for a second, it is no start
    runtime_.SetAge(0);
    started = RuntimeHasStarted(runtime_.proc_root(), runtime_.identity());
  }
  EXPECT_FALSE(started);
  runtime_.SetAge(1000);
  EXPECT_TRUE(RuntimeHasStarted(runtime_.proc_root(), runtime_.identity()));
}

TEST_F(PerfMapLeaseTest, AMapOfTheTargetItselfIsNotTouched) {
  for (const absl::string_view variable :
       {"DOTNET_PerfMapEnabled=3", "COMPlus_PerfMapEnabled=1", "DOTNET_PerfMapEnabled=0x2"}) {
    runtime_.SetEnvironment(absl::StrCat("A=b", absl::string_view("\0", 1), variable, absl::string_view("\0", 1)));
    EXPECT_TRUE(
        absl::IsAlreadyExists(CheckNobodysMap(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp")))
        << variable;
  }
  runtime_.SetEnvironment(absl::string_view("DOTNET_PerfMapEnabled=0\0", 24));
  EXPECT_TRUE(CheckNobodysMap(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp").ok());
}

TEST_F(PerfMapLeaseTest, AnEnvironmentThatDoesNotAnswerHoldsNobody) {
  runtime_.LetEnvironmentHang();
  const auto broker = FileBroker::Start([] { return absl::OkStatus(); }, kPatientBroker);
  ASSERT_TRUE(broker.ok()) << broker.status();
  const TargetFiles files(runtime_.proc_root(), runtime_.pid(), nullptr, broker->get());
  EXPECT_TRUE(absl::IsUnavailable(PerfMapDirectory(files).status())) << "the process is left alone";
  EXPECT_EQ((*broker)->counters().hung, 1u);
  EXPECT_FALSE(EnvironmentEnablesMap(files));
}

TEST_F(PerfMapLeaseTest, AMapThatAnotherToolHasOnIsNotTouched) {
  for (const char* name : {"/elsewhere/perf-7.map", "/tmp/jit-7.dump", "/tmp/perf-7.map (deleted)"}) {
    runtime_.HoldOpen(name);
    EXPECT_TRUE(
        absl::IsAlreadyExists(CheckNobodysMap(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp")))
        << name;
    runtime_.LetGo();
  }
  runtime_.HoldOpen("/tmp/perf-77.map");  // of a parent, inherited
  EXPECT_TRUE(CheckNobodysMap(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp").ok());
}

TEST_F(PerfMapLeaseTest, AFileThatThisProcessWroteBeforeIsNotTouchedAndAnOlderOneIs) {
  FakeRuntime::Write(runtime_.map(), "theirs");
  const auto check = [&] {
    return CheckNobodysMap(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp");
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(check()));
  fs::last_write_time(runtime_.map(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(check().ok()) << check();  // an earlier process of the same pid
  fs::create_hard_link(runtime_.map(), runtime_.InTarget("/tmp/other"));
  EXPECT_TRUE(absl::IsFailedPrecondition(check()));
  fs::remove(runtime_.map());
  fs::create_symlink("other", runtime_.map());
  EXPECT_TRUE(absl::IsFailedPrecondition(check()));
}

TEST_F(PerfMapLeaseTest, TheCapSwitchesOff) {
  runtime_.Serve();
  Make(100);
  ASSERT_TRUE(SwitchOn()) << Said();
  FakeRuntime::Write(runtime_.map(), std::string(101, 'x'));
  EXPECT_TRUE(StepUntil([&] { return !fs::exists(runtime_.map()); })) << Said();
  EXPECT_THAT(Said(), HasSubstr("perf_map_cap"));
  EXPECT_THAT(LeaseNames(), IsEmpty());
  EXPECT_EQ(leases_->counters().over_cap, 1u);
  EXPECT_FALSE(runtime_.MapIsOn());
}

TEST_F(PerfMapLeaseTest, OnlyTheFileThatWeCausedIsRemoved) {
  runtime_.Serve();
  ASSERT_TRUE(SwitchOn()) << Said();
  fs::rename(runtime_.map(), runtime_.InTarget("/tmp/kept"));
  FakeRuntime::Write(runtime_.map(), "another file of that name");
  leases_->Finish();
  EXPECT_TRUE(fs::exists(runtime_.map()));
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(PerfMapLeaseTest, ATargetThatExitsLeavesNoFile) {
  runtime_.Serve();
  ASSERT_TRUE(SwitchOn()) << Said();
  runtime_.Exit();
  EXPECT_TRUE(StepUntil([&] { return !fs::exists(runtime_.map()); }));
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(PerfMapLeaseTest, WhenAnotherToolSwitchesOursOffItIsSaid) {
  runtime_.Serve();
  ASSERT_TRUE(SwitchOn()) << Said();
  runtime_.LetGo();
  FakeRuntime::Write(runtime_.process() + "/fd/0", "");  // it still has descriptors
  EXPECT_TRUE(StepUntil([&] { return LeaseNames().empty(); }));
  EXPECT_THAT(Said(), HasSubstr("perf_map_ended"));
}

TEST_F(PerfMapLeaseTest, AnOldRuntimeIsToldFromANewOne) {
  runtime_.Serve([&](const DiagnosticsRequest&) { return FakeRuntime::ProcessInfo(7, "7.0.20"); });
  leases_->Wanted(TheProcess());
  EXPECT_TRUE(StepUntil([&] { return !notices_.kept().empty(); }));
  EXPECT_THAT(Said(), HasSubstr("only .NET 8"));
  EXPECT_THAT(runtime_.commands(), ElementsAre(Command::kProcessInfo2));
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(PerfMapLeaseTest, OfARuntimeThatMayHangItIsSaid) {
  runtime_.Serve([&](const DiagnosticsRequest& request) {
    const std::string reply = runtime_.Behave(request);
    return request.command == Command::kProcessInfo2 ? FakeRuntime::ProcessInfo(7, "10.0.9") : reply;
  });
  EXPECT_TRUE(SwitchOn());
  EXPECT_THAT(Said(), HasSubstr("perf_map_can_hang"));
}

TEST_F(PerfMapLeaseTest, NothingIsSentToAnyProcessUnasked) {
  runtime_.Serve();
  PerfMapLeaseOptions options;
  options.directory = runtime_.leases();
  options.proc_root = runtime_.proc_root();
  options.guard_program = "";
  leases_ = std::make_unique<PerfMapLeases>(options, clock_, notices_);
  ASSERT_TRUE(leases_->Start().ok());
  leases_->Wanted(TheProcess());
  const MonotonicTime began = clock_.Now();
  for (uint64_t second = 0; second < 300; ++second) leases_->Step({began.ns + second * 1'000'000'000});
  EXPECT_FALSE(leases_->IsComing({runtime_.pid(), 1}));
  EXPECT_THAT(runtime_.commands(), IsEmpty());
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

TEST_F(PerfMapLeaseTest, AMapThatIsOnForTooLongIsSwitchedOff) {
  runtime_.Serve();
  ASSERT_TRUE(SwitchOn()) << Said();
  const uint64_t on = clock_.Now().ns;
  leases_->Step({on + kDefaultPerfMapTimeNs / 2});
  EXPECT_TRUE(leases_->IsOn({runtime_.pid(), 1}));
  leases_->Step({on + kDefaultPerfMapTimeNs + 1'000'000'000});
  EXPECT_TRUE(StepUntil([&] { return LeaseNames().empty(); }));
  EXPECT_FALSE(fs::exists(runtime_.map()));
  EXPECT_THAT(Said(), HasSubstr("was on for 3600 seconds"));
  EXPECT_EQ(leases_->counters().over_cap, 1u);
}

TEST_F(PerfMapLeaseTest, ARuntimeThatSaysItIsAnotherProcessIsRefused) {
  runtime_.Serve([&](const DiagnosticsRequest&) { return FakeRuntime::ProcessInfo(8, "10.0.12"); });
  leases_->Wanted(TheProcess());
  EXPECT_TRUE(StepUntil([&] { return !notices_.kept().empty(); }));
  EXPECT_THAT(Said(), HasSubstr("it is process 8"));
}

TEST_F(PerfMapLeaseTest, AServerThatAnswersNothingIsGivenUpAndSaid) {
  runtime_.Serve([&](const DiagnosticsRequest&) { return std::string(); });
  leases_->Wanted(TheProcess());
  EXPECT_TRUE(StepUntil([&] { return !notices_.kept().empty(); }));
  EXPECT_THAT(Said(), HasSubstr("the runtime did not answer in time"));
  EXPECT_THAT(runtime_.commands(), testing::Not(Contains(Command::kEnablePerfMap)));
}

TEST_F(PerfMapLeaseTest, NonsenseIsGivenUpAndSaid) {
  runtime_.Serve([&](const DiagnosticsRequest&) { return std::string("HTTP/1.1 400\r\n"); });
  leases_->Wanted(TheProcess());
  EXPECT_TRUE(StepUntil([&] { return !notices_.kept().empty(); }));
  EXPECT_THAT(Said(), HasSubstr("does not speak the .NET diagnostics protocol"));
}

// The request may have been heard: the map may be on at any later time.
TEST_F(PerfMapLeaseTest, AnEnableWithoutAnswerIsUndone) {
  runtime_.Serve([&](const DiagnosticsRequest& request) {
    const std::string reply = runtime_.Behave(request);
    return request.command == Command::kEnablePerfMap ? std::string() : reply;
  });
  leases_->Wanted(TheProcess());
  EXPECT_TRUE(StepUntil([&] { return !notices_.kept().empty() && LeaseNames().empty(); })) << Said();
  EXPECT_FALSE(fs::exists(runtime_.map()));
  EXPECT_FALSE(runtime_.MapIsOn());
}

TEST_F(PerfMapLeaseTest, WhatCanNotBeEndedIsLeftForTheNextRunWhichEndsIt) {
  std::atomic<bool> silent{false};
  runtime_.Serve([&](const DiagnosticsRequest& request) { return silent ? std::string() : runtime_.Behave(request); });
  ASSERT_TRUE(SwitchOn()) << Said();
  silent = true;
  leases_->Finish();
  EXPECT_EQ(leases_->counters().left, 1u);
  EXPECT_THAT(Said(), HasSubstr("perf_map_left"));
  EXPECT_TRUE(fs::exists(runtime_.map()));
  EXPECT_THAT(LeaseNames(), testing::SizeIs(1));
  silent = false;
  Make();
  EXPECT_EQ(leases_->counters().repaired, 1u);
  EXPECT_FALSE(fs::exists(runtime_.map()));
  EXPECT_FALSE(runtime_.MapIsOn());
  EXPECT_THAT(LeaseNames(), IsEmpty());
}

// Killed at each point of the way: the record is what was on disk then.
TEST_F(PerfMapLeaseTest, ARecordWithoutFilesRemovesOnlyWhatIsNotOlder) {
  auto store = LeaseStore::Open(runtime_.leases(), true);
  ASSERT_TRUE(store.ok());
  const auto record = DescribeLease(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp");
  ASSERT_TRUE(record.ok()) << record.status();
  runtime_.Serve();
  FakeRuntime::Write(runtime_.map(), "written after the lease");
  FakeRuntime::Write(runtime_.InTarget("/tmp/perfinfo-7.map"), "older");
  fs::last_write_time(runtime_.InTarget("/tmp/perfinfo-7.map"),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  ASSERT_TRUE(store->Create(*record).ok());
  EXPECT_EQ(RepairDeadLeases(*store, runtime_.proc_root(), clock_, 1'000'000'000).repaired, 1u);
  EXPECT_FALSE(fs::exists(runtime_.map()));
  EXPECT_TRUE(fs::exists(runtime_.InTarget("/tmp/perfinfo-7.map")));
  EXPECT_THAT(runtime_.commands(), ElementsAre(Command::kDisablePerfMap));
}

TEST_F(PerfMapLeaseTest, ALeaseOnAnEarlierProcessOfThatPidSendsNothing) {
  auto store = LeaseStore::Open(runtime_.leases(), true);
  auto record = DescribeLease(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp");
  ASSERT_TRUE(record.ok());
  record->target.start_ticks -= 5;
  runtime_.Serve();
  ASSERT_TRUE(store->Create(*record).ok());
  RepairDeadLeases(*store, runtime_.proc_root(), clock_, 1'000'000'000);
  EXPECT_THAT(runtime_.commands(), IsEmpty());
}

TEST_F(PerfMapLeaseTest, ALeaseOfAnotherPidNamespaceIsLeft) {
  auto store = LeaseStore::Open(runtime_.leases(), true);
  auto record = DescribeLease(runtime_.proc_root(), runtime_.identity(), runtime_.files(), "/tmp");
  ASSERT_TRUE(record.ok());
  record->agent_pid_namespace += 1;
  runtime_.Serve();
  ASSERT_TRUE(store->Create(*record).ok());
  EXPECT_THAT(RepairDeadLeases(*store, runtime_.proc_root(), clock_, 1'000'000'000).left, testing::SizeIs(1));
  EXPECT_THAT(runtime_.commands(), IsEmpty());
  EXPECT_THAT(LeaseNames(), testing::SizeIs(1));
}

}  // namespace
}  // namespace clrsampler
