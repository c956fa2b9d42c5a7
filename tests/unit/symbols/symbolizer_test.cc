#include "symbols/symbolizer.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

// Gets `step` further with each poll, up to `limit`.
class LaggingSource : public FrameSource, public PolledSource {
 public:
  std::optional<Resolution> Resolve(const FrameQuery&) override { return std::nullopt; }
  uint64_t Generation(ProcessKey) const override { return 1; }
  PolledSource* polled() override { return this; }
  void Poll(const Process&, MonotonicTime) override {
    ++polls;
    seen.ns = std::min(seen.ns + step, limit);
  }
  MonotonicTime CompleteUntil(ProcessKey) const override { return seen; }
  bool WantsShortIterations(MonotonicTime) const override { return false; }

  MonotonicTime seen{0};
  uint64_t step = 100;
  uint64_t limit = 1000;
  int polls = 0;
};

class SymbolizerTest : public testing::Test {
 protected:
  FrameTable frames_;
  LaggingSource source_;
  Symbolizer symbolizer_{{&source_}, frames_};
  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
};

TEST_F(SymbolizerTest, ThatASourceHasSeenOneTimeSaysNothingOfALaterOneInTheSameTurn) {
  source_.limit = 100;
  EXPECT_TRUE(symbolizer_.CatchUp(process_, {50}, {5000}));
  EXPECT_FALSE(symbolizer_.CatchUp(process_, {200}, {5000}));
  source_.limit = 1000;
  EXPECT_TRUE(symbolizer_.CatchUp(process_, {200}, {5001})) << "the next iteration";
}

TEST_F(SymbolizerTest, ASourceThatGetsFurtherIsAskedAgain) {
  EXPECT_TRUE(symbolizer_.CatchUp(process_, {50}, {5000}));
  EXPECT_TRUE(symbolizer_.CatchUp(process_, {900}, {5000}));
}

TEST_F(SymbolizerTest, ASourceThatIsStuckIsNotAskedAgainInItsTurn) {
  source_.limit = 100;
  EXPECT_FALSE(symbolizer_.CatchUp(process_, {200}, {5000}));
  const int polls = source_.polls;
  EXPECT_FALSE(symbolizer_.CatchUp(process_, {300}, {5000}));
  EXPECT_TRUE(symbolizer_.CatchUp(process_, {100}, {5000}));
  EXPECT_EQ(source_.polls, polls);
}

// Answers what a test gives it, and counts the questions.
class FixedSource : public FrameSource {
 public:
  explicit FixedSource(std::optional<Resolution> answer = std::nullopt) : answer_(answer) {}
  std::optional<Resolution> Resolve(const FrameQuery&) override {
    ++asked;
    return answer_;
  }
  uint64_t Generation(ProcessKey) const override { return 1; }
  int asked = 0;

 private:
  std::optional<Resolution> answer_;
};

class SymbolizerOrderTest : public testing::Test {
 protected:
  Resolution Named(const char* text, uint64_t from = 0, uint64_t until = UINT64_MAX) {
    return {frames_.Intern(Frame{FrameKind::kJit, NameSource::kPerfMap, text, "", ""}), {from}, {until}};
  }
  Resolution Unnamed(const char* text, uint64_t from = 0, uint64_t until = UINT64_MAX) {
    return {frames_.Intern(Frame{FrameKind::kJit, NameSource::kNone, text, "", ""}), {from}, {until}};
  }
  Resolution Ask(std::vector<FixedSource>& sources) {
    std::vector<FrameSource*> borrowed;
    for (FixedSource& source : sources) borrowed.push_back(&source);
    Symbolizer symbolizer(borrowed, frames_);
    return symbolizer.Resolve({process_, nullptr, 100, 99, {50}});
  }
  const std::string& Text(const Resolution& resolution) { return frames_.at(resolution.frame).text; }

  FrameTable frames_;
  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
};

TEST_F(SymbolizerOrderTest, TheFirstNameWinsAndLaterSourcesAreNotAsked) {
  std::vector<FixedSource> sources{FixedSource(), FixedSource(Named("a", 10, 90)), FixedSource(Named("b"))};
  const Resolution found = Ask(sources);
  EXPECT_EQ(Text(found), "a");
  EXPECT_EQ(found.from.ns, 10u);
  EXPECT_EQ(found.until.ns, 90u);
  EXPECT_EQ(sources[2].asked, 0);
}

