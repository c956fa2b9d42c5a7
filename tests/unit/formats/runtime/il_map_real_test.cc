// Debug information of real bodies (tests/testdata/il_maps), judged by what their runtimes say that it means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "formats/byte_reader.h"
#include "formats/runtime/il_map_decoder.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

using Pairs = std::vector<std::pair<int32_t, uint32_t>>;  // IL and native offset

struct Body {
  uint32_t code_bytes = 0;
  std::string head;    // before the map
  std::string bounds;  // the map
  Pairs told;          // by the runtime
};

std::vector<Body> ReadBodies(const std::string& version) {
  std::vector<Body> bodies;
  std::ifstream file(TestData("il_maps/" + version + ".txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Body body;
    std::string head, bounds;
    fields >> body.code_bytes >> head >> bounds;
    body.head = absl::HexStringToBytes(head);
    body.bounds = absl::HexStringToBytes(bounds);
    int32_t il = 0;
    uint32_t native = 0;
    for (char colon = 0; fields >> il >> colon >> native;) body.told.emplace_back(il, native);
    bodies.push_back(std::move(body));
  }
  return bodies;
}

// The runtime tells the entries by IL offset, those without one last, and an IL offset that repeats itself once.
Pairs AsTold(const IlMap& map) {
  Pairs pairs;
  for (const IlMapEntry& entry : map.entries()) {
    if (!pairs.empty() && pairs.back().first == entry.il_offset) continue;
    pairs.emplace_back(entry.il_offset, entry.native_offset);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

struct Version {
  const char* name;
  DebugInfoFormat format;
};
void PrintTo(const Version& version, std::ostream* out) { *out << version.name; }

class EveryVersion : public testing::TestWithParam<Version> {};

INSTANTIATE_TEST_SUITE_P(IlMapRealTest, EveryVersion,
                         testing::Values(Version{"8.0.34", DebugInfoFormat::kNet8},
                                         Version{"9.0.23", DebugInfoFormat::kNet8},
                                         Version{"10.0.15", DebugInfoFormat::kNet10},
                                         Version{"11.0.0", DebugInfoFormat::kNet11}));

TEST_P(EveryVersion, MapsAreWhatTheRuntimeSays) {
  const std::vector<Body> bodies = ReadBodies(GetParam().name);
  ASSERT_GE(bodies.size(), 200u);
  for (const Body& body : bodies) {
    const auto map = DecodeBounds(GetParam().format, AsBytes(body.bounds), body.code_bytes);
    ASSERT_TRUE(map.ok()) << map.status() << " " << absl::BytesToHexString(body.bounds);
    Pairs told = body.told;
    std::sort(told.begin(), told.end());
    EXPECT_EQ(AsTold(*map), told);
  }
}

// .NET 11 has patchpoints behind its maps.
TEST_P(EveryVersion, TheHeadLeadsToTheMap) {
  size_t far = 0;
  for (const Body& body : ReadBodies(GetParam().name)) {
    const std::string info = body.head + body.bounds;
    DebugInfoPlace place;
    absl::StatusOr<DebugInfoHeader> header;
    do {
      const auto rest = absl::string_view(info).substr(place.offset, kDebugInfoHeadBytes);
      header = ReadDebugInfoHeader(GetParam().format, AsBytes(rest), place);
      ASSERT_TRUE(header.ok()) << header.status();
      place = header->needs_more_at.value_or(place);
    } while (header->needs_more_at);
    far += body.head.size() > 32;
    EXPECT_EQ(header->bounds_offset, body.head.size());
    EXPECT_EQ(header->bounds_bytes, body.bounds.size());
  }
  EXPECT_EQ(far > 0, GetParam().format != DebugInfoFormat::kNet11) << "patchpoints";
}

TEST_P(EveryVersion, MapsCutOffAnywhereAreRefused) {
  for (const Body& body : ReadBodies(GetParam().name)) {
    const auto whole = DecodeBounds(GetParam().format, AsBytes(body.bounds), body.code_bytes);
    ASSERT_TRUE(whole.ok());
    for (size_t size = 1; size < body.bounds.size(); ++size) {
      const auto cut = DecodeBounds(GetParam().format, AsBytes(body.bounds).first(size), body.code_bytes);
      if (!cut.ok()) continue;
      // The rest of three entries of five bits without their zeros.
      EXPECT_EQ(size + 32, body.bounds.size());
      EXPECT_EQ(AsTold(*cut), AsTold(*whole));
    }
  }
}

// Each byte, changed three ways. A map that still decodes answers within the code, and with offsets that it has.
TEST_P(EveryVersion, DamagedMapsAreRefusedOrStayInBounds) {
  size_t changed = 0, refused = 0;
  for (const Body& body : ReadBodies(GetParam().name)) {
    for (size_t at = 0; at < body.bounds.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string bounds = body.bounds;
        bounds[at] = static_cast<char>(bounds[at] ^ change);
        const auto map = DecodeBounds(GetParam().format, AsBytes(bounds), body.code_bytes);
        ++changed;
        refused += absl::IsDataLoss(map.status());
        if (!map.ok()) continue;
        const uint32_t last = map->entries().empty() ? 0 : map->entries().back().native_offset;
        ASSERT_LE(last, body.code_bytes);
        ASSERT_EQ(map->Lookup(body.code_bytes, FramePlace::kLeaf), std::nullopt);
      }
    }
  }
  EXPECT_GT(refused * 4, changed) << "a quarter of them";
}

}  // namespace
}  // namespace clrsampler
