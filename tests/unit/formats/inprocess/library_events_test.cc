#include "formats/inprocess/library_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inprocess/profiler_api.h"

namespace clrsampler {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::vector<std::string> FieldNames(const LibraryRecord& record) {
  std::vector<std::string> names;
  for (const LibraryField& field : LibraryFields(record)) names.emplace_back(field.name);
  return names;
}

TEST(LibraryEventsTest, EveryKindHasANameThatFindsIt) {
  for (uint32_t i = 1; i < static_cast<uint32_t>(InprocessKind::kCount); ++i) {
    const auto kind = static_cast<InprocessKind>(i);
    const absl::string_view name = LibraryEventName(kind);
    EXPECT_NE(name, "") << i;
    EXPECT_NE(LibraryKindsOf(name) & InprocessKindBit(kind), 0u) << name;
    EXPECT_THAT(LibraryEventNames(), Contains(name));
  }
  EXPECT_EQ(LibraryEventName(InprocessKind::kPadding), "");
  EXPECT_EQ(LibraryKindsOf("Nothing"), 0u);
}

TEST(LibraryEventsTest, FieldsAreThoseOfTheKind) {
  LibraryRecord record;
  record.kind = InprocessKind::kExceptionCatcherEnter;
  record.texts[0] = "Shop.Order";
  record.texts[1] = "Take";
  EXPECT_THAT(FieldNames(record), ElementsAre("type", "method", "method_id", "module", "hresult"));
  record.kind = InprocessKind::kExceptionCatcherLeave;
  EXPECT_TRUE(LibraryFields(record).empty());
  record.kind = InprocessKind::kDynamicMethodUnloaded;
  EXPECT_EQ(LibraryFields(record).back().form, LibraryFieldForm::kTrue);
}

TEST(LibraryEventsTest, ReasonsAreThoseOfOtherSources) {
  LibraryRecord record;
  record.kind = InprocessKind::kRuntimeSuspendStarted;
  const auto reason = [&](uint64_t number) {
    record.values[0] = number;
    return LibraryFields(record).at(0).number;
  };
  EXPECT_EQ(reason(1), 1u) << "a collection";
  EXPECT_EQ(reason(7), 6u) << "its preparation";
  EXPECT_EQ(reason(9), 8u) << "a profiler";
  EXPECT_EQ(reason(1'000'000), 0u);
}

TEST(LibraryEventsTest, WhatComesWithoutAskingMayBeAskedForAfterAnAttach) {
  const uint64_t usual = UsualLibraryKinds();
  EXPECT_NE(usual & InprocessKindBit(InprocessKind::kExceptionThrown), 0u);
  EXPECT_EQ(usual & InprocessKindBit(InprocessKind::kExceptionSearchFunctionEnter), 0u) << "one for each frame";
  EXPECT_EQ(usual & InprocessKindBit(InprocessKind::kClassLoadFinished), 0u);
  constexpr uint32_t kFunctionUnloads = 1;  // from the start only: dynamic methods have a flag of their own
  const LibraryDemand demand = DemandOfLibrary(usual, /*at_start=*/false);
  EXPECT_EQ(demand.low & ~(kAllowedAfterAttachLow | kFunctionUnloads), 0u);
  EXPECT_EQ(demand.high & ~kAllowedHigh, 0u);
  EXPECT_EQ(DemandOfLibrary(0, /*at_start=*/true).low, 0u);
  const uint64_t objects = InprocessKindBit(InprocessKind::kObjectAllocated);
  EXPECT_EQ(DemandOfLibrary(objects, /*at_start=*/true).low, kImmutableLow | 0x100);
  const LibraryDemand all = DemandOfLibrary(~uint64_t{0}, /*at_start=*/true);
  EXPECT_EQ(all.low & ~kAllowedAtStartLow, 0u);
  EXPECT_EQ(all.high & ~kAllowedHigh, 0u);
  EXPECT_EQ(DemandOfLibrary(objects, /*at_start=*/false).low, 0u) << "large ones only";
}

TEST(LibraryEventsTest, MapsComeWithTheEndOfModules) {
  constexpr uint32_t kModuleLoads = 0x4;
  const LibraryDemand demand = DemandOfLibrary(InprocessKindBit(InprocessKind::kILToNativeMap), /*at_start=*/false);
  EXPECT_NE(demand.low & kModuleLoads, 0u) << "the library walks over methods that an unload frees";
}

}  // namespace
}  // namespace clrsampler
