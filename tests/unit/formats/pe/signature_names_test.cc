#include "formats/pe/signature_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/escaping.h"
#include "unit/formats/pe/fixture.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;

// Modules without tables: types show as their tokens, so the text tells which module a token was looked up in.
class NamedModules : public SignatureModules {
 public:
  const SignatureModule* Module(uint32_t index) override {
    if (index > 9) return nullptr;
    SignatureModule& module = modules_[index];
    module.name = absl::StrCat("m", index);
    return &module;
  }

 private:
  std::map<uint32_t, SignatureModule> modules_;
};

// The text of one type, "damaged", or "skip differs" when the skip-only walk does not end at the same place.
std::string Text(absl::string_view signature, GenericArguments generic = {}) {
  NamedModules modules;
  SignatureNames names(&modules);
  const SignatureModule tokens{"here", std::nullopt}, arguments{"own", std::nullopt};
  BlobCursor cursor(AsBytes(signature));
  std::string text;
  if (!names.AppendType(cursor, tokens, arguments, generic, text).ok()) return "damaged";
  BlobCursor skipped(AsBytes(signature));
  uint64_t budget = 1000;
  if (!SkipType(skipped, budget) || skipped.offset() != cursor.offset()) return "skip differs";
  return text;
}

TEST(SignatureNamesTest, PrimitivesAndShapes) {
  EXPECT_EQ(Text("\x08"), "System.Int32");
  EXPECT_EQ(Text("\x0e"), "System.String");
  EXPECT_EQ(Text("\x18"), "System.IntPtr");
  EXPECT_EQ(Text("\x1c"), "System.Object");
  EXPECT_EQ(Text("\x3e"), "System.__Canon");
  EXPECT_EQ(Text("\xbe"), "System.__Canon");  // with the flag bit
  EXPECT_EQ(Text("\x0f\x0f\x01"), "System.Void**");
  EXPECT_EQ(Text("\x10\x1d\x05"), "System.Byte[]&");
  EXPECT_EQ(Text(absl::string_view("\x14\x08\x03\x00\x03\x00\x00\x00", 8)), "System.Int32[,,]");
  EXPECT_EQ(Text(absl::string_view("\x14\x1d\x08\x01\x00\x00", 6)), "System.Int32[][]");
  EXPECT_EQ(Text("\x1f\x05\x10\x0d"), "System.Double&");  // modreq
  EXPECT_EQ(Text("\x45\x1c"), "System.Object");           // pinned
  EXPECT_EQ(Text(absl::string_view("\x1b\x00\x02\x01\x08\x0e", 6)), "System.Void (System.Int32, System.String)");
  EXPECT_EQ(Text(absl::string_view("\x1b\x00\x00\x08", 4)), "System.Int32 ()");
}

TEST(SignatureNamesTest, VariablesAreReplacedWhereTheyAreKnown) {
  const std::vector<std::string> type = {"A", "B"}, method = {"M"};
  EXPECT_EQ(Text(absl::string_view("\x13\x01", 2), {type, method}), "B");
  EXPECT_EQ(Text(absl::string_view("\x1e\x00", 2), {type, method}), "M");
  EXPECT_EQ(Text(absl::string_view("\x13\x02", 2), {type, method}), "!2");
  EXPECT_EQ(Text(absl::string_view("\x1e\x05", 2), {type, method}), "!!5");
}

// readytorun-format.md: an override holds for the type that follows it; the arguments of an instance are looked up in
// the image's own module again.
TEST(SignatureNamesTest, ModuleOverridesEndAtTheirType) {
  EXPECT_EQ(Text("\x12\x08"), "here!0x02000002");
  EXPECT_EQ(Text("\x12\x09"), "here!0x01000002");
  EXPECT_EQ(Text("\x3f\x03\x12\x08"), "m3!0x02000002");
  EXPECT_EQ(Text("\x15\x12\x08\x02\x11\x0c\x3f\x04\x11\x0c"), "here!0x02000002[own!0x02000003, m4!0x02000003]");
  EXPECT_EQ(Text("\x3f\x03\x15\x12\x08\x01\x15\x12\x0c\x01\x12\x10"), "m3!0x02000002[own!0x02000003[own!0x02000004]]");
  EXPECT_EQ(Text("\x3f\x0a\x12\x08"), "damaged");  // there is no module 10
}

