#include "process/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "process/per_process.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

constexpr char kMaps[] =
    "00400000-00401000 r-xp 00001000 08:01 77                         /usr/bin/app\n"
    "00500000-00501000 rw-p 00001000 08:01 77                         /usr/bin/app\n"
    "7f0000000000-7f0000010000 r-xs 00000000 00:01 99                 /memfd:doublemapper (deleted)\n";

// Processes in a fake /proc; the clock only moves when a test moves it.
class ProcessTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "process_table_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    clock_.Set({1000});
  }
  void TearDown() override { fs::remove_all(proc_); }

  // `start_ticks` of 10 ms.
  void MakeProcess(int pid, const std::string& comm, int start_ticks, int namespace_pid, const std::string& maps,
                   char state = 'S', int threads = 1, uint64_t start_stack = 0) {
    const fs::path directory = proc_ / std::to_string(pid);
    fs::create_directories(directory / "root");
    std::ofstream(directory / "stat") << pid << " (" << comm << ") " << state << " 1 1 1 0 -1 0 0 0 0 0 5 7 0 0 20 0 "
                                      << threads << " 0 " << start_ticks << " 0 0 0 0 0 " << start_stack
                                      << " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    std::ofstream(directory / "status") << "Name:\t" << comm << "\nTgid:\t" << pid << "\nPid:\t" << pid
                                        << "\nPPid:\t1\nUid:\t0\t0\t0\t0\nNStgid:\t" << pid << "\t" << namespace_pid
                                        << "\nNSpid:\t" << pid << "\t" << namespace_pid << "\nThreads:\t1\n";
    std::ofstream(directory / "maps") << maps;
  }
  // The same process, by its stack, perhaps with another program.
  void MakeProgram(uint64_t start_stack, const std::string& executable = "") {
    MakeProcess(42, "app", 100, 42, kMaps, 'S', 1, start_stack);
    fs::remove(proc_ / "42" / "exe");
    if (!executable.empty()) fs::create_symlink(executable, proc_ / "42" / "exe");
  }
  // Its exec count, after some of its events were lost.
  uint32_t ExecsAfterLoss(ProcessTable& table) {
    clock_.Advance(1000);
    table.OnEventsLost(clock_.Now());
    clock_.Advance(1000);
    return table.FindOrScan(42, 0).exec_count;
  }
  static Mapping Code(uint64_t start, std::string path) {
    Mapping mapping;
    mapping.start = start;
    mapping.end = start + 0x1000;
    mapping.path = std::move(path);
    mapping.kind = MappingKind::kFile;
    return mapping;
  }

  fs::path proc_;
  FakeClock clock_;
};

TEST_F(ProcessTableTest, ContainersAreReadAtScanAndExecAndInheritedAtFork) {
  MakeProcess(42, "shell", 100, 7, kMaps);
  std::ofstream(proc_ / "42" / "cgroup") << "0::/system.slice/one.service\n";
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  EXPECT_EQ(table.Find(42)->container.Label(), "one.service");
  table.OnFork(43, 42, {2000});
  EXPECT_EQ(table.Find(43)->container.Label(), "one.service");
  MakeProcess(43, "child", 100, 8, kMaps);
  std::ofstream(proc_ / "43" / "cgroup") << "0::/system.slice/two.service\n";
  table.OnExec(43, "child", {3000});
  EXPECT_EQ(table.Find(43)->container.Label(), "two.service");
}

