#include "runtime_events/probed_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "output/event_line.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum ClrEventKind;

constexpr uint32_t kPid = 40;

// Events as lines, with their sources.
class ProbedEventsTest : public testing::Test {
 protected:
  ProbedEvents Make(std::vector<ClrEventKind> kinds = {}, std::vector<std::string> modules = {}) {
    if (kinds.empty()) kinds.assign(ProbedEvents::AllKinds().begin(), ProbedEvents::AllKinds().end());
    return {kinds, std::move(modules), [this](const ClrEventRecord& record, absl::string_view source) {
              lines_.emplace_back(absl::StripAsciiWhitespace(EventLine(record, 0, source).substr(10)));
            }};
  }
  static SideBandEvent Task(SideBandKind kind, uint32_t tid, uint32_t parent_pid = kPid) {
    SideBandEvent event;
    event.kind = kind;
    event.time = {5};
    event.pid = kPid;
    event.tid = tid;
    event.parent_pid = parent_pid;
    event.parent_tid = kPid + 1;
    return event;
  }
  static SideBandEvent Name(uint32_t tid, const std::string& comm, bool exec = false) {
    SideBandEvent event = Task(SideBandKind::kComm, tid);
    event.comm = comm;
    event.exec = exec;
    return event;
  }
  static SideBandEvent Map(const std::string& path) {
    SideBandEvent event = Task(SideBandKind::kMmap, kPid);
    event.path = path;
    return event;
  }
  static NamedCompilation Compiled(const std::string& method, const std::string& module) {
    NamedCompilation named;
    named.method = method;
    named.module = module;
    named.tier = "Tier0";
    named.compilation.tid = 44;
    named.compilation.done = {9};
    named.compilation.entry = 0x7f00;
    named.compilation.bytes = 30;
    return named;
  }
  std::vector<std::string> lines_;
};

TEST_F(ProbedEventsTest, ThreadsComeGetNamesAndGo) {
  ProbedEvents events = Make();
  events.OnTask(Task(SideBandKind::kFork, 44));
  events.OnThreadCreated({{6}, kPid + 1, 44, {"Shop.Main", "clone"}, "Shop.Main"});
  events.OnTask(Name(44, ".NET TP Worker"));
  events.OnTask(Task(SideBandKind::kExit, 44));
  events.OnTask(Task(SideBandKind::kExit, 45));
  EXPECT_THAT(lines_, ElementsAre("ThreadCreated                on 41  tid=44 method=Shop.Main source=kernel",
                                  "ThreadNameChanged            on 44  tid=44 name=\".NET TP Worker\" source=kernel",
                                  "ThreadDestroyed              on 44  tid=44 name=\".NET TP Worker\" source=kernel",
                                  "ThreadDestroyed              on 45  tid=45 source=kernel"));
}

