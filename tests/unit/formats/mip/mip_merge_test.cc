// The sums of merging, its refusals, and that the order of the files does not matter.
#include "formats/mip/mip_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "formats/byte_reader.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_order.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "status/status.h"
#include "unit/formats/mip/made_up_mip.h"

namespace clrsampler {
namespace {

using namespace test_support;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MipProfile OneFunction(uint32_t kinds, std::vector<uint32_t> blocks = {}) {
  MipProfileBuilder builder(kinds, kModule);
  EXPECT_TRUE(builder.Add({.name = "f", .raw_offset = 32, .size = 16, .block_offsets = blocks}).ok());
  return std::move(builder).Build();
}

std::string Raw(uint32_t kinds, const MipRawCounters& counters, std::vector<uint8_t> covered = {},
                uint32_t module = kModule) {
  MipRawWriter writer({.kinds = kinds, .module_hash = module});
  writer.Add(counters, covered);
  return writer.bytes();
}

absl::Status Merge(MipProfile& profile, const std::string& raw, bool strict = false) {
  return MipRawMerger(profile, strict).Merge(AsBytes(raw)).status();
}

MipProfile Sum(const MipProfile& a, const MipProfile& b) {
  MipProfile sum = a;
  const absl::StatusOr<MipMerge> merged = MergeMip(sum, AsBytes(*MipBytes(b)));
  EXPECT_TRUE(merged.ok()) << merged.status();
  return sum;
}

TEST(MipRawMergeTest, CountsAndTimesAreAddedAndRunsCounted) {
  MipProfile profile = OneFunction(kCountsAndBlocks, {4, 8});
  ASSERT_TRUE(Merge(profile, Raw(kCountsAndBlocks, {true, 10, 3}, {1, 0})).ok());
  ASSERT_TRUE(Merge(profile, Raw(kCountsAndBlocks, {false}, {0, 0})).ok());
  ASSERT_TRUE(Merge(profile, Raw(kCountsAndBlocks, {true, 5, 4}, {0, 1})).ok());
  EXPECT_EQ(profile.functions[0].merge_count, 2u);
  EXPECT_EQ(profile.functions[0].call_count, 15u);
  EXPECT_EQ(profile.functions[0].timestamp_sum, 7u);
  EXPECT_THAT(profile.CoveredOf(profile.functions[0]), ElementsAre(1, 1));
}

TEST(MipRawMergeTest, CoverageCountsACallAtMostOnce) {
  MipProfile profile = OneFunction(kCoverage);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Merge(profile, Raw(kCoverage, {.ran = true})).ok());
  EXPECT_EQ(profile.functions[0].merge_count, 3u);
  EXPECT_EQ(profile.functions[0].call_count, 1u);
}

// A function with blocks has one byte in the file where its program was not instrumented for them.
TEST(MipRawMergeTest, BlocksAreOnlyThereWhereTheyAreRecorded) {
  MipProfile profile = OneFunction(kCoverage, {4, 8});
  ASSERT_TRUE(Merge(profile, Raw(kCoverage, {.ran = true})).ok());
  EXPECT_THAT(profile.CoveredOf(profile.functions[0]), ElementsAre(0, 0));
}

TEST(MipRawMergeTest, SumsStayAtTheirLargestValue) {
  MipProfile profile = OneFunction(kCounts);
  profile.functions[0].call_count = std::numeric_limits<uint64_t>::max() - 5;
  profile.functions[0].timestamp_sum = std::numeric_limits<uint64_t>::max();
  profile.functions[0].merge_count = std::numeric_limits<uint32_t>::max();
  ASSERT_TRUE(Merge(profile, Raw(kCounts, {true, 10, 3})).ok());
  EXPECT_EQ(profile.functions[0].call_count, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(profile.functions[0].timestamp_sum, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(profile.functions[0].merge_count, std::numeric_limits<uint32_t>::max());
}

TEST(MipRawMergeTest, RefusesWhatIsOfAnotherProgramAndChangesNothing) {
  MipProfile profile = MadeUpProfile({.counted = true});
  const std::vector<std::string> before = Contents(profile);
  const auto refusal = [&](const std::string& raw) {
    const absl::Status status = Merge(profile, raw);
    EXPECT_EQ(Contents(profile), before);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Raw(kCountsAndBlocks, {true, 1, 1}, {}, 0x1234)), HasSubstr("module hash is 0x00001234"));
  EXPECT_THAT(refusal(Raw(kCounts, {true, 1, 1})), HasSubstr("do not lie at the same offsets"));
  EXPECT_THAT(refusal(Raw(kCoverageAndBlocks, {true})), HasSubstr("Function Coverage, Block Coverage"));
  EXPECT_THAT(refusal(Raw(kCountsAndBlocks, {true, 1, 1})), HasSubstr("lies outside the counters"));
  std::string half = MadeUpRaw(profile, 1);
  const size_t last = profile.functions.back().raw_offset;
  half.replace(last, 8, std::string("\xFF\xFF\xFF\xFF\x01\0\0\0", 8));
  EXPECT_THAT(refusal(half), HasSubstr(absl::StrCat("the record at byte 0x", absl::Hex(last), " is damaged")));
  EXPECT_THAT(refusal(*MipBytes(profile)), HasSubstr("it is a .mip file"));
}

TEST(MipRawMergeTest, OddBytesAreCountedAndRefusedWhenStrict) {
  MipProfile profile = OneFunction(kCoverageAndBlocks, {4, 8});
  std::string raw = Raw(kCoverageAndBlocks, {.ran = true}, {1, 0});
  raw[33] = '\x01';
  EXPECT_FALSE(Merge(profile, raw, true).ok());
  const absl::StatusOr<MipRawMerge> merged = MipRawMerger(profile, false).Merge(AsBytes(raw));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->odd_bytes, 1u);
  EXPECT_THAT(profile.CoveredOf(profile.functions[0]), ElementsAre(0, 0));
}

TEST(MipRawMergeTest, RefusesAProfileWhoseRecordsOverlap) {
  MipProfileBuilder builder(kCounts, kModule);
  ASSERT_TRUE(builder.Add({.name = "one", .raw_offset = 32}).ok());
  ASSERT_TRUE(builder.Add({.name = "two", .raw_offset = 36}).ok());
  MipProfile profile = std::move(builder).Build();
  EXPECT_THAT(std::string(Merge(profile, std::string(Raw(kCounts, {true, 1, 1}) + "12345678")).message()),
              HasSubstr("\"one\" at byte 0x20 and of \"two\" at byte 0x24 overlap"));
}

TEST(MipRawMergeTest, FunctionsThatTheLinkerMadeOneShareTheirRecord) {
  MipProfileBuilder builder(kCounts, kModule);
  ASSERT_TRUE(builder.Add({.name = "one", .raw_offset = 32}).ok());
  ASSERT_TRUE(builder.Add({.name = "two", .raw_offset = 32}).ok());
  MipProfile profile = std::move(builder).Build();
  ASSERT_TRUE(Merge(profile, Raw(kCounts, {true, 7, 1})).ok());
  EXPECT_EQ(profile.functions[0].call_count, 7u);
  EXPECT_EQ(profile.functions[1].call_count, 7u);
}

TEST(MipMergeTest, ProfilesOfRunsAddUpToTheProfileOfAllRuns) {
  for (const uint32_t kinds : {kCoverage, kCoverageAndBlocks, kCounts, kCountsAndBlocks}) {
    const MipProfile empty = MadeUpProfile({.kinds = kinds});
    MipProfile all = empty, left = empty, right = empty;
    for (uint32_t run = 0; run < 6; ++run) {
      const std::string raw = MadeUpRaw(empty, run);
      ASSERT_TRUE(Merge(all, raw, true).ok());
      ASSERT_TRUE(Merge(run % 2 == 0 ? left : right, raw, true).ok());
    }
    EXPECT_EQ(Contents(Sum(left, right)), Contents(all));
  }
}

// Takes three profiles with some functions in common, of one build or of several.
TEST(MipMergeTest, IsCommutativeAndAssociative) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    MadeUpMip shape{.seed = seed % 7, .functions = seed % 30, .counted = true, .keep = seed % 3 == 0 ? 1.0 : 0.6};
    shape.kinds = seed % 2 == 0 ? kCoverageAndBlocks : kCountsAndBlocks;
    const MipProfile a = MadeUpProfile(shape, seed);
    const MipProfile b = MadeUpProfile(shape, seed + 1000);
    if (seed % 5 == 0) shape.header_bytes = 64;  // another build: the counters lie elsewhere
    const MipProfile c = MadeUpProfile(shape, seed + 2000);
    EXPECT_EQ(Contents(Sum(a, b)), Contents(Sum(b, a))) << seed;
    EXPECT_EQ(Contents(Sum(Sum(a, b), c)), Contents(Sum(a, Sum(b, c)))) << seed;
    EXPECT_EQ(*MipBytes(Sum(Sum(a, b), c)), *MipBytes(Sum(c, Sum(b, a)))) << seed;
  }
}

