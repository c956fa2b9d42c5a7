#include "clr/jit_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <cstring>
#include <memory>
#include <string>

#include "os/clock.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/clr/jit_target_tree.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kHeap = 0x7f0000000000;

class JitMethodsTest : public testing::Test {
 protected:
  JitMethodsTest() : process({JitTargetTree::kPid, 1}, TargetFiles(tree.proc_root(), JitTargetTree::kPid)) {
    process.namespace_pid = JitTargetTree::kNamespacePid;
    process.comm = "shop";
    process.first_seen = {1000};
    Map(kHeap, kHeap + 0x100000, MappingKind::kJitMemory, "/memfd:doublemapper (deleted)");
    methods = std::make_unique<JitMethods>(JitMethodsOptions{.names = NameStyle::kRaw}, frames, notices, clock);
  }

  void Map(uint64_t start, uint64_t end, MappingKind kind, absl::string_view path) {
    Mapping mapping;
    mapping.start = start;
    mapping.end = end;
    mapping.kind = kind;
    mapping.path = std::string(path);
    process.mappings.Insert(mapping);
  }
  std::string Ask(uint64_t address, uint64_t time_ns) {
    const auto resolution =
        methods->Resolve({process, process.mappings.Find(address), address, address, MonotonicTime{time_ns}});
    if (!resolution.has_value()) return "not mine";
    last = frames.at(resolution->frame);
    EXPECT_LE(resolution->from.ns, time_ns);
    EXPECT_GT(resolution->until.ns, time_ns);
    return last.text;
  }
  void Poll(uint64_t now_ns) { methods->Poll(process, {now_ns}); }

  JitTargetTree tree;
  FrameTable frames;
  Notices notices;
  Process process;
  FakeClock clock;
  std::unique_ptr<JitMethods> methods;
  Frame last;
};

TEST_F(JitMethodsTest, NamesFromTheJitdumpWhileItLives) {
  tree.Write(tree.jitdump(), JitdumpText().Load("void [app] A::M()[QuickJitted]", 2000, kHeap).bytes());
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap + 0x1000), " 40 void [app] A::N()[QuickJitted]\n"));
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap + 4, 3000), "void [app] A::M()[QuickJitted]");
  EXPECT_EQ(last.source, NameSource::kJitdump);
  EXPECT_EQ(last.kind, FrameKind::kJit);
  EXPECT_EQ(last.module, "app");
  EXPECT_EQ(last.tier, "QuickJitted");
  EXPECT_EQ(Ask(kHeap + 0x1000, 3000), "[jit: not in the map]") << "nothing says that the file is the runtime's own";
  EXPECT_EQ(methods->CompleteUntil(process.key).ns, 5 * kMillisecondNs);
  EXPECT_THAT(notices.kept(), IsEmpty());
  EXPECT_TRUE(methods->NamesFrom(process.key, kHeap + 4, {3000}));
  EXPECT_FALSE(methods->NamesFrom(process.key, kHeap + 0x1000, {3000})) << "only the perf map has it";
  EXPECT_TRUE(methods->MayIdle());
}

TEST_F(JitMethodsTest, ARefusalIsNotKept) {
  tree.Write(tree.jitdump(), JitdumpText().Load("void [app] A::M()[QuickJitted]", 2000, kHeap).bytes());
  Poll(5 * kMillisecondNs);
  FrameRoom none;
  frames.SetRoom(&none);
  EXPECT_EQ(Ask(kHeap + 4, 3000), "[function of a program with too many names]");
  EXPECT_EQ(Ask(kHeap + 0x1000, 3000), "[jit: not in the map]") << "our own words need no room";
  frames.SetRoom(nullptr);
  EXPECT_EQ(Ask(kHeap + 4, 3000), "void [app] A::M()[QuickJitted]");
}

