#include "capture/merge_by_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakeSource {
 public:
  void Put(uint64_t time_ns, uint32_t kind) {
    wire_header header{};
    header.time_ns = time_ns;
    header.kind = static_cast<decltype(header.kind)>(kind);
    PutBytes(std::string(reinterpret_cast<const char*>(&header), sizeof header));
  }
  void PutBytes(std::string bytes) { records_.push_back(std::move(bytes)); }
  const std::span<const std::byte>* Next() {
    if (at_ == records_.size()) return nullptr;
    next_ = std::as_bytes(std::span(records_[at_]));
    return &next_;
  }
  void Pop() { ++at_; }

 private:
  std::vector<std::string> records_;
  size_t at_ = 0;
  std::span<const std::byte> next_;
};

std::vector<uint32_t> KindsInOrder(
    FakeSource& a, FakeSource& b, absl::FunctionRef<bool()> b_presses = [] { return false; }) {
  std::vector<uint32_t> kinds;
  MergeByTime(a, b, b_presses, [&](std::span<const std::byte> record) {
    wire_header header{};
    std::memcpy(&header, record.data(), std::min(record.size(), sizeof header));
    kinds.push_back(header.kind);
  });
  return kinds;
}

TEST(MergeByTimeTest, RecordsOfBothComeInTheOrderOfTheirTimes) {
  FakeSource hooks, samples;
  for (const uint32_t time : {1, 4, 5}) hooks.Put(time, time);
  for (const uint32_t time : {2, 3, 6}) samples.Put(time, time);
  EXPECT_THAT(KindsInOrder(hooks, samples), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(MergeByTimeTest, OfTheSameTimeTheFirstSourceIsFirst) {
  FakeSource hooks, samples;
  hooks.Put(7, 1);
  hooks.Put(7, 2);  // a compilation and its stack
  samples.Put(7, 3);
  EXPECT_THAT(KindsInOrder(hooks, samples), ElementsAre(1, 2, 3));
}

TEST(MergeByTimeTest, ASourceKeepsItsOwnOrder) {
  FakeSource hooks, samples;
  hooks.Put(5, 1);
  hooks.Put(3, 2);  // two CPUs have crossed
  samples.Put(4, 3);
  EXPECT_THAT(KindsInOrder(hooks, samples), ElementsAre(3, 1, 2));
}

TEST(MergeByTimeTest, WhatIsTooShortIsHandedOverAtOnce) {
  FakeSource hooks, samples;
  samples.PutBytes("abc");
  hooks.Put(1, 1);
  EXPECT_EQ(KindsInOrder(hooks, samples).size(), 2u);
}

TEST(MergeByTimeTest, WhatPressesComesFirstAndTheOtherGoesOn) {
  FakeSource hooks, samples;
  for (const uint32_t time : {1, 2, 3}) hooks.Put(time, time);
  samples.Put(9, 9);
  int asked = 0;
  const auto presses = [&] {
    if (++asked != 2) return false;
    samples.Put(10, 10);  // while the first hook was worked on
    return true;
  };
  EXPECT_THAT(KindsInOrder(hooks, samples, presses), ElementsAre(1, 9, 10, 2, 3));
}

TEST(MergeByTimeTest, WhatAlwaysPressesHoldsUpNobodyForEver) {
  FakeSource hooks, samples;
  for (const uint32_t time : {1, 2, 3}) hooks.Put(time, time);
  const auto presses = [&] {
    samples.Put(9, 9);
    return true;
  };
  EXPECT_THAT(KindsInOrder(hooks, samples, presses), ElementsAre(9, 1, 9, 2, 9, 3));
}

TEST(MergeByTimeTest, OneAloneAndNone) {
  FakeSource empty, samples;
  EXPECT_THAT(KindsInOrder(empty, empty), IsEmpty());
  samples.Put(1, 1);
  EXPECT_THAT(KindsInOrder(empty, samples), ElementsAre(1));
}

}  // namespace
}  // namespace clrsampler