TEST(MipMergeTest, KeepsWhatOnlyOneHasAndCountsBoth) {
  const auto profile = [](std::initializer_list<const char*> names) {
    MipProfileBuilder builder(kCounts, kModule);
    uint64_t raw_offset = 32;
    for (const char* name : names) {
      EXPECT_TRUE(builder.Add({.name = name, .raw_offset = raw_offset, .merge_count = 1, .call_count = 2}).ok());
      raw_offset += 8;
    }
    return std::move(builder).Build();
  };
  MipProfile sum = profile({"a", "b"});
  const absl::StatusOr<MipMerge> merged = MergeMip(sum, AsBytes(*MipBytes(profile({"b", "c"}))));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->matched, 1u);
  EXPECT_EQ(merged->added, 1u);
  std::vector<std::string> counts;
  for (const MipFunction& function : sum.functions) {
    counts.push_back(absl::StrCat(sum.NameOf(function), " ", function.call_count, " at ", function.raw_offset));
  }
  EXPECT_THAT(counts, ElementsAre("a 2 at 32", "b 4 at 32", "c 2 at 40"));
}

TEST(MipMergeTest, ANameThatOnlyOneProfileKnowsIsKnownToTheSum) {
  MipProfile named = OneFunction(kCounts), nameless = named;
  nameless.functions[0].name = kNoMipName;
  EXPECT_EQ(Contents(Sum(nameless, named)), Contents(Sum(named, nameless)));
  EXPECT_EQ(Sum(nameless, named).NameOf(Sum(nameless, named).functions[0]), "f");
}

