// The leavings of Reflection.Emit: "#-" streams with pointer tables and unsorted rows; and generic parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "unit/formats/pe/metadata_builder.h"

namespace clrsampler {
namespace {

constexpr MetadataTable kTypeDef = MetadataTable::kTypeDef, kMethodDef = MetadataTable::kMethodDef;

std::string NameOf(const MetadataTables& tables, uint32_t type) {
  std::string name;
  return tables.AppendTypeName({kTypeDef, type}, name) ? name : "(damaged)";
}

TEST(MetadataEmittedTest, CountsGenericParametersOfTypesAndMethodsApart) {
  for (const bool sorted : {true, false}) {
    MetadataBuilder builder;
    if (sorted) builder.Sorted(MetadataTable::kGenericParam);
    builder.Type("", "<Module>");
    const uint32_t plain = builder.Type("Ns", "Plain");
    const uint32_t generic_method = builder.Method("Of");
    const uint32_t pair = builder.Type("Ns", "Pair`2");
    const uint32_t plain_method = builder.Method("First");
    // Sorted by the coded owner: type 3 is 6, method 1 is 3.
    const uint32_t method_row = builder.GenericParam({kMethodDef, generic_method}, 0, "TMethod");
    const uint32_t key = builder.GenericParam({kTypeDef, pair}, 0, "TKey");
    const uint32_t value = builder.GenericParam({kTypeDef, pair}, 1, "TValue");
    const std::string bytes = builder.Build(sorted ? "#~" : "#-");
    const auto tables = MetadataTables::Parse(AsBytes(bytes));
    ASSERT_TRUE(tables.ok()) << tables.status();
    EXPECT_EQ(tables->GenericParameterCount({kTypeDef, plain}), 0u);
    EXPECT_EQ(tables->GenericParameterCount({kTypeDef, pair}), 2u);
    EXPECT_EQ(tables->GenericParameterCount({kMethodDef, generic_method}), 1u);
    EXPECT_EQ(tables->GenericParameterCount({kMethodDef, plain_method}), 0u);
    EXPECT_EQ(tables->GenericParameterCount({kTypeDef, 0xFFFFFF}), 0u);
    EXPECT_EQ(tables->GenericParameterName(method_row), "TMethod");
    EXPECT_EQ(tables->GenericParameterName(key), "TKey");
    EXPECT_EQ(tables->GenericParameterName(value), "TValue");
    EXPECT_EQ(tables->GenericParameterName(0), std::nullopt);
    EXPECT_EQ(tables->GenericParameterName(4), std::nullopt);
    EXPECT_EQ(tables->AssemblyName(), "fake");
  }
}

TEST(MetadataEmittedTest, UnsortedGenericParametersAreAllFound) {
  MetadataBuilder builder;
  const uint32_t a = builder.Type("", "A`3"), b = builder.Type("", "B`1");
  builder.GenericParam({kTypeDef, a}, 0, "T0");
  builder.GenericParam({kTypeDef, b}, 0, "U0");
  builder.GenericParam({kTypeDef, a}, 1, "T1");
  builder.GenericParam({kTypeDef, a}, 2, "T2");
  const std::string bytes = builder.Build("#-");
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->GenericParameterCount({kTypeDef, a}), 3u);
  EXPECT_EQ(tables->GenericParameterCount({kTypeDef, b}), 1u);
}

TEST(MetadataEmittedTest, NoGenericParametersWithoutTheTable) {
  MetadataBuilder builder;
  const uint32_t type = builder.Type("", "A");
  const std::string bytes = builder.Build();
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->GenericParameterCount({kTypeDef, type}), 0u);
  EXPECT_EQ(tables->GenericParameterName(1), std::nullopt);
}

