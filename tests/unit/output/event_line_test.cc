#include "output/event_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/match.h"

namespace clrsampler {
namespace {

ClrEventRecord Record(ClrEventKind kind, decltype(ClrEvent::what) what) {
  return {.time_ns = 2'500'000'000, .tid = 4719, .stack = {}, .event = {kind, std::move(what)}};
}

TEST(EventLineTest, ALineHasTimeKindThreadAndFields) {
  const ClrEventRecord record =
      Record(ClrEventKind::kExceptionThrown,
             ClrException{.type = "Shop.OutOfStock", .message = "order 17", .hresult = 0x80131500, .rethrown = true});
  EXPECT_EQ(EventLine(record, 1'000'000'000),
            "  1.500000  ExceptionThrown              on 4719  type=Shop.OutOfStock message=\"order 17\" "
            "hresult=0x80131500 rethrown=true");
  EXPECT_TRUE(absl::EndsWith(EventLine(record, 1'000'000'000, "probe"), " rethrown=true source=probe"));
  EXPECT_EQ(EventLine(record, 9'000'000'000).substr(0, 10), "  0.000000") << "older than the first one";
}

TEST(EventLineTest, TextsOfTheTargetStayInTheirLine) {
  const std::string line =
      EventLine(Record(ClrEventKind::kExceptionThrown, ClrException{.type = "T\x1b[2J", .message = "a\nb \"c\""}), 0);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(line.find(" message=\"a"), std::string::npos);
}

TEST(EventLineTest, JsonSaysWhereAnEventIsFrom) {
  const nlohmann::json json = nlohmann::json::parse(
      EventJson(Record(ClrEventKind::kObjectAllocated,
                       ClrAllocationTick{.bytes = 106'280, .heap = "small", .type_id = 0x7f, .type = "T\xff"}),
                42, "eventpipe"));
  EXPECT_EQ(json["time_ns"], 2'500'000'000u);
  EXPECT_EQ(json["pid"], 42);
  EXPECT_EQ(json["thread"], 4719);
  EXPECT_EQ(json["event"], "ObjectAllocated");
  EXPECT_EQ(json["source"], "eventpipe");
  EXPECT_EQ(json["bytes"], 106'280);
  EXPECT_EQ(json["heap"], "small");
  EXPECT_EQ(json["type_id"], "0x7f");
  EXPECT_EQ(json["type"], "T\xEF\xBF\xBD");
  EXPECT_FALSE(json.contains("object"));
}

// No field has the name of one that every event has.
TEST(EventLineTest, FieldsOfKinds) {
  const std::vector<std::pair<decltype(ClrEvent::what), std::set<std::string>>> kinds = {
      {ClrThread{1, 2, 3, "n"}, {"tid", "name", "managed_id", "runtime_thread"}},
      {ClrAssembly{1, "a"}, {"name", "assembly"}},
      {ClrModule{1, 2, "a"}, {"path", "module", "assembly"}},
      {ClrMethod{1, 2, "T", "M", "()", 3, 4, 5, 6, "Optimized", true, 7},
       {"type", "method", "signature", "tier", "il_bytes", "bytes", "address", "dynamic", "method_id", "module"}},
      {ClrException{"T", "m", 1, 2, true, true, true},
       {"type", "message", "hresult", "address", "has_inner", "nested", "rethrown"}},
      {ClrHandler{1, 2, "M"}, {"method", "address", "method_id"}},
      {ClrContention{1, 2, 3, 0}, {"duration_ns", "owner", "lock", "object"}},
      {ClrSuspension{1}, {"reason"}},
      {ClrCollection{1, 0, 1, "blocking"}, {"generation", "number", "type", "reason"}},
      {ClrCollection{1, 0, 0, ""}, {"generation", "number"}},
      {ClrAllocationTick{1, "small", 2, "T", 3, 4, 5},
       {"bytes", "type", "heap", "object_bytes", "object", "heap_index", "type_id"}},
      {std::monostate(), {}}};
  for (const auto& [what, fields] : kinds) {
    const nlohmann::json json = nlohmann::json::parse(EventJson(Record(ClrEventKind::kThreadCreated, what), 1, "s"));
    std::set<std::string> all{"time_ns", "pid", "thread", "event", "source"};
    all.insert(fields.begin(), fields.end());
    std::set<std::string> got;
    for (const auto& [name, value] : json.items()) got.insert(name);
    EXPECT_EQ(got, all);
    EXPECT_EQ(got.size(), 5 + fields.size());
  }
}

LibraryRecord FromLibrary(InprocessKind kind) {
  LibraryRecord record;
  record.kind = kind;
  record.time_ns = 2'500'000'000;
  record.tid = 4719;
  return record;
}

TEST(EventLineTest, TheLibrarySaysTheSameInTheSameForm) {
  LibraryRecord record = FromLibrary(InprocessKind::kExceptionThrown);
  record.texts[0] = "Shop.Order+Lost\n";
  record.values[1] = 0x7f10;
  EXPECT_EQ(EventLine(record, 1'000'000'000).substr(0, 54), "  1.500000  ExceptionThrown              on 4719  type");
  EXPECT_EQ(EventLine(record, 0).find('\n'), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(EventJson(record, 42));
  EXPECT_EQ(json["event"], "ExceptionThrown");
  EXPECT_EQ(json["source"], "library");
  EXPECT_EQ(json["pid"], 42);
  EXPECT_EQ(json["thread"], 4719);
  EXPECT_EQ(json["type"], "Shop.Order+Lost\n");
  EXPECT_EQ(json["type_id"], "0x7f10");
  EXPECT_FALSE(json.contains("object")) << "it is not known";
}

TEST(EventLineTest, TheLibrarysNumbersHaveTheirForms) {
  LibraryRecord suspension = FromLibrary(InprocessKind::kRuntimeSuspendStarted);
  suspension.values[0] = 1;
  EXPECT_EQ(nlohmann::json::parse(EventJson(suspension, 1))["reason"], "gc");
  LibraryRecord collection = FromLibrary(InprocessKind::kGarbageCollectionStarted);
  collection.values[1] = 1;
  EXPECT_EQ(nlohmann::json::parse(EventJson(collection, 1))["generation"], 0);
  EXPECT_EQ(nlohmann::json::parse(EventJson(collection, 1))["induced"], true);
  LibraryRecord load = FromLibrary(InprocessKind::kModuleLoadFinished);
  load.values[1] = 0x80070002;
  EXPECT_EQ(nlohmann::json::parse(EventJson(load, 1))["hresult"], "0x80070002");
  LibraryRecord map = FromLibrary(InprocessKind::kILToNativeMap);
  map.values[2] = 2;
  map.map = {{0xfffffffe, 0, 4}, {3, 4, 17}};
  EXPECT_EQ(nlohmann::json::parse(EventJson(map, 1))["map"].dump(), "[[-2,0,4],[3,4,17]]");
  EXPECT_EQ(nlohmann::json::parse(EventJson(FromLibrary(InprocessKind::kDynamicMethodJitFinished), 1))["dynamic"],
            true);
}

}  // namespace
}  // namespace clrsampler
