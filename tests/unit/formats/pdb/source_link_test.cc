#include "formats/pdb/source_link.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/pdb/portable_pdb.h"
#include "unit/formats/pdb/pdb_fixture.h"

namespace clrsampler {
namespace {

std::string UrlOf(absl::string_view json, absl::string_view document) {
  const auto map = SourceLinkMap::Parse(json);
  if (!map.ok()) return map.status().ToString();
  return map->UrlOf(document).value_or("(none)");
}

TEST(SourceLinkTest, TheTextOfAPdbLeadsToItsDocuments) {
  const std::string file = ReadPdbFixture("linked.pdb");
  const auto pdb = PortablePdb::Open(AsBytes(file));
  ASSERT_TRUE(pdb.ok() && pdb->SourceLink().has_value());
  EXPECT_EQ(UrlOf(*pdb->SourceLink(), pdb->Document(1)->name), "https://host.example/project/0123abcd/lines.cs");
  EXPECT_EQ(UrlOf(*pdb->SourceLink(), "/_/generated/a.g.cs"), "https://host.example/generated/a.g.cs?raw=1");
}

// The example of the specification.
constexpr absl::string_view kSpecific = R"({"documents": {
  "C:\\src\\*":                  "http://MyDefaultDomain.com/src/*",
  "C:\\src\\foo\\*":             "http://MyFooDomain.com/src/*",
  "C:\\src\\foo\\specific.txt":  "http://MySpecificFoodDomain.com/src/specific.txt",
  "C:\\src\\bar\\*":             "http://MyBarDomain.com/src/*"}})";

TEST(SourceLinkTest, TheMostSpecificNameDecides) {
  EXPECT_EQ(UrlOf(kSpecific, "C:\\src\\a.cs"), "http://MyDefaultDomain.com/src/a.cs");
  EXPECT_EQ(UrlOf(kSpecific, "C:\\src\\foo\\b\\a.cs"), "http://MyFooDomain.com/src/b/a.cs");
  EXPECT_EQ(UrlOf(kSpecific, "C:\\src\\foo\\specific.txt"), "http://MySpecificFoodDomain.com/src/specific.txt");
  EXPECT_EQ(UrlOf(kSpecific, "C:\\src\\foo\\specific.txt.cs"), "http://MyFooDomain.com/src/specific.txt.cs");
  EXPECT_EQ(UrlOf(kSpecific, "c:\\SRC\\Bar\\A.cs"), "http://MyBarDomain.com/src/A.cs");
  EXPECT_EQ(UrlOf(kSpecific, "C:\\other\\a.cs"), "(none)");
  EXPECT_EQ(UrlOf(kSpecific, ""), "(none)");
}

TEST(SourceLinkTest, AnExactNameGoesBeforeAPrefixOfTheSameLength) {
  for (const char* json : {R"({"documents":{"/a*":"https://h/p/*","/a":"https://h/exact"}})",
                           R"({"documents":{"/a":"https://h/exact","/a*":"https://h/p/*"}})"}) {
    EXPECT_EQ(UrlOf(json, "/a"), "https://h/exact");
    EXPECT_EQ(UrlOf(json, "/ab"), "https://h/p/b");
  }
}

TEST(SourceLinkTest, TheFirstOfTwoEqualNamesDecides) {
  EXPECT_EQ(UrlOf(R"({"documents":{"/FOO/*":"https://h/X/*","/foo/*":"https://h/Y/*"}})", "/foo/a"), "https://h/X/a");
}

TEST(SourceLinkTest, WhatReplacesTheStarIsAPathOfAUrl) {
  EXPECT_EQ(UrlOf(R"({"documents":{"/_/*":"https://h/items?path=/*&v=1"}})", "/_/C# code\\a&b/50%/f\xC3\xBCr.cs?x#y"),
            "https://h/items?path=/C%23%20code/a%26b/50%25/f%C3%BCr.cs%3Fx%23y&v=1");
  EXPECT_EQ(UrlOf(R"({"documents":{"*":"https://h/*"}})", "a-b.c_d~e"), "https://h/a-b.c_d~e");
}

TEST(SourceLinkTest, EntriesThatBreakTheRulesAreLeftOut) {
  for (const char* entry :
       {R"("/a/*":"https://h/none")", R"("/a/x":"https://h/*")", R"("/a/*/x":"https://h/*")", R"("/*/*":"https://h/*")",
        R"("/a/*":"https://h/*/*")", R"("":"https://h/none")", R"("/a/x":5)", R"("/a/x":null)",
        R"("/a/x":["https://h/"])", R"("/a/x":{"/a/x":"https://h/"})", R"("/a/*":"javascript:*")",
        R"("/a/*":"file:///etc/*")", R"("/a/*":"https://h/ *")", R"("/a/*":"https://h/\n*")"}) {
    const std::string json = absl::StrCat(R"({"documents":{)", entry, R"(,"/b/*":"https://good/*"}})");
    const auto map = SourceLinkMap::Parse(json);
    ASSERT_TRUE(map.ok()) << entry << map.status();
    EXPECT_EQ(map->size(), 1u) << entry;
    EXPECT_EQ(map->UrlOf("/a/x"), std::nullopt) << entry;
    EXPECT_EQ(map->UrlOf("/b/x"), "https://good/x") << entry;
  }
}

TEST(SourceLinkTest, OnlyDocumentsOfTheRootCount) {
  EXPECT_EQ(
      UrlOf(R"({"x":{"/a":"https://h/1"},"documents":{"/b":"https://h/2"},"y":{"documents":{"/c":"https://h/3"}}})",
            "/b"),
      "https://h/2");
  const auto map =
      SourceLinkMap::Parse(R"({"x":{"documents":{"/a":"https://h/1"}},"documents":{},"z":{"/b":"https://h/2"}})");
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->size(), 0u);
}

TEST(SourceLinkTest, OtherTextsAreErrors) {
  for (const char* json : {"", "{", "null", "5", "[]", "{}", R"({"documents":5})", R"({"documents":["/a"]})",
                           R"([{"documents":{"/a":"https://h/1"}}])", R"({"documents":{"/a":"https://h/1"})",
                           R"({"documents":{"/a":"https://h/1"}} x)", "{\"documents\":{\"\xFF\":\"https://h/\"}}",
                           R"({"documents":{"/a":1e999}})"}) {
    EXPECT_EQ(SourceLinkMap::Parse(json).status().code(), absl::StatusCode::kDataLoss) << json;
  }
}

TEST(SourceLinkTest, SizeIsBounded) {
  EXPECT_EQ(SourceLinkMap::Parse(std::string(SourceLinkMap::kMaxTextBytes + 1, ' ')).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(SourceLinkMap::Parse(std::string(SourceLinkMap::kMaxTextBytes, '[')).status().code(),
            absl::StatusCode::kDataLoss);
  std::string many = R"({"documents":{)";
  for (size_t i = 0; i < SourceLinkMap::kMaxEntries; ++i) absl::StrAppend(&many, "\"/", i, "\":\"https://h/", i, "\",");
  EXPECT_EQ(UrlOf(absl::StrCat(many, R"("x":1}})"), "/9999"), "https://h/9999");
  EXPECT_EQ(SourceLinkMap::Parse(absl::StrCat(many, R"("/x":"https://h/x"}})")).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace clrsampler
