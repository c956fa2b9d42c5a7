#include "export/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "export/metrics.h"
#include "formats/profile/gzip.h"
#include "formats/profile/profile_reader.h"
#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSample;
using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class MadeUpRecordings : public FlightRecordings {
 public:
  std::vector<FlightRecording> List() override {
    FlightRecording one;
    one.id = "20260921-1";
    one.trigger = "pause>100ms";
    one.pid = 4711;
    one.files = {"20260921-1.json"};
    return {one};
  }
  absl::StatusOr<ProfileModel> Open(const std::string& id) override {
    opened.push_back(id);
    return ShopWindow(1)->cpu;
  }
  std::vector<std::string> opened;
};

class EndpointsTest : public ::testing::Test {
 protected:
  EndpointsTest() {
    for (uint64_t i = 1; i <= 6; ++i) windows_.Add(ShopWindow(i));
    EndpointParts parts;
    parts.version = "0.1.0";
    parts.host = "web-3";
    parts.cpus = 2;
    parts.started_unix_ns = kMadeUpStart;
    parts.access.anonymous = true;
    // The budget has tests of its own; here a slow machine needs no patience.
    parts.queries.all = parts.queries.client = {.share = 1, .burst_ns = 3600 * kMadeUpSecond};
    parts.windows = &windows_;
    parts.recordings = &recordings_;
    parts.metrics = [this] {
      ++scrapes_;
      return std::string("clrsampler_build_info 1\n");
    };
    parts.asset = [](absl::string_view path) -> std::optional<PageAsset> {
      if (path == "/") return PageAsset{"text/html; charset=utf-8", "<title>clrsampler</title>"};
      return std::nullopt;
    };
    parts.want_cut = [this](uint64_t at) { cuts_.push_back(at); };
    parts.healthy = [this] { return healthy_; };
    parts.process_exists = [](uint32_t pid) { return pid == 4711 || pid == 4712; };
    parts.now_unix_ns = [this] { return now_; };
    endpoints_ = std::make_unique<Endpoints>(std::move(parts));
  }

