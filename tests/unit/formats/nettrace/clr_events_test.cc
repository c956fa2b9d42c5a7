#include "formats/nettrace/clr_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/nettrace/nettrace_reader.h"
#include "os/file_io.h"
#include "test_paths.h"
#include "unit/formats/nettrace/nettrace_writer.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <typename T>
T What(uint32_t event_id, uint32_t version, absl::string_view payload, uint32_t pointer_bytes = 8) {
  const auto event = ParseClrEvent(event_id, version, pointer_bytes, AsBytes(payload));
  if (!event.ok() || !event->has_value() || !std::holds_alternative<T>((*event)->what)) {
    ADD_FAILURE() << event_id << " version " << version << ": " << event.status();
    return {};
  }
  return std::get<T>((*event)->what);
}

struct Timed {
  uint64_t ticks = 0;
  uint64_t thread = 0;
  ClrEvent event;
};

// Events of the runtime's provider, in the order of the stream; the command line of its first event is none.
class ClrEventsOfStream : public NettraceSink {
 public:
  void OnStart(const NettraceStart& start) override { pointer_bytes_ = start.pointer_bytes; }
  void OnEvent(const NettraceEvent& event) override {
    if (event.metadata->provider != kClrProvider) return;
    const auto parsed = ParseClrEvent(event.metadata->event_id, event.metadata->version, pointer_bytes_, event.payload);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    if (parsed->has_value()) events.push_back({event.ticks, event.thread, **parsed});
  }
  void OnLost(uint64_t, uint64_t) override { FAIL(); }
  void OnSequencePoint(uint64_t) override {}

  std::vector<Timed> events;

 private:
  uint32_t pointer_bytes_ = 0;
};

class RealClrEventsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string path = absl::StrCat("nettrace/", GetParam());
    ClrEventsOfStream sink;
    NettraceReader reader(sink);
    ASSERT_TRUE(reader.Feed(AsBytes(*ReadWholeFile(TestData(path + ".nettrace"), 1 << 20))).ok());
    truth_ = nlohmann::json::parse(*ReadWholeFile(TestData(path + ".truth"), 1 << 16));
    for (Timed& one : sink.events) {
      if (one.ticks < truth_["begin_ns"] || one.ticks > truth_["end_ns"]) continue;
      during_[one.event.kind].push_back(std::move(one));
    }
  }
  size_t Count(ClrEventKind kind) { return during_[kind].size(); }
  template <typename T>
  std::vector<T> All(ClrEventKind kind) {
    std::vector<T> all;
    for (const Timed& one : during_[kind]) all.push_back(std::get<T>(one.event.what));
    return all;
  }

  nlohmann::json truth_;
  std::map<ClrEventKind, std::vector<Timed>> during_;
};

TEST_P(RealClrEventsTest, ExceptionsHaveTypeMessageAndInnerException) {
  const auto thrown = All<ClrException>(ClrEventKind::kExceptionThrown);
  ASSERT_EQ(thrown.size(), truth_["exceptions"]);
  for (size_t i = 0; i < thrown.size(); i += 2) {
    EXPECT_EQ(thrown[i].type, "System.InvalidOperationException");
    EXPECT_EQ(thrown[i].message, absl::StrCat("order ", i / 2));
    EXPECT_EQ(thrown[i].hresult, 0x80131509u);  // COR_E_INVALIDOPERATION
    EXPECT_FALSE(thrown[i].has_inner);
    EXPECT_EQ(thrown[i].address != 0, absl::StartsWith(GetParam(), "8."));
    EXPECT_EQ(thrown[i + 1].type, "OutOfStock");
    EXPECT_EQ(thrown[i + 1].message, absl::StrCat("order ", i / 2, " \xE2\x82\xAC\n"));
    EXPECT_TRUE(thrown[i + 1].has_inner);
    EXPECT_FALSE(thrown[i + 1].rethrown);
  }
  const auto caught = All<ClrHandler>(ClrEventKind::kExceptionCatcherEnter);
  ASSERT_EQ(caught.size(), truth_["exceptions"]);
  EXPECT_THAT(caught[0].method_name, HasSubstr("Workload.EventsMode::Throw"));
  const auto filters = All<ClrHandler>(ClrEventKind::kExceptionSearchFilterEnter);
  const auto finallies = All<ClrHandler>(ClrEventKind::kExceptionUnwindFinallyEnter);
  ASSERT_EQ(filters.size(), thrown.size() / 2);
  ASSERT_EQ(finallies.size(), thrown.size() / 2);
  EXPECT_EQ(filters[0].method, caught[0].method);
  EXPECT_EQ(finallies[0].method_name, caught[0].method_name);
  EXPECT_EQ(Count(ClrEventKind::kExceptionSearchFilterLeave), filters.size());
  EXPECT_EQ(Count(ClrEventKind::kExceptionUnwindFinallyLeave), finallies.size());
}

