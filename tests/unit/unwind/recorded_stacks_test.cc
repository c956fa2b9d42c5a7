// Recordings of real programs (tests/testdata/stacks, made by tools/record_stacks) come out as they were recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "apps/stack_selection.h"
#include "formats/byte_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unwind/stack_recording.h"
#include "unwind/stack_unwinder.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 4 << 20;

std::vector<std::string> Files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(TestData("stacks/") + folder)) {
    if (entry.path().extension() == ".stacks") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

StackRecording Read(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path, kMaxBytes);
  if (!bytes.ok()) {
    ADD_FAILURE() << path << ": " << bytes.status();
    return {};
  }
  absl::StatusOr<StackRecording> recording = StackRecording::Parse(AsBytes(*bytes));
  if (!recording.ok()) {
    ADD_FAILURE() << path << ": " << recording.status();
    return {};
  }
  EXPECT_EQ(recording->Serialize(), *bytes) << path;
  return *std::move(recording);
}

std::string Text(const UserStack& stack) {
  std::string text = "end " + std::to_string(static_cast<int>(stack.end)) + "\n";
  for (const UserFrame& frame : stack.frames) {
    char line[96];
    std::snprintf(line, sizeof line, "%llx %llx origin %d doubt %d\n", static_cast<unsigned long long>(frame.address),
                  static_cast<unsigned long long>(frame.lookup_address), static_cast<int>(frame.origin),
                  static_cast<int>(frame.doubt));
    text += line;
  }
  return text;
}

// Each stack, and the counters of all walks together.
UnwindCounters WalkAll(const std::string& path, const StackRecording& recording) {
  RecordedCode code(recording);
  StackUnwinder unwinder({.max_frames = kRecordedMaxFrames});
  UserStack stack;
  for (size_t i = 0; i < recording.stacks.size(); ++i) {
    const absl::StatusOr<RawStack> raw = RawStack::Parse(std::as_bytes(std::span(recording.stacks[i].record)));
    if (!raw.ok()) {
      ADD_FAILURE() << path << ", stack " << i << ": " << raw.status();
      continue;
    }
    unwinder.Walk(*raw, code, stack);
    EXPECT_EQ(Text(stack), Text(recording.stacks[i].result)) << path << ", stack " << i;
  }
  return unwinder.counters();
}

TEST(RecordedStacksTest, CleanOnesHaveNoDoubtfulStep) {
  const std::vector<std::string> files = Files("clean");
  ASSERT_GE(files.size(), 20u);
  uint64_t checked = 0, in_epilogues = 0;
  std::set<FrameOrigin> origins;
  for (const std::string& path : files) {
    const StackRecording recording = Read(path);
    EXPECT_FALSE(recording.stacks.empty()) << path;
    const UnwindCounters counters = WalkAll(path, recording);
    for (const RecordedStack& stack : recording.stacks) {
      EXPECT_FALSE(IsDoubtful(stack.result)) << path << "\n" << Text(stack.result);
      for (const UserFrame& frame : stack.result.frames) origins.insert(frame.origin);
      const auto leaf = recording.code.find(stack.result.frames.front().address);
      in_epilogues += leaf != recording.code.end() && leaf->second.has_leaf_row ? 1 : 0;
    }
    EXPECT_EQ(counters.contradictions, 0u) << path;
    EXPECT_EQ(counters.missing_words, 0u) << path;
    EXPECT_EQ(counters.unsupported, 0u) << path;
    EXPECT_EQ(counters.no_code, 0u) << path;
    EXPECT_EQ(counters.lost, 0u) << path;
    checked += counters.checked;
  }
  // They show what they are for.
  EXPECT_THAT(origins, testing::IsSupersetOf({FrameOrigin::kSampled, FrameOrigin::kUnwindInfo, FrameOrigin::kTable}));
  EXPECT_GT(checked, 1000u);
  EXPECT_GE(in_epilogues, 3u) << "of NativeAOT, whose tables leave them out";
}

