#include "unwind_data/managed_functions.h"

#include <gtest/gtest.h>

#include "unit/clr/memory/fake_memory.h"
#include "unit/formats/unwind/code_bytes.h"

namespace clrsampler {
namespace {

TEST(ReadUnwindInfoTest, ReadsNoByteBehindIt) {
  FakeMemory memory;
  const auto read = [&](uint64_t at, std::span<std::byte> into) { return memory.Read(at, into); };
  std::vector<std::byte> bytes = Hex(kFrameless.unwind);
  memory.SetBytes(0x5000, bytes);
  const auto info = ReadUnwindInfo(read, 0x4000, 0x1000);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(*info, *UnwindInfo::Parse(bytes));
  EXPECT_FALSE(ReadUnwindInfo(read, 0x4000, 0x1004).has_value());
  EXPECT_FALSE(ReadUnwindInfo(read, 0x9000, 0x1000).has_value());
}

TEST(OsrFrameBytesTest, OnlySuchMethodsBeginWithAFrame) {
  EXPECT_EQ(OsrFrameBytes(*UnwindInfo::Parse(Hex(kOsr.unwind))), 120u);
  for (const CodeBytes& function : {kFramed, kFrameless, kTailJump, kMovesSp, kProbed, kFunclet8, kFunclet10}) {
    EXPECT_EQ(OsrFrameBytes(*UnwindInfo::Parse(Hex(function.unwind))), std::nullopt);
  }
}

}  // namespace
}  // namespace clrsampler