TEST_P(RealClrEventsTest, ThreadsModulesAndAssemblies) {
  std::vector<uint32_t> tids;
  for (const ClrThread& thread : All<ClrThread>(ClrEventKind::kThreadCreated)) tids.push_back(thread.tid);
  // The runtime makes some for itself.
  for (const nlohmann::json& tid : truth_["threads"]) EXPECT_EQ(std::count(tids.begin(), tids.end(), tid), 1);

  const auto loaded = All<ClrModule>(ClrEventKind::kModuleLoadFinished);
  EXPECT_EQ(loaded.size(), truth_["modules"]);
  EXPECT_EQ(Count(ClrEventKind::kModuleUnloadFinished), truth_["modules"]);
  for (const ClrModule& module : loaded) EXPECT_THAT(module.path, StartsWith("zoo"));
  const auto assemblies = All<ClrAssembly>(ClrEventKind::kAssemblyLoadFinished);
  ASSERT_EQ(assemblies.size(), truth_["modules"]);
  for (const ClrAssembly& assembly : assemblies) EXPECT_THAT(assembly.name, StartsWith("zoo, Version="));
  EXPECT_EQ(loaded[0].assembly, assemblies[0].assembly);
}

TEST_P(RealClrEventsTest, CollectionsStandInSuspensions) {
  const auto began = All<ClrCollection>(ClrEventKind::kGarbageCollectionStarted);
  ASSERT_EQ(began.size(), truth_["collections"]);
  EXPECT_EQ(Count(ClrEventKind::kGarbageCollectionFinished), truth_["collections"]);
  for (const ClrCollection& collection : began) {
    EXPECT_EQ(collection.generation, 2u);
    EXPECT_EQ(collection.reason, 1u);
    EXPECT_EQ(collection.type, "blocking");
  }
  const size_t suspensions = Count(ClrEventKind::kRuntimeSuspendStarted);
  EXPECT_GE(suspensions, began.size());
  EXPECT_EQ(Count(ClrEventKind::kRuntimeSuspendFinished), suspensions);
  EXPECT_EQ(Count(ClrEventKind::kRuntimeResumeStarted), suspensions);
  EXPECT_EQ(Count(ClrEventKind::kRuntimeResumeFinished), suspensions);
  std::vector<uint32_t> reasons;
  for (const ClrSuspension& one : All<ClrSuspension>(ClrEventKind::kRuntimeSuspendStarted))
    reasons.push_back(one.reason);
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), 1u), static_cast<std::ptrdiff_t>(began.size()));
}

TEST_P(RealClrEventsTest, WaitsForALockHaveTheirLength) {
  const auto waits = All<ClrContention>(ClrEventKind::kThreadAcquiredMonitor);
  ASSERT_GE(waits.size(), truth_["blocked"]);
  size_t long_ones = 0;  // of 20 ms each, by the program
  for (const ClrContention& wait : waits) {
    ASSERT_TRUE(wait.duration_ns.has_value());
    long_ones += *wait.duration_ns > 19'000'000 && *wait.duration_ns < 1'000'000'000;
  }
  EXPECT_EQ(long_ones, truth_["blocked"]);
  const auto begun = All<ClrContention>(ClrEventKind::kThreadBlockedMonitor);
  ASSERT_GE(begun.size(), long_ones);
  EXPECT_NE(begun[0].lock, 0u);
}