TEST(RecordedStacksTest, DoubtfulOnesAreMarkedWhereTheyWere) {
  const std::vector<std::string> files = Files("doubtful");
  ASSERT_FALSE(files.empty());
  std::set<FrameDoubt> doubts;
  for (const std::string& path : files) {
    const StackRecording recording = Read(path);
    EXPECT_FALSE(recording.stacks.empty()) << path;
    WalkAll(path, recording);
    for (const RecordedStack& stack : recording.stacks) {
      EXPECT_TRUE(IsDoubtful(stack.result)) << path << "\n" << Text(stack.result);
      for (const UserFrame& frame : stack.result.frames) doubts.insert(frame.doubt);
    }
  }
  EXPECT_TRUE(doubts.contains(FrameDoubt::kCallerMayBeMissing));
}

TEST(StackSelectionTest, KeepsStacksThatDifferAndOnlyWhatTheyNeed) {
  const StackRecording recording = Read(Files("clean").front());
  ASSERT_GE(recording.stacks.size(), 3u);
  // Many that are the same beside them.
  StackRecording many = recording;
  for (int i = 0; i < 50; ++i) many.stacks.push_back(recording.stacks.front());
  CodeAt unused;
  unused.kind = CodeKind::kStub;
  many.code[0x1234] = unused;
  const StackRecording two = SelectStacks(many, 2, StackChoice::kAny);
  ASSERT_EQ(two.stacks.size(), 2u);
  EXPECT_NE(two.stacks[0].result.frames, two.stacks[1].result.frames);
  EXPECT_FALSE(two.code.contains(0x1234));
  EXPECT_LE(two.code.size(), recording.code.size());
  for (const RecordedStack& stack : two.stacks) EXPECT_EQ(WalkRecorded(two, stack), stack.result);
  EXPECT_LE(SelectStacks(many, 1000, StackChoice::kAny).stacks.size(), recording.stacks.size());
  EXPECT_TRUE(SelectStacks(many, 1000, StackChoice::kDoubtful).stacks.empty());
}

TEST(StackSelectionTest, LeavesOutStacksThatComeOutOtherwise) {
  StackRecording recording = Read(Files("clean").front());
  const size_t before = SelectStacks(recording, 1000, StackChoice::kAny).stacks.size();
  for (RecordedStack& stack : recording.stacks) stack.result.frames.back().address ^= 8;
  EXPECT_GT(before, 0u);
  EXPECT_TRUE(SelectStacks(recording, 1000, StackChoice::kAny).stacks.empty());
}

TEST(StackSelectionTest, KeepsNoText) {
  StackRecording recording = Read(Files("clean").front());
  RecordedStack& stack = recording.stacks.front();
  const absl::StatusOr<RawStack> raw = RawStack::Parse(std::as_bytes(std::span(stack.record)));
  ASSERT_TRUE(raw.ok());
  // In a gap between the frames, of which only the words that the unwind reads matter.
  const uint64_t secret = 0x5345435245543d73;  // s=TERCES
  bool done = false;
  for (uint64_t& word : std::span(stack.record).subspan(sizeof(wire_cpu_sample) / sizeof(uint64_t))) {
    const uint64_t was = word;
    if (was != 0) continue;
    word = secret;
    if (RawStack::Parse(std::as_bytes(std::span(stack.record))).ok() &&
        WalkRecorded(recording, stack) == stack.result) {
      done = true;
      break;
    }
    word = was;
  }
  ASSERT_TRUE(done);
  const std::string selected = SelectStacks(recording, 1000, StackChoice::kAny).Serialize();
  EXPECT_EQ(selected.find("s=TERCES"), std::string::npos);
  EXPECT_NE(recording.Serialize().find("s=TERCES"), std::string::npos);
}

}  // namespace
}  // namespace clrsampler
