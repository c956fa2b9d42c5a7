#include "profile/method_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace clrsampler {
namespace {

class MethodWeightsTest : public testing::Test {
 protected:
  FrameIndex Frame(const std::string& name, ModelFrameKind kind = ModelFrameKind::kJit, const std::string& tier = "") {
    return builder_.Frame({.kind = kind, .name = builder_.String(name), .tier = builder_.String(tier)});
  }
  void Add(std::vector<FrameIndex> stack, uint64_t weight) {
    builder_.Add({.stack = builder_.Stack(stack), .weight = weight});
  }
  ProfileModelBuilder builder_;
};

TEST_F(MethodWeightsTest, SelfIsOfLeavesAndTotalCountsARecursionOnce) {
  builder_.Thread({});
  const FrameIndex main = Frame("Main"), walk = Frame("Walk");
  Add({main, walk, walk, walk}, 5);
  Add({main, walk, main}, 2);
  Add({main}, 1);
  MethodWeights weights;
  weights.Add(*std::move(builder_).Build());
  const std::vector<MethodWeight> sorted = weights.Sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].name, "Walk");
  EXPECT_EQ(sorted[0].self, 5u);
  EXPECT_EQ(sorted[0].total, 7u);
  EXPECT_EQ(sorted[1].self, 3u);
  EXPECT_EQ(sorted[1].total, 8u);
  EXPECT_EQ(weights.total(), 8u);
}

TEST_F(MethodWeightsTest, TiersAreOneMethodAndRolesAndMarksAreNoLeaves) {
  builder_.Thread({});
  const FrameIndex tier0 = Frame("M", ModelFrameKind::kJit, "Tier0"), tier1 = Frame("M", ModelFrameKind::kJit, "Tier1"),
                   role = Frame("[gc gen0 blocking]", ModelFrameKind::kRole),
                   mark = Frame("[cut]", ModelFrameKind::kMark);
  Add({mark, tier0, role}, 3);
  Add({tier1}, 4);
  MethodWeights weights;
  weights.Add(*std::move(builder_).Build());
  const std::vector<MethodWeight> sorted = weights.Sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0].name, "M");
  EXPECT_EQ(sorted[0].self, 7u);
  EXPECT_EQ(sorted[1].name, "[gc gen0 blocking]");
  EXPECT_EQ(sorted[1].self, 0u);
  EXPECT_EQ(sorted[1].total, 3u);
}

TEST_F(MethodWeightsTest, LinesAreOneMethodAndCountOnceInATotal) {
  builder_.Thread({});
  std::vector<FrameIndex> lines;
  for (const uint32_t line : {57, 58}) {
    lines.push_back(builder_.Frame({.kind = ModelFrameKind::kJit,
                                    .line_kind = LineKind::kExact,
                                    .name = builder_.String("Total"),
                                    .source_file = builder_.String("Cart.cs"),
                                    .line = line}));
  }
  Add({lines[0], lines[1]}, 3);
  Add({lines[0]}, 4);
  Add({Frame("Total")}, 2);  // of which no line is known
  MethodWeights weights;
  weights.Add(*std::move(builder_).Build());
  const std::vector<MethodWeight> sorted = weights.Sorted();
  ASSERT_EQ(sorted.size(), 1u);
  EXPECT_EQ(sorted[0].self, 9u);
  EXPECT_EQ(sorted[0].total, 9u);
}

TEST_F(MethodWeightsTest, AddsProfilesAndTakesOnlyWhatIsWanted) {
  builder_.Thread({});
  Add({Frame("A")}, 1);
  Add({Frame("B")}, 2);
  const ProfileModel model = *std::move(builder_).Build();
  MethodWeights weights;
  weights.Add(model);
  weights.Add(model, std::vector<uint8_t>{0, 1});
  const std::vector<MethodWeight> sorted = weights.Sorted();
  EXPECT_EQ(sorted[0].name, "B");
  EXPECT_EQ(sorted[0].self, 4u);
  EXPECT_EQ(sorted[1].self, 1u);
}