// A block of stubs has one line in the file, and memory has the kind of each.
TEST_F(JitMethodsTest, StubsAreShownByMemorysNameWhereItHasOne) {
  class Memory : public FrameSource {
   public:
    explicit Memory(FrameTable& frames) : frames_(frames) {}
    std::optional<Resolution> Resolve(const FrameQuery& query) override {
      if (query.lookup_address >= kHeap + 0x1200) return std::nullopt;
      const bool named = query.lookup_address < kHeap + 0x1100;
      return Resolution{frames_.Intern(Frame{FrameKind::kJit, named ? NameSource::kRuntimeMemory : NameSource::kNone,
                                             named ? "stub FixupPrecode" : "[jit: why]"}),
                        query.time,
                        {query.time.ns + 1}};
    }
    uint64_t Generation(ProcessKey) const override { return 0; }

   private:
    FrameTable& frames_;
  } memory(frames);
  methods->PreferStubsOf(memory);
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 void [app] A::N()[Optimized]\n",
                                           absl::Hex(kHeap + 0x1000), " 400 stub ReportStubBlock<MethodCallThunk>\n"));
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap + 0x1010, 3000), "stub FixupPrecode");
  EXPECT_EQ(last.source, NameSource::kRuntimeMemory);
  EXPECT_EQ(Ask(kHeap + 0x1110, 3000), "stub ReportStubBlock<MethodCallThunk>") << "memory has no name";
  EXPECT_EQ(Ask(kHeap + 0x1210, 3000), "stub ReportStubBlock<MethodCallThunk>") << "memory says nothing";
  EXPECT_EQ(Ask(kHeap + 4, 3000), "void [app] A::N()[Optimized]") << "no stub";
}

// .NET 11 writes its map in blocks of 4 KiB: what is not there may be a method as well as a stub.
TEST_F(JitMethodsTest, WhatTheMapDoesNotHoldIsNoStub) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 void [app] A::N()[Optimized]\n"));
  tree.HoldOpen(tree.perf_map());
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap + 0x1000, 6 * kMillisecondNs), "[jit: not in the map]");
  EXPECT_FALSE(last.named());
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 void [app] A::N()[Optimized]\n",
                                           absl::Hex(kHeap + 0x1000), " 40 void [app] A::Late()[Optimized]\n"));
  Poll(7 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap + 0x1000, 6 * kMillisecondNs), "void [app] A::Late()[Optimized]")
      << "its line came after the sample";
}

TEST_F(JitMethodsTest, NamesFromThePerfMapWhenThereIsNoJitdump) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 void [app] A::N()[Optimized]\n"));
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap + 4, 3000), "void [app] A::N()[Optimized]");
  EXPECT_EQ(last.source, NameSource::kPerfMap);
  EXPECT_EQ(methods->CompleteUntil(process.key).ns, 5 * kMillisecondNs);
  EXPECT_EQ(methods->counters().names_read, 1u);
  EXPECT_FALSE(methods->NamesFrom(process.key, kHeap + 4, {3000})) << "the next line may take it back";
  EXPECT_FALSE(methods->MayIdle()) << "its lines are as old as the iteration that reads them";
}

TEST_F(JitMethodsTest, GoesOverToThePerfMapWhenTheJitdumpDies) {
  absl::StatusOr<std::string> dump = ReadWholeFile(TestData("jitdump/net10.0.12-dead.dump"), 1 << 20);
  ASSERT_TRUE(dump.ok());
  const uint32_t pid = JitTargetTree::kNamespacePid;
  dump->replace(20, sizeof pid, reinterpret_cast<const char*>(&pid), sizeof pid);
  tree.Write(tree.jitdump(), *dump);
  const uint64_t now = 10'000'000'000'000;
  process.first_seen = {1000};
  Poll(now);
  EXPECT_LT(methods->CompleteUntil(process.key).ns, now) << "not decided yet";
  Poll(now + 300 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, now), "[jit: jitdump of .NET 10.0.0-10.0.12 is broken; use DOTNET_PerfMapEnabled=1 or 3]");
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_THAT(notices.kept()[0].message, HasSubstr("defect of .NET 10.0.0 to 10.0.12"));
  const uint64_t generation = methods->Generation(process.key);
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 void [app] A::N()[Optimized]\n"));
  Poll(now + 600 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, now), "void [app] A::N()[Optimized]");
  EXPECT_GT(methods->Generation(process.key), generation);
}