TEST(MetadataEmittedTest, UnsortedNestedTypesHaveTheirWholeNames) {
  for (const bool sorted : {true, false}) {
    MetadataBuilder builder;
    const uint32_t outer = builder.Type("Ns", "Outer"), other = builder.Type("Ns", "Other");
    const uint32_t first = builder.Type("", "First"), second = builder.Type("", "Second"),
                   third = builder.Type("", "Third");
    if (sorted) {
      builder.Sorted(MetadataTable::kNestedClass);
      builder.Nested(first, outer);
      builder.Nested(second, first);
      builder.Nested(third, other);
    } else {
      builder.Nested(third, other);
      builder.Nested(second, first);
      builder.Nested(first, outer);
    }
    const std::string bytes = builder.Build(sorted ? "#~" : "#-");
    const auto tables = MetadataTables::Parse(AsBytes(bytes));
    ASSERT_TRUE(tables.ok());
    EXPECT_EQ(NameOf(*tables, outer), "Ns.Outer");
    EXPECT_EQ(NameOf(*tables, first), "Ns.Outer+First");
    EXPECT_EQ(NameOf(*tables, second), "Ns.Outer+First+Second");
    EXPECT_EQ(NameOf(*tables, third), "Ns.Other+Third");
  }
}

TEST(MetadataEmittedTest, ACircleOfUnsortedNestedTypesEnds) {
  MetadataBuilder builder;
  const uint32_t a = builder.Type("", "A"), b = builder.Type("", "B");
  builder.Nested(b, a);
  builder.Nested(a, b);
  const std::string bytes = builder.Build("#-");
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(NameOf(*tables, a), "(damaged)");
  EXPECT_EQ(NameOf(*tables, b), "(damaged)");
}

// A method that was defined late belongs to an early type: the lists of the types count rows of MethodPtr, which name
// the methods.
TEST(MetadataEmittedTest, MethodPtrTellsTheOwner) {
  MetadataBuilder builder;
  const uint32_t early = builder.TypeWithMethodsFrom("Ns", "Early", 1);
  const uint32_t late = builder.TypeWithMethodsFrom("Ns", "Late", 3);
  const uint32_t a = builder.Method("A"), b = builder.Method("B"), c = builder.Method("C");
  builder.MethodPtr(a);
  builder.MethodPtr(c);
  builder.MethodPtr(b);
  const std::string bytes = builder.Build("#-");
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->OwnerOfMethod(a), early);
  EXPECT_EQ(tables->OwnerOfMethod(c), early);
  EXPECT_EQ(tables->OwnerOfMethod(b), late);
  EXPECT_EQ(tables->Method(c)->name, "C");
  EXPECT_EQ(tables->OwnerOfMethod(0), std::nullopt);
  EXPECT_EQ(tables->OwnerOfMethod(4), std::nullopt);
}

TEST(MetadataEmittedTest, AMethodThatNoPointerNamesHasNoOwner) {
  MetadataBuilder builder;
  builder.TypeWithMethodsFrom("", "A", 1);
  builder.Method("A");
  const uint32_t lost = builder.Method("Lost");
  builder.MethodPtr(1);
  builder.MethodPtr(1);
  const std::string bytes = builder.Build("#-");
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(tables->OwnerOfMethod(1), 1u);
  EXPECT_EQ(tables->OwnerOfMethod(lost), std::nullopt);
}

TEST(MetadataEmittedTest, TheExtraDataWordIsNoRow) {
  MetadataBuilder builder;
  const uint32_t type = builder.ExtraData().Type("Ns", "A");
  const uint32_t method = builder.Method("Run");
  const std::string bytes = builder.Build("#-");
  const auto tables = MetadataTables::Parse(AsBytes(bytes));
  ASSERT_TRUE(tables.ok());
  EXPECT_EQ(NameOf(*tables, type), "Ns.A");
  EXPECT_EQ(tables->Method(method)->name, "Run");
}

