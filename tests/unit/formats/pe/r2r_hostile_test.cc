// Images cut off and changed everywhere: nothing is read outside the bytes, and everything ends in bounded time. Run
// under the sanitizers this finds what the checks forgot; without them it still finds endless loops and broken
// properties.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "unit/formats/pe/fixture.h"
#include "unit/formats/pe/loaded_fixture.h"
#include "unit/rounds.h"

namespace clrsampler {
namespace {

// The sanitizers make a round some 30 times slower.
constexpr int kSlower = 8 / Rounds(8);

// Uses everything of an image. Returns the number of names.
int UseAll(absl::string_view bytes, uint32_t max_functions) {
  // A copy of exact size, so that a sanitizer sees a read behind the end.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  const absl::string_view text(exact.data(), exact.size());
  const absl::StatusOr<PeImage> pe = PeImage::Parse(AsBytes(text));
  if (!pe.ok()) return 0;
  pe->PerfMapEntries();
  const auto image = OpenR2r(text);
  if (!image.ok()) return 0;
  FixtureOpener opener("10.0.14-x64-composite");
  int names = 0;
  for (uint32_t i = 0; i < std::min((*image)->function_count(), max_functions); ++i) {
    const auto function = (*image)->Function(i);
    const auto found = (*image)->Find(function->begin);
    EXPECT_TRUE(!found || found->index == i);
    if (function->method == R2rFunction::kNoOwner) continue;
    EXPECT_LE(function->method, i);
    names += (*image)->Name(function->method, opener).ok();
  }
  return names;
}

class Hostile : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(R2rHostileTest, Hostile,
                         testing::Values("10.0.14-x64/shapes.dll", "8.0.30-arm64/shapes.dll",
                                         "10.0.14-x64-composite/both.r2r.dll", "10.0.14-x64-hot-cold/shapes.dll"));

TEST_P(Hostile, CutOffAnywhere) {
  const std::string bytes = ReadFixture(GetParam());
  const int whole = UseAll(bytes, UINT32_MAX);
  ASSERT_GT(whole, 60);
  for (size_t size = 0; size < bytes.size(); size += (size < 1024 ? 1 : 37) * kSlower) {
    EXPECT_LE(UseAll(absl::string_view(bytes).substr(0, size), 40), whole);
  }
}

TEST_P(Hostile, AnyByteChanged) {
  std::string bytes = ReadFixture(GetParam());
  std::mt19937 random(7);
  for (int round = 0; round < 6000 / kSlower; ++round) {
    const size_t at = round < 1024 / kSlower ? static_cast<size_t>(round) : random() % bytes.size();
    const char before = std::exchange(bytes[at], static_cast<char>(random()));
    UseAll(bytes, 24);
    bytes[at] = before;
  }
}

TEST_P(Hostile, ManyBytesChanged) {
  const std::string original = ReadFixture(GetParam());
  std::mt19937 random(11);
  const char kEvil[] = {'\0', '\x7F', '\x80', '\xFF', '\x15', '\x3F', '\x1D', '\x1B'};
  for (int round = 0; round < 600 / kSlower; ++round) {
    std::string bytes = original;
    const size_t begin = random() % bytes.size(), length = random() % 512;
    for (size_t i = begin; i < std::min(begin + length, bytes.size()); ++i) bytes[i] = kEvil[random() % sizeof kEvil];
    UseAll(bytes, 100);
  }
}

void SetWord(std::string& bytes, uint64_t at, uint32_t value) { std::memcpy(bytes.data() + at, &value, sizeof value); }

// Each index costs time, though none has code.
TEST(R2rHostileTest, AComponentHasNoMoreMethodsThanMetadataCan) {
  std::string memory = LaidOut(ReadFixture("10.0.14-x64-composite/both.r2r.dll"));
  const auto pe = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  ASSERT_TRUE(pe.ok());
  const uint32_t components = pe->r2r()->core.Find(R2rSectionType::kComponentAssemblies)->range.rva;
  const uint32_t core = *LoadAt<uint32_t>(AsBytes(memory), components + 8);
  uint64_t methods = uint64_t{core} + 8;
  while (*LoadAt<uint32_t>(AsBytes(memory), methods) != 103) methods += 12;
  // The last section is made longer by a table of 2^24 + 1 indexes.
  const PeSection last = pe->sections().back();
  const uint32_t head = *LoadAt<uint32_t>(AsBytes(memory), 0x3C);
  const uint64_t row = head + 24 + *LoadAt<uint16_t>(AsBytes(memory), head + 20) + 40 * (pe->sections().size() - 1);
  const auto table = static_cast<uint32_t>(memory.size());
  constexpr uint32_t kTableBytes = 5 + (1 << 20) + 2;
  memory.resize(table + kTableBytes, '\x01');
  memory[table] = '\x0F';
  SetWord(memory, table + 1, ((1 << 24) + 1) << 2);
  SetWord(memory, row + 8, table + kTableBytes - last.rva);
  SetWord(memory, methods + 4, table);
  SetWord(memory, methods + 8, kTableBytes);
  const auto damaged = PeImage::Parse(AsBytes(memory), PeLayout::kLoaded);
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  const absl::Status status = R2rImage::Open(*damaged, "shapes").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("too many methods"));
}

}  // namespace
}  // namespace clrsampler