// Work of the runtime without a name: below a role, without managed code between.
class NamelessLeavesTest : public MethodWeightsTest {
 protected:
  NamelessLeavesTest() {
    builder_.Thread({});
    main_ = Frame("Main");
    gc_ = Frame("[gc gen1 blocking]", ModelFrameKind::kRole);
    mark_ = Native("libcoreclr.so", "0x3d0b60");
    plan_ = Native("libcoreclr.so", "0x3d1000");
  }
  FrameIndex Native(const std::string& module, const std::string& address) {
    return builder_.Frame({.kind = ModelFrameKind::kNative,
                           .name = builder_.String(module + "!" + address),
                           .module = builder_.String(module)});
  }
  static uint64_t SelfOf(const MethodWeights& weights, const std::string& name) {
    for (const MethodWeight& one : weights.Sorted()) {
      if (one.name == name) return one.self;
    }
    return 0;
  }
  MethodWeights Weigh(NamelessLeaves nameless = NamelessLeaves::kByRole) {
    MethodWeights weights(nameless);
    if (!model_) model_ = *std::move(builder_).Build();
    weights.Add(*model_);
    return weights;
  }

  FrameIndex main_, gc_, mark_, plan_;
  std::optional<ProfileModel> model_;
};

TEST_F(NamelessLeavesTest, AreSummedUpUnderTheirRole) {
  Add({main_, gc_, plan_, mark_}, 3);
  Add({main_, gc_, plan_}, 4);
  const MethodWeights by_role = Weigh();
  EXPECT_EQ(SelfOf(by_role, "[gc gen1 blocking]"), 7u);
  EXPECT_EQ(SelfOf(by_role, "libcoreclr.so!0x3d0b60"), 0u);
  const MethodWeights by_address = Weigh(NamelessLeaves::kByAddress);
  EXPECT_EQ(SelfOf(by_address, "[gc gen1 blocking]"), 0u);
  EXPECT_EQ(SelfOf(by_address, "libcoreclr.so!0x3d0b60"), 3u);
  EXPECT_EQ(SelfOf(by_address, "libcoreclr.so!0x3d1000"), 4u);
  EXPECT_EQ(by_role.nameless_runtime(), 7u);
  EXPECT_EQ(by_address.nameless_runtime(), 7u);
}

TEST_F(NamelessLeavesTest, AllCompilationsAreOne) {
  const FrameIndex one = Frame("[jit Shop.Order.Add Tier0]", ModelFrameKind::kRole),
                   two = Frame("[jit Shop.Cart.Add OptimizedTier1]", ModelFrameKind::kRole),
                   jit = Native("libclrjit.so", "0x1000"), emit = Native("libclrjit.so", "0x2000");
  Add({main_, one, jit}, 2);
  Add({main_, two, jit, emit}, 3);
  EXPECT_EQ(SelfOf(Weigh(), "[jit]"), 5u);
  EXPECT_EQ(SelfOf(Weigh(NamelessLeaves::kByAddress), "[jit]"), 0u);
}

TEST_F(NamelessLeavesTest, ANameOrManagedCodeBetweenKeepsTheLeafAlone) {
  const FrameIndex named = Frame("WKS::gc_heap::mark_phase", ModelFrameKind::kNative), callback = Frame("Callback");
  Add({main_, gc_, mark_, named}, 1);
  Add({main_, gc_, callback, mark_}, 2);
  Add({main_, mark_}, 4);
  const MethodWeights weights = Weigh();
  EXPECT_EQ(SelfOf(weights, "[gc gen1 blocking]"), 0u);
  EXPECT_EQ(SelfOf(weights, "WKS::gc_heap::mark_phase"), 1u);
  EXPECT_EQ(SelfOf(weights, "libcoreclr.so!0x3d0b60"), 6u);
  EXPECT_EQ(weights.nameless_runtime(), 6u) << "a library of the runtime, by its name";
}

