// Names out of what was read of real processes of .NET on arm64, on any machine.
#include "unit/clr/memory/recorded_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "formats/names/frame_text.h"
#include "formats/names/runtime_names.h"
#include "os/file_io.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kPrecompiled = "[r2r] ";

MethodName Expected(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kPrecompiled)) return ParseRuntimeName(text);
  MethodName name = ParseR2rMapName(text);
  name.module = "zoo";
  return name;
}

std::string TextOf(MethodName name) {
  name.tier.clear();
  return FrameText(name, NameStyle::kFull);
}

class RecordedMemoryTest : public testing::TestWithParam<const char*> {
 protected:
  absl::StatusOr<std::unique_ptr<RuntimeMemory>> Attach(const RuntimePlace& place) {
    return RuntimeMemory::Attach(
        place, memory_, [](uint64_t) { return std::optional<MappedContent>(); }, copies_, false);
  }

  RecordedMemory memory_{ReadWholeFile(TestData("memory/") + GetParam(), 1 << 20).value_or("")};
  MetadataCopies copies_;
};

INSTANTIATE_TEST_SUITE_P(Runtimes, RecordedMemoryTest,
                         testing::Values("net9.0.23-arm64.z", "net10.0.15-arm64.z", "net11.0.0-arm64.z"));

TEST_P(RecordedMemoryTest, NamesAreThoseOfTheRuntimesOwnMap) {
  auto runtime = Attach(memory_.place());
  ASSERT_TRUE(runtime.ok()) << runtime.status();
  EXPECT_THAT((*runtime)->layout_differences(), testing::IsEmpty());
  size_t compiled = 0, precompiled = 0;
  for (const auto& [address, text] : memory_.names()) {
    const auto found = (*runtime)->Find(address);
    ASSERT_TRUE(found.has_value()) << text << ": " << (*runtime)->last_detail();
    const bool is_precompiled = absl::StartsWith(text, kPrecompiled);
    EXPECT_EQ(found->kind, is_precompiled ? ManagedCode::Kind::kPrecompiled : ManagedCode::Kind::kMethod) << text;
    EXPECT_EQ(TextOf(found->name), TextOf(Expected(text)));
    ++(is_precompiled ? precompiled : compiled);
    // Without the image's IL it is not known whether the compiler has optimised a method at once.
    const std::string& tier = found->name.tier;
    EXPECT_TRUE(is_precompiled || tier.empty() || tier == Expected(text).tier) << text << ": " << tier;
    EXPECT_NE(tier, "QuickJitted") << text;
    // The whole function, by its unwind data, and nothing behind it.
    EXPECT_LT(address, found->range.end);
    EXPECT_EQ((*runtime)->Find(found->range.begin)->name.method, found->name.method);
  }
  EXPECT_GE(compiled, 25u);
  EXPECT_GE(precompiled, 20u);
}

// .NET 9 does not describe its functions: nothing but the table says how long their rows are.
TEST_P(RecordedMemoryTest, AsMemoryOfAnotherMachineItGivesNoWrongName) {
  RuntimePlace place = memory_.place();
  place.machine = ElfMachine::kX64;
  auto runtime = Attach(place);
  if (!runtime.ok()) {
    EXPECT_TRUE(absl::IsFailedPrecondition(runtime.status())) << runtime.status();
    return;
  }
  EXPECT_EQ(place.major, 9u);
  for (const auto& [address, text] : memory_.names()) {
    const auto found = (*runtime)->Find(address);
    if (!found || found->name.method.empty()) continue;
    EXPECT_EQ(TextOf(found->name), TextOf(Expected(text)));
  }
}

}  // namespace
}  // namespace clrsampler
