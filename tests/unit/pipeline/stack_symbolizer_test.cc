#include "pipeline/stack_symbolizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "unit/unwind/raw_record.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

// Names addresses by a list of (address, from, name), as a JIT would: a later method at the same address replaces it.
class ScriptedSource : public FrameSource, public PolledSource {
 public:
  explicit ScriptedSource(FrameTable& frames) : frames_(frames) {}
  void Load(uint64_t address, uint64_t from, std::string name, MethodIdentity identity = {}) {
    methods_[address][from] = {std::move(name), identity};
    ++generation_;
  }
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    ++asked;
    const auto found = methods_.find(query.lookup_address);
    if (found == methods_.end()) return std::nullopt;
    auto next = found->second.upper_bound(query.time.ns);
    const MonotonicTime until = next == found->second.end() ? MonotonicTime::Max() : MonotonicTime{next->first};
    if (next == found->second.begin()) return std::nullopt;
    --next;
    Frame frame{FrameKind::kJit, NameSource::kJitdump, next->second.name, "", ""};
    frame.identity = next->second.identity;
    return Resolution{frames_.Intern(std::move(frame)), {next->first}, until};
  }
  uint64_t Generation(ProcessKey) const override { return generation_; }
  PolledSource* polled() override { return this; }
  void Poll(const Process&, MonotonicTime now) override { seen_ = now; }
  MonotonicTime CompleteUntil(ProcessKey) const override { return seen_; }
  bool WantsShortIterations(MonotonicTime) const override { return false; }

  int asked = 0;

 private:
  FrameTable& frames_;
  struct Method {
    std::string name;
    MethodIdentity identity;
  };
  std::map<uint64_t, std::map<uint64_t, Method>> methods_;
  uint64_t generation_ = 1;
  MonotonicTime seen_;
};

class StackSymbolizerTest : public testing::Test {
 protected:
  std::vector<std::string> NameAt(uint64_t time, uint64_t leaf = 0x1000) {
    RawRecord record;
    record.kernel = kernel_;
    record.header.ip = leaf;
    record.header.stop = WIRE_STOP_END;
    record.Frame(0x7000, 0, 0x2001);
    const RawStack raw = RawStack::Parse(record.Bytes()).value();
    UserStack user;
    WalkFrameChain(raw, user);
    std::vector<std::string> texts;
    for (const FrameId id : stack_symbolizer_.Name(process_, raw, user, {time}).frames)
      texts.push_back(frames_.at(id).text);
    return texts;
  }

  FrameTable frames_;
  ScriptedSource source_{frames_};
  Symbolizer symbolizer_{{&source_}, frames_};
  KernelSymbolizer kernel_symbolizer_{
      frames_, NameStyle::kShort, nullptr, KernelSymbols(NameStyle::kShort, [] {
        return std::string("ffffffff81000000 T entry\nffffffff81001000 T leaf\nffffffff81002000 T end\n");
      })};
  StackSymbolizer stack_symbolizer_{symbolizer_, kernel_symbolizer_, frames_};
  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
  std::vector<uint64_t> kernel_;
};

TEST_F(StackSymbolizerTest, OutermostFirstThenTheKernel) {
  source_.Load(0x1000, 1, "Leaf");
  source_.Load(0x2000, 1, "Main");
  kernel_ = {0xffffffff81001004, 0xffffffff81001000};  // the caller returns to the first byte behind `entry`
  EXPECT_THAT(NameAt(10), ElementsAre("Main", "Leaf", "entry", "leaf"));
}

TEST_F(StackSymbolizerTest, BodiesOfOneAsyncMethodAreOneFrame) {
  source_.Load(0x2000, 1, "CheckoutAsync", {.key = 5, .body = AsyncBody::kThunk});
  source_.Load(0x1000, 1, "CheckoutAsync", {.key = 5, .body = AsyncBody::kResult});
  source_.Load(0x1000, 100, "Other", {.key = 6, .body = AsyncBody::kResult});
  EXPECT_THAT(NameAt(50), ElementsAre("CheckoutAsync"));
  EXPECT_THAT(NameAt(100), ElementsAre("CheckoutAsync", "Other"));
  kernel_ = {0xffffffff81001000};
  EXPECT_THAT(NameAt(50), ElementsAre("CheckoutAsync", "leaf"));
}

