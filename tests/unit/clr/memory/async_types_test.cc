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

// Machines have up to 64 arguments, each of which may have a long name. Those of some 70 boxes fill the room.
TEST(AsyncTypesTest, TextsOfManyBoxesAreReadAgain) {
  constexpr uint32_t kArguments = 60, kBoxes = 80;
  FakeRuntime fake(9);
  fake.AddHeap(0x7E10'0000'0000, 0x1000);
  MetadataBuilder core("System.Private.CoreLib"), app("app");
  core.Type("", "<Module>");
  const uint32_t builder = core.Type("System.Runtime.CompilerServices", "AsyncTaskMethodBuilder`1");
  const uint32_t box = core.Type("", "AsyncStateMachineBox`1");
  core.Nested(box, builder);
  for (uint32_t i = 0; i < 2; ++i) core.GenericParam({MetadataTable::kTypeDef, box}, i, "T");
  const uint32_t machine = app.Type("", "Machine");
  for (uint32_t i = 0; i < kArguments; ++i) app.GenericParam({MetadataTable::kTypeDef, machine}, i, "T");
  const uint32_t argument = app.Type("", std::string(4000, 'L'));
  const uint64_t core_lib = fake.AddModule(core.Build()), module = fake.AddModule(app.Build());
  const uint64_t of_argument = fake.AddType(module, argument);
  const uint64_t of_machine = fake.AddType(module, machine, std::vector<uint64_t>(kArguments, of_argument));
  const auto runtime = fake.Attach();
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  AsyncTypes types;
  const auto read = [&] {
    const uint64_t table = fake.AddType(core_lib, box, {of_argument, of_machine});
    EXPECT_EQ(types.At(**runtime, table).kind, AsyncKind::kBox);
    return table;
  };
  const uint64_t first = read();
  EXPECT_NE(types.Find(first), nullptr);
  for (uint32_t i = 0; i < kBoxes; ++i) read();
  EXPECT_EQ(types.Find(first), nullptr);
}

}  // namespace
}  // namespace clrsampler
