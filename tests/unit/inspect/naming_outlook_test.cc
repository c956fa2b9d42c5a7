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

TEST(NamingOutlookTest, AnUnknownVersionIsNotReadFromMemory) {
  EXPECT_EQ(OutlookOf(HealthyProcess({})).word, NamingWord::kPartial);
  EXPECT_EQ(OutlookOf(HealthyProcess({7, 0, 5})).word, NamingWord::kPartial);
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

TEST(NamingOutlookTest, WhatCantBeReadIsPoor) {
  ProcessFacts facts;
  facts.readable = absl::PermissionDeniedError("no");
  facts.threads.runtime_threads = true;
  EXPECT_EQ(OutlookOf(facts).word, NamingWord::kPoor);
  EXPECT_EQ(OutlookOf(facts).reason, "not readable");
}

}  // namespace
}  // namespace clrsampler
