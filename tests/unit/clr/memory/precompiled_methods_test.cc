#include "clr/memory/precompiled_methods.h"

#include <gtest/gtest.h>

#include "unit/clr/memory/fake_runtime.h"

namespace clrsampler {
namespace {

constexpr uint64_t kImageBase = 0x7F30'0000'0000;
constexpr uint32_t kFunctionBytes = 0x100, kFunctionCount = 8, kBucketCount = 3;

// An image whose functions follow each other from kFunctionBytes on, and the runtime's map of what it has prepared.
class PrecompiledMethodsTest : public testing::Test {
 protected:
  void SetUp() override {
    const uint64_t module = runtime_.AddModuleWithoutImage(), info = runtime_.memory.Allocate(512),
                   functions = runtime_.memory.Allocate(kFunctionCount * layout_.runtime_function.bytes);
    buckets_ = runtime_.memory.Allocate((kBucketCount + 1) * 64);
    section_ = {
        .range = {kImageBase, kImageBase + 0x10000}, .kind = CodeSectionKind::kPrecompiled, .r2r_module = module};
    runtime_.memory.Set<uint64_t>(module + layout_.module.r2r_info, info);
    runtime_.memory.Set<uint64_t>(info + layout_.r2r_info.module, module);
    runtime_.memory.Set<uint64_t>(info + layout_.r2r_info.functions, functions);
    runtime_.memory.Set<uint32_t>(info + layout_.r2r_info.function_count, kFunctionCount);
    runtime_.memory.Set<uint64_t>(info + layout_.r2r_info.entry_points + layout_.hash_map_buckets, buckets_);
    runtime_.memory.Set<uint32_t>(buckets_, kBucketCount);
    for (uint32_t i = 0; i < kFunctionCount; ++i) {
      const uint64_t row = functions + uint64_t{i} * layout_.runtime_function.bytes;
      runtime_.memory.Set<uint32_t>(row, (i + 1) * kFunctionBytes);
      runtime_.memory.Set<uint32_t>(row + 4, (i + 2) * kFunctionBytes);
    }
  }
  static uint64_t Function(uint32_t number) { return kImageBase + uint64_t{number + 1} * kFunctionBytes; }
  void Prepare(uint32_t slot, uint64_t entry_point, uint64_t method_desc) {
    const uint64_t bucket = buckets_ + 64 * (1 + uint64_t{slot} / 4) + 8 * (uint64_t{slot} % 4);
    runtime_.memory.Set<uint64_t>(bucket, entry_point);
    runtime_.memory.Set<uint64_t>(bucket + 32, method_desc >> 1);
  }
  uint64_t MethodAt(uint64_t address) {
    MemoryProbe probe(runtime_.memory);
    const auto found = methods_.Find(probe, section_, address);
    EXPECT_TRUE(probe.ok()) << probe.detail();
    return found ? found->method_desc : 0;
  }

  FakeRuntime runtime_{9};
  const RuntimeLayout& layout_ = runtime_.layout;
  CodeSection section_;
  uint64_t buckets_ = 0;
  PrecompiledMethods methods_{layout_, runtime_.memory};
};

TEST_F(PrecompiledMethodsTest, AMethodIsKnownOnceTheRuntimeHasPreparedIt) {
  Prepare(0, Function(2), 0x5510);
  EXPECT_EQ(MethodAt(Function(2) + 8), 0x5510u);
  Prepare(1, Function(4), 0x5520);
  EXPECT_EQ(MethodAt(Function(4)), 0x5520u);
  EXPECT_EQ(MethodAt(Function(3)), 0u);
}

TEST_F(PrecompiledMethodsTest, OnlyTheLastLookCounts) {
  Prepare(0, Function(2), 0x5510);
  EXPECT_EQ(MethodAt(Function(2)), 0x5510u);
  Prepare(0, Function(3), 0x5520);
  EXPECT_EQ(MethodAt(Function(3)), 0x5520u);
  EXPECT_EQ(MethodAt(Function(2)), 0u);
}

// The whole map is copied at each look. Keys that come and go are no reason for more of them.
TEST_F(PrecompiledMethodsTest, AMapWithOtherKeysEachTimeIsReadLessAndLessOften) {
  constexpr uint32_t kQuestions = 64;
  uint32_t looks = 0, key = 0;
  runtime_.memory.before_read = [&](uint64_t address) {
    if (address != buckets_ + 64) return;
    ++looks;
    for (uint32_t slot = 0; slot < 4 * kBucketCount; ++slot) Prepare(slot, kImageBase + 0x8001 + key++, 0x5510);
  };
  for (uint32_t i = 0; i < kQuestions; ++i) EXPECT_EQ(MethodAt(Function(2)), 0u);
  EXPECT_LE(looks, 7u);
}

TEST_F(PrecompiledMethodsTest, AMethodOutsideOfItsImageRefusesTheList) {
  Prepare(0, Function(2), 0x5510);
  MemoryProbe inside(runtime_.memory);
  EXPECT_EQ(methods_.PreparedIn(section_, inside).size(), 1u);
  EXPECT_TRUE(inside.ok());
  Prepare(1, kImageBase + 0x10000, 0x5520);
  MemoryProbe outside(runtime_.memory);
  EXPECT_TRUE(methods_.PreparedIn(section_, outside).empty());
  EXPECT_STREQ(outside.detail(), "a prepared method lies outside its image");
}

}  // namespace
}  // namespace clrsampler
