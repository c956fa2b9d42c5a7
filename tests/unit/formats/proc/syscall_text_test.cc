#include "formats/proc/syscall_text.h"

#include <gtest/gtest.h>

namespace clrsampler {
namespace {

// As Linux 6.18 writes them.
TEST(SyscallTextTest, ABlockedThreadHasItsStackPointer) {
  EXPECT_EQ(StackPointerOfBlocked("202 0x7fa05ffc8c78 0x189 0x0 0x0 0x0 0xffffffff 0x7fa05ffc8bf0 0x7fa0b1a83f16\n"),
            0x7fa05ffc8bf0);
  EXPECT_EQ(StackPointerOfBlocked("-1 0x7ffe8c2ffe90 0x7fbd9bf0f998\n"), 0x7ffe8c2ffe90);  // in a page fault
}

TEST(SyscallTextTest, OneThatRunsHasNone) {
  EXPECT_EQ(StackPointerOfBlocked("running\n"), std::nullopt);
  EXPECT_EQ(StackPointerOfBlocked(""), std::nullopt);
  EXPECT_EQ(StackPointerOfBlocked("202 nonsense 0x1\n"), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
