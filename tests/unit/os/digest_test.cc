#include "os/digest.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace clrsampler {
namespace {

std::string HashOf(const std::string& file) { return HeadTailLengthHash(std::as_bytes(std::span(file))); }

// Texts by `(head -c 4096 F; tail -c 4096 F; printf "%016x" $(stat -c %s F) | xxd -r -p) | sha256sum | head -c 32`.
TEST(HeadTailLengthHashTest, IsWhatOthersCalculate) {
  EXPECT_EQ(HashOf(""), "af5570f5a1810b7af78caf4bc70a660f");
  EXPECT_EQ(HashOf("short"), "44a7e1d2bd59d26f377a8dd07d0461ac");
  EXPECT_EQ(HashOf(std::string(4096, 'a') + std::string(10'000, 'b') + std::string(4096, 'c')),
            "06ef77748a77705e5a847abafa2f794a");
}

TEST(HeadTailLengthHashTest, WhatLiesBetweenCountsByItsLength) {
  const std::string head(4096, 'a'), tail(4096, 'c');
  EXPECT_EQ(HashOf(head + "x" + tail), HashOf(head + "y" + tail));
  EXPECT_NE(HashOf(head + "x" + tail), HashOf(head + "xx" + tail));
}

}  // namespace
}  // namespace clrsampler
