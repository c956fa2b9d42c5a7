#include "clr/memory/image_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "unit/clr/memory/fake_memory.h"

namespace clrsampler {
namespace {

constexpr uint64_t kBase = 0x7000'0000'0000, kBlock = 64 << 10;

TEST(ImageCopyTest, HolesAreZeroes) {
  FakeMemory memory;
  memory.Map(kBase, kBlock);
  memory.Map(kBase + 2 * kBlock, kBlock);
  memory.Set<uint32_t>(kBase, 0x5A4D);
  memory.Set<uint32_t>(kBase + 2 * kBlock + 100, 0x1234);
  const auto copy = CopyImage(memory, {kBase, kBase + 2 * kBlock + 200});
  ASSERT_TRUE(copy.ok()) << copy.status();
  ASSERT_EQ(copy->size(), 2 * kBlock + 200);
  EXPECT_EQ((*copy)[0], std::byte{0x4D});
  EXPECT_TRUE(std::all_of(copy->begin() + kBlock, copy->begin() + 2 * kBlock,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ((*copy)[2 * kBlock + 100], std::byte{0x34});
}

TEST(ImageCopyTest, WithoutAHeaderOrTooLargeThereIsNone) {
  FakeMemory memory;
  EXPECT_EQ(CopyImage(memory, {kBase, kBase + 100}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(CopyImage(memory, {kBase, kBase + (uint64_t{4} << 30)}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace clrsampler
