// A written profile is read again: random profiles in every layout, maps of every width, YAML and JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "formats/mip/mip_document.h"
#include "formats/mip/mip_map.h"
#include "formats/mip/mip_reader.h"
#include "formats/mip/mip_writer.h"
#include "status/status.h"
#include "unit/formats/mip/made_up_mip.h"

namespace clrsampler {
namespace {

using namespace test_support;
using ::testing::HasSubstr;

std::vector<MadeUpMip> Shapes() {
  std::vector<MadeUpMip> shapes;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const uint32_t kinds[] = {kCoverage, kCoverageAndBlocks, kCounts, kCountsAndBlocks};
    shapes.push_back(
        {.seed = seed, .functions = seed % 8 == 0 ? 0 : seed * 3, .kinds = kinds[seed % 4], .counted = true});
  }
  return shapes;
}

std::string Document(const MipProfile& profile, bool json) {
  std::string text;
  const MipSink sink = [&](absl::string_view piece) {
    text.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  EXPECT_TRUE((json ? WriteMipJson(profile, {}, sink) : WriteMipYaml(profile, {}, sink)).ok());
  return text;
}

TEST(MipRoundTripTest, EveryLayoutOfAProfile) {
  for (const MadeUpMip& shape : Shapes()) {
    const MipProfile profile = MadeUpProfile(shape);
    for (const MipLayout layout : {MipLayout::kDocumented, MipLayout::kLlvm, MipLayout::kOld}) {
      const std::string bytes = *MipBytes(profile, layout);
      const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(bytes));
      ASSERT_TRUE(read.ok()) << read.status() << " seed " << shape.seed;
      EXPECT_EQ(Contents(*read), Contents(profile));
      EXPECT_TRUE(read->layout == layout || profile.functions.empty()) << "seed " << shape.seed;
      EXPECT_EQ(*MipBytes(*read, layout), bytes);
    }
  }
}

TEST(MipRoundTripTest, EveryShapeOfAMap) {
  for (MadeUpMip shape : Shapes()) {
    shape.counted = false;
    const MipProfile profile = MadeUpProfile(shape);
    for (const MipMapShape& map :
         {MipMapShape{.raw_section_offset = 0x123456789}, MipMapShape{.raw_section_offset = -64},
          MipMapShape{.is_32_bit = true, .raw_section_offset = -0x7000000},
          MipMapShape{.layout = MipLayout::kOld, .raw_section_offset = 0x5000}}) {
      const std::string bytes = *MipMapBytes(profile, map);
      const absl::StatusOr<MipMap> read = ReadMipMap(AsBytes(bytes));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->discarded + read->repeated, 0u);
      EXPECT_EQ(Contents(read->profile), Contents(profile));
      EXPECT_EQ(*MipMapBytes(read->profile, map), bytes);
    }
  }
}

TEST(MipRoundTripTest, YamlAndJson) {
  for (const MadeUpMip& shape : Shapes()) {
    const MipProfile profile = MadeUpProfile(shape);
    for (const bool json : {false, true}) {
      const absl::StatusOr<MipProfile> read = ReadMipDocument(Document(profile, json));
      ASSERT_TRUE(read.ok()) << read.status() << " seed " << shape.seed << Document(profile, json);
      EXPECT_EQ(Contents(*read), Contents(profile));
      EXPECT_EQ(*MipBytes(*read), *MipBytes(profile));
    }
  }
}

TEST(MipRoundTripTest, FunctionsWithoutNameKeepTheirSignature) {
  MipProfile profile = MadeUpProfile({.functions = 3, .odd_names = false});
  profile.functions[1].name = kNoMipName;
  const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(*MipBytes(profile)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(Contents(*read), Contents(profile));
  for (const bool json : {false, true})
    EXPECT_EQ(Contents(*ReadMipDocument(Document(profile, json))), Contents(profile));
}

TEST(MipRoundTripTest, AddressesThatDoNotFitAreRefusedAndFitInLlvmsLayout) {
  MipProfileBuilder builder(kCounts, kModule);
  ASSERT_TRUE(builder.Add({.name = "far", .raw_offset = 32, .start_offset = -(int64_t{1} << 31) - 1}).ok());
  const MipProfile profile = std::move(builder).Build();
  EXPECT_EQ(MipBytes(profile).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(HintOf(MipBytes(profile).status()), HasSubstr("--mip-layout=llvm"));
  EXPECT_EQ(ReadMip(AsBytes(*MipBytes(profile, MipLayout::kLlvm)))->functions[0].start_offset, -(int64_t{1} << 31) - 1);
}

TEST(MipRoundTripTest, TheLastNameNeedsNoNulAndTheHeaderMayBeLonger) {
  const MipProfile profile = MadeUpProfile({.functions = 9, .odd_names = false});
  std::string bytes = *MipBytes(profile);
  bytes.pop_back();
  const size_t names = bytes.size() - (9 * 21 - 1);
  ASSERT_EQ(static_cast<unsigned char>(bytes[names - 8]), 9 * 21);
  bytes[names - 8] = static_cast<char>(bytes[names - 8] - 1);
  bytes.insert(32, "12345678");
  bytes[28] = 40;
  const absl::StatusOr<MipProfile> read = ReadMip(AsBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Contents(*read), Contents(profile));
}

TEST(MipRoundTripTest, MapsLeaveOutWhatTheLinkerDiscardedAndWhatIsThereTwice) {
  const MipProfile profile = MadeUpProfile({.functions = 4, .max_blocks = 0, .odd_names = false});
  std::string bytes = *MipMapBytes(profile, {.raw_section_offset = 0x4000});
  const size_t entry = (bytes.size() - 32 + 7) / 8 * 8 / 4;  // all are of one size
  ASSERT_EQ(entry % 8, 0u);
  const auto set = [&](size_t at, int64_t value) { bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8); };
  set(32 + entry, -static_cast<int64_t>(32 + entry));  // its counter is at address 0
  const int64_t raw = static_cast<int64_t>(profile.functions[2].raw_offset) + 0x4000;
  set(32 + 3 * entry, raw - static_cast<int64_t>(32 + 3 * entry));
  set(40 + 3 * entry, profile.functions[2].start_offset + 0x4000 - static_cast<int64_t>(32 + 3 * entry));
  bytes.replace(32 + 3 * entry + 32, entry - 32, bytes.substr(32 + 2 * entry + 32, entry - 32));  // the name, too
  bytes.resize(32 + 3 * entry + 32 + profile.NameOf(profile.functions[2]).size());
  const absl::StatusOr<MipMap> read = ReadMipMap(AsBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->discarded, 1u);
  EXPECT_EQ(read->repeated, 1u);
  EXPECT_EQ(read->profile.functions.size(), 2u);
}

}  // namespace
}  // namespace clrsampler
