#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clr/jitdump_tailer.h"
#include "clr/perf_map_tailer.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"
#include "test_paths.h"
#include "unit/clr/jit_target_tree.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using State = JitdumpTailer::State;

constexpr uint64_t kBudget = 4 << 20;

absl::StatusOr<OpenedFile> OpenPath(const std::string& path) {
  absl::StatusOr<UniqueFd> fd = OpenForReading(path);
  if (!fd.ok()) return fd.status();
  OpenedFile file{*std::move(fd), {}};
  fstat(file.fd.get(), &file.status);
  return file;
}

class JitdumpTailerTest : public testing::Test {
 protected:
  void Poll(MonotonicTime now, size_t budget = kBudget) {
    tailer.Poll([&] { return OpenPath(tree.jitdump()); }, [&](uint64_t, uint64_t) { return writer; }, expectation,
                alive, now, budget, scratch);
  }
  std::string NameAt(uint64_t address, uint64_t time_ns) {
    const MethodAnswer answer = tailer.methods().Query(address, {time_ns});
    if (answer.kind == MethodAnswerKind::kNone) return "none";
    return tailer.ReadName(answer.name).value_or("lost");
  }

  JitTargetTree tree;
  JitdumpTailer tailer;
  JitdumpExpectation expectation{.namespace_pid = JitTargetTree::kNamespacePid};
  OpenFileState writer = OpenFileState::kOpen;
  bool alive = true;
  std::vector<std::byte> scratch;
};

TEST_F(JitdumpTailerTest, FollowsAGrowingFile) {
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kMissing);
  JitdumpText text;
  tree.Write(tree.jitdump(), text.Load("One", 2000, 0x1000).bytes());
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
  EXPECT_EQ(tailer.complete_until().ns, 6 * kMillisecondNs);
  EXPECT_EQ(NameAt(0x1000, 2000), "One");
  const size_t before = text.bytes().size();
  text.Load("Two", 3000, 0x2000);
  tree.Append(tree.jitdump(), text.bytes().substr(before));
  Poll({7 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x2000, 3000), "Two");
  EXPECT_EQ(tailer.counters().read_bytes, text.bytes().size());
  EXPECT_EQ(tailer.counters().records, 2u);
}

TEST_F(JitdumpTailerTest, WaitsForTheRestOfATornRecord) {
  const std::string whole = JitdumpText().Load("One", 2000, 0x1000).Load("Two", 3000, 0x2000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 70));
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn);
  EXPECT_EQ(tailer.complete_until(), MonotonicTime::Min());
  EXPECT_EQ(NameAt(0x1000, 2000), "One");
  tree.Append(tree.jitdump(), whole.substr(whole.size() - 70));
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
  EXPECT_EQ(NameAt(0x2000, 3000), "Two");
  EXPECT_EQ(tailer.counters().torn_tails, 1u);
}

