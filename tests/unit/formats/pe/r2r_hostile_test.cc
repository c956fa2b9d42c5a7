// Images cut off and changed everywhere: nothing is read outside the bytes, and everything ends in bounded time. Run
// under the sanitizers this finds what the checks forgot; without them it still finds endless loops and broken
// properties.
#include <gtest/gtest.h>

#include <random>

#include "unit/formats/pe/fixture.h"
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

}  // namespace
}  // namespace clrsampler
