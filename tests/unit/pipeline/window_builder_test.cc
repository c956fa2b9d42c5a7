#include "pipeline/window_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "os/clock.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBegin = 5'000'000'000;
constexpr uint64_t kBeginUnix = 1'700'000'000'000'000'000;
constexpr uint64_t kStarted = 3'000'000'000;

class WindowBuilderTest : public testing::Test {
 protected:
  WindowBuilderTest() { builder_.Begin({kBegin}, kBeginUnix); }

  Process Make(uint32_t tgid, uint32_t incarnation, const std::string& comm) {
    Process process(ProcessKey{tgid, incarnation}, TargetFiles("/nonexistent", tgid));
    process.comm = comm;
    process.first_seen = {kBegin - 1000};
    process.started_boot_ns = kStarted;
    process.uid = 1000;
    return process;
  }
  FrameId Named(FrameKind kind, const std::string& text) {
    return frames_.Intern(Frame{kind, NameSource::kRuntimeMemory, text, "", ""});
  }
  void Add(const Process& process, uint32_t tid, uint64_t after_ns, std::vector<FrameId> stack,
           std::optional<RuntimeRoleKind> role = std::nullopt, PausePhase phase = PausePhase::kNone,
           uint64_t weight_ns = 100) {
    wire_cpu_sample sample{};
    sample.tgid = process.key.tgid;
    sample.tid = tid;
    sample.header.time_ns = kBegin + after_ns;
    std::strcpy(sample.comm, "worker");
    EXPECT_TRUE(builder_.Add({process, sample, stack, role, 0, phase, StackEnd::kComplete, weight_ns}));
  }
  Window Take() {
    WindowBuilder::Taken taken = builder_.Take(10);
    EXPECT_TRUE(taken.lost.empty());
    return std::move(taken.window);
  }

  FrameTable frames_;
  WindowBuilder builder_{frames_};
};

TEST_F(WindowBuilderTest, SamplesKeepTimeThreadStateAndWeight) {
  const Process web = Make(7, 1, "web");
  const FrameId main = Named(FrameKind::kJit, "Main");
  Add(web, 8, 5, {main}, std::nullopt, PausePhase::kStopped, 250);
  const Window window = Take();
  ASSERT_EQ(window.cpu.samples.size(), 1u);
  const ModelSample sample = window.cpu.samples.at(0);
  EXPECT_EQ(sample.time_ns, 5u);
  EXPECT_EQ(sample.weight, 250u);
  EXPECT_EQ(sample.state, SampleState::kPaused);
  const ModelThread& thread = window.cpu.threads[sample.thread];
  EXPECT_EQ(thread.pid, 7u);
  EXPECT_EQ(thread.tid, 8u);
  EXPECT_EQ(window.cpu.text(thread.name), "worker");
  EXPECT_EQ(window.cpu.text(window.cpu.frame_of(sample.stack).name), "Main");
  EXPECT_EQ(window.cpu.meta.unit, WeightUnit::kNanoseconds);
  ASSERT_EQ(window.processes.size(), 1u);
  EXPECT_EQ(window.processes[0].started_boot_ns, kStarted);
  EXPECT_EQ(window.processes[0].uid, 1000u);
}

TEST_F(WindowBuilderTest, FramesHaveTheirLineAndItsFileItsPlaceOnTheWeb) {
  SourceFiles sources;
  sources.Add("/_/Cart.cs", {"https://host.example/Cart.cs", ""});
  sources.Add("/_/Other.cs", {"https://host.example/Other.cs", ""});
  WindowBuilder builder(frames_, &sources);
  Frame frame{FrameKind::kJit, NameSource::kRuntimeMemory, "Shop.Cart.Total", "shop", ""};
  frame.place = {"/_/Cart.cs", 57, 9, LineKind::kExact};
  const Process web = Make(7, 1, "web");
  wire_cpu_sample sample{};
  const std::vector<FrameId> stack = {frames_.Intern(frame), Named(FrameKind::kR2r, "M")};
  builder.Add({web, sample, stack, std::nullopt, 0, PausePhase::kNone, StackEnd::kComplete, 100});
  builder.AddCompiledStack(web, stack, 5);
  const Window window = builder.Take(10).window;
  EXPECT_EQ(window.account.frames_with_line, 1u);
  for (const ProfileModel* model : {&window.cpu, &window.jit}) {
    const ModelFrame& written = model->frames[0];
    EXPECT_EQ(model->text(written.source_file), "/_/Cart.cs");
    EXPECT_EQ(written.line, 57u);
    EXPECT_EQ(written.line_kind, LineKind::kExact);
    ASSERT_EQ(model->sources.size(), 1u) << "no other file is told of";
    EXPECT_EQ(model->text(model->sources[0].url), "https://host.example/Cart.cs");
  }
}