TEST_F(ProbedEventsTest, AnotherProcessAndAnotherProgramAreNoThreads) {
  ProbedEvents events = Make();
  events.OnTask(Task(SideBandKind::kFork, 44, /*parent_pid=*/7));
  events.OnTask(Name(kPid, "other", /*exec=*/true));
  events.OnTask(Task(SideBandKind::kLost, 0));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(ProbedEventsTest, ANumberThatIsUsedAgainHasNoOldName) {
  ProbedEvents events = Make({kThreadDestroyed});
  events.OnTask(Name(44, "old"));
  events.OnTask(Task(SideBandKind::kFork, 44));
  events.OnTask(Task(SideBandKind::kExit, 44));
  EXPECT_THAT(lines_, ElementsAre("ThreadDestroyed              on 44  tid=44 source=kernel"));
}

TEST_F(ProbedEventsTest, CallsInTheRuntimeAreItsEvents) {
  ProbedEvents events = Make();
  const auto call = [&](RuntimeEventKind kind, std::array<uint64_t, 4> arguments = {}) {
    events.OnRuntime({{9}, 44, "", kind, arguments});
  };
  call(RuntimeEventKind::kSuspend, {1});
  call(RuntimeEventKind::kSuspended);
  call(RuntimeEventKind::kGcStart, {2, 1});
  call(RuntimeEventKind::kGcEnd, {17, 2, 1, 0});
  call(RuntimeEventKind::kRestart, {1, 1});
  call(RuntimeEventKind::kRestarted);
  EXPECT_THAT(lines_, ElementsAre("RuntimeSuspendStarted        on 44  reason=gc source=probe",
                                  "RuntimeSuspendFinished       on 44  source=probe",
                                  "GarbageCollectionStarted     on 44  generation=2 source=probe",
                                  "GarbageCollectionFinished    on 44  generation=2 number=17 source=probe",
                                  "RuntimeResumeStarted         on 44  source=probe",
                                  "RuntimeResumeFinished        on 44  source=probe"));
}

TEST_F(ProbedEventsTest, AnAssemblyIsLoadedOnceByWhoeverSaysItFirst) {
  ProbedEvents events = Make({kModuleLoadFinished}, {"System.Private.CoreLib"});
  events.OnTask(Map("/usr/dotnet/System.Private.CoreLib.dll"));
  events.OnTask(Map("/usr/dotnet/libcoreclr.so"));
  events.OnTask(Map("/usr/dotnet/System.Linq.dll"));
  events.OnTask(Map("/usr/dotnet/System.Linq.dll"));
  events.OnCompilation(Compiled("System.Linq.Enumerable.Sum", "System.Linq"));
  events.OnCompilation(Compiled("Zoo.Cat.Meow", "zoo"));
  events.OnCompilation(Compiled("Zoo.Cat.Purr", "zoo"));
  events.OnCompilation(Compiled("[dynamic]", ""));
  EXPECT_THAT(lines_, ElementsAre("ModuleLoadFinished           on 40  path=/usr/dotnet/System.Linq.dll source=kernel",
                                  "ModuleLoadFinished           on 44  path=zoo source=memory"));
}

TEST_F(ProbedEventsTest, ACompilationThatGaveNoCodeIsNone) {
  ProbedEvents events = Make({kJitCompilationFinished});
  NamedCompilation refused = Compiled("Shop.Order.Total", "Shop");
  refused.compilation.result = 1;
  events.OnCompilation(refused);
  events.OnCompilation(Compiled("Shop.Order.Total", "Shop"));
  EXPECT_THAT(lines_, ElementsAre("JITCompilationFinished       on 44  method=Shop.Order.Total tier=Tier0 bytes=30 "
                                  "address=0x7f00 source=probe"));
}

TEST_F(ProbedEventsTest, OnlyWhatIsWantedHasToBeAskedFor) {
  EXPECT_TRUE(Make().wants_suspensions() && Make().wants_compilations());
  const ProbedEvents threads = Make({kThreadCreated, kThreadDestroyed, kThreadNameChanged});
  EXPECT_FALSE(threads.wants_suspensions() || threads.wants_compilations());
  EXPECT_TRUE(Make({kModuleLoadFinished}).wants_compilations()) << "the first method of one that is in no file";
  EXPECT_TRUE(Make({kGarbageCollectionFinished}).wants_suspensions());
}

TEST_F(ProbedEventsTest, NotEachPathIsThatOfAnAssembly) {
  EXPECT_EQ(AssemblyOfPath("/a/System.Linq.dll"), "System.Linq");
  EXPECT_EQ(AssemblyOfPath("/a/Shop.exe (deleted)"), "Shop");
  EXPECT_EQ(AssemblyOfPath("Shop.dll"), "Shop");
  for (const char* path : {"", "//anon", "/a/libc.so.6", "/a/x.dll.config", "/a/.dll/x"}) {
    EXPECT_EQ(AssemblyOfPath(path), "") << path;
  }
}

}  // namespace
}  // namespace clrsampler