TEST_F(JitMethodsTest, ADeadJitdumpIsNotAskedAboutLaterTimes) {
  const std::string whole = JitdumpText().Load("One", 2000, kHeap).Load("Two", 3000, kHeap + 0x1000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap + 0x2000), " 40 Three\n"));
  Poll(5 * kMillisecondNs);
  Poll(300 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 2000), "One");
  EXPECT_EQ(Ask(kHeap, 3000), "One") << "the head of the last record is there, with its time";
  EXPECT_EQ(Ask(kHeap, 3001), "[jit: not in the map]") << "another method may be there by now";
  EXPECT_EQ(Ask(kHeap + 0x2000, 250 * kMillisecondNs), "Three");
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_EQ(notices.kept()[0].kind, "jitdump_dead");
  EXPECT_THAT(notices.kept()[0].message, HasSubstr("its perf map is used instead"));
  EXPECT_EQ(notices.kept()[0].hint, "") << "there is nothing to do";
}

TEST_F(JitMethodsTest, BehindADeadJitdumpAMethodIsNamedAsLongAsItsCodeStands) {
  const std::string whole = JitdumpText().Load("One", 2000, kHeap).Load("Two", 3000, kHeap + 0x1000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  // The target has this at kHeap: the code that was recorded behind the name.
  std::string memory = whole.substr(whole.find("One") + 4, 64);
  JitMethodsOptions options{.names = NameStyle::kRaw};
  options.read_memory = [&](uint32_t tgid, uint64_t address, std::span<std::byte> bytes) {
    EXPECT_EQ(tgid, JitTargetTree::kPid);
    if (address != kHeap || bytes.size() > memory.size()) return false;
    std::memcpy(bytes.data(), memory.data(), bytes.size());
    return true;
  };
  methods = std::make_unique<JitMethods>(options, frames, notices, clock);
  Poll(5 * kMillisecondNs);
  Poll(300 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 250 * kMillisecondNs), "One");
  EXPECT_EQ(Ask(kHeap, 260 * kMillisecondNs), "One");
  EXPECT_EQ(methods->counters().code_compared, 1u) << "once an iteration";
  memory[3] ^= 1;
  Poll(400 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 390 * kMillisecondNs).substr(0, 4), "[jit") << "something else stands there now";
}

// Other methods may have the same few bytes. A later source reads the name from memory.
TEST_F(JitMethodsTest, BehindADeadJitdumpAShortMethodIsLeftToOthers) {
  const std::string whole = JitdumpText().Load("One", 2000, kHeap, 63).Load("Two", 3000, kHeap + 0x1000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  JitMethodsOptions options{.names = NameStyle::kRaw};
  options.read_memory = [&](uint32_t, uint64_t, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), whole.data() + whole.find("One") + 4, bytes.size());
    return true;
  };
  methods = std::make_unique<JitMethods>(options, frames, notices, clock);
  Poll(5 * kMillisecondNs);
  Poll(300 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 2500), "One") << "as long as the jitdump speaks";
  EXPECT_EQ(Ask(kHeap, 250 * kMillisecondNs).substr(0, 4), "[jit");
  EXPECT_EQ(methods->counters().code_compared, 0u);
}