// Anybody may claim to have allocated as much.
TEST_F(WindowBuilderTest, AViewThatCannotBeHeldTakesNoOtherWithIt) {
  const Process web = Make(7, 1, "web");
  const std::vector<FrameId> stack = {Named(FrameKind::kJit, "Main")};
  Add(web, 8, 5, stack);
  builder_.AddAllocation({web.key, stack, {5}, 8, uint64_t{1} << 63});
  builder_.ScaleAllocations(web.key, 1);
  const WindowBuilder::Taken taken = builder_.Take(10);
  ASSERT_EQ(taken.lost.size(), 1u);
  EXPECT_EQ(taken.lost[0].first, ProfileView::kAllocations);
  EXPECT_EQ(taken.window.cpu.samples.size(), 1u);
  EXPECT_EQ(taken.window.allocations.samples.size(), 0u);
  ASSERT_EQ(taken.window.processes.size(), 1u);
}

TEST_F(WindowBuilderTest, EachSampleHasOneShareOfItsProcess) {
  const Process web = Make(7, 1, "web");
  const FrameId managed = Named(FrameKind::kR2r, "M"), native = Named(FrameKind::kNative, "n"),
                kernel = Named(FrameKind::kKernel, "k");
  const FrameId mark = frames_.Intern(Frame{FrameKind::kMark, NameSource::kNone, "[cut]", "", ""});
  const FrameId gc = frames_.Intern(Frame{FrameKind::kRole, NameSource::kNone, "[gc gen0 blocking]", "", ""});
  const FrameId jit = frames_.Intern(Frame{FrameKind::kRole, NameSource::kNone, "[jit A Tier0]", "", "Tier0"});
  Add(web, 7, 1, {mark, native, managed});
  Add(web, 7, 2, {managed, native});
  Add(web, 7, 3, {managed, native, kernel, mark});
  Add(web, 7, 4, {managed, gc, native, kernel}, RuntimeRoleKind::kCollecting);
  Add(web, 7, 5, {managed, jit}, RuntimeRoleKind::kCompiling);
  const Window window = Take();
  EXPECT_THAT(window.processes[0].cpu_ns, testing::Each(100));
  EXPECT_EQ(window.processes[0].total_cpu_ns(), 500u);
  EXPECT_EQ(window.processes[0].managed.named, 5u);
  EXPECT_EQ(window.processes[0].native.named, 4u);
  EXPECT_EQ(window.processes[0].kernel.named, 2u);
  EXPECT_EQ(window.account.managed.named, 5u);
  EXPECT_EQ(window.account.roles.at("[jit]"), 1u);
}

TEST_F(WindowBuilderTest, AMethodThatIsNotKnownIsCompiledAllTheSame) {
  const FrameId jit = frames_.Intern(Frame{FrameKind::kRole, NameSource::kNone, "[jit]", "", ""});
  Add(Make(7, 1, "web"), 7, 1, {jit, Named(FrameKind::kNative, "n")}, RuntimeRoleKind::kCompiling);
  EXPECT_EQ(Take().processes[0].cpu_ns[static_cast<size_t>(CpuShare::kJit)], 100u);
}

TEST_F(WindowBuilderTest, ProcessesOfOneIdAreTwo) {
  Add(Make(7, 1, "old"), 7, 1, {});
  builder_.SetExited({7, 1});
  Add(Make(7, 2, "new"), 7, 2, {});
  const Window window = Take();
  ASSERT_EQ(window.processes.size(), 2u);
  EXPECT_TRUE(window.processes[0].exited);
  EXPECT_EQ(window.processes[1].comm, "new");
  EXPECT_FALSE(window.processes[1].exited);
}

