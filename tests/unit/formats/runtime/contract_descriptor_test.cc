#include "formats/runtime/contract_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

std::string HeaderBytes(uint32_t flags, uint32_t json_bytes, uint32_t pointers) {
  std::string bytes("DNCCDAC\0", 8);
  const auto append = [&](auto value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(flags);
  append(json_bytes);
  append(uint64_t{0x7F0000001000});
  append(pointers);
  append(uint32_t{0xDEADBEEF});  // padding: of no meaning
  append(uint64_t{0x7F0000002000});
  return bytes;
}

TEST(ContractDescriptorHeaderTest, ReadsWhereEverythingIs) {
  const auto header = ContractDescriptorHeader::Parse(AsBytes(HeaderBytes(1, 10'563, 24)));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->json_bytes, 10'563u);
  EXPECT_EQ(header->json_address, 0x7F0000001000u);
  EXPECT_EQ(header->pointers, 24u);
  EXPECT_EQ(header->pointers_address, 0x7F0000002000u);
}

TEST(ContractDescriptorHeaderTest, RefusesWhatIsTooLargeCutOffOrOfAnotherMachine) {
  const auto parse = [](const std::string& bytes) { return ContractDescriptorHeader::Parse(AsBytes(bytes)).ok(); };
  EXPECT_TRUE(parse(HeaderBytes(1, ContractDescriptorHeader::kMaxJsonBytes, ContractDescriptorHeader::kMaxPointers)));
  EXPECT_FALSE(parse(HeaderBytes(1, ContractDescriptorHeader::kMaxJsonBytes + 1, 0)));
  EXPECT_FALSE(parse(HeaderBytes(1, 0, ContractDescriptorHeader::kMaxPointers + 1)));
  EXPECT_FALSE(parse(HeaderBytes(1, UINT32_MAX, UINT32_MAX)));
  EXPECT_FALSE(parse(HeaderBytes(0, 10, 1))) << "not valid yet";
  EXPECT_FALSE(parse(HeaderBytes(3, 10, 1))) << "32-bit";
  std::string bytes = HeaderBytes(1, 10, 1);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(parse(bytes.substr(0, size))) << size;
  bytes[0] = 'd';
  EXPECT_FALSE(parse(bytes));
}

class ContractDescriptorTest : public testing::Test {
 protected:
  ContractDescriptor Parse(absl::string_view json) {
    auto descriptor = ContractDescriptor::Parse(json, pointers_);
    EXPECT_TRUE(descriptor.ok()) << descriptor.status() << " in " << json;
    return descriptor.ok() ? *std::move(descriptor) : *ContractDescriptor::Parse(R"({"types":{}})", {});
  }
  std::vector<uint64_t> pointers_ = {0x1000, 0x2000, 0x3000};
};

TEST_F(ContractDescriptorTest, EveryFormOfAFieldsValue) {
  const auto descriptor = Parse(R"({"types":{"T":{"Plain":8,"Typed":[16,"pointer"],"Text":"24","Hex":"0x20",
      "TypedText":["0x28","uint32"],"!":64}}})");
  EXPECT_EQ(descriptor.Offset("T", "Plain"), 8u);
  EXPECT_EQ(descriptor.Offset("T", "Typed"), 16u);
  EXPECT_EQ(descriptor.Offset("T", "Text"), 24u);
  EXPECT_EQ(descriptor.Offset("T", "Hex"), 32u);
  EXPECT_EQ(descriptor.Offset("T", "TypedText"), 40u);
  EXPECT_EQ(descriptor.Offset("T", "!"), 64u);
  EXPECT_EQ(descriptor.Offset("T", "Other"), std::nullopt);
  EXPECT_EQ(descriptor.Offset("Other", "Plain"), std::nullopt);
  EXPECT_EQ(descriptor.Offset("Other", "!"), std::nullopt);
}

TEST_F(ContractDescriptorTest, EveryFormOfAGlobalsValue) {
  const auto descriptor = Parse(R"({"types":{},"globals":{"Number":7,"Text":"0xF000000000000000","Typed":[9,"uint8"],
      "TypedText":["0x1000","nuint"],"Pointer":[1],"TypedPointer":[[2],"pointer"],"PointerText":[["0x0"],"pointer"]}})");
  EXPECT_EQ(descriptor.Global("Number"), 7u);
  EXPECT_EQ(descriptor.Global("Text"), 0xF000000000000000u);
  EXPECT_EQ(descriptor.Global("Typed"), 9u);
  EXPECT_EQ(descriptor.Global("TypedText"), 0x1000u);
  EXPECT_EQ(descriptor.Global("Pointer"), 0x2000u);
  EXPECT_EQ(descriptor.Global("TypedPointer"), 0x3000u);
  EXPECT_EQ(descriptor.Global("PointerText"), 0x1000u);
  EXPECT_EQ(descriptor.Global("Other"), std::nullopt);
}

