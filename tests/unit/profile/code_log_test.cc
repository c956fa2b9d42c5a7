#include "profile/code_log.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "formats/profile/model_code.h"
#include "process/process.h"

namespace clrsampler {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr FrameId kTotal = 1, kTotalLine3 = 2, kTotalLine4 = 3;

class CodeLogTest : public testing::Test {
 protected:
  void Note(uint64_t address, FrameId frame, const std::string& bytes = "abcdefgh") {
    log_.Note(FrameQuery{process_, nullptr, address, address, {5}}, kTotal, frame,
              CodeBody{0x1000, std::make_shared<const std::string>(bytes)});
  }

  Process process_{ProcessKey{7, 1}, TargetFiles("/nonexistent", 7)};
  CodeLog log_;
};

TEST_F(CodeLogTest, AMethodIsOneEntryWhateverItsLines) {
  Note(0x1002, kTotalLine3);
  Note(0x1004, kTotalLine4);
  log_.Count(process_.key, 0x1002, kTotalLine3);
  log_.Count(process_.key, 0x1002, kTotalLine3);
  log_.Count(process_.key, 0x1004, kTotalLine4);
  ASSERT_EQ(log_.entries().size(), 1u);
  const CodeLog::Entry& entry = log_.entries()[0];
  EXPECT_EQ(entry.pid, 7u);
  EXPECT_EQ(entry.frame, kTotal);
  EXPECT_EQ(entry.met.ns, 5u);
  EXPECT_THAT(entry.self, UnorderedElementsAre(Pair(2, 2), Pair(4, 1)));
}

// The kernel ran, or a method whose code could not be read.
TEST_F(CodeLogTest, SamplesOfOtherFramesAreNotCounted) {
  Note(0x1002, kTotalLine3);
  log_.Count(process_.key, 0x1002, kTotalLine4);
  log_.Count(process_.key, 0x1003, kTotalLine3);
  log_.Count(ProcessKey{7, 2}, 0x1002, kTotalLine3);
  EXPECT_THAT(log_.entries()[0].self, UnorderedElementsAre());
  EXPECT_EQ(log_.CountersByName()["samples"], 0u);
}

TEST_F(CodeLogTest, OtherCodeAtTheSamePlaceIsAnotherEntry) {
  Note(0x1002, kTotalLine3);
  log_.Count(process_.key, 0x1002, kTotalLine3);
  Note(0x1002, kTotalLine3, "ABCDEFGH");
  log_.Count(process_.key, 0x1002, kTotalLine3);
  ASSERT_EQ(log_.entries().size(), 2u);
  EXPECT_THAT(log_.entries()[0].self, UnorderedElementsAre(Pair(2, 1)));
  EXPECT_THAT(log_.entries()[1].self, UnorderedElementsAre(Pair(2, 1)));
}

TEST_F(CodeLogTest, WhatHasNoRoomOrNoSenseIsCounted) {
  Note(0x0fff, kTotal);
  Note(0x1008, kTotal);
  Note(0x1000, kTotal, std::string(kMaxBodyBytes + 1, 'a'));
  log_.NoteWithout();
  EXPECT_EQ(log_.entries().size(), 0u);
  EXPECT_EQ(log_.CountersByName(), (std::map<std::string, uint64_t>{
                                       {"bodies", 0}, {"bytes", 0}, {"left_out", 3}, {"samples", 0}, {"without", 1}}));
}

// A body of few bytes may come with much of it.
TEST_F(CodeLogTest, UnwindDataNeedsRoomToo) {
  CodeBody body{0x1000, std::make_shared<const std::string>("abcdefgh"), ElfMachine::kX64, {}, {}};
  body.unwind = {{0, 8, std::string(kMaxCodeBodiesBytes / 2, 'u')}};
  for (uint64_t i = 0; i < 3; ++i, body.start += 16) {
    log_.Note(FrameQuery{process_, nullptr, body.start, body.start, {5}}, kTotal, kTotal, body);
  }
  EXPECT_EQ(log_.entries().size(), 1u);
  EXPECT_EQ(log_.CountersByName()["left_out"], 2u);
  EXPECT_GT(log_.CountersByName()["bytes"], kMaxCodeBodiesBytes / 2);
}

}  // namespace
}  // namespace clrsampler