TEST_F(WindowBuilderTest, AProcessIsTheSameWhateverTheClockDoesAndWhoeverBuildsTheWindow) {
  for (const uint64_t off : {0ull, 5'000'000ull, 3'600'000'000'000ull}) {
    WindowBuilder after_a_restart(frames_);
    for (WindowBuilder* builder : {&builder_, &after_a_restart}) {
      builder->Begin({kBegin + 10}, kBeginUnix + 10 + off);
      Process web = Make(7, 1, "web");
      web.first_seen = {kBegin + off};
      builder->AddCompiledStack(web, {}, 1);
      EXPECT_EQ(builder->Take(10).window.processes.at(0).started_boot_ns, kStarted);
    }
  }
}

TEST_F(WindowBuilderTest, NothingOfAWindowIsInTheNext) {
  Add(Make(7, 1, "web"), 7, 1, {Named(FrameKind::kJit, "Main")});
  builder_.AddPause({.process = {7, 1}, .pause = {}, .culprits = {}, .stacks = {}});
  EXPECT_EQ(Take().processes.size(), 1u);
  builder_.Begin({kBegin + 10}, kBeginUnix + 10);
  const Window next = Take();
  EXPECT_TRUE(next.processes.empty());
  EXPECT_TRUE(next.pauses.empty());
  EXPECT_EQ(next.cpu.samples.size(), 0u);
  EXPECT_EQ(next.cpu.strings.size(), 1u);
}

TEST_F(WindowBuilderTest, APauseHasItsDelayAndTheStacksThatCausedIt) {
  const Process web = Make(7, 1, "web");
  Add(web, 7, 1, {});
  const FrameId spin = Named(FrameKind::kJit, "Spin");
  ObservedPause observed;
  observed.process = web.key;
  observed.pause.requested = {kBegin + 1000};
  observed.pause.stopped = {kBegin + 4000};
  observed.pause.resume_begun = {kBegin + 9000};
  observed.pause.generation = 2;
  observed.culprits = {{"Spin", 9, 3000, 2}};
  observed.stacks = {{{spin}, 1500, 9}, {{spin}, 1500, 9}};
  builder_.AddPause(observed);
  builder_.AddCollection(web.key, {.generation = 2, .background = true});
  builder_.AddCollection({77, 5}, {.generation = 9});
  const Window window = Take();
  ASSERT_EQ(window.pauses.size(), 1u);
  EXPECT_EQ(window.pauses[0].requested_unix_ns, kBeginUnix + 1000);
  EXPECT_EQ(window.pauses[0].suspend_ns, 3000u);
  EXPECT_EQ(window.pauses[0].pause_ns, 8000u);
  EXPECT_EQ(window.pauses[0].culprits.size(), 1u);
  EXPECT_EQ(window.suspend_delay.total_weight, 3000u);
  EXPECT_EQ(window.suspend_delay.meta.view, ProfileView::kSuspendDelay);
  const WindowProcess& process = window.processes[window.pauses[0].process];
  EXPECT_EQ(process.pauses, 1u);
  EXPECT_EQ(process.pause_ns, 8000u);
  EXPECT_THAT(process.collections, testing::ElementsAre(0, 0, 1));
  EXPECT_EQ(process.background_collections, 1u);
}

TEST_F(WindowBuilderTest, AProcessWithoutASampleIsDescribedAtTheEnd) {
  const Process web = Make(7, 1, "web");
  builder_.Describe(web);
  EXPECT_FALSE(builder_.Has(web.key));  // nothing of it is here
  builder_.AddPause({.process = web.key, .pause = {}, .culprits = {}, .stacks = {}});
  builder_.AddCompilation(web.key, {});
  builder_.Describe(web);
  const Window window = Take();
  ASSERT_EQ(window.processes.size(), 1u);
  EXPECT_EQ(window.processes[0].comm, "web");
  EXPECT_EQ(window.processes[0].started_boot_ns, kStarted);
  EXPECT_EQ(window.processes[0].pauses, 1u);
}

