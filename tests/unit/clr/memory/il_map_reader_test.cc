#include "clr/memory/il_map_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "unit/clr/memory/fake_memory.h"
#include "unit/formats/runtime/il_map_bytes.h"

namespace clrsampler {
namespace {

// The map of .NET 8: PROLOG at 0, IL 0 at 16, IL 7 at 40.
const char kNet8Flags[] = {0};
std::string Net8Map() {
  const std::string bounds = Nibbles({3, 0, 1, 1, 16, 3, 2, 24, 10, 2});
  return absl::StrCat(absl::string_view(kNet8Flags, 1), Nibbles({static_cast<uint32_t>(bounds.size()), 0}), bounds);
}

class IlMapReaderTest : public testing::Test {
 protected:
  static constexpr uint64_t kInfo = 0x7000'0000'0000, kCode = 0x7100'0000'0000;

  // The map of a method whose debug information has these bytes, at this address.
  absl::StatusOr<IlMap> Read(const std::string& info, uint64_t address = kInfo) {
    memory_.Map(kInfo, 0x1000);
    memory_.SetBytes(address, AsBytes(info));
    MethodCode code;
    code.range = {kCode, kCode + 0x60};
    std::memcpy(code.identity.data(), &address, sizeof address);
    return ReadIlMap(memory_, DebugInfoFormat::kNet8, code);
  }

  FakeMemory memory_;
};

TEST_F(IlMapReaderTest, ReadsWhatTheHeadLeadsTo) {
  const absl::StatusOr<IlMap> map = Read(Net8Map());
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->entries().size(), 3u);
  EXPECT_EQ(map->Lookup(41, FramePlace::kLeaf)->il_offset, 7u);
  EXPECT_EQ(memory_.reads, 2u);
}

TEST_F(IlMapReaderTest, ReadsUpToTheEndOfAPage) {
  const std::string info = Net8Map();
  const absl::StatusOr<IlMap> map = Read(info, kInfo + 0x1000 - info.size());
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->entries().size(), 3u);
}

TEST_F(IlMapReaderTest, WithoutDebugInformationThereIsNone) {
  MethodCode code;
  code.range = {kCode, kCode + 0x60};
  EXPECT_EQ(ReadIlMap(memory_, DebugInfoFormat::kNet8, code).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(IlMapReaderTest, WhatCantBeReadOrIsNoMapIsAnError) {
  MethodCode code;
  code.range = {kCode, kCode + 0x60};
  const uint64_t nowhere = 0x7200'0000'0000;
  std::memcpy(code.identity.data(), &nowhere, sizeof nowhere);
  EXPECT_EQ(ReadIlMap(memory_, DebugInfoFormat::kNet8, code).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Read(std::string(64, '\xff')).status().code(), absl::StatusCode::kDataLoss);
  std::string cut = Net8Map();
  cut[1] = static_cast<char>(cut[1] + 1);  // a chunk that is longer than its map
  EXPECT_EQ(Read(cut).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