  std::future<HttpAnswer> Ask(const std::string& target, const std::string& encoding = "") {
    HttpRequest request;
    request.method = "GET";
    request.host = "127.0.0.1:9404";
    request.target = target;
    request.accept_encoding = encoding;
    auto promise = std::make_shared<std::promise<HttpAnswer>>();
    endpoints_->Handle(request, [promise](HttpAnswer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }
  HttpAnswer Get(const std::string& target) { return Ask(target).get(); }
  Json GetJson(const std::string& target, unsigned status = 200) {
    const HttpAnswer answer = Get(target);
    EXPECT_EQ(answer.status, status) << target << ": " << *answer.body;
    EXPECT_EQ(answer.content_type, "application/json") << target;
    return Json::parse(*answer.body);
  }

  uint64_t now_ = kMadeUpStart + 60 * kMadeUpSecond;
  int scrapes_ = 0;
  bool healthy_ = true;
  std::vector<uint64_t> cuts_;
  RecentWindows windows_{100};
  MadeUpRecordings recordings_;
  std::unique_ptr<Endpoints> endpoints_;
};

TEST_F(EndpointsTest, ALoopThatStandsStillIsReadyAndNotHealthy) {
  EXPECT_EQ(Get("/-/healthy").status, 200u);
  healthy_ = false;
  const HttpAnswer answer = Get("/-/healthy");
  EXPECT_EQ(answer.status, 503u);
  EXPECT_THAT(*answer.body, HasSubstr("stands still"));
  EXPECT_EQ(Get("/-/ready").status, 200u);
}

TEST_F(EndpointsTest, Status) {
  const Json status = GetJson("/api/status");
  EXPECT_EQ(status["host"], "web-3");
  EXPECT_EQ(status["cpus"], 2);
  EXPECT_EQ(status["frequency_hz"], 20);
  EXPECT_EQ(status["window_ms"], 10000);
  EXPECT_EQ(status["oldest"], kMadeUpStart / 1'000'000);
  EXPECT_TRUE(status["store"].is_null());
  EXPECT_EQ(status["notices"][0]["hint"], "start it anew");
}

TEST_F(EndpointsTest, Timeline) {
  const Json timeline = GetJson("/api/timeline?from=-1m&points=6&by=process");
  EXPECT_EQ(timeline["steps"], 6);
  EXPECT_EQ(timeline["step_ms"], 10000);
  EXPECT_EQ(timeline["covered"], Json(std::vector<bool>(6, true)));
  EXPECT_EQ(timeline["covered_ms"], Json(std::vector<double>(6, 10000)));
  EXPECT_EQ(timeline["series"][0]["label"], "Shop");
  EXPECT_EQ(timeline["series"][0]["pid"], 4711);
  EXPECT_EQ(timeline["series"][0]["cores"][0], 0.5);
  EXPECT_EQ(timeline["series"][0]["alloc_bytes"][0], 42'000'000);
  EXPECT_EQ(timeline["series"][0]["wait_ms"][0], 4000);
  const Json expected = {{{"state", "running"}, {"ms", std::vector<double>(6, 5000)}},
                         {{"state", "monitor"}, {"ms", std::vector<double>(6, 3000)}},
                         {{"state", "task wait"}, {"ms", std::vector<double>(6, 1000)}}};
  EXPECT_EQ(timeline["states"], expected);
  EXPECT_EQ(GetJson("/api/timeline?from=-1m&pid=99")["states"], Json::array()) << "of those that are meant";
  ASSERT_EQ(timeline["pauses"].size(), 12u);
  for (size_t i = 1; i < 12; ++i) EXPECT_LE(timeline["pauses"][i - 1]["t"], timeline["pauses"][i]["t"]);
  EXPECT_EQ(GetJson("/api/timeline?by=container")["series"][0]["pid"], Json());
}

TEST_F(EndpointsTest, Lanes) {
  const Json lanes = GetJson("/api/lanes?from=-1m&points=6");
  EXPECT_EQ(lanes["steps"], 6);
  EXPECT_EQ(lanes["step_ms"], 10000);
  EXPECT_EQ(lanes["covered"], Json(std::vector<bool>(6, true)));
  EXPECT_EQ(lanes["states"][1], ".NET");
  ASSERT_GT(lanes["threads"].size(), 1u);
  EXPECT_EQ(lanes["threads"][0]["comm"], "Shop");
  EXPECT_EQ(lanes["others"], 0);
  double listed = 0, total = 0;
  for (const Json& lane : lanes["lanes"]) {
    EXPECT_LT(lane["thread"].get<size_t>(), lanes["threads"].size());
    EXPECT_EQ(lane["step"].size(), lane["us"].size());
    for (const Json& us : lane["us"]) listed += us.get<double>() / 1e3;
  }
  for (const Json& thread : lanes["threads"]) total += thread["ms"].get<double>();
  EXPECT_NEAR(listed, total, 1);
  EXPECT_GT(total, 0);
  EXPECT_EQ(GetJson("/api/lanes?from=-1m&pid=98")["threads"], Json::array());
  EXPECT_EQ(GetJson("/api/lanes?from=-1m&method=no+such+one")["lanes"], Json::array());
  EXPECT_GT(GetJson("/api/lanes?from=-1m&method=shop.main")["lanes"].size(), 0u);
  EXPECT_EQ(GetJson("/api/lanes?from=-1m&threads=1")["threads"].size(), 2u) << "and the others";
}

TEST_F(EndpointsTest, ProfilesInEveryFormat) {
  for (const char* format : {"folded", "json", "pprof", "speedscope", "html", "svg", "page"}) {
    const HttpAnswer answer = Get(absl::StrCat("/api/profile?from=-1m&format=", format));
    EXPECT_EQ(answer.status, 200u) << format;
    EXPECT_EQ(answer.endpoint, "/api/profile");
    EXPECT_FALSE(answer.body->empty());
  }
  const HttpAnswer folded = Get("/api/profile?from=-1m&pid=4711&format=folded");
  EXPECT_THAT(*folded.body, HasSubstr("Shop-4711;Shop.Main_[j];Shop.Work0_[j] "));
  EXPECT_THAT(*folded.body, ::testing::Not(HasSubstr("envoy")));
  EXPECT_EQ(GetJson("/api/profile?format=page")["version"], 1);
}

TEST_F(EndpointsTest, AllocationsAreProfilesInBytes) {
  for (const char* format : {"json", "pprof", "html", "svg", "page"}) {
    EXPECT_EQ(Get(absl::StrCat("/api/profile?from=-1m&view=alloc&format=", format)).status, 200u) << format;
  }
  EXPECT_THAT(*Get("/api/profile?from=-1m&view=alloc&format=folded").body,
              HasSubstr("Shop-4711;Shop.Work0_[j];Shop.Order 240000000"));
  const std::string ranges = "from=-30s&base_from=-60s&base_to=-30s&view=alloc";
  EXPECT_THAT(*Get(absl::StrCat("/api/diff?format=text&", ranges)).body, HasSubstr("Shop.Order"));
}

TEST_F(EndpointsTest, WaitsAreProfilesInTimeWithTheirKindsAndWakers) {
  for (const char* format : {"json", "pprof", "html", "svg", "page"}) {
    EXPECT_EQ(Get(absl::StrCat("/api/profile?from=-1m&view=off-cpu&format=", format)).status, 200u) << format;
  }
  EXPECT_THAT(*Get("/api/profile?from=-1m&view=off-cpu&format=folded").body,
              HasSubstr("Shop-4711;Shop.Work0_[j];[monitor];[woken by thread owner];Shop.Release_[j] 18000000000"));
  const std::string ranges = "from=-30s&base_from=-60s&base_to=-30s&view=off-cpu";
  EXPECT_THAT(*Get(absl::StrCat("/api/diff?format=text&", ranges)).body, HasSubstr("[monitor]"));
}

TEST_F(EndpointsTest, ProfilesForBuildTools) {
  for (const char* format : {"callchain", "mip"}) {
    const HttpAnswer answer = Get(absl::StrCat("/api/profile?from=-1m&module=Shop&format=", format));
    EXPECT_EQ(answer.status, format == absl::string_view("callchain") ? 200u : 404u) << *answer.body;
  }
  EXPECT_THAT(*Get("/api/profile?format=callchain").body, HasSubstr("\"Shop.dll!Shop.Program.Work0\""));
  EXPECT_EQ(Get("/api/profile?format=mip&module=%5Bjit%5D").body->substr(1, 3), "MIP");
  EXPECT_THAT(GetJson("/api/profile?format=mip&module=libx.so", 404)["hint"], HasSubstr("[jit] ("));
  EXPECT_THAT(GetJson("/api/profile?format=order", 404)["hint"], HasSubstr("callchain"));
  EXPECT_THAT(GetJson("/api/profile?format=folded&module=Shop", 400)["error"], HasSubstr("module"));
}

TEST_F(EndpointsTest, HtmlIsAPageWithoutAnOrigin) {
  for (const auto& [name, value] : Get("/api/profile?format=html").headers) {
    if (name != "Content-Security-Policy") continue;
    EXPECT_THAT(value, HasSubstr("sandbox"));
    EXPECT_THAT(value, HasSubstr("default-src 'none'"));
    return;
  }
  FAIL() << "no policy";
}

TEST_F(EndpointsTest, WhatWasNotSampledIsNotFound) {
  EXPECT_THAT(GetJson("/api/profile?pid=12345", 404)["error"], HasSubstr("nothing that fits"));
  EXPECT_THAT(GetJson("/api/profile?container=nope&format=html", 404)["hint"], HasSubstr("/api/processes"));
  EXPECT_EQ(Get("/api/profile?view=jit&format=folded").status, 200u) << "a host that compiles nothing is idle";
}

TEST_F(EndpointsTest, Differences) {
  const std::string ranges = "from=-30s&base_from=-60s&base_to=-30s";
  EXPECT_EQ(GetJson(absl::StrCat("/api/diff?", ranges))["version"], 1);
  EXPECT_THAT(*Get(absl::StrCat("/api/diff?format=text&", ranges)).body, HasSubstr("Shop.Work0"));
  EXPECT_THAT(*Get(absl::StrCat("/api/diff?format=difffolded&", ranges)).body,
              HasSubstr("Shop;Shop.Main_[j];Shop.Work0_[j] "));
  EXPECT_THAT(Get(absl::StrCat("/api/diff?format=html&", ranges)).content_type, HasSubstr("text/html"));
  EXPECT_THAT(GetJson("/api/diff?from=-30s", 400)["error"], HasSubstr("base_from"));
  EXPECT_THAT(GetJson("/api/diff?from=-30s&base_from=1000000000&base_to=1000000001", 404)["error"],
              HasSubstr("no samples"));
}

TEST_F(EndpointsTest, PausesAndCompilations) {
  const Json pauses = GetJson("/api/pauses?limit=1");
  EXPECT_EQ(pauses["count"], 12);
  EXPECT_EQ(pauses["by_kind"]["blocking"], 12);
  ASSERT_EQ(pauses["pauses"].size(), 1u);
  EXPECT_EQ(pauses["pauses"][0]["pause_ms"], 20);
  EXPECT_EQ(pauses["pauses"][0]["generation"], 1);
  EXPECT_TRUE(pauses["pauses"][0]["gc_index"].is_null());
  EXPECT_EQ(pauses["pauses"][0]["culprits"][0]["method"], "Shop.Busy");
  const Json jit = GetJson("/api/jit");
  EXPECT_EQ(jit["count"], 12);
  EXPECT_EQ(jit["methods"][0]["tier"], "OptimizedTier1");
}

TEST_F(EndpointsTest, HealthAndProcesses) {
  const Json health = GetJson("/api/health?from=-1m");
  EXPECT_EQ(health["covered_ms"], 60000);
  EXPECT_EQ(health["lost"]["ring_full"], 6);
  EXPECT_EQ(health["frames"]["managed"]["unnamed"], 18);
  const Json processes = GetJson("/api/processes?from=-1m");
  ASSERT_EQ(processes["processes"].size(), 2u);
  EXPECT_EQ(processes["processes"][0]["runtime"], "10.0.12");
  EXPECT_EQ(processes["processes"][0]["cores"], 0.5);
  EXPECT_EQ(processes["processes"][0]["alloc_bytes"], 6 * 42'000'000);
  EXPECT_EQ(processes["processes"][0]["wait_ms"], 6 * 4000);
  EXPECT_TRUE(processes["processes"][1]["runtime"].is_null());
}

TEST_F(EndpointsTest, RecordingsAreOpenedByAnIdOfTheList) {
  EXPECT_EQ(GetJson("/api/recordings")["recordings"][0]["id"], "20260921-1");
  EXPECT_THAT(*Get("/api/recordings/20260921-1?format=folded").body, HasSubstr("Shop.Main"));
  for (const char* id : {"20260921-2", "", "..", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "20260921-1/", "%00"}) {
    const HttpAnswer answer = Get(absl::StrCat("/api/recordings/", id));
    EXPECT_TRUE(answer.status == 404 || answer.status == 400) << id;
  }
  EXPECT_EQ(recordings_.opened, std::vector<std::string>{"20260921-1"});
}

TEST_F(EndpointsTest, UnknownPathsAndParametersAreErrors) {
  for (const char* path : {"/nope", "/api", "/api/", "/api/profile/", "/../etc/passwd", "/assets/../../etc/passwd",
                           "/assets/x.js", "/metrics/", "//metrics"}) {
    EXPECT_EQ(Get(path).status, 404u) << path;
  }
  for (const char* path :
       {"/api/status?x=1", "/api/profile?pdi=1", "/api/recordings?limit=1", "/metrics?name=x", "/api/health?pid=1",
        "/debug/pprof/profile?second=1", "/debug/pprof/profile?seconds=0", "/debug/pprof/profile?seconds=301",
        "/api/timeline?points=0", "/api/pauses?limit=0", "/api/lanes?points=0", "/api/lanes?threads=101"}) {
    const Json error = GetJson(path, 400);
    EXPECT_FALSE(error["error"].get<std::string>().empty()) << path;
  }
  EXPECT_EQ(Get("/nope").endpoint, "none") << "what clients invent is no label";
}

TEST_F(EndpointsTest, ForeignHostsAreRefusedBeforeAnythingIsDone) {
  HttpRequest request;
  request.host = "evil.example";
  request.target = "/metrics";
  HttpAnswer answer;
  endpoints_->Handle(request, [&](HttpAnswer one) { answer = std::move(one); });
  EXPECT_EQ(answer.status, 421u);
  EXPECT_EQ(scrapes_, 0);
}

TEST_F(EndpointsTest, ScrapesAtTheSameMomentShareTheirText) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Get("/metrics").status, 200u);
  EXPECT_EQ(scrapes_, 1);
  now_ += kMadeUpSecond;
  EXPECT_EQ(Get("/metrics").status, 200u);
  EXPECT_EQ(scrapes_, 2);
}