TEST_F(NamelessLeavesTest, WithoutARoleTheyAreInTheNearestFunctionOfTheRuntimeThatHasAName) {
  const auto named = [&](const char* name, const char* source, const char* module) {
    return builder_.Frame({.kind = ModelFrameKind::kNative,
                           .name = builder_.String(name),
                           .source = builder_.String(source),
                           .module = builder_.String(module)});
  };
  const FrameIndex spin = named("ThreadNative_SpinWait", "runtime-table", "libcoreclr.so"),
                   host = named("JIT_New", "runtime-table", "single_file_app"),
                   exported = named("coreclr_initialize", "elf-symbols", "libcoreclr.so"),
                   other = named("sqlite3_step", "elf-symbols", "libsqlite.so");
  Add({main_, exported, spin, plan_, mark_}, 3);
  Add({main_, spin, mark_}, 4);
  Add({main_, spin}, 5);
  Add({main_, host, Native("single_file_app", "0x10")}, 6);
  Add({main_, exported, plan_}, 7);
  Add({main_, spin, gc_, mark_}, 8);
  Add({main_, spin, main_, plan_}, 9);
  Add({main_, other, mark_}, 10);
  const MethodWeights by_role = Weigh();
  EXPECT_EQ(SelfOf(by_role, "[in ThreadNative_SpinWait]"), 7u);
  EXPECT_EQ(SelfOf(by_role, "ThreadNative_SpinWait"), 5u);
  EXPECT_EQ(SelfOf(by_role, "[in JIT_New]"), 6u);
  EXPECT_EQ(SelfOf(by_role, "[in coreclr_initialize]"), 7u);
  EXPECT_EQ(SelfOf(by_role, "[gc gen1 blocking]"), 8u);
  EXPECT_EQ(SelfOf(by_role, "libcoreclr.so!0x3d1000"), 9u) << "managed code called it";
  EXPECT_EQ(SelfOf(by_role, "libcoreclr.so!0x3d0b60"), 10u) << "another library called it";
  for (const MethodWeight& one : by_role.Sorted()) {
    if (one.name == "[in ThreadNative_SpinWait]") {
      EXPECT_EQ(one.total, 29u) << "as the function";
    }
  }
  const MethodWeights by_address = Weigh(NamelessLeaves::kByAddress);
  EXPECT_EQ(SelfOf(by_address, "[in ThreadNative_SpinWait]"), 0u);
  EXPECT_EQ(SelfOf(by_address, "libcoreclr.so!0x3d0b60"), 3u + 4 + 8 + 10);
}

TEST_F(NamelessLeavesTest, OtherLibrariesWithoutSymbolsAreNoRuntime) {
  Add({main_, Native("libsqlite.so", "0x10")}, 5);
  EXPECT_EQ(Weigh().nameless_runtime(), 0u);
}

TEST_F(NamelessLeavesTest, ATextThatOnlyBeginsLikeAnAddressIsAName) {
  ModelFrame native;
  native.kind = ModelFrameKind::kNative;
  EXPECT_TRUE(IsNamelessNative(native, "libcoreclr.so!0x3d0b60"));
  EXPECT_TRUE(IsNamelessNative(native, "[native: no symbols libcoreclr.so]"));
  EXPECT_FALSE(IsNamelessNative(native, "libcoreclr.so!0x"));
  EXPECT_FALSE(IsNamelessNative(native, "libcoreclr.so!0x3d0b60_cold"));
  EXPECT_FALSE(IsNamelessNative(native, "ThreadNative_SpinWait"));
  native.kind = ModelFrameKind::kJit;
  EXPECT_FALSE(IsNamelessNative(native, "libcoreclr.so!0x3d0b60"));
}

}  // namespace
}  // namespace clrsampler