TEST_F(WindowBuilderTest, OfTooManyPausesTheLongestStay) {
  const Process web = Make(7, 1, "web");
  Add(web, 7, 1, {});
  constexpr size_t kPauses = 3 * Window::kMaxPauses + 5;
  for (size_t i = 0; i < kPauses; ++i) {
    ObservedPause observed;
    observed.process = web.key;
    observed.pause.requested = observed.pause.stopped = {kBegin + i};
    observed.pause.resume_begun = {kBegin + i + 1 + i * 7919 % kPauses};
    builder_.AddPause(observed);
  }
  const Window window = Take();
  ASSERT_EQ(window.pauses.size(), Window::kMaxPauses);
  EXPECT_EQ(window.pauses_left_out, kPauses - Window::kMaxPauses);
  for (const WindowPause& pause : window.pauses) ASSERT_GT(pause.pause_ns, kPauses - Window::kMaxPauses);
  EXPECT_TRUE(std::is_sorted(window.pauses.begin(), window.pauses.end(),
                             [](const auto& a, const auto& b) { return a.requested_unix_ns < b.requested_unix_ns; }));
  EXPECT_EQ(window.processes[0].pauses, kPauses);
}

TEST_F(WindowBuilderTest, CompilationsAreSummedByMethodAndTier) {
  Add(Make(7, 1, "web"), 7, 1, {});
  NamedCompilation named;
  named.tgid = 7;
  named.method = "Shop.Total";
  named.tier = "Tier0";
  named.compilation.began = {kBegin};
  named.compilation.done = {kBegin + 500};
  named.compilation.inner_ns = 100;
  named.compilation.bytes = 30;
  builder_.AddCompilation({7, 1}, named);
  builder_.AddCompilation({7, 1}, named);
  named.tier = "OptimizedTier1";
  builder_.AddCompilation({7, 1}, named);
  builder_.AddCompiledStack(Make(7, 1, "web"), std::vector<FrameId>{Named(FrameKind::kJit, "Main")}, 400);
  const Window window = Take();
  ASSERT_EQ(window.methods.size(), 2u);
  EXPECT_EQ(window.methods[0].tier, "Tier0");
  EXPECT_EQ(window.methods[0].count, 2u);
  EXPECT_EQ(window.methods[0].total_ns, 800u);
  EXPECT_EQ(window.methods[0].bytes, 60u);
  EXPECT_EQ(window.processes[0].compilations, 3u);
  EXPECT_EQ(window.processes[0].compile_ns, 1200u);
  EXPECT_EQ(window.jit.total_weight, 400u);
}

TEST_F(WindowBuilderTest, AllocationsCountInTheWindowOfTheirFactor) {
  const Process web = Make(7, 1, "web");
  const std::vector<FrameId> order = {Named(FrameKind::kJit, "Main"), Named(FrameKind::kType, "Shop.Order")};
  const std::vector<FrameId> text = {order[0], Named(FrameKind::kType, "string")};
  builder_.AddAllocation({web.key, order, {kBegin + 1}, 8, 100});
  builder_.AddAllocation({web.key, text, {kBegin + 2}, 8, 101});
  builder_.ScaleAllocations(web.key, 1.5);
  builder_.ScaleAllocations({77, 1}, 2);  // one that has allocated nothing
  builder_.Describe(web);
  const Window window = Take();
  ASSERT_EQ(window.processes.size(), 1u);
  EXPECT_EQ(window.processes[0].comm, "web");
  EXPECT_EQ(window.processes[0].allocated_bytes, 302u) << "1.5 * 201, rounded once";
  const ProfileModel& model = window.allocations;
  EXPECT_EQ(model.total_weight, 302u);
  EXPECT_EQ(model.meta.unit, WeightUnit::kBytes);
  EXPECT_EQ(model.meta.view, ProfileView::kAllocations);
  ASSERT_EQ(model.samples.size(), 2u);
  EXPECT_EQ(model.text(model.frame_of(model.samples.stack[0]).name), "Shop.Order");
  EXPECT_EQ(model.frame_of(model.samples.stack[0]).kind, ModelFrameKind::kType);
  EXPECT_EQ(model.threads[model.samples.thread[0]].tid, 8u);
  EXPECT_EQ(Take().allocations.samples.size(), 0u);
}

