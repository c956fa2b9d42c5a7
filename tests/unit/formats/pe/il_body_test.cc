#include "formats/pe/il_body.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace clrsampler {
namespace {

using Code = std::vector<uint8_t>;

absl::StatusOr<IlBodyFacts> Read(const Code& bytes) { return ReadIlBody(std::as_bytes(std::span(bytes))); }

Code Tiny(std::initializer_list<uint8_t> code) {
  Code bytes{static_cast<uint8_t>(code.size() << 2 | 2)};
  bytes.insert(bytes.end(), code);
  return bytes;
}

Code Fat(const Code& code) {
  Code bytes{0x13, 0x30, 8, 0,   static_cast<uint8_t>(code.size()), static_cast<uint8_t>(code.size() >> 8), 0, 0,
             1,    0,    0, 0x11};
  bytes.insert(bytes.end(), code.begin(), code.end());
  return bytes;
}

constexpr uint8_t kNop = 0x00, kRet = 0x2A, kBrS = 0x2B, kBr = 0x38, kSwitch = 0x45, kLeave = 0xDD, kLeaveS = 0xDE,
                  kCall = 0x28, kLdcI4 = 0x20, kLdcI8 = 0x21, kPrefix = 0xFE;

void ExpectFacts(const Code& bytes, bool branches_back, bool has_tail_prefix) {
  const absl::StatusOr<IlBodyFacts> facts = Read(bytes);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->branches_back, branches_back);
  EXPECT_EQ(facts->has_tail_prefix, has_tail_prefix);
}

TEST(IlBodyTest, BranchesForwardAreNoLoop) {
  ExpectFacts(Tiny({kRet}), false, false);
  ExpectFacts(Tiny({kBrS, 1, kNop, kRet}), false, false);
  ExpectFacts(Fat({kBr, 1, 0, 0, 0, kNop, kRet}), false, false);
  ExpectFacts(Fat({kSwitch, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, kNop, kRet}), false, false);
}

TEST(IlBodyTest, EachKindOfBranchBackIsALoop) {
  ExpectFacts(Tiny({kNop, kBrS, 0xFD, kRet}), true, false);
  ExpectFacts(Tiny({kBrS, 0xFE, kRet}), true, false);  // to itself
  ExpectFacts(Fat({kNop, kBr, 0xFA, 0xFF, 0xFF, 0xFF, kRet}), true, false);
  ExpectFacts(Fat({kNop, kLeave, 0xFA, 0xFF, 0xFF, 0xFF, kRet}), true, false);
  ExpectFacts(Tiny({kNop, kLeaveS, 0xFD, kRet}), true, false);
  ExpectFacts(Fat({kNop, kSwitch, 1, 0, 0, 0, 0xF6, 0xFF, 0xFF, 0xFF, kRet}), true, false);
}

// Operands that look like branches back are none.
TEST(IlBodyTest, OperandsAreSteppedOver) {
  ExpectFacts(Tiny({kLdcI4, kBrS, 0xFD, kBrS, 0xFD, kRet}), false, false);
  ExpectFacts(Tiny({kLdcI8, kBrS, 0xFD, kBrS, 0xFD, kBrS, 0xFD, kBrS, 0xFD, kRet}), false, false);
  ExpectFacts(Tiny({kCall, kBrS, 0xFD, kBrS, 0x06, kRet}), false, false);
  ExpectFacts(Tiny({kPrefix, 0x0C, kBrS, 0xFD, kRet}), false, false);
}

TEST(IlBodyTest, TheTailPrefixIsSeen) {
  ExpectFacts(Tiny({kPrefix, 0x14, kCall, 1, 0, 0, 6, kRet}), false, true);
  ExpectFacts(Tiny({kLdcI4, kPrefix, 0x14, 0, 0, kRet}), false, false);
}

TEST(IlBodyTest, WhatFollowsTheBodyIsNotRead) {
  Code body = Tiny({kRet});
  body.insert(body.end(), {kBrS, 0xFD});
  ExpectFacts(body, false, false);
}

TEST(IlBodyTest, DamagedBodiesAreRefused) {
  const Code damaged[] = {
      {},
      {0x00},                                            // neither tiny nor fat
      {0x0A, kRet},                                      // two bytes, of which one is there
      {0x13, 0x30, 8, 0, 1},                             // a header that is cut off
      {0x13, 0x20, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, kRet},  // of another length
      {0x13, 0x30, 8, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, kRet},
      Tiny({kLdcI4, 1, 2}),
      Tiny({kBrS}),
      Tiny({kPrefix}),
      Fat({kSwitch, 0xFF, 0xFF, 0xFF, 0x7F}),
      Fat({kSwitch, 2, 0, 0, 0, 1, 0, 0, 0}),
      Fat({kSwitch, 1, 0}),
  };
  for (const Code& bytes : damaged) EXPECT_EQ(Read(bytes).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