TEST_F(EndpointsTest, ThePageHasAPolicyOfItsOwn) {
  const HttpAnswer page = Get("/?from=-5m&pid=4711");
  EXPECT_EQ(page.status, 200u);
  EXPECT_THAT(page.headers,
              ::testing::Contains(::testing::Pair("Content-Security-Policy", HasSubstr("script-src 'self'"))));
}

TEST_F(EndpointsTest, CompressesForThoseWhoTakeIt) {
  const HttpAnswer plain = Ask("/api/profile?format=json").get(),
                   packed = Ask("/api/profile?format=json", "br, gzip;q=0.8").get();
  EXPECT_LT(packed.body->size(), plain.body->size());
  EXPECT_EQ(*Gunzip(*packed.body, 1 << 24), *plain.body);
  EXPECT_EQ(*Ask("/api/profile?format=json", "gzip;q=0").get().body, *plain.body);
}

TEST_F(EndpointsTest, ALiveProfileHasTheSamplesOfJustItsTime) {
  now_ = kMadeUpStart + 65 * kMadeUpSecond;  // in the middle of a window
  std::future<HttpAnswer> answer = Ask("/debug/pprof/profile?seconds=10&pid=4711");
  EXPECT_EQ(cuts_, std::vector<uint64_t>{kMadeUpStart + 75 * kMadeUpSecond});
  windows_.Add(ShopWindow(7));
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout) << "five seconds are missing";
  windows_.Add(ShopWindow(8));
  const HttpAnswer got = answer.get();
  ASSERT_EQ(got.status, 200u) << *got.body;
  const absl::StatusOr<ProfileModel> model = ReadProfile(*got.body);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->total_weight, 100 * kMadeUpSample) << "50 samples of each of the two windows";
  EXPECT_EQ(model->meta.duration_ns, 10 * kMadeUpSecond);
}