// As the command reads them: the names wait until somebody needs them.
TEST(MipMergeTest, NamesThatAreBoundLaterGiveTheSameBytes) {
  const MipProfile a = MadeUpProfile({.counted = true}), b = MadeUpProfile({.counted = true, .keep = 0.5}, 7);
  MipProfile nameless = b;
  for (MipFunction& function : nameless.functions) function.name = kNoMipName;
  for (const MipProfile& other : {a, b, nameless}) {
    for (const MipProfile& first : {a, nameless}) {
      MipProfile later = *ReadMip(AsBytes(*MipBytes(first)), MipNaming::kLater);
      EXPECT_FALSE(later.names_bound);
      ASSERT_TRUE(MergeMip(later, AsBytes(*MipBytes(other))).ok());
      EXPECT_EQ(*MipBytes(later), *MipBytes(Sum(first, other)));
    }
  }
  MipProfile later = *ReadMip(AsBytes(*MipBytes(a)), MipNaming::kLater);
  EXPECT_THAT(std::string(Merge(later, Raw(kCountsAndBlocks, {true, 1, 1})).message()), HasSubstr("\"_ZN"));
}

TEST(MipMergeTest, RefusesOtherModulesAndOtherKinds) {
  MipProfile profile = OneFunction(kCounts), other = OneFunction(kCounts);
  other.module_hash = 1;
  const std::vector<std::string> before = Contents(profile);
  EXPECT_THAT(std::string(MergeMip(profile, AsBytes(*MipBytes(other))).status().message()), HasSubstr("0x00000001"));
  EXPECT_THAT(std::string(MergeMip(profile, AsBytes(*MipBytes(OneFunction(kCoverage)))).status().message()),
              HasSubstr("Function Coverage"));
  EXPECT_EQ(Contents(profile), before);
  EXPECT_TRUE(MergeMip(profile, AsBytes(*MipBytes(other)), true).ok());
  EXPECT_EQ(profile.module_hash, kModule);
}

MipProfile WithOrder(std::vector<std::pair<uint64_t, uint32_t>> sums) {
  MipProfileBuilder builder(kCounts, kModule);
  for (const auto& [sum, count] : sums) {
    EXPECT_TRUE(builder.Add({.name = absl::StrCat(builder.size()), .merge_count = count, .timestamp_sum = sum}).ok());
  }
  return std::move(builder).Build();
}

TEST(MipOrderTest, IsByTheAverageOfFirstCallsAndStable) {
  // 5, 2.5, never, 2.5, 2.4
  EXPECT_THAT(MipFunctionOrder(WithOrder({{5, 1}, {10, 4}, {0, 0}, {5, 2}, {12, 5}})), ElementsAre(4, 1, 3, 0));
}

TEST(MipOrderTest, ComparesProductsBeyond64Bits) {
  constexpr uint64_t kLarge = std::numeric_limits<uint64_t>::max();
  constexpr uint32_t kMany = std::numeric_limits<uint32_t>::max();
  EXPECT_THAT(MipFunctionOrder(WithOrder({{kLarge, kMany - 1}, {kLarge, kMany}, {kLarge - 1, kMany}})),
              ElementsAre(2, 1, 0));
}

TEST(MipOrderTest, OfCoverageIsTheOrderOfTheFile) {
  const MipProfile profile = MadeUpProfile({.functions = 200, .kinds = kCoverage, .counted = true});
  const std::vector<uint32_t> order = MipFunctionOrder(profile);
  EXPECT_GT(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace clrsampler