TEST_F(JitMethodsTest, AnAnswerOfADeadJitdumpEndsWithIt) {
  const std::string whole = JitdumpText().Load("One", 2000, kHeap).Load("Two", 3000, kHeap + 0x1000).bytes();
  tree.Write(tree.jitdump(), whole.substr(0, whole.size() - 10));
  Poll(5 * kMillisecondNs);
  Poll(300 * kMillisecondNs);
  const auto found = methods->Resolve({process, process.mappings.Find(kHeap), kHeap, kHeap, MonotonicTime{2500}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->until.ns, 3001u);
}

TEST_F(JitMethodsTest, GoesOverToThePerfMapWhenTheJitdumpIsClosed) {
  tree.Write(tree.jitdump(), JitdumpText().Load("Old", 2000, kHeap).bytes());
  tree.HoldOpen(tree.jitdump());
  Poll(5 * kMillisecondNs);
  Poll(1010 * kMillisecondNs);
  tree.LetGo();
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 New\n"));
  tree.HoldOpen(tree.perf_map());
  Poll(2020 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 1000 * kMillisecondNs), "Old");
  const uint64_t generation = methods->Generation(process.key);
  Poll(2300 * kMillisecondNs);
  EXPECT_GT(methods->Generation(process.key), generation);
  EXPECT_EQ(Ask(kHeap, 1000 * kMillisecondNs), "Old");
  EXPECT_EQ(Ask(kHeap, 2300 * kMillisecondNs), "New");
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_EQ(notices.kept()[0].kind, "jitdump_closed");
}

TEST_F(JitMethodsTest, AMarkerSpeaksForAnUnseenDescriptor) {
  Map(0x1000, 0x2000, MappingKind::kFile, "/tmp/jit-7.dump");
  tree.Write(tree.jitdump(), JitdumpText().Load("Mine", 2000, kHeap).bytes());
  tree.Write(tree.InTarget("/tmp/other"), "");
  tree.HoldOpen(tree.InTarget("/tmp/other"));
  for (uint64_t at = 5; at < 3000; at += 100) Poll(at * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 2900 * kMillisecondNs), "Mine");
  EXPECT_THAT(notices.kept(), IsEmpty());
}

TEST_F(JitMethodsTest, SaysThatThereIsNoMap) {
  EXPECT_EQ(Ask(kHeap, 3000), "[jit: no map]") << "before the first poll nothing is known of the process";
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3000), "[jit: no map; start the target with DOTNET_PerfMapEnabled=3]");
  EXPECT_EQ(last.kind, FrameKind::kJit);
  EXPECT_FALSE(last.named());
  EXPECT_EQ(methods->CompleteUntil(process.key).ns, 5 * kMillisecondNs) << "young: the file may still come";
  Poll(3000 * kMillisecondNs);
  EXPECT_EQ(methods->CompleteUntil(process.key), MonotonicTime::Max());
}

TEST_F(JitMethodsTest, LeavesOtherMemoryAlone) {
  Map(0x400000, 0x500000, MappingKind::kFile, "/app/thing.so");
  tree.Write(tree.perf_map(), "400000 40 not yours\n900000 40 unmapped\n");
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(0x400000, 3000), "not mine");
  EXPECT_EQ(Ask(0x800000, 3000), "not mine");
  EXPECT_EQ(Ask(0x900000, 3000), "unmapped") << "a mapping may have been missed";
}

TEST_F(JitMethodsTest, NativeProcessesCostNothing) {
  process.mappings.Clear();
  Map(0x400000, 0x500000, MappingKind::kFile, "/bin/true");
  tree.Write(tree.perf_map(), "400000 40 never read\n");
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(methods->counters().perf_map.read_bytes, 0u);
  EXPECT_EQ(methods->CompleteUntil(process.key), MonotonicTime::Max());
}

