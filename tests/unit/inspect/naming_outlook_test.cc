#include "inspect/naming_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/inspect/sample_facts.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NamingOutlookTest, MemoryNamesEverything) {
  const NamingOutlook outlook = OutlookOf(HealthyProcess());
  EXPECT_EQ(outlook.word, NamingWord::kFull);
  EXPECT_THAT(outlook.sources, ElementsAre("memory", "r2r"));
  EXPECT_EQ(outlook.reason, "");
}

TEST(NamingOutlookTest, WithoutMemoryItTakesAFileOfTheRuntime) {
  ProcessFacts facts = HealthyProcess();
  facts.memory = absl::PermissionDeniedError("no");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPartial);
  facts.perf_map.live = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kGood);
  facts.jitdump.live = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kFull);
  EXPECT_THAT(OutlookOf(facts).sources, ElementsAre("jitdump", "perf-map", "r2r"));
}

TEST(NamingOutlookTest, ACompressedBundleHidesPrecompiledCodeFromAPerfMap) {
  ProcessFacts facts = HealthyProcess();
  facts.memory = absl::PermissionDeniedError("no");
  facts.runtime->precompiled = false;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  facts.perf_map.live = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPartial);
  facts.environment.ready_to_run = 0;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kGood);
}

TEST(NamingOutlookTest, WhatTheReaderRefusesIsNotPromised) {
  ProcessFacts facts = HealthyProcess({7, 0, 5});
  facts.memory = absl::UnimplementedError(".NET 7 can't be read: 8 is the oldest");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPartial);
  EXPECT_THAT(OutlookOf(facts).reason,
              testing::HasSubstr("its memory is not read: .NET 7 can't be read: 8 is the oldest"));
  facts = HealthyProcess({11, 0, 0});
  facts.memory = absl::FailedPreconditionError("its contract Loader has version c2, known is c1");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPartial) << "a private build";
}

TEST(NamingOutlookTest, WhatHasOnlyBegunIsTriedAgain) {
  ProcessFacts facts = HealthyProcess();
  facts.memory = absl::UnavailableError("it has compiled nothing yet");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kFull);
}

TEST(NamingOutlookTest, OfARuntimeThatIsNewerThanAllKnownOnesNothingIsPromised) {
  ProcessFacts facts = HealthyProcess({kNewestKnownMajor + 1, 0, 0});
  facts.memory = absl::UnimplementedError(".NET 12 is not known: 11 is the newest that is");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_THAT(OutlookOf(facts).sources, IsEmpty());
  EXPECT_EQ(OutlookOf(facts).reason, "its memory is not read: .NET 12 is not known: 11 is the newest that is");
  facts.perf_map.live = true;
  facts.perf_map_is_ours = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPartial);
  EXPECT_THAT(OutlookOf(facts).sources, ElementsAre("perf-map(clrsampler)"));
}

// Its precompiled images may be newer than all known ones, too.
TEST(NamingOutlookTest, OfARuntimeWithoutAVersionNothingIsPromised) {
  ProcessFacts facts = HealthyProcess(RuntimeVersion{});
  facts.memory = absl::UnimplementedError("its image does not say its version");
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_THAT(OutlookOf(facts).sources, IsEmpty());
  EXPECT_EQ(OutlookOf(facts).reason, "its memory is not read: its image does not say its version");
}

TEST(NamingOutlookTest, NativeAotStandsAndFallsWithSymbols) {
  ProcessFacts facts = HealthyProcess({9, 0, 20});
  facts.runtime->kind = RuntimeImageKind::kNativeAot;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_THAT(OutlookOf(facts).sources, IsEmpty());
  facts.has_symbols = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kFull);
  EXPECT_THAT(OutlookOf(facts).sources, ElementsAre("elf"));
}

TEST(NamingOutlookTest, AnEmulatedProgramHasNoNamesAndSaysWhy) {
  ProcessFacts facts = EmulatedProgram();
  facts.perf_map.live = true;  // its addresses are of code that no processor runs
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_THAT(OutlookOf(facts).sources, IsEmpty());
  EXPECT_EQ(OutlookOf(facts).reason, "arm64 program under emulation: names are not possible");
}

TEST(NamingOutlookTest, WhatCantBeReadIsPoor) {
  ProcessFacts facts;
  facts.readable = absl::PermissionDeniedError("no");
  facts.threads.runtime_threads = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_EQ(OutlookOf(facts).reason, "not readable");
}

}  // namespace
}  // namespace clrsampler
