#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "library_host.h"

namespace clrsampler {
namespace {

constexpr MetadataToken kMethodToken = 0x06000001;
constexpr auto kNoRecord = static_cast<Hresult>(0x80131130);   // CLDB_E_RECORD_NOTFOUND
constexpr auto kTruncated = static_cast<Hresult>(0x00131106);  // CLDB_S_TRUNCATION
constexpr uint32_t kPublic = 1, kNestedPublic = 2, kPointer = 0x0f;

struct NamedType {
  std::u16string name;
  MetadataToken outer = 0;  // 0: not nested
  uint32_t more_bytes = 0;  // of its name in UTF-8 than UTF-16 has units
};

// The metadata of these tests, and the one method of them.
std::map<MetadataToken, NamedType> g_types;
std::u16string g_method_name;
RuntimeTable* g_metadata = nullptr;

// As metadata: always how much room the name takes, and a part of it if there is less.
Hresult GivePart(const std::u16string& name, uint32_t more, uint32_t room, uint32_t* count, char16_t* units) {
  *count = static_cast<uint32_t>(name.size()) + more + 1;
  const size_t length = std::min<size_t>(name.size(), room - 1);
  name.copy(units, length);
  units[length] = 0;
  for (size_t i = length + 1; i < room; ++i) units[i] = u'?';
  return room < *count ? kTruncated : kOk;
}

Hresult TypeProps(void*, MetadataToken type, char16_t* units, uint32_t room, uint32_t* count, uint32_t* attributes,
                  MetadataToken*) {
  const auto found = g_types.find(type);
  if (found == g_types.end()) return kNoRecord;
  *attributes = found->second.outer == 0 ? kPublic : kNestedPublic;
  return GivePart(found->second.name, found->second.more_bytes, room, count, units);
}
Hresult OuterOf(void*, MetadataToken type, MetadataToken* outer) {
  *outer = g_types.at(type).outer;
  return kOk;
}
Hresult MethodProps(void*, MetadataToken, MetadataToken* type, char16_t* units, uint32_t room, uint32_t* count,
                    uint32_t*, const void**, uint32_t*, uint32_t*, uint32_t*) {
  *type = 1;
  return GivePart(g_method_name, 0, room, count, units);
}
Hresult Nothing(void*) { return kOk; }
Hresult MetadataOf(void*, RuntimeId, uint32_t, const Guid*, void** out) {
  *out = g_metadata->object();
  return kOk;
}
Hresult FunctionInfo(void*, RuntimeId, RuntimeId, RuntimeId*, RuntimeId* module, MetadataToken* token, uint32_t,
                     uint32_t*, RuntimeId*) {
  *module = 7;
  *token = kMethodToken;
  return kOk;
}
Hresult AssemblyInfo(void*, RuntimeId, uint32_t room, uint32_t* count, char16_t* units, RuntimeId*, RuntimeId*) {
  return GivePart(g_method_name, 0, room, count, units);
}
// The class 2 is an array of the class 1, which metadata has, and 3 one of pointers.
Hresult KindOfClass(void*, RuntimeId type, RuntimeId* module, MetadataToken* token, RuntimeId*, uint32_t, uint32_t*,
                    RuntimeId*) {
  *module = 7;
  *token = 1;
  return type == 1 ? kOk : kIsArray;
}
Hresult ElementOf(void*, RuntimeId type, uint32_t* element, RuntimeId* element_type, uint32_t* rank) {
  *rank = 1;
  *element = type == 2 ? 0 : kPointer;
  *element_type = type == 2 ? 1 : 0;
  return kOk;
}

class MetadataNamesTest : public testing::Test {
 protected:
  void SetUp() override {
    g_metadata = &metadata_;
    g_types = {{1, {u"Shop.Order"}}};
    g_method_name = u"Pay";
    metadata_.Set(kRelease, Nothing);
    metadata_.Set(kGetTypeDefProps, TypeProps);
    metadata_.Set(kGetNestedClassProps, OuterOf);
    metadata_.Set(kGetMethodProps, MethodProps);
    host_.info().Set(kGetModuleMetaData, MetadataOf);
    host_.info().Set(kGetFunctionInfo2, FunctionInfo);
    host_.info().Set(kGetAssemblyInfo, AssemblyInfo);
    host_.info().Set(kGetClassIDInfo2, KindOfClass);
    host_.info().Set(kIsArrayClass, ElementOf);
    ASSERT_EQ(host_.Attach(~uint64_t{0}), kOk);
  }
  std::string Text(size_t number) {
    const std::vector<LibraryRecord> records = host_.Records();
    return records.size() == 1 ? records[0].texts[number] : "no record";
  }
  std::string TypeOf(MetadataToken type) {
    g_types[1] = g_types.at(type);
    return ClassOf(1);
  }
  std::string ClassOf(RuntimeId type) {
    host_.Call(kClassLoadFinished, type, kOk);
    return Text(0);
  }
  std::string MethodOf(std::u16string name) {
    g_method_name = std::move(name);
    host_.Call(kJITCompilationStarted, RuntimeId{1}, int32_t{0});
    return Text(1);
  }
  std::string AssemblyOf(std::u16string name) {
    g_method_name = std::move(name);
    host_.Call(kAssemblyLoadFinished, RuntimeId{1}, kOk);
    return Text(0);
  }

