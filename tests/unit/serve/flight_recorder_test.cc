#include "serve/flight_recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "os/clock.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kStart = 1'700'000'000 * kSecondNs;

class FlightRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "flights_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    options_.directory = pattern;
    options_.triggers = {*ParseTrigger("pause>100ms")};
  }
  void TearDown() override { fs::remove_all(options_.directory); }

  std::unique_ptr<FlightRecorder> Open() {
    absl::StatusOr<std::unique_ptr<FlightRecorder>> recorder = FlightRecorder::OpenFolder(options_);
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    return *std::move(recorder);
  }
  nlohmann::json InfoOf(const std::string& id) const {
    std::ifstream file(options_.directory + "/" + id + ".info.json");
    return nlohmann::json::parse(file);
  }
  // Ten seconds with a sample in each, and a pause in the middle.
  static std::shared_ptr<const Window> MakeWindow(uint64_t number, uint64_t pause_ms) {
    auto window = std::make_shared<Window>();
    window->number = number;
    window->begin_unix_ns = kStart + number * 10 * kSecondNs;
    window->end_unix_ns = window->begin_unix_ns + 10 * kSecondNs;
    WindowProcess process;
    process.pid = 7;
    process.comm = "web";
    window->processes.push_back(process);
    if (pause_ms > 0) {
      WindowPause pause;
      pause.requested_unix_ns = window->begin_unix_ns + 5 * kSecondNs;
      pause.pause_ns = pause_ms * 1'000'000;
      pause.kind = "blocking";
      pause.culprits = {{"Shop.Spin", 9, 5, 1}};
      window->pauses.push_back(pause);
    }
    ProfileModelBuilder builder;
    builder.meta().unit = WeightUnit::kNanoseconds;
    builder.meta().start_unix_ns = window->begin_unix_ns;
    builder.meta().duration_ns = 10 * kSecondNs;
    const NodeIndex node = builder.Node(
        kRootNode,
        builder.Frame({.kind = ModelFrameKind::kJit, .name = builder.String("Window" + std::to_string(number))}));
    const ThreadIndex thread = builder.Thread({7, 8, builder.String("web"), builder.String("worker"), 0});
    for (uint64_t second = 0; second < 10; ++second) {
      builder.Add({second * kSecondNs + kSecondNs / 2, thread, node, SampleState::kNone, 50'000'000});
    }
    window->cpu = *std::move(builder).Build();
    ProfileModelBuilder allocations;
    const auto node_of = [&](NodeIndex caller, ModelFrameKind kind, const char* name) {
      return allocations.Node(caller, allocations.Frame({.kind = kind, .name = allocations.String(name)}));
    };
    const NodeIndex method = node_of(kRootNode, ModelFrameKind::kJit, "Shop.Cart.Add");
    const ThreadIndex allocator = allocations.Thread({.pid = 7});
    const auto add = [&](const char* type, uint64_t bytes) {
      const NodeIndex stack = node_of(method, ModelFrameKind::kType, type);
      allocations.Add({.thread = allocator, .stack = stack, .weight = bytes});
    };
    add("Shop.Order", 100);
    add("string", 3000);
    window->allocations = *std::move(allocations).Build();
    return window;
  }
  FlightRecorderOptions options_;
};