TEST_F(SymbolizerOrderTest, ANameComesBeforeAReasonAndHoldsForItsOwnTime) {
  std::vector<FixedSource> sources{FixedSource(Unnamed("[why]", 49, 51)), FixedSource(),
                                   FixedSource(Named("a", 45, 90))};
  const Resolution found = Ask(sources);
  EXPECT_EQ(Text(found), "a");
  // Should the first source come to know more, its generation tells.
  EXPECT_EQ(found.from.ns, 45u);
  EXPECT_EQ(found.until.ns, 90u);
}

TEST_F(SymbolizerOrderTest, WithoutANameTheLastReasonStandsWhileAllOfThemHold) {
  std::vector<FixedSource> sources{FixedSource(Unnamed("[1]", 20, 80)), FixedSource(),
                                   FixedSource(Unnamed("[2]", 30, 90)), FixedSource()};
  const Resolution found = Ask(sources);
  EXPECT_EQ(Text(found), "[2]");
  EXPECT_EQ(found.from.ns, 30u);
  EXPECT_EQ(found.until.ns, 80u);
  EXPECT_EQ(sources[3].asked, 1);
}

TEST_F(SymbolizerOrderTest, NobodysAddressGetsAReasonForGood) {
  std::vector<FixedSource> sources{FixedSource(), FixedSource()};
  const Resolution found = Ask(sources);
  EXPECT_EQ(Text(found), "[native: no code mapped here]");
  EXPECT_EQ(found.until, MonotonicTime::Max());
}

TEST_F(SymbolizerOrderTest, BeforeAnExecNobodyIsAsked) {
  process_.code_known_since = {60};
  std::vector<FixedSource> sources{FixedSource(Named("a"))};
  const Resolution found = Ask(sources);
  EXPECT_FALSE(frames_.at(found.frame).named());
  EXPECT_EQ(found.until.ns, 60u);
  EXPECT_EQ(sources[0].asked, 0);
}

// Names and lines of one address.
class Lines : public LineSource {
 public:
  std::optional<SourcePlace> PlaceOf(const FrameQuery& query) override {
    ++asked;
    if (query.lookup_address % 2 != 0) return std::nullopt;
    return SourcePlace{"/src/Cart.cs", 57, 9, LineKind::kExact};
  }
  int asked = 0;
};

// The same of native code.
class NativeCodeLines : public Lines {
 public:
  bool HasLinesOf(FrameKind kind) const override { return kind == FrameKind::kNative || kind == FrameKind::kAot; }
};

class SymbolizerWithLinesTest : public testing::Test {
 protected:
  const Frame& At(FrameKind kind, NameSource source, uint64_t address) {
    FixedSource names(Resolution{frames_.Intern(Frame{kind, source, "Shop.Cart.Total"})});
    Symbolizer symbolizer({&names}, frames_, {&first_, &second_, &native_});
    return frames_.at(symbolizer.Resolve({process_, nullptr, address, address, {500}}).frame);
  }

  FrameTable frames_;
  Lines first_, second_;
  NativeCodeLines native_;
  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
};

TEST_F(SymbolizerWithLinesTest, AFrameOfManagedCodeSaysItsLine) {
  const Frame& frame = At(FrameKind::kJit, NameSource::kRuntimeMemory, 100);
  EXPECT_EQ(frame.place, (SourcePlace{"/src/Cart.cs", 57, 9, LineKind::kExact}));
  EXPECT_EQ(frame.text, "Shop.Cart.Total");
  EXPECT_EQ(At(FrameKind::kR2r, NameSource::kR2rImage, 100).place.line, 57u);
  EXPECT_EQ(second_.asked, 0) << "the first that knows answers";
}

TEST_F(SymbolizerWithLinesTest, WithoutALineItStaysAsItIs) {
  EXPECT_EQ(At(FrameKind::kJit, NameSource::kRuntimeMemory, 101).place, SourcePlace());
  EXPECT_EQ(second_.asked, 1);
}

TEST_F(SymbolizerWithLinesTest, FramesWithoutANameAreNotAskedFor) {
  EXPECT_EQ(At(FrameKind::kJit, NameSource::kNone, 100).place, SourcePlace());
  EXPECT_EQ(At(FrameKind::kNative, NameSource::kNone, 100).place, SourcePlace());
  EXPECT_EQ(first_.asked, 0);
  EXPECT_EQ(native_.asked, 0);
}