TEST_F(EndpointsTest, ALiveProfileOfAllocationsBeginsAWindow) {
  now_ = kMadeUpStart + 60 * kMadeUpSecond;
  std::future<HttpAnswer> answer = Ask("/debug/pprof/allocs?seconds=20");
  EXPECT_EQ(cuts_, (std::vector<uint64_t>{now_, now_ + 20 * kMadeUpSecond}));
  for (uint64_t i = 7; i <= 8; ++i) windows_.Add(ShopWindow(i));
  const HttpAnswer got = answer.get();
  ASSERT_EQ(got.status, 200u) << *got.body;
  EXPECT_EQ(got.endpoint, "/debug/pprof/allocs");
  const absl::StatusOr<ProfileModel> model = ReadProfile(*got.body);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->meta.unit, WeightUnit::kBytes);
  EXPECT_EQ(model->total_weight, 2 * 42'000'000u);
}

TEST_F(EndpointsTest, ALiveProfileOfWaitsIsOffCpuInNanoseconds) {
  now_ = kMadeUpStart + 60 * kMadeUpSecond;
  std::future<HttpAnswer> answer = Ask("/debug/pprof/off-cpu?seconds=20");
  for (uint64_t i = 7; i <= 8; ++i) windows_.Add(ShopWindow(i));
  const HttpAnswer got = answer.get();
  ASSERT_EQ(got.status, 200u) << *got.body;
  EXPECT_EQ(got.endpoint, "/debug/pprof/off-cpu");
  const absl::StatusOr<ProfileModel> model = ReadProfile(*got.body);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->meta.view, ProfileView::kOffCpu);
  EXPECT_EQ(model->total_weight, 2 * 4'000'000u) << "read in microseconds";
}

