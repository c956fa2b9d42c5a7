#include "pipeline/thread_start.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

Frame Native(const char* text, NameSource source = NameSource::kElfSymbols) {
  return Frame{FrameKind::kNative, source, text, "", ""};
}

TEST(ThreadStartTest, KnowsLibcsStartCodeInBothStyles) {
  EXPECT_TRUE(StartsThread(Native("_start")));
  EXPECT_TRUE(StartsThread(Native("__clone3")));
  EXPECT_TRUE(StartsThread(Native("libc.so.6!start_thread")));
}

TEST(ThreadStartTest, OtherFramesOfThatNameDoNot) {
  EXPECT_FALSE(StartsThread(Native("start_thread_pool")));
  EXPECT_FALSE(StartsThread(Native("my_start_thread")));
  EXPECT_FALSE(StartsThread(Native("start_thread", NameSource::kNone)));
  EXPECT_FALSE(StartsThread(Frame{FrameKind::kJit, NameSource::kElfSymbols, "clone", "", ""}));
}

}  // namespace
}  // namespace clrsampler