TEST_F(SymbolizerWithLinesTest, ASourceIsAskedOfItsKindsOfCodeAlone) {
  EXPECT_EQ(At(FrameKind::kNative, NameSource::kElfSymbols, 100).place.line, 57u);
  EXPECT_EQ(At(FrameKind::kAot, NameSource::kElfSymbols, 100).place.line, 57u);
  EXPECT_EQ(At(FrameKind::kKernel, NameSource::kKallsyms, 100).place, SourcePlace());
  EXPECT_EQ(first_.asked, 0);
  EXPECT_EQ(native_.asked, 2);
}

// A program whose functions all have names of 5 KiB.
class EndlessNames : public FrameSource {
 public:
  explicit EndlessNames(FrameTable& frames) : frames_(frames) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    Frame frame{FrameKind::kNative, NameSource::kElfSymbols, std::string(5 << 10, 'x'), "", ""};
    frame.address = query.address;
    frame.symbol = frame.text;
    return Resolution{frames_.Intern(std::move(frame))};
  }
  uint64_t Generation(ProcessKey) const override { return 1; }

 private:
  FrameTable& frames_;
};

class SymbolizerBoundTest : public testing::Test {
 protected:
  const Frame& Ask(const Process& process, uint64_t address, uint64_t time = 50) {
    return frames_.at(symbolizer_.Resolve({process, nullptr, address, address, {time}}).frame);
  }
  // Names new functions until one is refused, and gives their number.
  uint64_t Fill(const Process& process, uint64_t most = 100'000, uint64_t time = 50) {
    for (uint64_t named = 0; named < most; ++named) {
      if (!Ask(process, next_++, time).named()) return named;
    }
    return most;
  }
  Process Other(uint32_t pid) { return Process{ProcessKey{pid, 1}, TargetFiles("/nonexistent", pid)}; }

  static constexpr char kRefusal[] = "[function of a program with too many names]";
  FrameTable frames_;
  EndlessNames names_{frames_};
  Notices notices_;
  Symbolizer symbolizer_{{&names_}, frames_, {}, &notices_};
  Process hostile_ = Other(7);
  Process other_ = Other(8);
  uint64_t next_ = 1;
};

