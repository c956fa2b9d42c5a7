#include "clr/runtime_facts.h"

#include <gtest/gtest.h>

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

TEST(RuntimeFactsTest, JitdumpDefectEndsWithTheReleaseThatFixedIt) {
  EXPECT_TRUE(HasDefect({10, 0, 0}, DefectKind::kJitdumpDies));
  EXPECT_TRUE(HasDefect({10, 0, 12}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({10, 0, 13}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({9, 0, 19}, DefectKind::kJitdumpDies));
  EXPECT_FALSE(HasDefect({11, 0, 0}, DefectKind::kJitdumpDies));
}

TEST(RuntimeFactsTest, AnUnknownVersionHasNoDefectsAndNoLayout) {
  EXPECT_TRUE(DefectsOf({}).empty());
  EXPECT_EQ(MemoryLayoutOf({}), MemoryLayout::kNone);
  EXPECT_FALSE(CanEnablePerfMap({}));
}

TEST(RuntimeFactsTest, ServicingReleasesOfAllSupportedVersionsAreCovered) {
  EXPECT_TRUE(HasDefect({8, 0, 30}, DefectKind::kEarlyPerfMapCrash));
  EXPECT_TRUE(HasDefect({9, 0, 99}, DefectKind::kEarlyPerfMapCrash));
  EXPECT_FALSE(HasDefect({10, 0, 14}, DefectKind::kEarlyPerfMapCrash));
  EXPECT_EQ(MemoryLayoutOf({7, 0, 20}), MemoryLayout::kNone);
  EXPECT_EQ(MemoryLayoutOf({8, 0, 0}), MemoryLayout::kOffsetTable);
  EXPECT_EQ(MemoryLayoutOf({9, 0, 19}), MemoryLayout::kOffsetTable);
  EXPECT_EQ(MemoryLayoutOf({11, 0, 0}), MemoryLayout::kContracts);
}

TEST(RuntimeFactsTest, EveryRowIsARangeWithWords) {
  for (const RuntimeDefect& defect : KnownDefects()) {
    EXPECT_LE(defect.first, defect.last) << defect.summary;
    EXPECT_FALSE(defect.summary.empty());
    EXPECT_FALSE(defect.way_out.empty());
  }
}

}  // namespace
}  // namespace clrsampler