TEST_F(ContractDescriptorTest, WhatIsNotUnderstoodIsLeftOutAndTheRestKept) {
  const auto descriptor = Parse(R"({"types":{"A":{"Negative":-8,"Real":1.5,"Null":null,"True":true,"Object":{"x":1},
      "Empty":[],"Deep":[[8],"x"],"Large":4294967296,"Word":"eight","HexOnly":"0x","Good":8},"B":5,"C":[1],"D":null,
      "E":{"Good":16}},
      "globals":{"Outside":[3],"Negative":[-1],"Two":[[0,1],"x"],"None":[[],"x"],"Empty":[],"Huge":[[18446744073709551615],"x"],
      "Text":["1-x64","string"],"Deep":[[[0]],"pointer"],"Good":[[0],"pointer"]},
      "contracts":{"Bad":"new","Loader":1,"Object":{"v":1}}})");
  for (const char* field :
       {"Negative", "Real", "Null", "True", "Object", "Empty", "Deep", "Large", "Word", "HexOnly"}) {
    EXPECT_EQ(descriptor.Offset("A", field), std::nullopt) << field;
  }
  EXPECT_EQ(descriptor.Offset("A", "Good"), 8u);
  EXPECT_EQ(descriptor.Offset("E", "Good"), 16u);
  for (const char* type : {"B", "C", "D"}) EXPECT_EQ(descriptor.Offset(type, "!"), std::nullopt) << type;
  for (const char* global : {"Outside", "Negative", "Two", "None", "Empty", "Huge", "Text", "Deep"}) {
    EXPECT_EQ(descriptor.Global(global), std::nullopt) << global;
  }
  EXPECT_EQ(descriptor.Global("Good"), 0x1000u);
  EXPECT_EQ(descriptor.VersionOf("Bad"), std::nullopt);
  EXPECT_EQ(descriptor.VersionOf("Object"), std::nullopt);
  EXPECT_EQ(descriptor.VersionOf("Loader"), (ContractVersion{false, 1}));
}

TEST_F(ContractDescriptorTest, WrongKindsOfSectionsAreNoGlobalsAndNoContracts) {
  for (const char* wrong : {"5", "[]", "null", "\"x\"", "[[0]]"}) {
    const auto descriptor =
        Parse(absl::StrCat(R"({"types":{"T":{"F":8}},"globals":)", wrong, R"(,"contracts":)", wrong, "}"));
    EXPECT_EQ(descriptor.Offset("T", "F"), 8u);
    EXPECT_EQ(descriptor.Global("x"), std::nullopt);
    EXPECT_FALSE(ContractDescriptor::Parse(absl::StrCat(R"({"types":)", wrong, "}"), {}).ok());
  }
}

TEST_F(ContractDescriptorTest, CommentsAreAllowed) {
  const auto descriptor = Parse("{ // the version\n \"version\":0, /* and\n types */ \"types\":{\"T\":{\"F\":8}}}");
  EXPECT_EQ(descriptor.Offset("T", "F"), 8u);
}

TEST_F(ContractDescriptorTest, OfEqualKeysTheLastCounts) {
  const auto descriptor = Parse(R"({"types":{"T":{"F":8}},"types":{"T":{"F":8,"F":16}}})");
  EXPECT_EQ(descriptor.Offset("T", "F"), 16u);
}

TEST_F(ContractDescriptorTest, DamagedTextIsRefused) {
  for (const char* text : {"", "x", "null", "[]", "{", "{}", R"({"types":{"T":{"F":8}})", R"({"types":{}} x)",
                           "{\"types\":{\"T\":{\"\xFF\":8}}}", R"({"types":{"T":{"F":08}}})"}) {
    EXPECT_FALSE(ContractDescriptor::Parse(text, {}).ok()) << text;
  }
}