TEST_F(SymbolizerBoundTest, TheNamesOfOneProcessTakeABoundedAmountOfMemory) {
  EXPECT_GT(Fill(hostile_), 7'000u);  // 4 KiB a name
  EXPECT_LT(frames_.bytes(), NameBudget::kMaxNameBytes + (64 << 10));
  EXPECT_EQ(Ask(hostile_, next_++).text, kRefusal);
  EXPECT_EQ(notices_.counts().at("names_left_out"), 2u);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_FALSE(symbolizer_.budget().full()) << "it has used what is its own";
  EXPECT_TRUE(Ask(other_, 1'000'000).named());
  // A program that makes methods all the time has names for those of the next second, too.
  constexpr uint64_t kEach = 4 << 10, kSeconds = 10;
  const uint64_t more = Fill(hostile_, 20'000, 50 + kSeconds * kSecondNs);
  EXPECT_GT(more, kSeconds * NameBudget::kNameBytesASecond / (2 * kEach));
  EXPECT_LT(more, kSeconds * NameBudget::kNameBytesASecond / kEach + 2);
}

TEST_F(SymbolizerBoundTest, FunctionsThatHaveANameKeepIt) {
  EXPECT_TRUE(Ask(other_, 2'000'000).named());
  Fill(hostile_);
  EXPECT_TRUE(Ask(hostile_, 1).named());
  EXPECT_TRUE(Ask(hostile_, 2'000'000).named()) << "the function of a library that another process has met";
  EXPECT_EQ(Ask(hostile_, next_).text, kRefusal);
}

TEST_F(SymbolizerBoundTest, ARefusalHoldsForItsOwnTimeAlone) {
  Fill(hostile_);
  const Resolution refused = symbolizer_.Resolve({hostile_, nullptr, next_, next_, {50}});
  EXPECT_TRUE(frames_.IsRefusal(refused.frame));
  EXPECT_EQ(refused.until.ns, 50u);
  EXPECT_TRUE(Ask(other_, next_).named());
  EXPECT_TRUE(Ask(hostile_, next_).named()) << "another process has paid for it";
}

TEST_F(SymbolizerBoundTest, WhatIsAddedInSecondsLeavesRoomForOthers) {
  uint64_t seconds = 0;
  while (frames_.bytes() < NameBudget::kMostAddedInSeconds && seconds < 3600) {
    Fill(hostile_, 30, ++seconds * kSecondNs);
  }
  ASSERT_LT(seconds, 3600u);
  EXPECT_EQ(Fill(hostile_, 30, (seconds + 3600) * kSecondNs), 0u);
  EXPECT_TRUE(symbolizer_.budget().full());
  EXPECT_TRUE(Ask(hostile_, 1).named());
  // Another one has all that it may have at once.
  Fill(other_);
  EXPECT_GT(frames_.bytes(), NameBudget::kMostAddedInSeconds + NameBudget::kMaxNameBytes - (1 << 20));
}

TEST_F(SymbolizerBoundTest, ProcessesThatHaveTakenLittleGetNamesWhenOthersHaveTakenAll) {
  for (uint32_t pid = 100; frames_.bytes() < NameBudget::kMostOfLarge; ++pid) {
    ASSERT_LT(pid, 200u);
    Fill(Other(pid));
  }
  EXPECT_EQ(Fill(hostile_, 10), 10u);
  EXPECT_LT(Fill(hostile_), NameBudget::kLittle / (4 << 10));
  EXPECT_TRUE(symbolizer_.budget().full());
  EXPECT_EQ(Fill(other_, 10), 10u);
  for (uint32_t pid = 200; pid < 400; ++pid) Fill(Other(pid));
  EXPECT_LT(frames_.bytes(), NameBudget::kMaxNameBytesOfAll + (64 << 10));
  EXPECT_EQ(Fill(other_, 10), 0u);
}

TEST(NameBudgetTest, AChargeInsideAnotherOneCountsForItself) {
  FrameTable frames;
  NameBudget budget(frames, nullptr);
  const Process inner{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
  const Process outer{ProcessKey{8, 1}, TargetFiles("/nonexistent", 8)};
  const auto intern = [&](size_t i) {
    const Frame frame{FrameKind::kType, NameSource::kRuntimeMemory, absl::StrCat(std::string(4000, 't'), i), "", ""};
    return frames.Intern(frame);
  };
  const NameBudget::Charge charge(budget, outer);
  size_t i = 0;
  {
    const NameBudget::Charge of_inner(budget, inner);
    while (!frames.IsRefusal(intern(i)) && i < 100'000) ++i;
    EXPECT_EQ(frames.at(intern(i)).text, "[type of a program with too many names]");
    EXPECT_FALSE(frames.IsRefusal(intern(0)));
  }
  EXPECT_GT(i, 7'000u);
  EXPECT_FALSE(frames.IsRefusal(intern(i)));
}

TEST(FrameTableTest, OwnWordsNeedNoRoom) {
  FrameTable frames;
  FrameRoom none;
  EXPECT_EQ(frames.SetRoom(&none), nullptr);
  const Frame frame{FrameKind::kJit, NameSource::kNone, "[jit: no map]", "", ""};
  EXPECT_TRUE(frames.IsRefusal(frames.Intern(frame)));
  EXPECT_TRUE(none.refused);
  EXPECT_FALSE(frames.IsRefusal(frames.InternOwn(frame)));
  EXPECT_FALSE(frames.IsRefusal(frames.Intern(frame))) << "it is known now";
  EXPECT_EQ(frames.SetRoom(nullptr), &none);
}

TEST(FrameTableTest, LongTextsAreCutAndLongSymbolsAreLeftOut) {
  FrameTable frames;
  Frame frame{FrameKind::kJit, NameSource::kJitdump, "", std::string(100'000, 'm'), ""};
  for (int i = 0; i < 50'000; ++i) frame.text += "\u00e9";
  frame.symbol = std::string(FrameTable::kMaxTextBytes + 1, 's');
  const Frame& kept = frames.at(frames.Intern(frame));
  EXPECT_LE(kept.text.size(), FrameTable::kMaxTextBytes);
  EXPECT_GE(kept.text.size(), FrameTable::kMaxTextBytes - 4);
  EXPECT_EQ(kept.text.substr(kept.text.size() - 5), "\u00e9\u2026") << "no half of a character";
  EXPECT_EQ(kept.module.size(), FrameTable::kMaxTextBytes);
  EXPECT_EQ(kept.symbol, "");
  EXPECT_LT(frames.bytes(), 3 * FrameTable::kMaxTextBytes);
  frame.symbol.pop_back();
  EXPECT_EQ(frames.at(frames.Intern(frame)).symbol, frame.symbol);
  // A text that was cut is not cut again.
  EXPECT_EQ(frames.at(frames.Intern(kept)).text, kept.text);
}

}  // namespace
}  // namespace clrsampler
