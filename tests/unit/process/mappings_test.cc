#include "process/mappings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace clrsampler {
namespace {

Mapping Make(uint64_t start, uint64_t end, std::string path, uint64_t file_offset = 0) {
  Mapping mapping;
  mapping.start = start;
  mapping.end = end;
  mapping.path = std::move(path);
  mapping.file_offset = file_offset;
  return mapping;
}

TEST(MappingTableTest, FindsByAddressWithExclusiveEnd) {
  MappingTable table;
  table.Insert(Make(0x1000, 0x2000, "/a"));
  EXPECT_EQ(table.Find(0xfff), nullptr);
  ASSERT_NE(table.Find(0x1000), nullptr);
  EXPECT_EQ(table.Find(0x1fff)->path, "/a");
  EXPECT_EQ(table.Find(0x2000), nullptr);
}

TEST(MappingTableTest, ANewMappingCutsTheOldAndKeepsFileOffsets) {
  MappingTable table;
  table.Insert(Make(0x1000, 0x9000, "/old", 0x100000));
  table.Insert(Make(0x3000, 0x4000, "/new"));
  ASSERT_EQ(table.all().size(), 3u);
  EXPECT_EQ(table.Find(0x2fff)->path, "/old");
  EXPECT_EQ(table.Find(0x3000)->path, "/new");
  ASSERT_NE(table.Find(0x4000), nullptr);
  EXPECT_EQ(table.Find(0x4000)->file_offset, 0x100000 + 0x3000);
}

TEST(MappingTableTest, FindsWhereMappingsShareAPage) {
  MappingTable table;
  table.Insert(Make(0x1000, 0x1800, "/low"));
  table.Insert(Make(0x1800, 0x2000, "/high"));
  EXPECT_EQ(table.Find(0x1000)->path, "/low");
  EXPECT_EQ(table.Find(0x1900)->path, "/high");
  EXPECT_EQ(table.Find(0x1001)->path, "/low");
}

TEST(MappingTableTest, ACopyFindsItsOwnMappings) {
  MappingTable table;
  table.Insert(Make(0x1000, 0x2000, "/a"));
  ASSERT_NE(table.Find(0x1000), nullptr);
  const MappingTable copy = table;
  EXPECT_EQ(copy.Find(0x1000), &*copy.all().begin());
  MappingTable assigned;
  assigned.Insert(Make(0x1000, 0x2000, "/b"));
  ASSERT_NE(assigned.Find(0x1000), nullptr);
  assigned = table;
  EXPECT_EQ(assigned.Find(0x1000), &*assigned.all().begin());
}

TEST(MappingTableTest, CopiesShareTheirContentUntilOneChanges) {
  MappingTable parent;
  for (uint64_t i = 1; i <= 1000; ++i) parent.Insert(Make(i * 0x2000, i * 0x2000 + 0x1000, "/a"));
  MappingTable child = parent, other = parent;
  EXPECT_TRUE(child.SharesContentWith(parent));
  ASSERT_NE(child.Find(0x2000), nullptr);
  ASSERT_NE(parent.Find(0x2000), nullptr);
  parent.Insert(Make(0x2000, 0x3000, "/b"));
  EXPECT_EQ(parent.Find(0x2000)->path, "/b");
  EXPECT_EQ(child.Find(0x2000)->path, "/a");
  EXPECT_TRUE(child.SharesContentWith(other));
  child.Clear();
  EXPECT_EQ(child.Find(0x2000), nullptr);
  EXPECT_EQ(other.all().size(), 1000u);
  const uint64_t before = other.generation();
  other.Insert(Make(0x4000, 0x5000, "/c"));
  std::vector<std::string> fresh;
  other.ForEachSince(before, [&](const Mapping& mapping) { fresh.push_back(mapping.path); });
  EXPECT_THAT(fresh, testing::ElementsAre("/c"));
}

TEST(MappingTableTest, IgnoresEmptyAndBackwardRanges) {
  MappingTable table;
  const uint64_t before = table.generation();
  table.Insert(Make(0x2000, 0x2000, "/a"));
  table.Insert(Make(0x3000, 0x2000, "/a"));
  EXPECT_TRUE(table.all().empty());
  EXPECT_EQ(table.generation(), before);
}

TEST(MappingTableTest, AgreesWithAPageMapUnderRandomInserts) {
  std::mt19937 random(7);
  MappingTable table;
  std::map<uint64_t, std::pair<std::string, uint64_t>> pages;  // page -> (path, file page)
  for (int i = 0; i < 2000; ++i) {
    const uint64_t start = random() % 200;
    const uint64_t length = 1 + random() % 30;
    const std::string path = "/f" + std::to_string(i);
    table.Insert(Make(start * 4096, (start + length) * 4096, path, 1000 * 4096));
    for (uint64_t page = start; page < start + length; ++page) pages[page] = {path, 1000 + page - start};
    for (int question = 0; question < 8; ++question) {  // in between, so that answers of before could come again
      const uint64_t page = random() % 240;
      const Mapping* found = table.Find(page * 4096 + 17);
      const auto expected = pages.find(page);
      ASSERT_EQ(found != nullptr, expected != pages.end()) << page;
      if (found != nullptr) {
        ASSERT_EQ(found->path, expected->second.first);
      }
    }
  }
  for (uint64_t page = 0; page < 260; ++page) {
    const Mapping* found = table.Find(page * 4096 + 17);
    const auto expected = pages.find(page);
    ASSERT_EQ(found != nullptr, expected != pages.end()) << page;
    if (found == nullptr) continue;
    EXPECT_EQ(found->path, expected->second.first);
    EXPECT_EQ((page * 4096 - found->start + found->file_offset) / 4096, expected->second.second);
  }
}

TEST(ClassifyMappingTest, KnowsJitMemoryByItsNames) {
  EXPECT_EQ(ClassifyMapping("", 0), MappingKind::kJitMemory);
  EXPECT_EQ(ClassifyMapping("//anon", 0), MappingKind::kJitMemory);
  EXPECT_EQ(ClassifyMapping("/memfd:doublemapper (deleted)", 1234), MappingKind::kJitMemory);
  EXPECT_EQ(ClassifyMapping("[anon:.NET heap]", 0), MappingKind::kJitMemory);
  EXPECT_EQ(ClassifyMapping("/usr/lib/libc.so.6", 77), MappingKind::kFile);
  EXPECT_EQ(ClassifyMapping("/tmp/x (deleted)", 77), MappingKind::kFile);
  EXPECT_EQ(ClassifyMapping("[vdso]", 0), MappingKind::kVdso);
  EXPECT_EQ(ClassifyMapping("[vsyscall]", 0), MappingKind::kOther);
  EXPECT_EQ(ClassifyMapping("[uprobes]", 0), MappingKind::kOther);
}

std::vector<uint64_t> StartsSince(const MappingTable& table, uint64_t generation) {
  std::vector<uint64_t> starts;
  table.ForEachSince(generation, [&](const Mapping& mapping) { starts.push_back(mapping.start); });
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

Mapping PageAt(uint64_t number, MappingKind kind = MappingKind::kFile) {
  Mapping mapping;
  mapping.start = number * 0x1000;
  mapping.end = mapping.start + 0x1000;
  mapping.kind = kind;
  return mapping;
}

TEST(MappingTableTest, OnlyNewMappingsAreVisited) {
  MappingTable table;
  table.Insert(PageAt(1));
  table.Insert(PageAt(2));
  const uint64_t seen = table.generation();
  EXPECT_EQ(StartsSince(table, 0).size(), 2u);
  EXPECT_TRUE(StartsSince(table, seen).empty());
  table.Insert(PageAt(1));
  table.Insert(PageAt(3));
  EXPECT_EQ(StartsSince(table, seen), (std::vector<uint64_t>{0x1000, 0x3000}));
}

TEST(MappingTableTest, WhatIsLeftOfACutMappingCountsAsNew) {
  MappingTable table;
  Mapping wide = PageAt(1);
  wide.end = 0x9000;
  table.Insert(wide);
  const uint64_t seen = table.generation();
  table.Insert(PageAt(4));
  EXPECT_EQ(StartsSince(table, seen), (std::vector<uint64_t>{0x1000, 0x4000, 0x5000}));
}

TEST(MappingTableTest, AfterTooManyChangesOrWhenAllIsNewAllAreVisited) {
  MappingTable table;
  for (uint64_t page = 1; page <= 2000; ++page) table.Insert(PageAt(page));
  const uint64_t seen = table.generation();
  for (int i = 0; i < 1000; ++i) table.Insert(PageAt(7));
  EXPECT_TRUE(table.KnowsSince(seen));
  EXPECT_EQ(StartsSince(table, seen).size(), 1u);
  for (int i = 0; i < 2000; ++i) table.Insert(PageAt(7));
  EXPECT_FALSE(table.KnowsSince(seen));
  EXPECT_EQ(StartsSince(table, seen).size(), 2000u);
  const uint64_t before = table.generation();
  table.Clear();
  EXPECT_FALSE(table.KnowsSince(before));
  table.Insert(PageAt(1));
  EXPECT_EQ(StartsSince(table, before).size(), 1u);
}

TEST(MappingTableTest, KnowsWhetherThereIsMemoryForCompiledCode) {
  MappingTable table;
  EXPECT_FALSE(table.has_jit_memory());
  table.Insert(PageAt(1, MappingKind::kJitMemory));
  table.Insert(PageAt(2, MappingKind::kJitMemory));
  table.Insert(PageAt(1));
  EXPECT_TRUE(table.has_jit_memory());
  table.Insert(PageAt(2));
  EXPECT_FALSE(table.has_jit_memory());
  table.Insert(PageAt(2, MappingKind::kJitMemory));
  table.Clear();
  EXPECT_FALSE(table.has_jit_memory());
}

}  // namespace
}  // namespace clrsampler