TEST_F(ContractDescriptorTest, DeepNestingIsNoDanger) {
  const size_t depth = ContractDescriptorHeader::kMaxJsonBytes / 2 - 64;
  EXPECT_FALSE(ContractDescriptor::Parse(std::string(depth, '['), {}).ok());
  const std::string nested =
      absl::StrCat(R"({"types":{"T":{"F":)", std::string(depth, '['), std::string(depth, ']'), R"(,"G":8}}})");
  const auto descriptor = Parse(nested);
  EXPECT_EQ(descriptor.Offset("T", "F"), std::nullopt);
  EXPECT_EQ(descriptor.Offset("T", "G"), 8u);
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// The words of 10.0.14, against offsets that were found by measuring.
void ExpectNet10(const ContractDescriptor& descriptor) {
  EXPECT_EQ(descriptor.Offset("MethodTable", "Module"), 24u);
  EXPECT_EQ(descriptor.Offset("MethodTable", "PerInstInfo"), 48u);
  EXPECT_EQ(descriptor.Offset("MethodDesc", "ChunkIndex"), 2u);
  EXPECT_EQ(descriptor.Offset("MethodDescChunk", "!"), 24u);
  EXPECT_EQ(descriptor.Offset("InstantiatedMethodDesc", "PerInstInfo"), 24u);
  EXPECT_EQ(descriptor.Offset("RealCodeHeader", "MethodDesc"), 24u);
  EXPECT_EQ(descriptor.Offset("Module", "ReadyToRunInfo"), 704u);
  EXPECT_EQ(descriptor.VersionOf("ExecutionManager"), (ContractVersion{false, 2}));
  EXPECT_EQ(descriptor.VersionOf("Loader"), (ContractVersion{false, 1}));
}

TEST_F(ContractDescriptorTest, ReadsWhatRealRuntimesSay) {
  const std::string folder = TestData("../fuzz/corpus/contract_descriptor_fuzz/");
  pointers_.assign(24, 0);
  for (size_t i = 0; i < pointers_.size(); ++i) pointers_[i] = 0x1000 + i;
  const auto ten = Parse(ReadAll(folder + "net10.0.14.json"));
  ExpectNet10(ten);
  EXPECT_EQ(ten.Global("ExecutionManagerCodeRangeMapAddress"), 0x1000u + 20);
  const auto nine = Parse(ReadAll(folder + "net9.0.19.json"));
  EXPECT_EQ(nine.Offset("Module", "Base"), 288u);
  EXPECT_EQ(nine.Offset("Module", "DynamicMetadata"), 1120u);
  EXPECT_EQ(nine.VersionOf("RuntimeTypeSystem"), (ContractVersion{false, 1}));
  EXPECT_EQ(nine.VersionOf("ExecutionManager"), std::nullopt);
  EXPECT_EQ(nine.Global("ObjectHeaderSize"), 8u);
}

// The one in the installed runtime's image: the symbol's bytes announce exactly the text that stands there.
TEST_F(ContractDescriptorTest, ReadsTheInstalledRuntimesOwn) {
  int read = 0;
  for (const char* root : {"/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet"}) {
    const std::filesystem::path shared = std::filesystem::path(root) / "shared" / "Microsoft.NETCore.App";
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator(shared, none)) {
      const int major = std::atoi(version.path().filename().c_str());
      if (major < 9) continue;
      const std::string image = ReadAll(version.path() / "libcoreclr.so");
      const size_t magic = image.find(std::string("DNCCDAC\0", 8)), json = image.find("{\"version\"");
      ASSERT_NE(magic, std::string::npos) << version.path();
      ASSERT_NE(json, std::string::npos) << version.path();
      const auto header =
          ContractDescriptorHeader::Parse(AsBytes(image).subspan(magic, ContractDescriptorHeader::kBytes));
      ASSERT_TRUE(header.ok()) << header.status();
      EXPECT_EQ(header->json_bytes, image.find('\0', json) - json);
      pointers_.assign(header->pointers, 1);
      const auto descriptor = Parse(absl::string_view(image).substr(json, header->json_bytes));
      EXPECT_EQ(descriptor.Offset("MethodTable", "Module"), 24u);
      if (major == 10) ExpectNet10(descriptor);
      ++read;
    }
  }
  if (read == 0) GTEST_SKIP() << "NOT TESTED: no runtime of version 9 or newer is installed";
}

TEST(ContractVersionTest, VersionsOfElevenAreTexts) {
  const ContractDescriptor descriptor =
      *ContractDescriptor::Parse(R"({"version":2,"types":{},"contracts":{"Loader":"c1","Log":"c2","Bad":"cx"}})", {});
  EXPECT_EQ(descriptor.VersionOf("Loader"), (ContractVersion{true, 1}));
  EXPECT_EQ(descriptor.VersionOf("Log")->Text(), "c2");
  EXPECT_EQ(descriptor.VersionOf("Bad"), std::nullopt);
}

TEST(ContractVersionTest, AFormFromTheFutureIsRefused) {
  const auto parsed = ContractDescriptor::Parse(R"({"version":3,"types":{}})", {});
  EXPECT_TRUE(absl::IsUnimplemented(parsed.status())) << parsed.status();
  EXPECT_FALSE(ContractDescriptor::Parse(R"({"version":"new","types":{}})", {}).ok());
}

}  // namespace
}  // namespace clrsampler