TEST_F(JitMethodsTest, FindsTheDirectoryByTheMarker) {
  std::filesystem::create_directories(tree.InTarget("/maps"));
  tree.Write(tree.jitdump(), JitdumpText().Load("in tmp", 2000, kHeap).bytes());
  tree.Write(tree.InTarget("/maps/jit-7.dump"), JitdumpText().Load("by marker", 2000, kHeap).bytes());
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3000), "in tmp");
  const uint64_t generation = methods->Generation(process.key);
  Map(0x1000, 0x2000, MappingKind::kFile, "/maps/jit-7.dump");
  Poll(6 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3000), "by marker");
  EXPECT_GT(methods->Generation(process.key), generation);
}

TEST_F(JitMethodsTest, FindsTheDirectoryInTheEnvironment) {
  std::filesystem::create_directories(tree.InTarget("/maps"));
  tree.Write(tree.process() + "/environ", "DOTNET_PerfMapJitDumpPath=/maps");
  tree.Write(tree.InTarget("/maps/perf-7.map"), absl::StrCat(absl::Hex(kHeap), " 40 there\n"));
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3000), "there");
}

TEST_F(JitMethodsTest, RefusesAFileThatIsOlderThanTheProcess) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 of another process\n"));
  const utimbuf year_2001{1'000'000'000, 1'000'000'000};
  ASSERT_EQ(utime(tree.perf_map().c_str(), &year_2001), 0);
  Poll(5 * kMillisecondNs);
  EXPECT_THAT(Ask(kHeap, 3000), HasSubstr("no map"));
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_EQ(notices.kept()[0].kind, "perf_map_refused");
}

TEST_F(JitMethodsTest, TakesAnOldFileThatTheProcessHasOpen) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 mine\n"));
  const utimbuf year_2001{1'000'000'000, 1'000'000'000};
  ASSERT_EQ(utime(tree.perf_map().c_str(), &year_2001), 0);
  tree.HoldOpen(tree.perf_map());
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3000), "mine");
}

TEST_F(JitMethodsTest, SaysWhenAFileIsATrap) {
  ASSERT_EQ(mkfifo(tree.perf_map().c_str(), 0600), 0);
  ASSERT_EQ(symlink("/etc/shadow", tree.jitdump().c_str()), 0);
  Poll(5 * kMillisecondNs);
  EXPECT_THAT(Ask(kHeap, 3000), HasSubstr("no map"));
  ASSERT_EQ(notices.kept().size(), 2u);
  EXPECT_EQ(notices.kept()[0].kind, "jit_file_refused");
  EXPECT_THAT(notices.kept()[1].message, HasSubstr("not a regular file"));
}

TEST_F(JitMethodsTest, NamesPrecompiledCodeOnlyWhenAskedFor) {
  Map(0x400000, 0x500000, MappingKind::kFile, "/app/System.Linq.dll");
  tree.Write(tree.jitdump(), JitdumpText()
                                 .Load("void [lib] A::M()[PreJIT]", 2000, 0x400000)
                                 .Load("void [lib] A::N()[Optimized]", 2000, 0x410000)
                                 .bytes());
  Poll(5 * kMillisecondNs);
  const auto ask = [&](uint64_t address) {
    return methods->ResolvePrecompiled({process, process.mappings.Find(address), address, address, {3000}});
  };
  EXPECT_EQ(Ask(0x400000, 3000), "not mine");
  const auto found = ask(0x400000);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(frames.at(found->frame).text, "void [lib] A::M()[PreJIT]");
  EXPECT_EQ(frames.at(found->frame).kind, FrameKind::kR2r);
  EXPECT_FALSE(ask(0x410000).has_value());
}

TEST_F(JitMethodsTest, AmbiguousAddressesAreNotNamed) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 first\n"));
  Poll(5 * kMillisecondNs);
  tree.Append(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 second\n"));
  Poll(10 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 7 * kMillisecondNs), "[jit: code replaced while read]");
  EXPECT_EQ(Ask(kHeap, 5 * kMillisecondNs - 2000), "first");
  EXPECT_EQ(Ask(kHeap, 10 * kMillisecondNs), "second");
  EXPECT_EQ(methods->counters().ambiguous, 1u);
}