TEST_F(ProcessTableTest, AScanReadsCommInnermostPidAndExecutableMappings) {
  MakeProcess(42, "my (app) x", 100, 7, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const Process& process = table.FindOrScan(42, 0);
  EXPECT_EQ(process.comm, "my (app) x");
  EXPECT_EQ(process.namespace_pid, 7u);
  ASSERT_EQ(process.mappings.all().size(), 2u);
  EXPECT_EQ(process.mappings.Find(0x400010)->path, "/usr/bin/app");
  EXPECT_EQ(process.mappings.Find(0x7f0000000010)->kind, MappingKind::kJitMemory);
}

// An agent that comes later, be it after a restart, reads what an earlier one was told by a sample or a fork.
TEST_F(ProcessTableTest, AProcessHasOneStartTimeHoweverItIsHeardOf) {
  MakeProcess(42, "app", 123, 42, kMaps);
  ProcessTable by_scan(proc_.string(), clock_), by_sample(proc_.string(), clock_), by_fork(proc_.string(), clock_);
  EXPECT_EQ(by_scan.FindOrScan(42, 0).started_boot_ns, 1'230'000'000u);
  EXPECT_EQ(by_sample.FindOrScan(42, 1'239'999'999).started_boot_ns, 1'230'000'000u);
  MakeProcess(41, "parent", 7, 41, kMaps);
  by_fork.FindOrScan(41, 0);
  by_fork.OnFork(42, 41, {2000});
  EXPECT_EQ(by_fork.Find(42)->started_boot_ns, 0u) << "of itself, not of its parent";
  EXPECT_EQ(by_fork.FindOrScan(42, 1'234'567'890).started_boot_ns, 1'230'000'000u);
  by_fork.OnExec(42, "other", {3000});
  EXPECT_EQ(by_fork.Find(42)->started_boot_ns, 1'230'000'000u);
}

TEST_F(ProcessTableTest, AReusedPidIsAnotherProcess) {
  MakeProcess(42, "old", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const ProcessKey old_key = table.FindOrScan(42, 1'000'000'000).key;
  EXPECT_EQ(table.FindOrScan(42, 1'004'000'000).key, old_key) << "same start within a tick";
  MakeProcess(42, "new", 900, 42, kMaps);
  const Process& process = table.FindOrScan(42, 9'000'000'000);
  EXPECT_NE(process.key, old_key);
  EXPECT_EQ(process.comm, "new");
  EXPECT_THAT(table.Retire({0}), ElementsAre(old_key));
}

TEST_F(ProcessTableTest, TheFilesOfANewOwnerAreNotLentToTheSampledProcess) {
  MakeProcess(42, "new owner", 900, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const Process& sampled = table.FindOrScan(42, 1'000'000'000);  // started at 1 s, what is there now at 9 s
  EXPECT_TRUE(sampled.comm.empty());
  EXPECT_TRUE(sampled.mappings.all().empty());
}

TEST_F(ProcessTableTest, EventsFromBeforeTheScanAreInItAlready) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  EXPECT_FALSE(table.OnExec(42, "before", {900}));
  EXPECT_EQ(table.Find(42)->comm, "app");
  table.OnMapping(42, Code(0x600000, "/lib/late.so"), {1100});
  EXPECT_EQ(table.Find(42)->mappings.Find(0x600000)->path, "/lib/late.so");
}

TEST_F(ProcessTableTest, ExecReplacesAllMappings) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const ProcessKey key = table.FindOrScan(42, 0).key;
  EXPECT_TRUE(table.OnExec(42, "next", {1100}));
  const Process& process = *table.Find(42);
  EXPECT_EQ(process.key, key);
  EXPECT_EQ(process.exec_count, 1u);
  EXPECT_EQ(process.comm, "next");
  EXPECT_TRUE(process.mappings.all().empty());
}

TEST_F(ProcessTableTest, CompilesSinceItsStartOrTheExecThatWeKnowOfOrTheFirstMemoryForCode) {
  Mapping heap = Code(0x700000, "");
  heap.kind = MappingKind::kJitMemory;
  clock_.Set({5'000'000'000});
  MakeProcess(41, "compiles", 100, 41, kMaps);  // started at 1 s
  MakeProcess(42, "execs", 100, 42, kMaps);
  MakeProcess(43, "native", 100, 43, "00400000-00401000 r-xp 00001000 08:01 77     /usr/bin/app\n");
  ProcessTable table(proc_.string(), clock_);
  EXPECT_EQ(table.FindOrScan(41, 0).compiles_since, MonotonicTime{1'000'000'000});
  table.AnnounceExec(42, {3'000'000'000});
  EXPECT_EQ(table.FindOrScan(42, 0).compiles_since, MonotonicTime{3'000'000'000});
  EXPECT_EQ(table.FindOrScan(43, 0).compiles_since, MonotonicTime::Max());

  table.OnMapping(43, heap, {6'000'000'000});
  table.OnMapping(43, heap, {7'000'000'000});
  EXPECT_EQ(table.Find(43)->compiles_since, MonotonicTime{6'000'000'000});
  table.OnExec(43, "next", {8'000'000'000});
  EXPECT_EQ(table.Find(43)->compiles_since, MonotonicTime::Max());
  table.OnMapping(43, heap, {9'000'000'000});
  EXPECT_EQ(table.Find(43)->compiles_since, MonotonicTime{9'000'000'000});
}

TEST_F(ProcessTableTest, AProcessScannedAfterAnAnnouncedExecDoesNotSpeakForTheTimeBefore) {
  MakeProcess(42, "after", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.AnnounceExec(42, {800});
  EXPECT_EQ(table.FindOrScan(42, 0).code_known_since, MonotonicTime{800});
  // The same where the exec is learned of after the scan, but happened before it.
  MakeProcess(43, "after", 100, 43, kMaps);
  table.FindOrScan(43, 0);
  table.AnnounceExec(43, {950});
  EXPECT_EQ(table.Find(43)->code_known_since, MonotonicTime{950});
  table.AnnounceExec(43, {2000});
  EXPECT_EQ(table.Find(43)->code_known_since, MonotonicTime{950}) << "an exec to come says nothing about the scan";
}

TEST_F(ProcessTableTest, MappingsThatAreLongGoneDoNotPileUp) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  clock_.Set({5'000'000'000});
  for (uint64_t i = 0; i < 150'000; ++i) table.OnMapping(42, Code(0x10000000 + i * 0x1000, "//anon"), {6'000'000'000});
  const MappingTable& mappings = table.Find(42)->mappings;
  EXPECT_LE(mappings.all().size(), 65'536u);
  EXPECT_NE(mappings.Find(0x10000000 + uint64_t{149'999} * 0x1000), nullptr) << "the newest is there";
}

TEST_F(ProcessTableTest, AForkedChildHasItsParentsCodeEvenWhenItIsGone) {
  MakeProcess(42, "parent", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  table.OnFork(50, 42, {1100});
  const Process* child = table.Find(50);
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->comm, "parent");
  EXPECT_NE(child->mappings.Find(0x400010), nullptr);
  EXPECT_TRUE(child->mappings.SharesContentWith(table.Find(42)->mappings)) << "a hundred children are one table";
  EXPECT_TRUE(child->files.reachable());
}

TEST_F(ProcessTableTest, AForkBeforeTheParentsExecDoesNotInheritTheNewProgram) {
  MakeProcess(42, "dotnet", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  // Both events wait in the queue when the parent's first sample has it read.
  table.AnnounceExec(42, {900});
  table.FindOrScan(42, 0);
  table.OnFork(50, 42, {800});
  EXPECT_EQ(table.Find(50), nullptr) << "what it runs is in /proc";
  MakeProcess(50, "sh", 80, 50, "");
  EXPECT_EQ(table.FindOrScan(50, 0).comm, "sh");
}

TEST_F(ProcessTableTest, RetireGivesOutTheDeadOnly) {
  MakeProcess(42, "a", 100, 42, kMaps);
  MakeProcess(43, "b", 100, 43, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const ProcessKey a = table.FindOrScan(42, 0).key;
  table.FindOrScan(43, 0);
  table.OnExit(42, {2000});
  fs::remove_all(proc_ / "42");
  EXPECT_TRUE(table.Retire({2000}).empty());
  EXPECT_THAT(table.Retire({2001}), ElementsAre(a));
  EXPECT_EQ(table.Find(42), nullptr);
  EXPECT_NE(table.Find(43), nullptr);
}

TEST_F(ProcessTableTest, AnExitWhoseEventWasLostIsFoundBySweeping) {
  MakeProcess(42, "gone", 100, 42, kMaps);
  MakeProcess(43, "reused", 100, 43, kMaps);
  MakeProcess(44, "alive", 100, 44, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const ProcessKey gone = table.FindOrScan(42, 0).key, reused = table.FindOrScan(43, 1'000'000'000).key;
  table.FindOrScan(44, 1'000'000'000);
  fs::remove_all(proc_ / "42");
  MakeProcess(43, "another", 700, 43, kMaps);
  clock_.Set({5000});
  table.Sweep();
  EXPECT_TRUE(table.Retire({5000}).empty());  // samples may still be on their way
  EXPECT_THAT(table.Retire({5001}), testing::UnorderedElementsAre(gone, reused));
  EXPECT_NE(table.Find(44), nullptr);
  EXPECT_EQ(table.Find(44)->exited, MonotonicTime::Max());
}

TEST_F(ProcessTableTest, AZombieIsDeadUnlessItHasOtherThreads) {
  MakeProcess(42, "zombie", 100, 42, kMaps);
  MakeProcess(43, "threads", 100, 43, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const ProcessKey zombie = table.FindOrScan(42, 0).key;
  const ProcessKey threads = table.FindOrScan(43, 0).key;
  table.OnExit(42, {2000});
  table.OnExit(43, {2000});
  MakeProcess(42, "zombie", 100, 42, "", 'Z', 1);
  MakeProcess(43, "threads", 100, 43, "", 'Z', 3);
  clock_.Set({5000});
  EXPECT_THAT(table.Retire({3000}), ElementsAre(zombie));
  ASSERT_NE(table.Find(43), nullptr);
  EXPECT_NE(table.Find(43)->mappings.Find(0x400010), nullptr) << "its maps can't be read again";
  MakeProcess(43, "threads", 100, 43, "", 'Z', 1);
  EXPECT_TRUE(table.Retire({5000}).empty());
  EXPECT_THAT(table.Retire({6000}), ElementsAre(threads));
}

TEST_F(ProcessTableTest, AnExecByAnotherThreadEndsTheLeaderAndNotTheProcess) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  table.OnExit(42, {1100});
  table.OnExec(42, "next", {1101});
  EXPECT_EQ(table.Find(42)->exited, MonotonicTime::Max());
}

TEST_F(ProcessTableTest, AnExitFromBeforeTheScanDoesNotEndTheNewOwnerOfThePid) {
  MakeProcess(42, "new", 900, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 9'000'000'000);
  table.OnExit(42, {900});  // of the former owner, whom nobody sampled
  EXPECT_TRUE(table.Retire({2000}).empty());
  EXPECT_EQ(table.Find(42)->exited, MonotonicTime::Max());
}

TEST_F(ProcessTableTest, AnAnnouncedExecHoldsForAProcessThatIsReadAnewBeforeItsTurn) {
  MakeProcess(42, "former", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 1'000'000'000);
  table.AnnounceExec(42, {2000});  // by the next owner of the pid, whose fork is not handled yet
  MakeProcess(42, "after", 900, 42, kMaps);
  table.OnFork(42, 41, {1900});  // of a parent that we don't know
  EXPECT_EQ(table.FindOrScan(42, 9'000'000'000).code_known_since, MonotonicTime{2000});
}

TEST_F(ProcessTableTest, OfTwoAnnouncedExecsTheLaterOneStands) {
  MakeProcess(42, "second", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.AnnounceExec(42, {800});
  table.AnnounceExec(42, {900});
  table.OnExec(42, "first", {800});
  EXPECT_EQ(table.FindOrScan(42, 0).code_known_since, MonotonicTime{900});
}

TEST_F(ProcessTableTest, AfterLostEventsAProcessIsReadAgainAndItsPastHasNoNames) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  MakeProcess(42, "next", 100, 42, "00700000-00701000 r-xp 00000000 08:01 78 /usr/bin/next\n");
  clock_.Set({5000});
  EXPECT_EQ(table.FindOrScan(42, 0).comm, "app") << "nobody said that anything was lost";
  table.OnEventsLost({5000});
  clock_.Set({6000});
  const Process& process = table.FindOrScan(42, 0);
  EXPECT_EQ(process.comm, "next");
  EXPECT_EQ(process.mappings.Find(0x400010), nullptr);
  EXPECT_NE(process.mappings.Find(0x700010), nullptr);
  EXPECT_EQ(process.code_known_since, MonotonicTime{6000});
}

// A program that runs itself again has the same path. Its first stack begins elsewhere.
TEST_F(ProcessTableTest, AfterLostEventsAnExecOfTheSameProgramIsNoticed) {
  MakeProgram(0x7ffc1000, "/usr/bin/app");
  ProcessTable table(proc_.string(), clock_);
  const Process& process = table.FindOrScan(42, 0);
  PerProcess<int> known;
  known.Of(process) = 5;
  EXPECT_EQ(ExecsAfterLoss(table), 0u);
  EXPECT_NE(known.Find(process.key), nullptr);
  const MonotonicTime code_began = process.compiles_since;
  MakeProgram(0x7ffd2000, "/usr/bin/app");
  EXPECT_EQ(ExecsAfterLoss(table), 1u);
  EXPECT_EQ(known.Find(process.key), nullptr) << "it is of the program before";
  EXPECT_EQ(process.code_known_since, clock_.Now());
  EXPECT_GT(process.compiles_since, code_began);
  EXPECT_EQ(ExecsAfterLoss(table), 1u);
}

TEST_F(ProcessTableTest, WhereStacksAreNotShownThePathTellsOfAnExec) {
  MakeProgram(0, "/usr/bin/app");
  ProcessTable table(proc_.string(), clock_);
  PerProcess<int> known;
  known.Of(table.FindOrScan(42, 0)) = 5;
  EXPECT_EQ(ExecsAfterLoss(table), 0u);
  MakeProgram(0, "/usr/bin/next");
  EXPECT_EQ(ExecsAfterLoss(table), 1u);
  EXPECT_EQ(known.Find(table.Find(42)->key), nullptr);
}

TEST_F(ProcessTableTest, AProgramWhoseFileIsDeletedIsTheSame) {
  MakeProgram(0x7ffc1000, "/usr/bin/app");
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  MakeProgram(0x7ffc1000, "/usr/bin/app (deleted)");
  EXPECT_EQ(ExecsAfterLoss(table), 0u);
}

TEST_F(ProcessTableTest, ASweepTellsWhichProgramAnExecBegan) {
  MakeProgram(0x7ffc1000);
  ProcessTable table(proc_.string(), clock_);
  table.FindOrScan(42, 0);
  MakeProgram(0x7ffd2000);
  EXPECT_TRUE(table.OnExec(42, "app", {1100}));
  EXPECT_EQ(ExecsAfterLoss(table), 1u) << "the exec that is known";
  EXPECT_TRUE(table.OnExec(42, "app", {clock_.Now().ns + 100}));
  MakeProgram(0x7ffe3000);
  table.Sweep();
  EXPECT_EQ(ExecsAfterLoss(table), 2u);
  MakeProgram(0x7fff4000);
  EXPECT_EQ(ExecsAfterLoss(table), 3u);
}

// Sample, mapping, scan: the scan shows the new library, the sample was taken in the old one.
TEST_F(ProcessTableTest, ALibraryReplacedBetweenASampleAndTheScanIsNotKnownBefore) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  table.AnnounceMapping(42, Code(0x400000, "/lib/new.so"), {950});
  table.AnnounceMapping(43, Code(0x400000, "/lib/new.so"), {960});   // of another process
  table.AnnounceMapping(42, Code(0x400000, "/lib/new.so"), {1100});  // after the scan: not in it
  const MappingTable& mappings = table.FindOrScan(42, 0).mappings;
  EXPECT_EQ(mappings.KnownSince(0x400000), MonotonicTime{950});
  EXPECT_EQ(mappings.KnownSince(0x400fff), MonotonicTime{950});
  EXPECT_EQ(mappings.KnownSince(0x401000), MonotonicTime::Min());
  EXPECT_EQ(mappings.KnownSince(0x3fffff), MonotonicTime::Min());
  // Its turn: nobody asks for the time before it any more.
  const uint64_t generation = mappings.generation();
  table.OnMapping(42, Code(0x400000, "/lib/new.so"), {950});
  EXPECT_EQ(mappings.KnownSince(0x400000), MonotonicTime::Min());
  EXPECT_EQ(mappings.Find(0x400010)->path, "/usr/bin/app") << "the scan knows better";
  EXPECT_EQ(mappings.generation(), generation) << "no answer has changed";
}

TEST_F(ProcessTableTest, AReplacementThatIsLearnedOfAfterTheScanCountsToo) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  const Process& process = table.FindOrScan(42, 0);
  EXPECT_EQ(process.scanned, MonotonicTime{1000});
  const uint64_t generation = process.mappings.generation();
  table.AnnounceMapping(42, Code(0x400000, "/lib/new.so"), {1000});
  EXPECT_EQ(process.mappings.KnownSince(0x400010), MonotonicTime{1000});
  EXPECT_GT(process.mappings.generation(), generation) << "stacks named before must not be used again";
  table.AnnounceMapping(42, Code(0x400000, "/lib/new.so"), {1001});
  EXPECT_EQ(process.mappings.KnownSince(0x400010), MonotonicTime{1000});
}

// The runtime's code heaps grow by mprotect, and each time the kernel announces all of the mapping.
TEST_F(ProcessTableTest, AGrowingCodeHeapIsNotTakenForAReplacedOne) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  Mapping heap = Code(0x7f0000000000, "/memfd:doublemapper (deleted)");
  heap.kind = MappingKind::kJitMemory;
  table.AnnounceMapping(42, heap, {950});
  EXPECT_EQ(table.FindOrScan(42, 0).mappings.KnownSince(0x7f0000000010), MonotonicTime::Min());
}

TEST_F(ProcessTableTest, AFloodOfReplacementsMakesAllOfThePastUnknown) {
  MakeProcess(42, "app", 100, 42, kMaps);
  ProcessTable table(proc_.string(), clock_);
  for (uint64_t i = 0; i < 50'000; ++i) table.AnnounceMapping(42, Code(i * 0x1000, "/lib/x.so"), {900});
  EXPECT_EQ(table.FindOrScan(42, 0).code_known_since, MonotonicTime{1000});
}

}  // namespace
}  // namespace clrsampler
