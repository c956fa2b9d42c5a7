#include "symbols/symbolizer.h"

#include <gtest/gtest.h>

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

// A program whose functions all have names of 64 KiB.
class EndlessNames : public FrameSource {
 public:
  explicit EndlessNames(FrameTable& frames) : frames_(frames) {}
  std::optional<Resolution> Resolve(const FrameQuery& query) override {
    ++asked;
    Frame frame{FrameKind::kNative, NameSource::kElfSymbols, std::string(64 << 10, 'x'), "", ""};
    frame.address = query.address;
    frame.symbol = frame.text;
    return Resolution{frames_.Intern(std::move(frame))};
  }
  uint64_t Generation(ProcessKey) const override { return 1; }
  size_t asked = 0;

 private:
  FrameTable& frames_;
};

TEST(SymbolizerBoundTest, TheNamesOfOneProcessTakeABoundedAmountOfMemory) {
  FrameTable frames;
  EndlessNames names(frames);
  Notices notices;
  Symbolizer symbolizer({&names}, frames, {}, &notices);
  Process hostile{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
  Process other{ProcessKey{8, 1}, TargetFiles("/nonexistent", 8)};
  const auto ask = [&](Process& process, uint64_t address, uint64_t time = 50) -> const Frame& {
    return frames.at(symbolizer.Resolve({process, nullptr, address, address, {time}}).frame);
  };
  EXPECT_EQ(ask(hostile, 1).source, NameSource::kElfSymbols);
  uint64_t address = 2;
  while (ask(hostile, address).named() && address < 20'000) ++address;
  EXPECT_GT(address, 7'000u);  // 4 KiB a name
  EXPECT_LT(frames.bytes(), Symbolizer::kMaxNameBytes + (64 << 10));
  EXPECT_EQ(ask(hostile, address + 1).text, "[function of a program with too many names]");
  EXPECT_EQ(names.asked, address - 1);
  EXPECT_EQ(notices.counts().at("names_left_out"), 2u);
  ASSERT_EQ(notices.kept().size(), 1u);
  EXPECT_TRUE(ask(other, 1'000'000).named());
  // A program that makes methods all the time has names for those of the next second, too.
  constexpr uint64_t kEach = 4 << 10, kSeconds = 10;
  uint64_t more = 0;
  while (ask(hostile, address + 2 + more, 50 + kSeconds * kSecondNs).named() && more < 20'000) ++more;
  EXPECT_GT(more, kSeconds * Symbolizer::kNameBytesASecond / (2 * kEach));
  EXPECT_LT(more, kSeconds * Symbolizer::kNameBytesASecond / kEach + 2);
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
