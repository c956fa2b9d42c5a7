#include "clr/runtime_facts.h"

#include <gtest/gtest.h>

#include <set>

namespace clrsampler {
namespace {

TEST(RuntimeFactsTest, ThirdFieldOfAFileVersionIsPatchTimesHundred) {
  EXPECT_EQ(VersionFromMark("@(#)Version 10.0.1426.52326 @Commit: abc"), (RuntimeVersion{10, 0, 14}));
  EXPECT_EQ(VersionFromMark("@(#)Version 9.0.124.61010 @Commit: abc"), (RuntimeVersion{9, 0, 1}));
  EXPECT_EQ(VersionFromMark("@(#)Version 8.0.23.53103 @Commit: abc"), (RuntimeVersion{8, 0, 0}));
  EXPECT_EQ(VersionFromFileVersion("9.0.2026.41315")->Text(), "9.0.20");
}

TEST(RuntimeFactsTest, OtherTextsGiveNothing) {
  for (const char* text : {"", "@(#)Version ten.0.1 ", "@(#)Version 10.0", "Version 10.0.1426.52326",
                           "@(#)Version 4294967306.0.1.2 ", "@(#)Version 10.0.99999999.1 "}) {
    EXPECT_EQ(VersionFromMark(text), std::nullopt) << text;
  }
  EXPECT_EQ(RuntimeVersion{}.Text(), "unknown");
}

TEST(RuntimeFactsTest, AProductVersionHasThreeFields) {
  EXPECT_EQ(VersionFromProductVersion("10.0.9"), (RuntimeVersion{10, 0, 9}));
  EXPECT_EQ(VersionFromProductVersion("11.0.0-preview.1+abc"), (RuntimeVersion{11, 0, 0}));
  for (const char* text : {"", "10", "10.0", "10.0.x", "10.0.1.2", "0.1.2", "10.0.65536", "-10.0.1"}) {
    EXPECT_EQ(VersionFromProductVersion(text), std::nullopt) << text;
  }
}

TEST(RuntimeFactsTest, EachGenerationHasAJitOfItsOwnAndNamesItsStubs) {
  std::set<absl::string_view> interfaces;
  for (const RuntimeGeneration& one : kRuntimeGenerations) {
    EXPECT_TRUE(interfaces.insert(one.jit_interface).second) << one.major;
    EXPECT_EQ(one.jit_interface.size(), 36u) << one.major;
    EXPECT_EQ(one.stub_kinds.size(), 16u) << one.major;
    EXPECT_EQ(RuntimeGenerationOf(one.major), &one);
  }
  EXPECT_EQ(RuntimeGenerationOf(kOldestKnownMajor - 1), nullptr);
  EXPECT_EQ(RuntimeGenerationOf(kNewestKnownMajor + 1), nullptr);
}

TEST(RuntimeFactsTest, APerfMapIsWrittenInBlocksFromItsVersionOn) {
  EXPECT_FALSE(WritesPerfMapInBlocks({10, 0, 15}));
  EXPECT_TRUE(WritesPerfMapInBlocks({11, 0, 0}));
  EXPECT_TRUE(WritesPerfMapInBlocks({kNewestKnownMajor + 1, 0, 0}));
  EXPECT_TRUE(WritesPerfMapInBlocks({})) << "an old name for new code would be wrong";
  EXPECT_FALSE(WritesPerfMapInBlocks({7, 0, 0}));
}

TEST(RuntimeFactsTest, JitdumpDefectEndsWithTheReleaseThatFixedIt) {
  EXPECT_TRUE(HasDefect({10, 0, 0}, DefectKind::kJitdumpDies));
  EXPECT_TRUE(HasDefect({10, 0, 12}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({10, 0, 13}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({9, 0, 19}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({11, 0, 0}, DefectKind::kJitdumpDies));
}

TEST(RuntimeFactsTest, AnUnknownVersionHasNoDefects) { EXPECT_TRUE(DefectsOf({}).empty()); }

TEST(RuntimeFactsTest, TheNextMajorVersionIsNotKnown) {
  EXPECT_FALSE(MayBeNewerThanKnown({kNewestKnownMajor, 9, 99}));
  EXPECT_TRUE(MayBeNewerThanKnown({kNewestKnownMajor + 1, 0, 0}));
  EXPECT_TRUE(MayBeNewerThanKnown({}));
}

TEST(RuntimeFactsTest, ServicingReleasesOfAllSupportedVersionsAreCovered) {
  EXPECT_TRUE(HasDefect({8, 0, 30}, DefectKind::kEarlyPerfMapCrash));
  EXPECT_TRUE(HasDefect({9, 0, 99}, DefectKind::kEarlyPerfMapCrash));
  EXPECT_FALSE(HasDefect({10, 0, 14}, DefectKind::kEarlyPerfMapCrash));
}

}  // namespace
}  // namespace clrsampler