TEST_F(FlightRecorderTest, KeepsTheMinuteAroundAHit) {
  auto recorder = Open();
  for (uint64_t number = 1; number <= 12; ++number) {
    ASSERT_TRUE(recorder->Observe(MakeWindow(number, number == 6 ? 150 : 1)).ok());
    if (number != 8) continue;
    EXPECT_TRUE(recorder->List().empty());  // its end is yet to come
  }
  const std::vector<FlightRecording> list = recorder->List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].trigger, "pause>100ms");
  EXPECT_EQ(list[0].pid, 7u);
  EXPECT_EQ(list[0].time_unix_ns, kStart + 65 * kSecondNs);
  EXPECT_EQ(list[0].from_unix_ns, kStart + 35 * kSecondNs);
  EXPECT_EQ(list[0].to_unix_ns, kStart + 95 * kSecondNs + 150'000'000) << "30 s after its end";
  const absl::StatusOr<ProfileModel> model = recorder->Open(list[0].id);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->samples.size(), 60u);  // one a second, each with its time
  EXPECT_EQ(model->meta.start_unix_ns, list[0].from_unix_ns);
  EXPECT_EQ(model->meta.duration_ns, list[0].to_unix_ns - list[0].from_unix_ns);
  ASSERT_EQ(model->samples.time_ns.size(), 60u);
  EXPECT_LT(model->samples.time_ns.back(), model->meta.duration_ns) << "none behind the end";
  EXPECT_EQ(model->total_weight, 60u * 50'000'000);
  const nlohmann::json json = InfoOf(list[0].id);
  EXPECT_EQ(json["pauses"].size(), 7u);
  EXPECT_EQ(json["pauses"][3]["culprits"][0]["method"], "Shop.Spin");
  ASSERT_EQ(json["allocations"].size(), 2u);
  EXPECT_EQ(json["allocations"][0]["type"], "string") << "most bytes first";
  EXPECT_EQ(json["allocations"][0]["bytes"], 7 * 3000) << "of the windows that the minute lies in";
  EXPECT_EQ(json["allocations"][1]["method"], "Shop.Cart.Add");
  EXPECT_EQ(json["allocations"][1]["pid"], 7);
  EXPECT_EQ(recorder->counters().recorded.at("pause>100ms"), 1u);
}

TEST_F(FlightRecorderTest, TheCostliestPausesAndMethodsAreListedInTheOrderOfTime) {
  auto recorder = Open();
  for (uint64_t number = 1; number <= 2; ++number) {
    const auto window = std::const_pointer_cast<Window>(MakeWindow(number, 0));
    for (uint64_t i = 0; i < 4000; ++i) {
      WindowPause pause;
      pause.requested_unix_ns = window->begin_unix_ns + i * 2'000'000;
      pause.pause_ns = 1'000'000 + (i * 7 + number) % 1000;
      window->pauses.push_back(pause);
      WindowMethod method;
      method.method = "Method" + std::to_string(number * 10'000 + i);
      method.total_ns = (number == 1 ? 10'000 : 20'000) - i;
      window->methods.push_back(method);
    }
    window->pauses_left_out = 30;
    window->methods_left_out = 5;
    if (number == 2) window->pauses.back().pause_ns = 150'000'000;
    ASSERT_TRUE(recorder->Observe(window).ok());
  }
  ASSERT_TRUE(recorder->Finish().ok());
  const nlohmann::json json = InfoOf(recorder->List().at(0).id);
  ASSERT_EQ(json["pauses"].size(), 5000u);
  EXPECT_EQ(json["pauses_left_out"], 3060);
  EXPECT_EQ(json["pauses"].back()["pause_ns"], 150'000'000) << "the pause that hit";
  uint64_t last_ns = 0;
  for (const nlohmann::json& pause : json["pauses"]) {
    EXPECT_GE(pause["pause_ns"], 1'000'375) << "three eighths are left out";
    EXPECT_GT(pause["t_unix_ns"].get<uint64_t>(), last_ns);
    last_ns = pause["t_unix_ns"];
  }
  ASSERT_EQ(json["methods"].size(), 5000u);
  EXPECT_EQ(json["methods_left_out"], 3010);
  EXPECT_EQ(json["methods"][999]["method"], "Method10999");
  EXPECT_EQ(json["methods"][1000]["method"], "Method20000") << "all of the second window";
}

TEST_F(FlightRecorderTest, APauseThatHitForItsDelayIsListedHoweverShortItIs) {
  options_.triggers = {*ParseTrigger("suspend-delay>5ms")};
  auto recorder = Open();
  const auto window = std::const_pointer_cast<Window>(MakeWindow(1, 6));
  window->pauses[0].suspend_ns = 6'000'000;
  WindowPause longer = window->pauses[0];
  longer.pause_ns = 7'000'000;
  longer.suspend_ns = 0;
  ++longer.requested_unix_ns;
  window->pauses.resize(6000, longer);
  ASSERT_TRUE(recorder->Observe(window).ok());
  ASSERT_TRUE(recorder->Finish().ok());
  const nlohmann::json json = InfoOf(recorder->List().at(0).id);
  ASSERT_EQ(json["pauses"].size(), 5000u);
  EXPECT_EQ(json["pauses"][0]["suspend_ns"], 6'000'000);
}

TEST_F(FlightRecorderTest, ARecordingOfAPauseOfMinutesHasItsEnd) {
  auto recorder = Open();
  for (uint64_t number = 1; number <= 30; ++number) {
    const auto window = std::const_pointer_cast<Window>(MakeWindow(number, number == 20 ? 120'000 : 1));
    // A pause is in the window in which it ends.
    if (number == 20) window->pauses[0].requested_unix_ns -= 120 * kSecondNs;
    ASSERT_TRUE(recorder->Observe(window).ok());
  }
  const std::vector<FlightRecording> list = recorder->List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].time_unix_ns, kStart + 85 * kSecondNs);
  EXPECT_EQ(list[0].from_unix_ns, kStart + 160 * kSecondNs) << "the oldest window that was there";
  EXPECT_EQ(list[0].to_unix_ns, kStart + 235 * kSecondNs) << "30 s after its end";
  const absl::StatusOr<ProfileModel> model = recorder->Open(list[0].id);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->samples.size(), 75u);
  const nlohmann::json json = InfoOf(list[0].id);
  ASSERT_EQ(json["pauses"].size(), 8u);
  EXPECT_EQ(json["pauses"][4]["pause_ns"], 120 * kSecondNs);
}

