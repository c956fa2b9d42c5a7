#include "output/html_times.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "os/clock.h"
#include "unit/output/inflated.h"

namespace clrsampler {
namespace {

using clrsampler::test_support::Inflated;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr size_t kMuch = 1 << 30;

struct Row {
  uint32_t cell;
  uint64_t time_ms;  // kNoTime: none
  uint64_t weight = 1;
};

// The numbers that a page reads: the length of a step, and weights by cell and step.
struct Read {
  uint64_t step_ms = 0, steps = 0;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> weights;
};

Read Unpack(absl::string_view base64, size_t cells) {
  const std::string bytes = Inflated(base64);
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < bytes.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  Read read;
  read.step_ms = varint();
  read.steps = varint();
  const uint64_t entries = varint();
  std::multimap<uint64_t, uint32_t, std::greater<>> order;  // cells of one count stay in their order
  for (uint32_t cell = 0; cell < cells; ++cell) order.emplace(varint(), cell);
  std::vector<std::pair<uint32_t, uint64_t>> keys;
  for (const auto& [count, cell] : order) {
    uint64_t step = 0;
    for (uint64_t i = 0; i < count; ++i) keys.emplace_back(cell, step += varint());
  }
  EXPECT_EQ(keys.size(), entries);
  for (const auto& key : keys) read.weights[key] = varint();
  EXPECT_EQ(at, bytes.size());
  return read;
}

std::string Packed(const std::vector<Row>& rows, size_t cells, std::span<const uint32_t> steps = kHtmlSteps,
                   size_t most = kMuch) {
  SampleColumns samples;
  std::vector<uint32_t> cell_of_row;
  for (const Row& row : rows) {
    samples.time_ns.push_back(row.time_ms == kNoTime ? kNoTime : row.time_ms * kMillisecondNs);
    samples.thread.push_back(0);
    samples.stack.push_back(kRootNode);
    samples.weight.push_back(row.weight);
    cell_of_row.push_back(row.cell);
  }
  absl::StatusOr<std::string> packed = PackHtmlTimes(samples, cell_of_row, cells, steps, most);
  EXPECT_TRUE(packed.ok());
  return *std::move(packed);
}

TEST(HtmlTimesTest, EachCellHasItsWeightInEachStep) {
  const Read read = Unpack(Packed({{1, 0}, {1, 19}, {1, 20}, {0, 70, 300}, {1, 41}}, 3), 3);
  EXPECT_EQ(read.step_ms, 20u);
  EXPECT_EQ(read.steps, 4u);
  EXPECT_THAT(read.weights,
              ElementsAre(Pair(Pair(0, 3), 300), Pair(Pair(1, 0), 2), Pair(Pair(1, 1), 1), Pair(Pair(1, 2), 1)));
}

TEST(HtmlTimesTest, SamplesNeedNotBeInTheOrderOfTheirTimes) {
  const Read read = Unpack(Packed({{0, 100, 5}, {0, 0, 7}, {0, kNoTime, 11}, {0, 45, 13}}, 1), 1);
  EXPECT_THAT(read.weights, ElementsAre(Pair(Pair(0, 0), 7), Pair(Pair(0, 2), 13), Pair(Pair(0, 5), 5)));
}

// Many cells, so that the length is estimated by some of them first.
std::vector<Row> Many() {
  std::mt19937 random(1);
  std::vector<Row> rows;
  for (int i = 0; i < 50'000; ++i) rows.push_back({static_cast<uint32_t>(random() % 1000), random() % 3'600'000});
  return rows;
}

TEST(HtmlTimesTest, StepsAreAsFineAsThereIsRoom) {
  const std::vector<Row> rows = Many();
  const std::string finest = Packed(rows, 1000);
  EXPECT_EQ(Unpack(finest, 1000).step_ms, 20u);
  const std::string coarser = Packed(rows, 1000, kHtmlSteps, finest.size() - 1);
  EXPECT_LT(coarser.size(), finest.size());
  const Read read = Unpack(coarser, 1000);
  EXPECT_GT(read.step_ms, 20u);
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> expected;
  for (const Row& row : rows) ++expected[{row.cell, row.time_ms / read.step_ms}];
  EXPECT_EQ(read.weights, expected);
  EXPECT_THAT(Packed(rows, 1000, kHtmlSteps, 100), IsEmpty());
}

TEST(HtmlTimesTest, TimesFromOtherWorldsAreNone) {
  EXPECT_THAT(Packed({{0, kNoTime}}, 1), IsEmpty());
  EXPECT_THAT(Packed({{0, 0}, {0, uint64_t{1} << 44}}, 1), IsEmpty());
  // Two years: finer steps would be too many.
  const Read read = Unpack(Packed({{0, 0}, {0, uint64_t{730} * 86'400'000}}, 1), 1);
  EXPECT_EQ(read.step_ms, 10'000u);
}

}  // namespace
}  // namespace clrsampler
