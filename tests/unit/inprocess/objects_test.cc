#include <gtest/gtest.h>

#include <vector>

#include "library_host.h"

namespace clrsampler {
namespace {

constexpr size_t kLarge = 85'000;
constexpr uint32_t kYoungest = 0;

// The object that was just allocated.
size_t g_object_bytes = 0;
uint32_t g_object_generation = 0;
Hresult g_generation_answer = kOk;

Hresult ObjectSize(void*, RuntimeId, size_t* bytes) {
  *bytes = g_object_bytes;
  return kOk;
}
Hresult ObjectGeneration(void*, RuntimeId object, GenerationRange* range) {
  *range = {g_object_generation, object, g_object_bytes, g_object_bytes};
  return g_generation_answer;
}

class ObjectsTest : public testing::Test {
 protected:
  ObjectsTest() {
    host_.info().Set(kGetObjectSize2, ObjectSize);
    host_.info().Set(kGetObjectGeneration, ObjectGeneration);
    host_.wanted_mask = kEveryObjectLow | kImmutableLow;
    g_generation_answer = kOk;
  }
  bool Tells(size_t bytes, uint32_t generation) {
    g_object_bytes = bytes;
    g_object_generation = generation;
    host_.Call(kObjectAllocated, RuntimeId{1}, RuntimeId{2});
    const std::vector<LibraryRecord> records = host_.Records();
    return records.size() == 1 && records[0].values[2] == bytes;
  }
  static constexpr uint64_t kObjects = InprocessKindBit(InprocessKind::kObjectAllocated);

  LibraryHost host_;
};

TEST_F(ObjectsTest, AfterAnAttachThoseOfAnotherProfilerAreNotTold) {
  ASSERT_EQ(host_.Attach(kObjects), kOk);
  EXPECT_FALSE(Tells(24, kYoungest));
  EXPECT_FALSE(Tells(kLarge - 1, kLargeObjectHeap));
  EXPECT_TRUE(Tells(kLarge, kLargeObjectHeap));
  EXPECT_TRUE(Tells(kLarge, kLargeObjectHeap + 1)) << "pinned";
  EXPECT_FALSE(Tells(kLarge, kYoungest)) << "the heap begins at more: GCLOHThreshold";
  g_generation_answer = kFailed;
  EXPECT_TRUE(Tells(kLarge, kYoungest));
}

TEST_F(ObjectsTest, FromTheStartEachIsTold) {
  ASSERT_EQ(host_.Start(kObjects), kOk);
  EXPECT_TRUE(Tells(24, kYoungest));
}

}  // namespace
}  // namespace clrsampler