TEST_F(FlightRecorderTest, ARecordingWithoutWindowsHasFailed) {
  options_.triggers = {*ParseTrigger("cpu>80%")};
  options_.before_ns = 0;
  auto recorder = Open();
  const auto window = std::const_pointer_cast<Window>(MakeWindow(1, 1));
  window->processes[0].cpu_ns[0] = 9 * kSecondNs;
  ASSERT_TRUE(recorder->Observe(window).ok());
  const absl::Status finished = recorder->Finish();
  EXPECT_TRUE(absl::IsNotFound(finished)) << finished;
  EXPECT_EQ(recorder->counters().failed.at("cpu>80%"), 1u);
  EXPECT_EQ(recorder->counters().recorded.at("cpu>80%"), 0u);
  EXPECT_TRUE(recorder->List().empty());
  EXPECT_TRUE(fs::is_empty(options_.directory));
}

TEST_F(FlightRecorderTest, SurvivesARestartAndGivesOnlyWhatItLists) {
  {
    auto recorder = Open();
    ASSERT_TRUE(recorder->Observe(MakeWindow(1, 150)).ok());
    ASSERT_TRUE(recorder->Finish().ok());
  }
  std::ofstream(options_.directory + "/stranger.info.json") << "{}";
  std::ofstream(options_.directory + "/X-1.info.json") << "[broken";
  const char* const of_others[] = {"20261122.json",
                                   "2026-01-01.json",
                                   "REPORT.json",
                                   "20260101T000000Z.json",
                                   "REPORT.json.partial",
                                   "20260101T000000Z-3.json",
                                   "20260101T000000Z-3.info.json"};
  for (const char* name : of_others) std::ofstream(options_.directory + "/" + name) << "{}";
  for (const char* left : {"20260101T000000Z-1.json", "20260101T000000Z-2.json.partial"}) {
    std::ofstream(options_.directory + "/" + left) << "{}";
  }
  auto recorder = Open();
  EXPECT_FALSE(fs::exists(options_.directory + "/20260101T000000Z-1.json"));
  EXPECT_FALSE(fs::exists(options_.directory + "/20260101T000000Z-2.json.partial"));
  EXPECT_TRUE(fs::exists(options_.directory + "/stranger.info.json"));
  // The last two may be a recording whose info can't be read.
  for (const char* name : of_others) EXPECT_TRUE(fs::exists(options_.directory + "/" + name)) << name;
  ASSERT_EQ(recorder->List().size(), 1u);
  EXPECT_TRUE(recorder->Open(recorder->List()[0].id).ok());
  for (const char* id : {"", "..", "../../etc/passwd", "stranger", "X-1", "20200101T000000Z-1"}) {
    EXPECT_EQ(recorder->Open(id).status().code(), absl::StatusCode::kNotFound) << id;
  }
}

