#include "formats/pe/metadata_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "unit/formats/pe/fixture.h"

namespace clrsampler {
namespace {

class MetadataTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    bytes_ = ReadFixture("10.0.14-x64/shapes.dll");
    const auto pe = PeImage::Parse(AsBytes(bytes_));
    ASSERT_TRUE(pe.ok());
    offset_ = *pe->OffsetOfRva(pe->metadata()->rva);
    size_ = pe->metadata()->bytes;
  }
  absl::StatusOr<MetadataTables> Parse() { return MetadataTables::Parse(AsBytes(bytes_).subspan(offset_, size_)); }

  std::string bytes_;
  size_t offset_ = 0, size_ = 0;
};

TEST_F(MetadataTablesTest, NamesTypesWithTheirNesting) {
  const auto tables = Parse();
  ASSERT_TRUE(tables.ok()) << tables.status();
  std::set<std::string> names;
  for (uint32_t rid = 1; rid <= tables->rows(MetadataTable::kTypeDef); ++rid) {
    std::string name;
    EXPECT_TRUE(tables->AppendTypeName({MetadataTable::kTypeDef, rid}, name));
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"<Module>", "Shapes.Point", "Shapes.Plain+Nested",
                                            "Shapes.Plain+Nested+Deeper", "Shapes.Box`1+Slot`1",
                                            "Shapes.Program+<>c__DisplayClass1_0", "Shapes.Worker+<RunAsync>d__2"}));
  EXPECT_EQ(tables->AssemblyName(), "shapes");
  EXPECT_TRUE(tables->Mvid().has_value());
}

TEST_F(MetadataTablesTest, EveryMethodHasTheOwnerThatItsSourceSays) {
  const auto tables = Parse();
  ASSERT_TRUE(tables.ok());
  std::set<std::string> methods;
  for (uint32_t rid = 1; rid <= tables->rows(MetadataTable::kMethodDef); ++rid) {
    const auto owner = tables->OwnerOfMethod(rid);
    const auto method = tables->Method(rid);
    ASSERT_TRUE(owner && method);
    std::string name;
    EXPECT_TRUE(tables->AppendTypeName({MetadataTable::kTypeDef, *owner}, name));
    methods.insert(absl::StrCat(name, "::", method->name));
  }
  EXPECT_THAT(methods, testing::IsSupersetOf({"Shapes.Point::Sum", "Shapes.Plain::op_Addition",
                                              "Shapes.Plain+Nested+Deeper::Set", "Shapes.Box`1::Convert",
                                              "Shapes.IWork::Work", "Shapes.Worker::Shapes.IWork.Work",
                                              "Shapes.Program::Main", "Shapes.Worker+<RunAsync>d__2::MoveNext"}));
  EXPECT_EQ(tables->OwnerOfMethod(0), std::nullopt);
  EXPECT_EQ(tables->OwnerOfMethod(tables->rows(MetadataTable::kMethodDef) + 1), std::nullopt);
}

TEST_F(MetadataTablesTest, RowsOutsideTheTablesAreAbsent) {
  const auto tables = Parse();
  ASSERT_TRUE(tables.ok());
  std::string name = "kept";
  for (uint32_t rid : {0u, 0x00FFFFFFu}) {
    EXPECT_FALSE(tables->AppendTypeName({MetadataTable::kTypeDef, rid}, name));
    EXPECT_FALSE(tables->AppendTypeName({MetadataTable::kTypeRef, rid}, name));
    EXPECT_FALSE(tables->Method(rid).has_value());
    EXPECT_FALSE(tables->MemberRef(rid).has_value());
    EXPECT_FALSE(tables->TypeSpec(rid).has_value());
    EXPECT_FALSE(tables->AssemblyRefName(rid).has_value());
  }
  EXPECT_EQ(name, "kept");
}

// The last rows of the #~ stream before GenericParam are NestedClass: {nested, enclosing}. Pointing the enclosing type
// of Shapes.Plain+Nested to Shapes.Plain+Nested+Deeper makes a circle.
TEST_F(MetadataTablesTest, ACircleOfNestedTypesEnds) {
  uint32_t nested = 0, deeper = 0;
  {
    const auto tables = Parse();
    for (uint32_t rid = 1; rid <= tables->rows(MetadataTable::kTypeDef); ++rid) {
      std::string name;
      tables->AppendTypeName({MetadataTable::kTypeDef, rid}, name);
      if (name == "Shapes.Plain+Nested") nested = rid;
      if (name == "Shapes.Plain+Nested+Deeper") deeper = rid;
    }
  }
  ASSERT_NE(nested, 0u);
  ASSERT_NE(deeper, 0u);
  // Two rows in a sorted table of 2-byte indexes: ... (nested, plain) ... (deeper, nested) ...
  bool patched = false;
  for (size_t at = offset_; at + 4 <= offset_ + size_ && !patched; at += 2) {
    std::string before = bytes_;
    const auto first = LoadAt<uint16_t>(AsBytes(bytes_), at), second = LoadAt<uint16_t>(AsBytes(bytes_), at + 2);
    if (first != nested || second == 0 || *second >= nested) continue;
    bytes_[at + 2] = static_cast<char>(deeper);
    bytes_[at + 3] = static_cast<char>(deeper >> 8);
    const auto tables = Parse();
    std::string name;
    patched = tables.ok() && !tables->AppendTypeName({MetadataTable::kTypeDef, deeper}, name) && name.empty() &&
              !tables->AppendTypeName({MetadataTable::kTypeDef, nested}, name);
    if (!patched) bytes_ = before;
  }
  EXPECT_TRUE(patched);
}

TEST_F(MetadataTablesTest, CutOffTablesAreRefused) {
  for (size_t size = 0; size < size_; ++size) {
    const auto tables = MetadataTables::Parse(AsBytes(bytes_).subspan(offset_, size));
    EXPECT_FALSE(tables.ok());
  }
}

}  // namespace
}  // namespace clrsampler
