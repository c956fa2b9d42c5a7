#include "os/tape_answer.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

absl::Status Again(const absl::Status& status) {
  TapeWriter out;
  TapeCodec<absl::Status>::Write(status, out);
  const std::string text = out.Take();
  TapeReader in(text);
  return TapeCodec<absl::Status>::Read(in);
}

TEST(TapeAnswerTest, AnErrorComesBackWithItsHint) {
  const absl::Status error = WithHint(absl::PermissionDeniedError("no probes here"), "run it as root");
  EXPECT_EQ(Again(error), error);
  EXPECT_EQ(HintOf(Again(error)), "run it as root");
}

TEST(TapeAnswerTest, TheLinesOfAnErrorAreNoneOfItsHint) {
  const absl::Status error = WithHint(absl::InternalError("no program\nR1 invalid mem access\nend"), "run doctor");
  EXPECT_EQ(Again(error), error);
  EXPECT_EQ(HintOf(Again(error)), "run doctor");
}

TEST(TapeAnswerTest, AnErrorWithoutAHintHasNone) {
  const absl::Status error = absl::NotFoundError("no process 7");
  EXPECT_EQ(Again(error), error);
  EXPECT_EQ(HintOf(Again(error)), "");
}

TEST(TapeAnswerTest, WhatIsCutOffIsAnError) {
  TapeReader in("");
  EXPECT_TRUE(absl::IsDataLoss(TapeCodec<absl::Status>::Read(in)));
}

}  // namespace
}  // namespace clrsampler