TEST_F(FlightRecorderTest, ATriggerIsLimitedAndSoAreTheFiles) {
  options_.interval_ns = 60 * kSecondNs;
  options_.after_ns = 0;
  options_.max_files = 3;
  auto recorder = Open();
  for (uint64_t number = 1; number <= 60; ++number) ASSERT_TRUE(recorder->Observe(MakeWindow(number, 150)).ok());
  const FlightCounters counters = recorder->counters();
  EXPECT_EQ(counters.hits.at("pause>100ms"), 60u);
  EXPECT_EQ(counters.recorded.at("pause>100ms"), 10u);
  EXPECT_EQ(counters.limited.at("pause>100ms"), 50u);
  const std::vector<FlightRecording> list = recorder->List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_GT(list[0].time_unix_ns, list[1].time_unix_ns);
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(options_.directory)) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 6u);
}

TEST_F(FlightRecorderTest, AProcessThatStaysAboveIsRecordedAfterTheIntervalAndCountedOnce) {
  options_.triggers = {*ParseTrigger("cpu>80% for 10s")};
  options_.after_ns = 0;
  auto recorder = Open();
  for (uint64_t number = 1; number <= 100; ++number) {
    const auto window = std::const_pointer_cast<Window>(MakeWindow(number, 1));
    window->processes[0].cpu_ns[0] = number == 1 ? 9 * kSecondNs : 0;
    WindowProcess busy;
    busy.pid = 8;
    busy.cpu_ns[0] = number >= 2 ? 10 * kSecondNs : 0;
    window->processes.push_back(busy);
    ASSERT_TRUE(recorder->Observe(window).ok());
  }
  const std::vector<FlightRecording> list = recorder->List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].pid, 7u);
  EXPECT_EQ(list[1].time_unix_ns, kStart + 20 * kSecondNs);
  EXPECT_EQ(list[0].pid, 8u);
  EXPECT_EQ(list[0].time_unix_ns, kStart + 320 * kSecondNs) << "five minutes after the other one";
  const FlightCounters counters = recorder->counters();
  EXPECT_EQ(counters.hits.at("cpu>80% for 10s"), 2u);
  EXPECT_EQ(counters.limited.at("cpu>80% for 10s"), 1u);
  EXPECT_EQ(counters.recorded.at("cpu>80% for 10s"), 2u);
}

TEST_F(FlightRecorderTest, WhatWasBeforeTheClockWasSetBackIsNotKept) {
  auto recorder = Open();
  std::weak_ptr<const Window> before;
  for (uint64_t number = 1000; number < 1003; ++number) {
    const std::shared_ptr<const Window> window = MakeWindow(number, 1);
    ASSERT_TRUE(recorder->Observe(window).ok());
    before = window;
  }
  EXPECT_FALSE(before.expired());
  auto jump = std::const_pointer_cast<Window>(MakeWindow(1, 1));
  jump->clock_jump_ns = -10'000 * static_cast<int64_t>(kSecondNs);
  ASSERT_TRUE(recorder->Observe(jump).ok());
  EXPECT_TRUE(before.expired());
}

TEST_F(FlightRecorderTest, AFolderThatIsGoneIsAnErrorAndNoEnd) {
  auto recorder = Open();
  fs::remove_all(options_.directory);
  ASSERT_TRUE(recorder->Observe(MakeWindow(1, 150)).ok());
  EXPECT_FALSE(recorder->Finish().ok());
  EXPECT_EQ(recorder->counters().failed.at("pause>100ms"), 1u);
  EXPECT_TRUE(recorder->List().empty());
}

}  // namespace
}  // namespace clrsampler
