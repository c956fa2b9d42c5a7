#include "clr/memory/async_types.h"

#include <gtest/gtest.h>

#include "unit/clr/memory/fake_objects.h"

namespace clrsampler {
namespace {

// Where the fields of tasks are was measured. A runtime that is newer than all known ones may have them elsewhere.
TEST(AsyncTypesTest, OfAnUnverifiedRuntimeNoFieldsAreKnown) {
  FakeObjects objects(11, {{"System.Runtime.CompilerServices", "AsyncTaskMethodBuilder`1", "", {"field"}},
                           {"", "AsyncStateMachineBox`1", "AsyncTaskMethodBuilder`1", {"other"}}});
  FakeRuntime& fake = objects.fake;
  constexpr uint64_t kImage = 0x7F20'0000'0000;
  const uint64_t section = fake.AddSection({kImage, kImage + 0x1000}, 0);
  fake.memory.Set<uint64_t>(section + fake.layout.range_section.r2r_module, objects.core_lib);
  for (const uint32_t major : {11u, 12u, 0u}) {
    RuntimePlace place = fake.place();
    place.major = major;
    place.try_newer = major != 11;
    const auto runtime = RuntimeMemory::Attach(place, fake.memory, nullptr, fake.copies, true);
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    EXPECT_EQ(AsyncTypes::LayoutOf(**runtime).has_value(), major == 11) << major;
  }
}

}  // namespace
}  // namespace clrsampler