class WindowWaitsTest : public WindowBuilderTest {
 protected:
  WindowWaitsTest() { builder_.Begin({kBegin}, 5'000'000); }
  ObservedWait Wait(WaitKind kind, uint64_t ended_after_ns, uint64_t ns, const std::vector<FrameId>& frames) {
    ObservedWait wait;
    wait.process = kWeb;
    wait.tid = 8;
    wait.comm = "worker";
    wait.ended = {kBegin + ended_after_ns};
    wait.kind = kind;
    wait.wait_ns = ns;
    wait.frames = frames;
    return wait;
  }
  static WaitWatch::Threads Threads(uint64_t cpu_ns, uint64_t blocked_ns, uint64_t short_ns = 0) {
    ThreadTimes times;
    times.cpu_ns = cpu_ns;
    times.blocked_ns = blocked_ns;
    times.short_ns = short_ns;
    return {{8, times}};
  }
  static std::map<std::string, uint64_t> ByLeaf(const ProfileModel& model) {
    std::map<std::string, uint64_t> weights;
    for (size_t row = 0; row < model.samples.size(); ++row) {
      weights[std::string(model.text(model.frame_of(model.samples.stack[row]).name))] += model.samples.weight_of(row);
    }
    return weights;
  }

  static constexpr ProcessKey kWeb{7, 1};
  const std::vector<FrameId> main_ = {Named(FrameKind::kJit, "Main")};
};

TEST_F(WindowWaitsTest, SumsByKindAreThoseOfTheStacks) {
  builder_.AddWait(Wait(WaitKind::kMonitor, 30 * kMillisecondNs, 20 * kMillisecondNs, main_));
  builder_.AddWait(Wait(WaitKind::kSleep, 90 * kMillisecondNs, 50 * kMillisecondNs, main_));
  builder_.SumUpThreads(kWeb, Threads(25 * kMillisecondNs, 74 * kMillisecondNs, 3 * kMillisecondNs));
  const Window window = Take();
  ASSERT_EQ(window.processes.size(), 1u);
  const WaitTimes& waits = window.processes[0].waits;
  EXPECT_EQ(waits.of(WaitKind::kMonitor), 20 * kMillisecondNs);
  EXPECT_EQ(waits.of(WaitKind::kSleep), 50 * kMillisecondNs);
  EXPECT_EQ(waits.short_ns, 3 * kMillisecondNs);
  EXPECT_EQ(waits.untold_ns, 1 * kMillisecondNs);
  EXPECT_EQ(waits.running_ns, 25 * kMillisecondNs);
  EXPECT_EQ(waits.waited_ns(), 74 * kMillisecondNs);
  EXPECT_EQ(window.waits.total_weight, 74 * kMillisecondNs);
  EXPECT_EQ(window.waits.meta.view, ProfileView::kOffCpu);
  EXPECT_EQ(window.waits.meta.unit, WeightUnit::kNanoseconds);
  EXPECT_EQ(ByLeaf(window.waits), (std::map<std::string, uint64_t>{{"[monitor]", 20 * kMillisecondNs},
                                                                   {"[sleep]", 50 * kMillisecondNs},
                                                                   {"[waits shorter than 0]", 3 * kMillisecondNs},
                                                                   {"[waits not told]", 1 * kMillisecondNs}}));
  const ModelThread& thread = window.waits.threads[window.waits.samples.thread[0]];
  EXPECT_EQ(thread.tid, 8u);
  EXPECT_EQ(window.waits.text(thread.name), "worker");
}

// The part that was told of it before its window began was in the windows before, as of their ends.
TEST_F(WindowWaitsTest, AWaitCountsWithThePartThatFellIntoTheWindow) {
  builder_.AddWait(Wait(WaitKind::kMonitor, 30 * kMillisecondNs, 500 * kMillisecondNs, main_));
  builder_.SumUpThreads(kWeb, Threads(70 * kMillisecondNs, 30 * kMillisecondNs));
  EXPECT_EQ(Take().processes[0].waits.of(WaitKind::kMonitor), 30 * kMillisecondNs);
  builder_.Begin({kBegin + 100 * kMillisecondNs}, 5'000'000);
  builder_.AddWait(Wait(WaitKind::kMonitor, 30 * kMillisecondNs, 20 * kMillisecondNs, main_));
  builder_.SumUpThreads(kWeb, {});
  EXPECT_TRUE(Take().processes.empty()) << "it was over before";
}