// Each level of nesting goes through the whole table where it is not sorted.
TEST(MetadataEmittedTest, ManyUnsortedRowsLeaveRoomForFewLevels) {
  for (const bool sorted : {true, false}) {
    MetadataBuilder builder;
    for (int i = 0; i < 12; ++i) builder.Type("", "T");
    if (sorted) builder.Sorted(MetadataTable::kNestedClass);
    for (uint32_t type = 2; type <= 12; ++type) builder.Nested(type, type - 1);
    for (int i = 0; i < 60'000; ++i) builder.Nested(13, 1);
    const std::string bytes = builder.Build("#-");
    const auto tables = MetadataTables::Parse(AsBytes(bytes));
    ASSERT_TRUE(tables.ok()) << tables.status();
    EXPECT_EQ(NameOf(*tables, 4), "T+T+T+T");
    EXPECT_EQ(NameOf(*tables, 12), sorted ? "T+T+T+T+T+T+T+T+T+T+T+T" : "(damaged)");
  }
}

TEST(MetadataEmittedTest, NamesOfAllTypesAreToldUntilThereAreTooMany) {
  const auto all = [](uint32_t, absl::string_view) { return true; };
  MetadataBuilder small;
  for (const char* name : {"A", "B", "C"}) small.Type("Ns", name);
  const std::string small_bytes = small.Build();
  std::string told;
  const auto until_b = [&](uint32_t row, absl::string_view name) {
    absl::StrAppend(&told, row, name, " ");
    return name != "Ns.B";
  };
  EXPECT_TRUE(MetadataTables::Parse(AsBytes(small_bytes))->ForEachTypeName(until_b));
  EXPECT_EQ(told, "1Ns.A 2Ns.B ");
  EXPECT_TRUE(MetadataTables::Parse(AsBytes(small_bytes))->ForEachTypeName(all));
  // 12 MB of text: 400 types in the innermost of 30 with long names.
  MetadataBuilder large;
  large.Sorted(MetadataTable::kNestedClass);
  for (uint32_t i = 0; i < 430; ++i) {
    const uint32_t type = large.Type("", i < 30 ? std::string(1000, 'L') : "T");
    if (type > 1) large.Nested(type, std::min(type - 1, 30u));
  }
  const std::string large_bytes = large.Build();
  EXPECT_EQ(NameOf(*MetadataTables::Parse(AsBytes(large_bytes)), 430).size(), 30 * 1001u + 1);
  EXPECT_FALSE(MetadataTables::Parse(AsBytes(large_bytes))->ForEachTypeName(all));
  MetadataBuilder unsorted;
  for (int i = 0; i < 2000; ++i) unsorted.Nested(unsorted.Type("", "T") + 1, 1);
  const std::string unsorted_bytes = unsorted.Build("#-");
  EXPECT_FALSE(MetadataTables::Parse(AsBytes(unsorted_bytes))->ForEachTypeName(all));
}

TEST(MetadataEmittedTest, ManyUnsortedRowsAreRefusedAndManySortedOnesAreNot) {
  for (const bool sorted : {true, false}) {
    for (const uint32_t count : {65'536u, 65'537u}) {
      MetadataBuilder builder;
      builder.Type("", "A");
      if (sorted) builder.Sorted(MetadataTable::kGenericParam);
      for (uint32_t i = 0; i < count; ++i) builder.GenericParam({kTypeDef, 1}, i & 0xFFFF, "");
      const std::string bytes = builder.Build("#-");
      const auto tables = MetadataTables::Parse(AsBytes(bytes));
      EXPECT_EQ(tables.ok(), sorted || count == 65'536) << tables.status();
      if (tables.ok()) {
        EXPECT_EQ(tables->GenericParameterCount({kTypeDef, 1}), MetadataTables::kMostGenericParameters + 1);
      } else {
        EXPECT_TRUE(absl::IsUnimplemented(tables.status()));
      }
    }
  }
}

TEST(MetadataEmittedTest, CutOffPointerAndParameterTablesAreRefused) {
  MetadataBuilder builder;
  builder.TypeWithMethodsFrom("", "A", 1);
  builder.Method("M");
  builder.MethodPtr(1);
  builder.Nested(1, 1);
  builder.GenericParam({kTypeDef, 1}, 0, "T");
  const std::string whole = builder.Build("#-");
  ASSERT_TRUE(MetadataTables::Parse(AsBytes(whole)).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of exactly that size, so that the sanitizer sees a stray read.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(MetadataTables::Parse(AsBytes({cut.data(), cut.size()})).ok()) << size;
  }
}

}  // namespace
}  // namespace clrsampler
