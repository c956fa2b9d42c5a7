// PDBs that are cut off, damaged, or lie: an error or no line, and never an answer out of bounds. AddressSanitizer sees
// what reads behind the bytes, which are a block of the heap of exactly their size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/pdb/portable_pdb.h"
#include "unit/formats/pdb/pdb_builder.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/formats/pdb/pdb_properties.h"

namespace clrsampler {
namespace {

std::vector<std::byte> HeapBytes(absl::string_view text) {
  const std::span<const std::byte> bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

// "": it was refused, or all its answers hold.
std::string Wrong(absl::string_view file) {
  const std::vector<std::byte> bytes = HeapBytes(file);
  const auto pdb = PortablePdb::Open(bytes);
  if (!pdb.ok()) return "";
  return std::string(WrongPdb(*pdb, 200));
}

PdbBuilder OneMethod(const std::string& points) {
  PdbBuilder builder;
  builder.Referenced(MetadataTable::kMethodDef, 1);
  builder.Document('/', {"", "a.cs"});
  builder.Method(1, points);
  return builder;
}

TEST(PortablePdbHostileTest, CutOffAnywhere) {
  const std::string file = ReadPdbFixture("zoo_debug.pdb");
  int opened = 0;
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_EQ(Wrong(file.substr(0, size)), "") << size;
    opened += PortablePdb::Open(AsBytes(file.substr(0, size))).ok();
  }
  // The heaps stand behind the tables, and all streams have to be there.
  EXPECT_EQ(opened, 0);
}

TEST(PortablePdbHostileTest, AnyByteOfTheHeadersAndTablesIsAnother) {
  const std::string file = ReadPdbFixture("linked.pdb");
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char value : {'\0', '\1', '\x7F', '\x80', '\xFF', static_cast<char>(file[at] + 1)}) {
      std::string damaged = file;
      damaged[at] = value;
      ASSERT_EQ(Wrong(damaged), "") << at << ": " << static_cast<int>(value);
    }
  }
}

