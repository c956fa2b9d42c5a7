#include "formats/pdb/portable_pdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "formats/byte_reader.h"
#include "unit/formats/pdb/pdb_builder.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/formats/pdb/pdb_properties.h"
#include "unit/formats/pdb/pdb_text.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kSourceLinkGuid("\x56\x05\x11\xCC\x91\xA0\x38\x4D\x9F\xEC\x25\xAB\x9A\x35\x1A\x6A", 16);

TEST(PortablePdbTest, SaysWhatSystemReflectionMetadataSays) {
  for (const char* name : {"zoo_debug.pdb", "zoo_release.pdb", "linked.pdb"}) {
    const std::string file = ReadPdbFixture(name);
    const auto pdb = PortablePdb::Open(AsBytes(file));
    ASSERT_TRUE(pdb.ok()) << name << ": " << pdb.status();
    EXPECT_EQ(PdbText(*pdb), ExpectedText(name)) << name;
    EXPECT_EQ(WrongPdb(*pdb, UINT32_MAX - 2), "") << name;
  }
}

// The golden files are good for these: if they lost one, the test above would prove less.
TEST(PortablePdbTest, TheZooHasEveryKindOfPoint) {
  const std::string file = ReadPdbFixture("zoo_debug.pdb");
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  int points = 0, hidden = 0, several_documents = 0, without_lines = 0, kickoffs = 0, long_statements = 0;
  for (uint32_t rid = 1; rid <= pdb->method_count(); ++rid) {
    kickoffs += pdb->KickoffOf(rid).has_value();
    const auto method = pdb->Points(rid);
    without_lines += absl::IsNotFound(method.status());
    if (!method.ok()) continue;
    bool moves = false;
    for (const SequencePoint& point : *method) {
      ++points;
      hidden += point.hidden();
      long_statements += point.end_line > point.line;
      moves |= point.document != method->front().document;
    }
    several_documents += moves;
  }
  EXPECT_GT(points, 120);
  EXPECT_GT(hidden, 30);
  EXPECT_GT(without_lines, 3);
  EXPECT_GT(long_statements, 3);
  EXPECT_EQ(several_documents, 1);
  EXPECT_EQ(kickoffs, 3);
}

TEST(PortablePdbTest, APdbAndItsAssemblyHaveTheSameId) {
  const std::string assembly = ReadPdbFixture("linked.dll"), file = ReadPdbFixture("linked.pdb"),
                    other = ReadPdbFixture("zoo_debug.pdb");
  const auto image = PeImage::Parse(AsBytes(assembly));
  ASSERT_TRUE(image.ok());
  ASSERT_EQ(PdbReferences(*image).size(), 1u);
  EXPECT_EQ(PortablePdb::Open(AsBytes(file))->id(), PdbReferences(*image)[0].id);
  EXPECT_NE(PortablePdb::Open(AsBytes(other))->id(), PdbReferences(*image)[0].id);
}

TEST(PortablePdbTest, MethodsThatAreNoneHaveNoLines) {
  const std::string file = ReadPdbFixture("linked.pdb");
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  ASSERT_TRUE(pdb->Points(1).ok());
  for (const uint32_t rid : {uint32_t{0}, pdb->method_count() + 1, UINT32_MAX}) {
    EXPECT_TRUE(absl::IsNotFound(pdb->Points(rid).status()));
    EXPECT_TRUE(absl::IsNotFound(pdb->Document(rid).status()));
    EXPECT_EQ(pdb->KickoffOf(rid), std::nullopt);
  }
}

TEST(PortablePdbTest, IndexesAreAsWideAsTheTablesOfTheAssemblyAreLong) {
  for (const uint32_t methods : {0x7FFu, 0x800u, 0xFFFFu, 0x10000u}) {
    PdbBuilder builder;
    builder.Referenced(MetadataTable::kMethodDef, methods);
    builder.Document('/', {"", "src", "a.cs"});
    builder.Method(1, PointsBlob().Visible(0, 0, 5, 10, 3));
    builder.Method(1, PointsBlob().Visible(0, 0, 5, 20, 3));
    builder.StateMachine(2, 1);
    builder.Custom(1 << 5 | 7, builder.Guid(std::string(kSourceLinkGuid)), builder.Blob("{}"));
    const std::string file = builder.Build();
    const auto pdb = PortablePdb::Open(AsBytes(file));
    ASSERT_TRUE(pdb.ok()) << pdb.status();
    EXPECT_EQ(pdb->KickoffOf(2), 1u) << methods;
    EXPECT_EQ(pdb->KickoffOf(1), std::nullopt);
    EXPECT_EQ(pdb->SourceLink(), "{}") << methods;
    EXPECT_EQ(pdb->Points(2)->front().line, 20u);
    EXPECT_EQ(pdb->Document(1)->name, "/src/a.cs");
  }
}