TEST_F(JitdumpTailerTest, ATornFileThatNobodyWritesIsDead) {
  const std::string whole = JitdumpText().Load("One", 2000, 0x1000).Load("Two", 3000, 0x2000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  Poll({5 * kMillisecondNs});
  Poll({205 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn) << "the writer still has it open";
  writer = OpenFileState::kNotOpen;
  Poll({300 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn) << "not asked again so soon";
  Poll({500 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kDead);
  EXPECT_EQ(tailer.complete_until().ns, 500 * kMillisecondNs);
  EXPECT_FALSE(tailer.known_defect());
  // Somebody writes after all.
  tree.Append(tree.jitdump(), whole.substr(whole.size() - 10));
  Poll({600 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
}

TEST_F(JitdumpTailerTest, AWholeFileThatItsProcessHasClosedSpeaksNoLonger) {
  const std::string whole = JitdumpText().Load("One", 2000, 0x1000).Load("Two", 3000 * kMillisecondNs, 0x2000).bytes();
  const size_t first = JitdumpText().Load("One", 2000, 0x1000).bytes().size();
  tree.Write(tree.jitdump(), whole.substr(0, first));
  Poll({5 * kMillisecondNs});
  Poll({1005 * kMillisecondNs});
  EXPECT_EQ(tailer.speaks_until(), MonotonicTime::Max());
  writer = OpenFileState::kUnknown;
  Poll({2010 * kMillisecondNs});
  Poll({3015 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading) << "not known is not closed";
  writer = OpenFileState::kOpen;
  Poll({4020 * kMillisecondNs});
  writer = OpenFileState::kNotOpen;
  Poll({5000 * kMillisecondNs});
  EXPECT_EQ(tailer.complete_until().ns, 5000 * kMillisecondNs) << "not asked yet";
  Poll({5100 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading) << "it may be about to exit";
  EXPECT_EQ(tailer.complete_until().ns, 5000 * kMillisecondNs) << "samples wait until that is decided";
  Poll({5300 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kClosed);
  EXPECT_TRUE(tailer.usable());
  EXPECT_EQ(tailer.complete_until().ns, 5300 * kMillisecondNs);
  EXPECT_EQ(tailer.speaks_until().ns, 4020 * kMillisecondNs) << "when its writer was seen";
  // Somebody writes after all.
  tree.Append(tree.jitdump(), whole.substr(first));
  Poll({6000 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
}

TEST_F(JitdumpTailerTest, AFileThatIsWholeAtTheExitStaysComplete) {
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes());
  Poll({5 * kMillisecondNs});
  writer = OpenFileState::kNotOpen;
  Poll({1100 * kMillisecondNs});
  alive = false;
  for (uint64_t at = 1200; at < 5000; at += 400) Poll({at * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
  EXPECT_EQ(tailer.complete_until().ns, 4800 * kMillisecondNs);
}

TEST_F(JitdumpTailerTest, HalfARecordEndsWhatIsKnownAtTheLastWholeRead) {
  const std::string whole = JitdumpText().Load("One", 2000, 0x1000).Load("Two", 3000, 0x2000).bytes();
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes());
  Poll({5 * kMillisecondNs});
  Poll({50 * kMillisecondNs});
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  Poll({60 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn);
  EXPECT_EQ(tailer.speaks_until().ns, 50 * kMillisecondNs);
}

TEST_F(JitdumpTailerTest, KnowsTheFileThatTheDefectOfNet10Leaves) {
  const absl::StatusOr<std::string> dump = ReadWholeFile(TestData("jitdump/net10.0.12-dead.dump"), 1 << 20);
  ASSERT_TRUE(dump.ok());
  tree.Write(tree.jitdump(), *dump);
  expectation.namespace_pid = 0;
  writer = OpenFileState::kNotOpen;
  Poll({5 * kMillisecondNs});
  Poll({300 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kDead);
  EXPECT_TRUE(tailer.known_defect());
}

TEST_F(JitdumpTailerTest, AFileWithoutAHeaderIsNoJitdumpYet) {
  tree.Write(tree.jitdump(), "");
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn);
  Poll({1500 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kTorn) << "its writer lives";
  EXPECT_EQ(tailer.complete_until().ns, 1500 * kMillisecondNs) << "but samples do not wait for ever";
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes());
  Poll({1600 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kReading);
}

TEST_F(JitdumpTailerTest, HalfARecordOfAnExitedProcessIsTheEnd) {
  const std::string whole = JitdumpText().Load("One", 2000, 0x1000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  alive = false;
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kDead);
  EXPECT_EQ(NameAt(0x1000, 2000), "One");
}

TEST_F(JitdumpTailerTest, BeginsAnewWhenTheFileIsTruncated) {
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).Load("More", 2000, 0x4000).bytes());
  Poll({5 * kMillisecondNs});
  tree.Write(tree.jitdump(), JitdumpText(5000).Load("Two", 6000, 0x2000).bytes());  // the same inode, shorter
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(tailer.counters().resets, 1u);
  EXPECT_EQ(NameAt(0x1000, 7000), "none");
  EXPECT_EQ(NameAt(0x2000, 7000), "Two");
}

TEST_F(JitdumpTailerTest, BeginsAnewWhenTheFileWasRewrittenAndIsLonger) {
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes());
  Poll({5 * kMillisecondNs});
  tree.Write(tree.jitdump(), JitdumpText(5000).Load("Two", 6000, 0x2000).Load("Three", 6000, 0x3000).bytes());
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(tailer.counters().resets, 1u);
  EXPECT_EQ(NameAt(0x1000, 7000), "none");
  EXPECT_EQ(NameAt(0x3000, 7000), "Three");
}

TEST_F(JitdumpTailerTest, FindsTheFileThatTookItsPlace) {
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes());
  Poll({5 * kMillisecondNs});
  tree.Write(tree.InTarget("/tmp/new"), JitdumpText(5000).Load("Two", 6000, 0x2000).bytes());
  std::filesystem::rename(tree.InTarget("/tmp/new"), tree.jitdump());
  Poll({6 * kMillisecondNs});  // the old inode has no link left, so the path is asked at once
  EXPECT_EQ(NameAt(0x2000, 7000), "Two");
  // A removed file still shows what was written.
  unlink(tree.jitdump().c_str());
  Poll({3000 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x2000, 7000), "Two");
}

TEST_F(JitdumpTailerTest, RefusesFilesOfOthers) {
  tree.Write(tree.jitdump(), JitdumpText(1000, 8).Load("One", 2000, 0x1000).bytes());
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kRefused);
  EXPECT_THAT(std::string(tailer.status().message()), HasSubstr("process 8"));
  EXPECT_EQ(tailer.methods().methods(), 0u);
}

TEST_F(JitdumpTailerTest, RefusesTheFileOfAnEarlierProcessOfThePid) {
  expectation.started = {10'000'000'000};
  tree.Write(tree.jitdump(), JitdumpText(5'000'000'000).Load("One", 5'000'000'001, 0x1000).bytes());
  Poll({11'000'000'000});
  EXPECT_EQ(tailer.state(), State::kRefused);
  // Until the process writes its own over it.
  tree.Write(
      tree.jitdump(),
      JitdumpText(10'000'000'000).Load("Two", 10'000'000'001, 0x1000).Load("Three", 10'000'000'002, 0x2000).bytes());
  Poll({12'000'000'000});
  EXPECT_EQ(tailer.state(), State::kReading);
  EXPECT_EQ(NameAt(0x1000, 11'000'000'000), "Two");
}

TEST_F(JitdumpTailerTest, SubtractsTheOffsetOfTheTimeNamespace) {
  expectation.clock_offset_ns = 1'000'000;
  tree.Write(tree.jitdump(), JitdumpText(1'500'000).Load("One", 1'600'000, 0x1000).Load("Early", 5, 0x2000).bytes());
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 599'999), "none");
  EXPECT_EQ(NameAt(0x1000, 600'000), "One");
  EXPECT_EQ(NameAt(0x2000, 600'000), "Early");
}

TEST_F(JitdumpTailerTest, KeepsWhatStoodBeforeTheDamage) {
  tree.Write(tree.jitdump(), JitdumpText().Load("One", 2000, 0x1000).bytes() + std::string(1000, '\0'));
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kFailed);
  EXPECT_TRUE(tailer.usable());
  EXPECT_EQ(NameAt(0x1000, 3000), "One");
  EXPECT_EQ(tailer.complete_until().ns, 5 * kMillisecondNs);
}

TEST_F(JitdumpTailerTest, ASparseFileCostsOneRead) {
  tree.Write(tree.jitdump(), "");
  ASSERT_EQ(truncate(tree.jitdump().c_str(), off_t{10} << 30), 0);
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), State::kFailed);
  EXPECT_LE(tailer.counters().read_bytes, 1u << 20);
}

TEST_F(JitdumpTailerTest, StaysWithinItsBudget) {
  JitdumpText text;
  for (uint64_t i = 0; i < 5000; ++i) text.Load("Method", 2000 + i, 0x1000 + i * 256, 200);
  tree.Write(tree.jitdump(), text.bytes());
  Poll({5 * kMillisecondNs}, 1);
  EXPECT_TRUE(tailer.behind());
  EXPECT_EQ(tailer.complete_until(), MonotonicTime::Min());
  for (int i = 0; i < 20 && tailer.behind(); ++i) Poll({5 * kMillisecondNs}, 1);
  EXPECT_FALSE(tailer.behind());
  EXPECT_EQ(tailer.methods().methods(), 5000u);
}

class PerfMapTailerTest : public testing::Test {
 protected:
  void Poll(MonotonicTime now, size_t budget = kBudget) {
    tailer.Poll([&] { return OpenPath(tree.perf_map()); }, [&](const TailedFile&) { return ours; }, true, now, clock,
                budget, scratch);
  }
  std::string NameAt(uint64_t address, uint64_t time_ns) {
    const MethodAnswer answer = tailer.methods().Query(address, {time_ns});
    if (answer.kind == MethodAnswerKind::kNone) return "none";
    if (answer.kind == MethodAnswerKind::kAmbiguous) return "ambiguous";
    return tailer.ReadName(answer.name).value_or("lost");
  }
  JitTargetTree tree;
  FakeClock clock;
  PerfMapTailer tailer;
  bool ours = true;
  std::vector<std::byte> scratch;
};

TEST_F(PerfMapTailerTest, ALineCountsFromTheReadThatFoundIt) {
  tree.Write(tree.perf_map(), "1000 40 One\n1100 40 half a li");
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 1), "One");
  EXPECT_EQ(tailer.counters().torn_tails, 1u);
  tree.Append(tree.perf_map(), "ne\n1000 40 Two\n");
  Poll({10 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1100, 10 * kMillisecondNs), "half a line");
  EXPECT_EQ(NameAt(0x1000, 5 * kMillisecondNs - 2000), "One")
      << "windows are kept in units of 1024 ns, rounded outwards";
  EXPECT_EQ(NameAt(0x1000, 7 * kMillisecondNs), "ambiguous");
  EXPECT_EQ(NameAt(0x1000, 10 * kMillisecondNs), "Two");
}

TEST_F(PerfMapTailerTest, ALineMayHaveBeenWrittenUntilItWasRead) {
  tree.Write(tree.perf_map(), "1000 40 One\n");
  clock.Set({5 * kMillisecondNs});
  Poll({5 * kMillisecondNs});
  tree.Append(tree.perf_map(), "1000 40 Two\n");
  clock.Set({13 * kMillisecondNs});  // the iteration began at 10 ms
  Poll({10 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 12 * kMillisecondNs), "ambiguous");
  EXPECT_EQ(NameAt(0x1000, 13 * kMillisecondNs), "Two");
}

TEST_F(PerfMapTailerTest, TakesALastLineThatLostItsEnd) {
  tree.Write(tree.perf_map(), "1000 40 One\n");
  Poll({5 * kMillisecondNs});
  tree.Append(tree.perf_map(), "0x100000 40 \u00fc[Quick");
  Poll({10 * kMillisecondNs});
  EXPECT_EQ(tailer.complete_until().ns, 5 * kMillisecondNs) << "samples wait for the line";
  Poll({150 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x100000, 150 * kMillisecondNs), "none");
  Poll({250 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x100000, 250 * kMillisecondNs), "\u00fc[Quick");
  EXPECT_EQ(tailer.complete_until().ns, 250 * kMillisecondNs);
  EXPECT_EQ(tailer.counters().glued_lines, 1u);
  Poll({255 * kMillisecondNs});
  tree.Append(tree.perf_map(), "0x100000 40 Three\n");
  Poll({260 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x100000, 251 * kMillisecondNs), "\u00fc[Quick");
  EXPECT_EQ(NameAt(0x100000, 260 * kMillisecondNs), "Three");
  EXPECT_EQ(tailer.counters().resets, 0u);
  EXPECT_EQ(tailer.counters().bad_records, 0u);
}

TEST_F(PerfMapTailerTest, ALineThatWasHalfThereIsAsOldAsItsBegin) {
  tree.Write(tree.perf_map(), "0x100000 40 One\n");
  Poll({5 * kMillisecondNs});
  tree.Append(tree.perf_map(), "0x100000 40 \u00fc[Qui");
  Poll({10 * kMillisecondNs});
  Poll({20 * kMillisecondNs});
  tree.Append(tree.perf_map(), "0x200000 40 Three\n");
  Poll({30 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x100000, 15 * kMillisecondNs), "ambiguous")
      << "Two was on its way when the file was last read to its end";
  EXPECT_EQ(NameAt(0x100000, 30 * kMillisecondNs), "\u00fc[Qui");
  EXPECT_EQ(NameAt(0x200000, 30 * kMillisecondNs), "Three");
}

TEST_F(PerfMapTailerTest, AsciiWithoutAnEndIsNotTaken) {
  tree.Write(tree.perf_map(), "1000 40 One\n2000 40 Tw");
  for (uint64_t at = 5; at < 1000; at += 50) Poll({at * kMillisecondNs});
  EXPECT_EQ(NameAt(0x2000, 1000 * kMillisecondNs), "none");
  EXPECT_EQ(tailer.complete_until().ns, 955 * kMillisecondNs);
  tree.Append(tree.perf_map(), "o\n");
  Poll({1000 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x2000, 1000 * kMillisecondNs), "Two");
}

TEST_F(PerfMapTailerTest, TheWindowReachesBackToTheLastReadOfTheWholeFile) {
  tree.Write(tree.perf_map(), "1000 40 One\n");
  Poll({5 * kMillisecondNs});
  Poll({50 * kMillisecondNs});  // still without the line
  tree.Append(tree.perf_map(), "1000 40 Two\n");
  Poll({60 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 49 * kMillisecondNs), "One");
  EXPECT_EQ(NameAt(0x1000, 55 * kMillisecondNs), "ambiguous");
}

TEST_F(PerfMapTailerTest, BeginsAnewWhenTruncatedOrRewritten) {
  tree.Write(tree.perf_map(), "1000 40 One\n2000 40 Other\n");
  Poll({5 * kMillisecondNs});
  tree.Write(tree.perf_map(), "3000 40 Two\n");
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 6 * kMillisecondNs), "none");
  EXPECT_EQ(NameAt(0x3000, 6 * kMillisecondNs), "Two");
  // Longer than before and with the same first line: only the byte before our offset gives it away.
  tree.Write(tree.perf_map(), "3000 40 Two\n4000 40 Three, which is long\n");
  Poll({7 * kMillisecondNs});
  tree.Write(tree.perf_map(), "3000 40 Two\n5000 40 And now a name that is longer than all before\n");
  Poll({8 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x4000, 8 * kMillisecondNs), "none");
  EXPECT_EQ(NameAt(0x3000, 8 * kMillisecondNs), "Two");
}

TEST_F(PerfMapTailerTest, ALostNameIsNoWrongName) {
  tree.Write(tree.perf_map(), "1000 40 One\n2000 40 Two\n");
  Poll({5 * kMillisecondNs});
  tree.Write(tree.perf_map(), "1000 40 Six\n2000 40 Ten\n");  // rewritten since the last poll
  EXPECT_EQ(NameAt(0x1000, 5 * kMillisecondNs), "lost");
  EXPECT_EQ(NameAt(0x2000, 5 * kMillisecondNs), "lost");
}

TEST_F(PerfMapTailerTest, WaitsUntilAStaleFileIsWrittenByItsOwner) {
  ours = false;
  tree.Write(tree.perf_map(), "1000 40 Old\n");
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), PerfMapTailer::State::kRefused);
  EXPECT_EQ(NameAt(0x1000, 5 * kMillisecondNs), "none");
  ours = true;
  tree.Write(tree.perf_map(), "1000 40 New\n2000 40 More\n");
  Poll({6 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x1000, 6 * kMillisecondNs), "New");
}

TEST_F(PerfMapTailerTest, ASparseFileEndsQuicklyWithAReason) {
  tree.Write(tree.perf_map(), "1000 40 One\n");
  ASSERT_EQ(truncate(tree.perf_map().c_str(), off_t{10} << 30), 0);
  for (int i = 0; i < 10; ++i) Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), PerfMapTailer::State::kFailed);
  EXPECT_THAT(std::string(tailer.status().message()), HasSubstr("not a perf map"));
  EXPECT_LE(tailer.counters().read_bytes, 64u << 20);
  EXPECT_EQ(NameAt(0x1000, 5 * kMillisecondNs), "One");
}

TEST_F(PerfMapTailerTest, GivesUpOnAFileOfBadLines) {
  tree.Write(tree.perf_map(), std::string(1 << 20, '\n'));
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(tailer.state(), PerfMapTailer::State::kFailed);
  EXPECT_GT(tailer.counters().bad_records, 100'000u);
}

TEST_F(PerfMapTailerTest, TakesNamesLongerThanItsRoom) {
  const std::string name(700'000, 'n');
  tree.Write(tree.perf_map(), absl::StrCat("1000 40 One\n2000 40 ", name, "\n3000 40 Three\n"));
  Poll({5 * kMillisecondNs});
  EXPECT_EQ(NameAt(0x2000, 5 * kMillisecondNs), name);
  EXPECT_EQ(NameAt(0x3000, 5 * kMillisecondNs), "Three");
}

}  // namespace
}  // namespace clrsampler