  RuntimeTable metadata_;
  LibraryHost host_;
};

TEST_F(MetadataNamesTest, LongMethodsHaveTheirEndAndAMark) {
  EXPECT_EQ(MethodOf(u"Pay"), "Pay");
  for (const size_t length : {254, 255, 256, 511, 512}) {
    EXPECT_EQ(MethodOf(std::u16string(length, u'm')), std::string(length, 'm')) << length;
  }
  const std::u16string interface(1000, u'i');
  EXPECT_EQ(MethodOf(interface + u".Add"), std::string(256, 'i') + "\u2026" + std::string(251, 'i') + ".Add");
  EXPECT_EQ(MethodOf(interface + u".Remove"), std::string(256, 'i') + "\u2026" + std::string(248, 'i') + ".Remove");
}

TEST_F(MetadataNamesTest, LongTypesHaveTheirBeginAndAMark) {
  g_types[1].name = std::u16string(400, u't');
  EXPECT_EQ(ClassOf(1), std::string(400, 't'));
  g_types[1].name = u"Shop." + std::u16string(900, u't');
  EXPECT_EQ(ClassOf(1), "Shop." + std::string(506, 't') + "\u2026");
  EXPECT_EQ(ClassOf(2), "Shop." + std::string(506, 't') + "\u2026") << "an array of it";
  g_types[5] = {std::u16string(300, u'o')};
  g_types[1] = {std::u16string(300, u'n'), 5};
  EXPECT_EQ(ClassOf(1), std::string(300, 'o') + "+" + std::string(210, 'n') + "\u2026");
}

TEST_F(MetadataNamesTest, UmlautsHaveNothingBehindThem) {
  g_types[1] = {u"Shop.\u00d6l", 0, 1};
  EXPECT_EQ(ClassOf(1), "Shop.\u00d6l");
}

TEST_F(MetadataNamesTest, ADeepNestHasAMarkForItsOuterTypes) {
  for (MetadataToken type = 2; type <= 10; ++type) g_types[type] = {u"N", type == 10 ? 0 : type + 1};
  EXPECT_EQ(TypeOf(3), "N+N+N+N+N+N+N+N");
  EXPECT_EQ(TypeOf(2), "\u2026+N+N+N+N+N+N+N+N");
}

TEST_F(MetadataNamesTest, ATypeOfWhichAPartIsUnknownHasNoName) {
  g_types[1] = {u"Line", 99};
  EXPECT_EQ(ClassOf(1), "");
  g_types[99] = {u"", 0};
  EXPECT_EQ(ClassOf(1), "");
  g_types.erase(1);
  EXPECT_EQ(ClassOf(1), "");
}

TEST_F(MetadataNamesTest, AnArrayOfWhatHasNoNameHasNone) {
  EXPECT_EQ(ClassOf(2), "Shop.Order[]");
  EXPECT_EQ(ClassOf(3), "") << "of pointers";
  g_types.clear();
  EXPECT_EQ(ClassOf(2), "");
}

TEST_F(MetadataNamesTest, LongAssembliesHaveAMark) {
  EXPECT_EQ(AssemblyOf(std::u16string(512, u'a')), std::string(512, 'a'));
  EXPECT_EQ(AssemblyOf(std::u16string(600, u'a')), std::string(511, 'a') + "\u2026");
}

}  // namespace
}  // namespace clrsampler