TEST_F(EndpointsTest, AWindowThatEndsThereIsEnough) {
  std::future<HttpAnswer> answer = Ask("/debug/pprof/profile?seconds=5");
  windows_.Add(ShopWindow(13, 5 * kMadeUpSecond));  // 60 s to 65 s
  EXPECT_EQ(answer.get().status, 200u);
}

TEST_F(EndpointsTest, AWindowThatWasThereAlreadyCountsAsWell) {
  now_ = kMadeUpStart + 55 * kMadeUpSecond;  // the clock is behind what has come
  const HttpAnswer got = Get("/debug/pprof/profile?seconds=5");
  EXPECT_EQ(got.status, 200u);
}

TEST_F(EndpointsTest, LiveProfilesAreFew) {
  std::vector<std::future<HttpAnswer>> waiting;
  for (size_t i = 0; i < LiveProfiles::kMostWaiting; ++i) waiting.push_back(Ask("/debug/pprof/profile?seconds=300"));
  const HttpAnswer refused = Get("/debug/pprof/profile?seconds=300");
  EXPECT_EQ(refused.status, 503u);
  EXPECT_THAT(refused.headers, ::testing::Contains(::testing::Key("Retry-After")));
  windows_.Close();
  for (std::future<HttpAnswer>& one : waiting) EXPECT_EQ(one.get().status, 503u) << "clrsampler is ending";
}

TEST_F(EndpointsTest, AProcessThatIsNotThereIsSaidAtOnce) {
  EXPECT_THAT(GetJson("/debug/pprof/profile?pid=12345", 404)["error"], HasSubstr("no process 12345"));
}