TEST(PortablePdbTest, UnsortedTablesAreSearchedRowByRow) {
  PdbBuilder builder;
  for (int i = 0; i < 5; ++i) builder.Method(0, "");
  builder.StateMachine(5, 1);
  builder.StateMachine(3, 2);
  builder.StateMachine(4, 3);
  const uint32_t guid = builder.Guid(std::string(kSourceLinkGuid)), other = builder.Guid(std::string(16, 'x'));
  builder.Custom(1 << 5 | 7, other, builder.Blob("other"));
  builder.Custom(0, guid, builder.Blob("of another parent"));
  builder.Custom(1 << 5 | 7, guid, builder.Blob("found"));
  const std::string file = builder.Unsorted().Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok()) << pdb.status();
  EXPECT_EQ(pdb->KickoffOf(5), 1u);
  EXPECT_EQ(pdb->KickoffOf(3), 2u);
  EXPECT_EQ(pdb->KickoffOf(4), 3u);
  EXPECT_EQ(pdb->KickoffOf(2), std::nullopt);
  EXPECT_EQ(pdb->SourceLink(), "found");
}

TEST(PortablePdbTest, AKickoffIsAMethodOfTheAssembly) {
  PdbBuilder builder;
  for (int i = 0; i < 4; ++i) builder.Method(0, "");
  builder.StateMachine(1, 4);
  builder.StateMachine(2, 5);
  builder.StateMachine(3, 0);
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_EQ(pdb->KickoffOf(1), 4u);
  EXPECT_EQ(pdb->KickoffOf(2), std::nullopt);
  EXPECT_EQ(pdb->KickoffOf(3), std::nullopt);
}

TEST(PortablePdbTest, NamesArePutTogether) {
  PdbBuilder builder;
  builder.Document('\\', {"C:", "src", "a.cs"});
  builder.Document('\0', {"one", "", "two"});
  builder.Document('/', {"", "", "a"});
  builder.Document('/', {});
  builder.Document('/', {""});
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_EQ(pdb->Document(1)->name, "C:\\src\\a.cs");
  EXPECT_EQ(pdb->Document(2)->name, "onetwo");
  EXPECT_EQ(pdb->Document(3)->name, "//a");
  EXPECT_EQ(pdb->Document(4)->name, "");
  EXPECT_EQ(pdb->Document(5)->name, "");
}

TEST(PortablePdbTest, AHashHasTheSizeOfItsAlgorithm) {
  PdbBuilder builder;
  const uint32_t sha256 =
      builder.Guid(std::string("\x0F\xD0\x29\x88\xB8\x11\x13\x42\x87\x8B\x77\x0E\x85\x97\xAC\x16", 16));
  const uint32_t other = builder.Guid(std::string(16, 'x'));
  const uint32_t name = builder.Blob(std::string(1, '/'));
  builder.DocumentNamed(name, sha256, builder.Blob(std::string(32, 'h')));
  builder.DocumentNamed(name, sha256, builder.Blob(std::string(20, 'h')));
  builder.DocumentNamed(name, other, builder.Blob(std::string(32, 'h')));
  builder.DocumentNamed(name, 3, builder.Blob(std::string(32, 'h')));
  builder.DocumentNamed(name, sha256, 0xFFFF);
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_EQ(pdb->Document(1)->hash_algorithm, PdbHashAlgorithm::kSha256);
  EXPECT_EQ(AsText(pdb->Document(1)->hash), std::string(32, 'h'));
  for (uint32_t row = 2; row <= 5; ++row) {
    ASSERT_TRUE(pdb->Document(row).ok());
    EXPECT_EQ(pdb->Document(row)->hash_algorithm, PdbHashAlgorithm::kNone) << row;
    EXPECT_TRUE(pdb->Document(row)->hash.empty()) << row;
  }
}

TEST(PortablePdbTest, OtherFilesAreRefused) {
  EXPECT_EQ(PortablePdb::Open(AsBytes("Microsoft C/C++ MSF 7.00\r\n")).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(PortablePdb::Open({}).status().code(), absl::StatusCode::kDataLoss);
  const std::string metadata = MetadataBuilder().Build();
  EXPECT_EQ(PortablePdb::Open(AsBytes(metadata)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace clrsampler