TEST_F(StackSymbolizerTest, EachFrameHasItsPlaceWhereThatIsAskedFor) {
  source_.Load(0x1000, 10, "leaf", {7, AsyncBody::kResult});
  source_.Load(0x2000, 10, "thunk", {7, AsyncBody::kThunk});
  source_.Load(0x3000, 10, "main");
  RawRecord record;
  record.header.ip = 0x1000;
  record.header.stop = WIRE_STOP_END;
  record.Frame(0x7000, 0x7020, 0x2001).Frame(0x7020, 0, 0x3001);
  const RawStack raw = RawStack::Parse(record.Bytes()).value();
  UserStack user;
  WalkFrameChain(raw, user);
  EXPECT_TRUE(stack_symbolizer_.Name(process_, raw, user, {20}).places.empty());
  StackSymbolizer with_places(symbolizer_, kernel_symbolizer_, frames_, true);
  const NamedStack& named = with_places.Name(process_, raw, user, {20});
  // The thunk is folded into the leaf.
  ASSERT_EQ(named.frames.size(), 2u);
  EXPECT_THAT(named.places, ElementsAre(1, 1, 0));
}

TEST_F(StackSymbolizerTest, ACachedStackIsNotUsedForAnotherTime) {
  source_.Load(0x1000, 1, "First");
  source_.Load(0x1000, 100, "Second");
  source_.Load(0x2000, 1, "Main");
  EXPECT_THAT(NameAt(50), ElementsAre("Main", "First"));
  EXPECT_THAT(NameAt(100), ElementsAre("Main", "Second"));
  EXPECT_THAT(NameAt(99), ElementsAre("Main", "First"));
}

TEST_F(StackSymbolizerTest, TheSameStackIsResolvedOnce) {
  source_.Load(0x1000, 1, "Leaf");
  source_.Load(0x2000, 1, "Main");
  NameAt(10);
  const int asked = source_.asked;
  NameAt(11);
  EXPECT_EQ(source_.asked, asked);
  EXPECT_EQ(stack_symbolizer_.counters().hits, 1u);
}

TEST_F(StackSymbolizerTest, TheCallersOfAnotherLeafAreNotAskedForAgain) {
  source_.Load(0x1000, 1, "Leaf");
  source_.Load(0x1008, 1, "Leaf");
  source_.Load(0x2000, 1, "Main");
  EXPECT_THAT(NameAt(10), ElementsAre("Main", "Leaf"));
  const int asked = source_.asked;
  EXPECT_THAT(NameAt(11, 0x1008), ElementsAre("Main", "Leaf"));
  EXPECT_EQ(source_.asked, asked + 1);
}

TEST_F(StackSymbolizerTest, ACallerIsAskedForAgainWhereItsAnswerDoesNotHold) {
  source_.Load(0x1000, 1, "Leaf");
  source_.Load(0x1008, 1, "Leaf");
  source_.Load(0x2000, 1, "First");
  source_.Load(0x2000, 100, "Second");
  EXPECT_THAT(NameAt(50), ElementsAre("First", "Leaf"));
  EXPECT_THAT(NameAt(100, 0x1008), ElementsAre("Second", "Leaf"));
  EXPECT_THAT(NameAt(99, 0x1008), ElementsAre("First", "Leaf"));
  source_.Load(0x2000, 60, "Between");
  EXPECT_THAT(NameAt(99), ElementsAre("Between", "Leaf"));
  ++process_.exec_count;
  const int asked = source_.asked;
  EXPECT_THAT(NameAt(99), ElementsAre("Between", "Leaf"));
  EXPECT_EQ(source_.asked, asked + 2) << "nothing that was known of another program";
}

TEST_F(StackSymbolizerTest, NewMethodsMakeCachedStacksStale) {
  source_.Load(0x2000, 1, "Main");
  EXPECT_THAT(NameAt(50), ElementsAre("Main", "[native: no code mapped here]"));
  source_.Load(0x1000, 40, "Late");
  EXPECT_THAT(NameAt(50), ElementsAre("Main", "Late"));
}

TEST_F(StackSymbolizerTest, SamplesFromBeforeAnExecAreNotNamedByTheNewProgram) {
  source_.Load(0x1000, 1, "New");
  source_.Load(0x2000, 1, "Main");
  process_.code_known_since = {60};
  EXPECT_THAT(NameAt(59),
              ElementsAre("[native: code not known at that time]", "[native: code not known at that time]"));
  EXPECT_THAT(NameAt(60), ElementsAre("Main", "New"));
}

TEST_F(StackSymbolizerTest, SamplesFromBeforeALibraryWasReplacedAreNotNamedByTheNewOne) {
  source_.Load(0x1000, 1, "New");
  source_.Load(0x2000, 1, "Main");
  EXPECT_THAT(NameAt(58), ElementsAre("Main", "New"));
  ASSERT_TRUE(process_.mappings.NoteReplaced(0x1000, 0x1100, {60}));
  EXPECT_THAT(NameAt(59), ElementsAre("Main", "[native: mapping replaced before it was read]"));
  EXPECT_THAT(NameAt(60), ElementsAre("Main", "New"));
  EXPECT_THAT(NameAt(59), ElementsAre("Main", "[native: mapping replaced before it was read]")) << "not from the cache";
}

}  // namespace
}  // namespace clrsampler