TEST_F(WindowWaitsTest, WaitsThatStandForOthersComeToTheTimesOfTheThreads) {
  ObservedWait monitor = Wait(WaitKind::kMonitor, 30 * kMillisecondNs, 20 * kMillisecondNs, main_);
  monitor.stands_for = 2;
  ObservedWait event = Wait(WaitKind::kEvent, 60 * kMillisecondNs, 10 * kMillisecondNs, main_);
  event.stands_for = 2;
  builder_.AddWait(monitor);
  builder_.AddWait(event);
  builder_.SumUpThreads(kWeb, Threads(0, 90 * kMillisecondNs));
  const WaitTimes waits = Take().processes[0].waits;
  EXPECT_EQ(waits.of(WaitKind::kMonitor), 60 * kMillisecondNs);
  EXPECT_EQ(waits.of(WaitKind::kEvent), 30 * kMillisecondNs);
}

TEST_F(WindowWaitsTest, WhoEndedAWaitFollowsBehindItsKind) {
  const std::vector<FrameId> waker = {Named(FrameKind::kJit, "Loop"), Named(FrameKind::kJit, "Shop.Gate.Release")};
  ObservedWait wait = Wait(WaitKind::kMonitor, 30 * kMillisecondNs, 20 * kMillisecondNs, main_);
  wait.waker_tid = 9;
  wait.waker_tgid = kWeb.tgid;
  wait.waker_comm = "owner";
  wait.waker_frames = waker;
  builder_.AddWait(wait);
  builder_.SumUpThreads(kWeb, Threads(0, 20 * kMillisecondNs));
  const Window window = Take();
  std::vector<std::string> stack;
  for (NodeIndex node = window.waits.samples.stack[0]; node != kRootNode; node = window.waits.nodes[node].parent) {
    stack.insert(stack.begin(), std::string(window.waits.text(window.waits.frame_of(node).name)));
  }
  EXPECT_EQ(stack,
            (std::vector<std::string>{"Main", "[monitor]", "[woken by thread owner]", "Shop.Gate.Release", "Loop"}));
}

TEST_F(WindowWaitsTest, NamesOfWakersAreFewHoweverManyProcessesThereAre) {
  constexpr uint32_t kProcesses = 3000;
  const size_t before = frames_.size();
  std::vector<std::string> comms;
  for (uint32_t i = 0; i < kProcesses; ++i) comms.push_back(absl::StrCat("job ", i));
  for (uint32_t i = 0; i < kProcesses; ++i) {
    ObservedWait wait = Wait(WaitKind::kTaskWait, 30 * kMillisecondNs, 20 * kMillisecondNs, main_);
    wait.waker_tid = wait.waker_tgid = 5000 + i;
    wait.waker_comm = "sh";
    builder_.AddWait(wait);
    wait.waker_comm = comms[i];
    builder_.AddWait(wait);
  }
  builder_.SumUpThreads(kWeb, Threads(0, 120 * kSecondNs));
  const Window window = Take();
  std::set<std::string> wakers;
  for (const NodeIndex leaf : window.waits.samples.stack) {
    wakers.emplace(window.waits.text(window.waits.frame_of(leaf).name));
  }
  EXPECT_TRUE(wakers.contains("[woken by sh]"));
  EXPECT_TRUE(wakers.contains("[woken by another process]"));
  EXPECT_LE(frames_.size() - before, WaitStack::kMostWakerNames + 10);
}

TEST_F(WindowWaitsTest, OneThatNothingIsKnownOfIsNotInTheWindow) {
  builder_.SumUpThreads(kWeb, Threads(0, 0));
  EXPECT_TRUE(Take().processes.empty());
}

}  // namespace
}  // namespace clrsampler