TEST_P(RealClrEventsTest, TicksSayBytesAndTypes) {
  const auto ticks = All<ClrAllocationTick>(ClrEventKind::kObjectAllocated);
  uint64_t bytes = 0;
  size_t pages = 0;
  for (const ClrAllocationTick& tick : ticks) {
    bytes += tick.bytes;
    EXPECT_THAT(tick.heap, testing::AnyOf("small", "large"));
    EXPECT_NE(tick.object, 0u);
    EXPECT_NE(tick.type_id, 0u);
    if (tick.type != "Page") continue;
    ++pages;
    EXPECT_EQ(tick.object_bytes, 8u + 8 + 510 * 8);
  }
  EXPECT_GE(pages, 8u);
  // One tick is 100 KiB and at most what a thread gets at once.
  EXPECT_NEAR(static_cast<double>(bytes), truth_["allocated"].get<double>(), 120'000);
}

TEST_P(RealClrEventsTest, CompilationsHaveNamesAndPlaces) {
  const auto done = All<ClrMethod>(ClrEventKind::kJitCompilationFinished);
  ASSERT_EQ(done.size(), truth_["compiled"]);
  EXPECT_EQ(Count(ClrEventKind::kJitCompilationStarted), done.size());
  size_t fresh = 0;
  for (const ClrMethod& method : done) {
    EXPECT_FALSE(method.name.empty());
    EXPECT_NE(method.address, 0u);
    EXPECT_NE(method.code_bytes, 0u);
    EXPECT_THAT(method.signature, HasSubstr("("));
    EXPECT_EQ(method.tier, "Optimized") << method.name;  // there were no tiers
    if (!absl::StartsWith(method.name, "Fresh")) continue;
    ++fresh;
    EXPECT_TRUE(method.dynamic);
    EXPECT_EQ(method.type, "dynamicClass");
  }
  EXPECT_EQ(fresh, truth_["methods"]);
}

INSTANTIATE_TEST_SUITE_P(Versions, RealClrEventsTest, testing::Values("8.0.34", "9.0.23", "10.0.15", "11.0.0"),
                         [](const auto& test) { return "V" + test.param.substr(0, test.param.find('.')); });

TEST(ClrEventsTest, OlderTicksLackWhatCameLater) {
  const std::string second = absl::StrCat(Little(1u), Little(1u), Little(uint16_t{0}), Little(uint64_t{5} << 32),
                                          Little(uint64_t{9}), Utf16Text("T"), Little(3u));
  const auto tick = What<ClrAllocationTick>(10, 2, second);
  EXPECT_EQ(tick.bytes, uint64_t{5} << 32);
  EXPECT_EQ(tick.heap, "large");
  EXPECT_EQ(tick.heap_index, 3u);
  EXPECT_EQ(tick.object, 0u);
  EXPECT_EQ(What<ClrAllocationTick>(10, 3, second + Little(uint64_t{7})).object, 7u);
  EXPECT_EQ(What<ClrAllocationTick>(10, 5, second + Little(uint64_t{7}) + Little(uint64_t{8}) + "new").object_bytes,
            8u);
  EXPECT_FALSE(ParseClrEvent(10, 1, 8, AsBytes(second))->has_value());
}

TEST(ClrEventsTest, PointersOf32BitProcesses) {
  const std::string payload = absl::StrCat(Utf16Text("T"), Utf16Text(""), Little(0xffff'0000u), Little(5u),
                                           Little(uint16_t{6}), Little(uint16_t{0}));
  const auto exception = What<ClrException>(80, 1, payload, 4);
  EXPECT_EQ(exception.address, 0xffff'0000u);
  EXPECT_EQ(exception.hresult, 5u);
  EXPECT_TRUE(exception.nested);
  EXPECT_TRUE(exception.rethrown);
}

std::string MethodPayload(uint32_t flags) {
  return absl::StrCat(Little(uint64_t{1}), Little(uint64_t{2}), Little(uint64_t{3}), Little(4u), Little(5u),
                      Little(flags), Utf16Text("N.T"), Utf16Text("M"), Utf16Text("()"), Little(uint16_t{0}),
                      Little(uint64_t{6}));
}

TEST(ClrEventsTest, CodeFromAnImageIsNoCompilation) {
  EXPECT_FALSE(ParseClrEvent(143, 2, 8, AsBytes(MethodPayload(0)))->has_value());
  const auto method = What<ClrMethod>(143, 2, MethodPayload(8 | 4 << 7));
  EXPECT_EQ(method.tier, "OptimizedTier1");
  EXPECT_FALSE(method.dynamic);
  EXPECT_EQ(method.recompilation, 6u);
  EXPECT_TRUE(What<ClrMethod>(143, 2, MethodPayload(1)).dynamic);
}

TEST(ClrEventsTest, NumbersWithoutAWordHaveNone) {
  const std::string payload = absl::StrCat(Little(1u), Little(2u), Little(99u), Little(99u), Little(uint16_t{0}));
  EXPECT_EQ(What<ClrCollection>(1, 2, payload).reason, 99u);
  EXPECT_EQ(What<ClrCollection>(1, 2, payload).type, "");
}

TEST(ClrEventsTest, ADurationThatIsNoneIsLeftOut) {
  const auto duration = [](double ns) {
    return What<ClrContention>(91, 1, absl::StrCat(std::string(3, '\0'), Little(std::bit_cast<uint64_t>(ns))))
        .duration_ns;
  };
  EXPECT_EQ(duration(12.6), 13u);
  EXPECT_FALSE(duration(-1).has_value());
  EXPECT_FALSE(duration(1e300).has_value());
  EXPECT_FALSE(duration(std::numeric_limits<double>::quiet_NaN()).has_value());
}

TEST(ClrEventsTest, TextsAreCutAtTheirLimit) {
  const std::string payload = absl::StrCat(Utf16Text(std::string(kMaxClrTextUnits, 'a')),
                                           Utf16Text(std::string(kMaxClrTextUnits + 1, 'b')), std::string(16, '\0'));
  const auto exception = What<ClrException>(80, 1, payload);
  EXPECT_EQ(exception.type, std::string(kMaxClrTextUnits, 'a'));
  EXPECT_EQ(exception.message, std::string(kMaxClrTextUnits, 'b') + "\xE2\x80\xA6");
}

TEST(ClrEventsTest, AShortPayloadIsAnError) {
  for (const uint32_t id : {1, 2, 9, 10, 80, 81, 85, 91, 143, 144, 145, 152, 153, 154, 155, 250, 252, 254}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseClrEvent(id, 4, 8, {}).status())) << id;
  }
  const std::string whole = MethodPayload(8);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ParseClrEvent(143, 2, 8, AsBytes(whole.substr(0, size))).status())) << size;
  }
}

TEST(ClrEventsTest, NamesLeadToKindsAndBack) {
  std::set<absl::string_view> names;
  for (const ClrEventKind kind : AllClrEventKinds()) {
    EXPECT_EQ(ClrEventKindOf(ClrEventName(kind)), kind);
    names.insert(ClrEventName(kind));
    const bool sent = kind != ClrEventKind::kThreadDestroyed && kind != ClrEventKind::kThreadNameChanged;
    EXPECT_EQ(DemandOf(kind).keywords != 0, sent) << ClrEventName(kind);
  }
  EXPECT_EQ(names.size(), AllClrEventKinds().size());
  EXPECT_FALSE(ClrEventKindOf("Odd").has_value());
}

}  // namespace
}  // namespace clrsampler
