#include <gtest/gtest.h>

#include <string>

#include "library_host.h"

namespace clrsampler {
namespace {

// HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER)
constexpr auto kTooSmall = static_cast<Hresult>(0x8007007a);
constexpr uint32_t kInt32 = 0x08;  // CorElementType

// The runtime's own name of what it is asked about. Arrays: the type N has the rank ranks[N] and N + 1 as its element.
std::u16string g_runtime_name;
std::vector<uint32_t> g_ranks;

// As a runtime: whole or not at all, and always how much room it takes.
Hresult GiveName(uint32_t room, uint32_t* count, char16_t* units) {
  *count = static_cast<uint32_t>(g_runtime_name.size() + 1);
  if (room < *count) return kTooSmall;
  g_runtime_name.copy(units, g_runtime_name.size());
  units[g_runtime_name.size()] = 0;
  return kOk;
}

Hresult ModuleInfo(void*, RuntimeId, const void**, uint32_t room, uint32_t* count, char16_t* units, RuntimeId* assembly,
                   uint32_t*) {
  *assembly = 77;
  return GiveName(room, count, units);
}

Hresult DynamicFunctionInfo(void*, RuntimeId, RuntimeId*, const void**, uint32_t*, uint32_t room, uint32_t* count,
                            char16_t* units) {
  return GiveName(room, count, units);
}

Hresult ClassInfo(void*, RuntimeId, RuntimeId*, MetadataToken*, RuntimeId*, uint32_t, uint32_t*, RuntimeId*) {
  return kIsArray;
}

Hresult IsArray(void*, RuntimeId type, uint32_t* element, RuntimeId* element_type, uint32_t* rank) {
  *rank = g_ranks.at(type);
  const bool last = type + 1 == g_ranks.size();
  *element = last ? kInt32 : 0;
  *element_type = last ? 0 : type + 1;
  return kOk;
}

class NamesTest : public testing::Test {
 protected:
  void SetUp() override {
    host_.info().Set(kGetModuleInfo2, ModuleInfo);
    host_.info().Set(kGetDynamicFunctionInfo, DynamicFunctionInfo);
    host_.info().Set(kGetClassIDInfo2, ClassInfo);
    host_.info().Set(kIsArrayClass, IsArray);
    ASSERT_EQ(host_.Attach(InprocessKindBit(InprocessKind::kModuleLoadFinished) |
                           InprocessKindBit(InprocessKind::kDynamicMethodJitStarted) |
                           InprocessKindBit(InprocessKind::kDynamicMethodJitFinished) |
                           InprocessKindBit(InprocessKind::kClassLoadFinished)),
              kOk);
  }
  std::string Text(size_t number) {
    const std::vector<LibraryRecord> records = host_.Records();
    return records.size() == 1 ? records[0].texts[number] : "no record";
  }
  std::string PathOf(std::u16string name) {
    g_runtime_name = std::move(name);
    host_.Call(kModuleLoadFinished, RuntimeId{1}, kOk);
    return Text(0);
  }
  std::string DynamicMethodOf(std::u16string name) {
    g_runtime_name = std::move(name);
    host_.Call(kDynamicMethodJITCompilationFinished, RuntimeId{1}, kOk, int32_t{0});
    return Text(1);
  }
  std::string TypeOf(std::vector<uint32_t> ranks) {
    g_ranks = std::move(ranks);
    host_.Call(kClassLoadFinished, RuntimeId{0}, kOk);
    return Text(0);
  }

  LibraryHost host_;
};

TEST_F(NamesTest, PathsOfModulesAreWholeOrHaveTheirEnd) {
  EXPECT_EQ(PathOf(u"/shop/Shop.dll"), "/shop/Shop.dll");
  for (const size_t length : {255, 256, 511, 512}) {
    EXPECT_EQ(PathOf(u"/" + std::u16string(length - 1, u'a')), "/" + std::string(length - 1, 'a')) << length;
  }
  EXPECT_EQ(PathOf(u"/" + std::u16string(600, u'a') + u"/Shop.dll"), "\u2026" + std::string(502, 'a') + "/Shop.dll");
  EXPECT_EQ(PathOf(std::u16string(5000, u'a')), "") << "longer than a path";
}

TEST_F(NamesTest, TheAssemblyOfALongPathIsKnown) {
  g_runtime_name = std::u16string(600, u'a');
  host_.Call(kModuleLoadFinished, RuntimeId{1}, kOk);
  const std::vector<LibraryRecord> records = host_.Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].values[2], 77u);
}

TEST_F(NamesTest, DynamicMethodsAreWholeOrHaveBothEnds) {
  EXPECT_EQ(DynamicMethodOf(u"Fresh"), "Fresh");
  EXPECT_EQ(DynamicMethodOf(std::u16string(512, u'm')), std::string(512, 'm'));
  EXPECT_EQ(DynamicMethodOf(u"Pay" + std::u16string(600, u'm')),
            "Pay" + std::string(253, 'm') + "\u2026" + std::string(255, 'm'));
}

TEST_F(NamesTest, CompilationsOfDynamicMethodsBeginAndEnd) {
  g_runtime_name = u"Fresh";
  host_.Call(kDynamicMethodJITCompilationStarted, RuntimeId{5}, int32_t{0}, static_cast<const void*>(nullptr),
             uint32_t{0});
  const std::vector<LibraryRecord> records = host_.Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, InprocessKind::kDynamicMethodJitStarted);
  EXPECT_EQ(records[0].values[0], 5u);
  EXPECT_EQ(records[0].texts[1], "Fresh");
}

TEST_F(NamesTest, ArraysHaveTheirRanks) {
  EXPECT_EQ(TypeOf({1}), "System.Int32[]");
  EXPECT_EQ(TypeOf({2}), "System.Int32[,]");
  EXPECT_EQ(TypeOf({3}), "System.Int32[,,]");
  EXPECT_EQ(TypeOf({1, 2}), "System.Int32[,][]") << "int[][,] in C#, as Type.ToString has it";
  EXPECT_EQ(TypeOf({2, 1, 1}), "System.Int32[][][,]");
  EXPECT_EQ(TypeOf(std::vector<uint32_t>(8, 1)), "System.Int32[][][][][][][][]");
  EXPECT_EQ(TypeOf(std::vector<uint32_t>(9, 1)), "") << "too deep";
}

}  // namespace
}  // namespace clrsampler