// A block comes when it is full. Until then nothing tells whether its first method or the one before stands there.
TEST_F(JitMethodsTest, AMapInBlocksSpeaksForTheTimeBeforeItsLastBlock) {
  bool in_blocks = false;
  methods = std::make_unique<JitMethods>(
      JitMethodsOptions{.names = NameStyle::kRaw, .perf_map_in_blocks = [&](const Process&) { return in_blocks; }},
      frames, notices, clock);
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 first\n"));
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 4 * kMillisecondNs), "first") << "the runtime is not known yet";
  in_blocks = true;
  Poll(10 * kMillisecondNs);
  constexpr char kLate[] = "[jit: the map is written in blocks, and this one is missing]";
  EXPECT_EQ(Ask(kHeap, 7 * kMillisecondNs), kLate);
  EXPECT_FALSE(last.named());
  Poll(20 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 15 * kMillisecondNs), kLate);
  // The block has what was compiled since the first one was read, and that may have been at once.
  tree.Append(tree.perf_map(),
              absl::StrCat(absl::Hex(kHeap), " 40 second\n", absl::Hex(kHeap + 0x1000), " 40 other\n"));
  Poll(30 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 15 * kMillisecondNs), "[jit: code replaced while read]");
  EXPECT_EQ(Ask(kHeap + 0x1000, 15 * kMillisecondNs), "other");
  EXPECT_EQ(Ask(kHeap, 25 * kMillisecondNs), kLate) << "may be a third one's already";
  EXPECT_EQ(methods->CompleteUntil(process.key).ns, 30 * kMillisecondNs) << "nobody waits for a block";
}

TEST_F(JitMethodsTest, AMapOfARuntimeThatCannotBeLookedAtMayBeInBlocks) {
  std::optional<bool> in_blocks;
  const auto start = [&] {
    methods = std::make_unique<JitMethods>(
        JitMethodsOptions{.names = NameStyle::kRaw, .perf_map_in_blocks = [&](const Process&) { return in_blocks; }},
        frames, notices, clock);
    Poll(5 * kMillisecondNs);
    Poll(10 * kMillisecondNs);
    return Ask(kHeap, 7 * kMillisecondNs);
  };
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 first\n"));
  EXPECT_EQ(start(), "[jit: the map is written in blocks, and this one is missing]");
  in_blocks = false;
  EXPECT_EQ(start(), "first");
  // The form is known, so it stays when the images can't be opened any more.
  in_blocks = std::nullopt;
  Poll(2 * kSecondNs);
  EXPECT_EQ(Ask(kHeap, 7 * kMillisecondNs), "first");
  // Other compilers write line by line.
  process.mappings.Clear();
  Map(kHeap, kHeap + 0x100000, MappingKind::kJitMemory, "");
  EXPECT_EQ(start(), "first");
}

TEST_F(JitMethodsTest, ExecAndForgetDropEverything) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 before\n"));
  Poll(5 * kMillisecondNs);
  const uint64_t generation = methods->Generation(process.key);
  ++process.exec_count;
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 after\n"));
  Poll(6 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 6 * kMillisecondNs), "after");
  EXPECT_GT(methods->Generation(process.key), generation);
  process.ends->Announce(process.key);
  EXPECT_EQ(Ask(kHeap, 6 * kMillisecondNs), "[jit: no map]");
  EXPECT_EQ(methods->counters().perf_map.records, 2u);
}

TEST_F(JitMethodsTest, ReadsTheFilesOfAProcessThatHasExited) {
  tree.Write(tree.perf_map(), absl::StrCat(absl::Hex(kHeap), " 40 short-lived\n"));
  process.exited = {4 * kMillisecondNs};
  Poll(5 * kMillisecondNs);
  EXPECT_EQ(Ask(kHeap, 3 * kMillisecondNs), "short-lived");
}

}  // namespace
}  // namespace clrsampler