TEST(SignatureNamesTest, DamagedSignatures) {
  for (absl::string_view bad : {"", "\x15", "\x12\x0b", "\x1d", "\x15\x08\x7f\x08", "\x7b", "\x14\x08\x02\x7f"}) {
    EXPECT_EQ(Text(bad), "damaged") << absl::CHexEscape(bad);
  }
  EXPECT_EQ(Text(absl::string_view("\x1b\x00\x7f\x08", 4)), "damaged");
}

TEST(SignatureNamesTest, DepthAndSizeAreBounded) {
  EXPECT_EQ(
      Text(std::string(60, '\x1d') + "\x08"), "System.Int32" + [] {
        std::string brackets;
        for (int i = 0; i < 60; ++i) brackets += "[]";
        return brackets;
      }());
  EXPECT_EQ(Text(std::string(100000, '\x1d') + "\x08"), "damaged");
  uint64_t budget = 1 << 20;
  const std::string deep = std::string(100000, '\x15') + "\x08";
  BlobCursor cursor(AsBytes(deep));
  EXPECT_FALSE(SkipType(cursor, budget));

  // Sixteen arguments that are each a long text already: the limit on the text ends it.
  const std::vector<std::string> long_text = {std::string(100000, 'x')};
  EXPECT_EQ(Text(absl::string_view("\x15\x1c\x04\x13\x00\x13\x00\x13\x00\x13\x00", 11), {long_text, {}}), "damaged");
}

// A TypeSpec that contains itself twice would take 2^64 steps without the limit on elements.
TEST(SignatureNamesTest, ATypeSpecThatContainsItselfEnds) {
  std::string bytes = ReadFixture("10.0.14-x64/shapes.dll");
  const auto pe = PeImage::Parse(AsBytes(bytes));
  const size_t offset = *pe->OffsetOfRva(pe->metadata()->rva);
  const auto metadata = AsBytes(bytes).subspan(offset, pe->metadata()->bytes);
  auto tables = MetadataTables::Parse(metadata);
  ASSERT_TRUE(tables.ok());
  // Give a TypeSpec of sufficient length the content: instance of System.Object over {TypeSpec rid, TypeSpec rid}.
  bool tried = false;
  for (uint32_t rid = 1; rid <= tables->rows(MetadataTable::kTypeSpec) && rid < 31 && !tried; ++rid) {
    const auto blob = tables->TypeSpec(rid);
    if (!blob || blob->size() < 7) continue;
    const char self = static_cast<char>(rid << 2 | 2);
    const char evil[] = {'\x15', '\x1c', '\x02', '\x12', self, '\x12', self};
    std::memcpy(bytes.data() + (reinterpret_cast<const char*>(blob->data()) - bytes.data()), evil, sizeof evil);
    NamedModules modules;
    SignatureNames names(&modules);
    const SignatureModule module{"here", *tables};
    std::string text;
    EXPECT_EQ(names.AppendNamedType({MetadataTable::kTypeSpec, rid}, module, {}, text).code(),
              absl::StatusCode::kDataLoss);
    tried = true;
  }
  EXPECT_TRUE(tried);
}

TEST(SignatureNamesTest, MethodSignatures) {
  NamedModules modules;
  SignatureNames names(&modules);
  const SignatureModule module{"here", std::nullopt};
  // instance, generic over 1; void M(int, !!0)
  const auto types = names.Method(AsBytes(absl::string_view("\x30\x01\x02\x01\x08\x1e\x00", 7)), module, {});
  ASSERT_TRUE(types.ok());
  EXPECT_EQ(types->return_type, "System.Void");
  EXPECT_THAT(types->parameters, ElementsAre("System.Int32", "!!0"));
  EXPECT_FALSE(names.Method(AsBytes(absl::string_view("\x00\x05\x01\x08", 4)), module, {}).ok());
  EXPECT_FALSE(names.has_tokens());
}

}  // namespace
}  // namespace clrsampler