// A history whose questions take until they are let go.
class SlowHistory : public History {
 public:
  absl::Status Append(const Window&) override { return absl::OkStatus(); }
  absl::StatusOr<bool> Maintain(uint64_t) override { return false; }
  absl::StatusOr<HistorySpan> Span() override {
    std::unique_lock lock(mutex_);
    ++under_way_;
    most_ = std::max(most_, under_way_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return go_; });
    --under_way_;
    return HistorySpan();
  }
  absl::StatusOr<ProfileModel> Profile(const HistorySelection&, ProfileView) override {
    return absl::DataLossError("the file is damaged");
  }
  absl::StatusOr<clrsampler::Timeline> Timeline(const HistorySelection&, TimelineBy, size_t, size_t) override {
    return clrsampler::Timeline();
  }
  absl::StatusOr<HistoryLanes> Lanes(const HistorySelection&, const LaneQuestion&) override { return HistoryLanes(); }
  absl::StatusOr<HistoryPauses> Pauses(const HistorySelection&, size_t) override { return HistoryPauses(); }
  absl::StatusOr<HistoryMethods> Methods(const HistorySelection&, size_t) override { return HistoryMethods(); }
  absl::StatusOr<HistoryHealth> Health(uint64_t, uint64_t) override { return HistoryHealth(); }
  void EndQuestions() override { Go(); }

  void AwaitUnderWay(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ == count; });
  }
  void Go() {
    const std::lock_guard lock(mutex_);
    go_ = true;
    changed_.notify_all();
  }
  int most_ = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool go_ = false;
};

TEST(EndpointsLimitTest, AnEndIsNotHeldUpByQuestions) {
  SlowHistory history;
  RecentWindows windows(10);
  EndpointParts parts;
  parts.history = &history;
  parts.windows = &windows;
  HttpRequest request;
  request.host = "localhost";
  request.local_socket = true;
  request.target = "/api/status";
  {
    Endpoints endpoints(std::move(parts));
    for (int i = 0; i < 5; ++i) endpoints.Handle(request, [](const HttpAnswer&) {});
    history.AwaitUnderWay(1);
  }
  history.AwaitUnderWay(0);
}

TEST(EndpointsLimitTest, OneQuestionAtATimeAndAShortQueueOfEachAndOfAll) {
  SlowHistory history;
  RecentWindows windows(10);
  EndpointParts parts;
  parts.history = &history;
  parts.windows = &windows;
  Endpoints endpoints(std::move(parts));
  HttpRequest request;
  request.host = "localhost";
  request.local_socket = true;
  request.target = "/api/status";
  std::mutex mutex;
  std::map<unsigned, int> by_status;
  const auto ask = [&](const std::string& target, const std::string& client = "uid 1") {
    request.target = target;
    request.client = client;
    endpoints.Handle(request, [&](HttpAnswer answer) {
      const std::lock_guard lock(mutex);
      ++by_status[answer.status];
    });
  };
  ask("/api/status");
  history.AwaitUnderWay(1);
  for (int i = 0; i < 20; ++i) ask("/api/status");
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(by_status[429], 5) << "16 of one client";
  }
  for (int i = 0; i < 20; ++i) ask("/api/status", absl::StrCat("uid ", 100 + i));
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(by_status[503], 4) << "32 of all";
  }
  ask("/debug/pprof/");
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(by_status[200], 1) << "what is quick does not wait";
  }
  history.Go();
  while (true) {
    const std::lock_guard lock(mutex);
    if (by_status[200] == 33) break;
  }
  EXPECT_EQ(history.most_, 1);
}

TEST(EndpointsLimitTest, AnErrorOfTheStoreIsToldAsItIs) {
  SlowHistory history;
  RecentWindows windows(10);
  EndpointParts parts;
  parts.history = &history;
  parts.windows = &windows;
  Endpoints endpoints(std::move(parts));
  HttpRequest request;
  request.host = "localhost";
  request.local_socket = true;
  request.target = "/api/profile";
  std::promise<HttpAnswer> promise;
  endpoints.Handle(request, [&](HttpAnswer answer) { promise.set_value(std::move(answer)); });
  const HttpAnswer answer = promise.get_future().get();
  EXPECT_EQ(answer.status, 500u);
  EXPECT_THAT(*answer.body, HasSubstr("the file is damaged"));
}

}  // namespace
}  // namespace clrsampler