TEST(PortablePdbHostileTest, ImpossibleRowsAreRefused) {
  for (const MetadataTable table : {MetadataTable::kDocument, MetadataTable::kMethodDebugInformation}) {
    for (const uint32_t rows : {200u, 0xFFFFu, 0x10000u, 0xFFFFFFu, 0x1000000u, 0xFFFFFFFFu}) {
      const std::string file = OneMethod(PointsBlob().Hidden(0)).ClaimRows(table, rows).Build();
      EXPECT_EQ(PortablePdb::Open(AsBytes(file)).status().code(), absl::StatusCode::kDataLoss) << rows;
    }
  }
  const std::string file = OneMethod(PointsBlob().Hidden(0)).Referenced(MetadataTable::kTypeDef, 0x1000000).Build();
  EXPECT_EQ(PortablePdb::Open(AsBytes(file)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(PortablePdbHostileTest, ADebugTableIsNoTableOfTheAssembly) {
  const std::string file = OneMethod(PointsBlob().Hidden(0)).Referenced(MetadataTable::kDocument, 1).Build();
  EXPECT_EQ(PortablePdb::Open(AsBytes(file)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(PortablePdbHostileTest, WrongSizesOfHeapsLeadNowhere) {
  for (int flags = 0; flags < 256; ++flags) {
    const std::string file = OneMethod(PointsBlob().Hidden(0)).ClaimHeapSizes(static_cast<uint8_t>(flags)).Build();
    ASSERT_EQ(Wrong(file), "") << flags;
  }
}

TEST(PortablePdbHostileTest, PointsOutsideTheHeapAreDamaged) {
  PdbBuilder builder = OneMethod(PointsBlob().Hidden(0));
  builder.MethodAt(1, 0xFFFF);
  builder.MethodAt(9, builder.Blob(PointsBlob().Hidden(0)));
  builder.MethodAt(1, builder.Blob("\x7F") + 1);  // the last byte of the heap says that 127 follow
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_TRUE(pdb->Points(1).ok());
  EXPECT_TRUE(absl::IsDataLoss(pdb->Points(2).status()));
  EXPECT_TRUE(absl::IsDataLoss(pdb->Points(3).status()));
  EXPECT_TRUE(absl::IsDataLoss(pdb->Points(4).status()));
}

TEST(PortablePdbHostileTest, NamesThatLeadToThemselvesOrNowhereEnd) {
  PdbBuilder builder;
  const uint32_t next = builder.Blob("");
  // A part that is the name itself: its bytes are the part, and nothing follows them.
  builder.DocumentNamed(builder.Blob("/" + Compressed(next + 1) + Compressed(next + 1)));
  builder.DocumentNamed(builder.Blob("/" + Compressed(0x3FFF)));
  builder.DocumentNamed(builder.Blob("/\xC0"));
  builder.DocumentNamed(builder.Blob("/\xFF\xFF\xFF\xFF"));
  builder.DocumentNamed(builder.Blob("\x80" + Compressed(next)));
  builder.DocumentNamed(builder.Blob(""));
  builder.DocumentNamed(0xFFFF);
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_TRUE(pdb->Document(1).ok());
  EXPECT_LT(pdb->Document(1)->name.size(), 10u);
  for (uint32_t row = 2; row <= 7; ++row) EXPECT_TRUE(absl::IsDataLoss(pdb->Document(row).status())) << row;
}

TEST(PortablePdbHostileTest, GiantNamesAreRefused) {
  PdbBuilder builder;
  const uint32_t part = builder.Blob(std::string(1000, 'a'));
  const auto repeated = [&](char separator, size_t times, uint32_t index) {
    std::string name(1, separator);
    for (size_t i = 0; i < times; ++i) name += Compressed(index);
    return builder.DocumentNamed(builder.Blob(name));
  };
  repeated('\0', 4, part);
  repeated('\0', 5, part);
  repeated('/', 4095, 0);
  repeated('/', 5000, 0);
  repeated('\0', 20'000, 0);
  const std::string file = builder.Build();
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok());
  EXPECT_EQ(pdb->Document(1)->name.size(), 4000u);
  EXPECT_TRUE(absl::IsDataLoss(pdb->Document(2).status()));
  EXPECT_EQ(pdb->Document(3)->name.size(), 4094u);
  EXPECT_TRUE(absl::IsDataLoss(pdb->Document(4).status()));
  EXPECT_TRUE(absl::IsDataLoss(pdb->Document(5).status()));
}

TEST(PortablePdbHostileTest, TablesThatAreNotInTheOrderTheyPromiseEndTheSearch) {
  PdbBuilder builder;
  for (int i = 0; i < 60; ++i) builder.Method(0, "");
  for (uint32_t i = 0; i < 50; ++i) builder.StateMachine((i * 37) % 50 + 1, i + 1);
  const std::string file = builder.Build();
  EXPECT_EQ(Wrong(file), "");
}

TEST(PortablePdbHostileTest, TheModuleHasABoundedNumberOfRows) {
  const std::string link("\x56\x05\x11\xCC\x91\xA0\x38\x4D\x9F\xEC\x25\xAB\x9A\x35\x1A\x6A", 16);
  for (const uint32_t before : {200u, 300u}) {
    PdbBuilder builder;
    for (uint32_t i = 0; i < before; ++i) builder.Custom(1 << 5 | 7, 0, 0);
    builder.Custom(1 << 5 | 7, builder.Guid(link), builder.Blob("{}"));
    const std::string file = builder.Build();
    const auto pdb = PortablePdb::Open(AsBytes(file));
    ASSERT_TRUE(pdb.ok());
    EXPECT_EQ(pdb->SourceLink().has_value(), before == 200);
  }
}

TEST(PortablePdbHostileTest, LongUnsortedTablesAreNotSearched) {
  PdbBuilder builder;
  builder.Method(0, "");
  for (uint32_t i = 0; i < 65'537; ++i) builder.StateMachine(1, 1);
  const std::string sorted = builder.Build(), unsorted = builder.Unsorted().Build();
  EXPECT_EQ(PortablePdb::Open(AsBytes(sorted))->KickoffOf(1), 1u);
  EXPECT_EQ(PortablePdb::Open(AsBytes(unsorted))->KickoffOf(1), std::nullopt);
}

}  // namespace
}  // namespace clrsampler
