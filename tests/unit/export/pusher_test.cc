#include "export/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "absl/strings/match.h"
#include "export/push_request.h"
#include "export/pyroscope_push.h"
#include "formats/profile/profile_reader.h"
#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSample;
using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using test_support::WindowBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PushUrlTest, TakesServersAndRefusesTheRest) {
  EXPECT_EQ(*ParsePushUrl("https://pyroscope.example:4040/"), "https://pyroscope.example:4040");
  EXPECT_EQ(*ParsePushUrl("http://[::1]:4040/profiles"), "http://[::1]:4040/profiles");
  for (const absl::string_view text :
       {"", "pyroscope:4040", "ftp://x", "https://", "http://:4040", "https://user:secret@x", "https://x/?a=b",
        "https://x/#a", "https://x y/", "file:///etc/passwd", "https://x/\n"}) {
    EXPECT_FALSE(ParsePushUrl(text).ok()) << text;
  }
}

std::map<std::string, uint64_t> WeightsOf(const std::vector<PushRequest>& requests) {
  std::map<std::string, uint64_t> weights;
  for (const PushRequest& request : requests) {
    if (request.view != ProfileView::kCpu) continue;
    const absl::StatusOr<ProfileModel> model = ReadProfile(request.profile);
    EXPECT_TRUE(model.ok()) << model.status();
    if (model.ok()) weights[request.name] = model->total_weight / kMadeUpSample;
  }
  return weights;
}

TEST(PushRequestTest, OneForEachService) {
  const auto requests = PushRequestsOf(*ShopWindow(3), PushBy::kService, 50, {{"host", "web-3"}});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ(WeightsOf(*requests),
            (std::map<std::string, uint64_t>{{"shop-web{host=web-3}", 100}, {"envoy{host=web-3}", 40}}));
  EXPECT_EQ((*requests)[0].from_unix_ns, kMadeUpStart + 20 * kMadeUpSecond);
  EXPECT_EQ((*requests)[0].until_unix_ns, kMadeUpStart + 30 * kMadeUpSecond);
}

TEST(PushRequestTest, AnotherOneForWhatAServiceAllocates) {
  const auto requests = PushRequestsOf(*ShopWindow(1), PushBy::kService, 50, {});
  ASSERT_TRUE(requests.ok());
  ASSERT_EQ(requests->size(), 4u) << "two of CPU time, one of allocations and one of waits";
  const PushRequest& allocations = (*requests)[2];
  EXPECT_EQ(allocations.name, "shop-web{}");
  EXPECT_EQ(allocations.view, ProfileView::kAllocations);
  const absl::StatusOr<ProfileModel> model = ReadProfile(allocations.profile);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->total_weight, 42'000'000u);
  EXPECT_EQ(model->meta.view, ProfileView::kAllocations);
  EXPECT_THAT(MakePushBody(allocations.profile, allocations.view).bytes,
              HasSubstr("\"alloc_space\":{\"units\":\"bytes\""));
}

TEST(PushRequestTest, AnotherOneForWhatAServiceWaitsFor) {
  const auto requests = PushRequestsOf(*ShopWindow(1), PushBy::kService, 50, {});
  ASSERT_TRUE(requests.ok());
  const PushRequest& waits = requests->back();
  EXPECT_EQ(waits.name, "shop-web{}");
  EXPECT_EQ(waits.view, ProfileView::kOffCpu);
  const absl::StatusOr<ProfileModel> model = ReadProfile(waits.profile);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->meta.view, ProfileView::kOffCpu);
  EXPECT_THAT(MakePushBody(waits.profile, waits.view).bytes, HasSubstr("\"off_cpu\":{\"units\":\"nanoseconds\""));
}

TEST(PushRequestTest, OneForEachProcess) {
  const auto requests = PushRequestsOf(*ShopWindow(1), PushBy::kProcess, 50, {{"host", "web-3"}});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ(WeightsOf(*requests), (std::map<std::string, uint64_t>{{"shop-web{comm=Shop,host=web-3,pid=4711}", 100},
                                                                   {"envoy{comm=envoy,host=web-3,pid=99}", 40}}));
}

TEST(PushRequestTest, TheRestIsOneMore) {
  WindowBuilder builder(1, kMadeUpStart);
  for (uint32_t pid = 1; pid <= 10; ++pid) builder.Process(pid, absl::StrCat("app", pid), pid);
  const auto requests = PushRequestsOf(*builder.Build(), PushBy::kService, 2, {});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ(WeightsOf(*requests), (std::map<std::string, uint64_t>{{"app10{}", 10}, {"app9{}", 9}, {"other{}", 36}}));
}

TEST(PushRequestTest, SamplesOfAPidThatIsThereTwiceGoToTheProcessThatTheNameTells) {
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(7, "before", 3);
  builder.Process(7, "after", 4);
  const auto requests = PushRequestsOf(*builder.Build(), PushBy::kService, 50, {});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ(WeightsOf(*requests), (std::map<std::string, uint64_t>{{"before{}", 3}, {"after{}", 4}}));
}

TEST(PushRequestTest, NoNameBreaksOutOfItsPlace) {
  WindowBuilder builder(1, kMadeUpStart);
  builder.Process(1, "a{b=c},d\n&e f\xff", 1);
  const auto requests = PushRequestsOf(*builder.Build(), PushBy::kProcess, 2, {{"host", "x}{"}});
  ASSERT_TRUE(requests.ok());
  EXPECT_EQ((*requests)[0].name, "a_b_c__d_&e_f\xEF\xBF\xBD{comm=a_b_c__d_&e_f\xEF\xBF\xBD,host=x__,pid=1}");
  const std::string url = PushUrl("http://x", (*requests)[0]);
  EXPECT_THAT(url, HasSubstr("%26e_f"));
  EXPECT_EQ(url.find_first_of(" \n{}"), std::string::npos);
}

TEST(PushRequestTest, ABodyEndsWhereItSays) {
  const PushBody body = MakePushBody("--clrsampler-\r\n", ProfileView::kCpu);
  const std::string boundary = body.content_type.substr(body.content_type.find('=') + 1);
  EXPECT_TRUE(absl::EndsWith(body.bytes, absl::StrCat("\r\n--", boundary, "--\r\n")));
  EXPECT_TRUE(absl::StartsWith(body.bytes, absl::StrCat("--", boundary, "\r\n")));
}

TEST(BackoffTest, DoublesUpToTheLongestAndIsShortenedByChance) {
  const PushOptions options;
  EXPECT_EQ(BackoffAfter(1, options, 0), std::chrono::seconds(1));
  EXPECT_EQ(BackoffAfter(4, options, 0), std::chrono::seconds(8));
  EXPECT_EQ(BackoffAfter(4, options, 1), std::chrono::seconds(4));
  EXPECT_EQ(BackoffAfter(7, options, 0), std::chrono::seconds(60));
  EXPECT_EQ(BackoffAfter(4'000'000'000u, options, 0.5), std::chrono::seconds(45));
}

constexpr unsigned kNoAnswer = 1;  // until the request is cancelled

// A server that answers as it is told, the last answer again and again.
class MadeUpServer {
 public:
  explicit MadeUpServer(std::vector<unsigned> answers) : answers_(std::move(answers)) {}

  PostOutcome Answer(const std::string& url) {
    std::unique_lock lock(mutex_);
    urls_.push_back(url);
    changed_.notify_all();
    PostOutcome outcome;
    outcome.status = answers_[std::min(urls_.size(), answers_.size()) - 1];
    if (outcome.status == kNoAnswer) {
      changed_.wait(lock, [&] { return cancelled_; });
      outcome.status = 0;
    }
    if (outcome.status == 0) outcome.error = "nobody there";
    outcome.answer = "no \x01 thanks";
    return outcome;
  }
  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return urls_.size() >= count; });
    return urls_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> urls_;
  const std::vector<unsigned> answers_;
  bool cancelled_ = false;
};

class MadeUpPoster : public HttpPoster {
 public:
  explicit MadeUpPoster(MadeUpServer& server) : server_(server) {}
  PostOutcome Post(const std::string& url, const std::vector<std::string>& headers, absl::string_view body) override {
    EXPECT_THAT(headers, ::testing::Contains(HasSubstr("multipart/form-data")));
    EXPECT_FALSE(body.empty());
    return server_.Answer(url);
  }
  void Cancel() override { server_.Cancel(); }

 private:
  MadeUpServer& server_;
};

class PusherTest : public ::testing::Test {
 protected:
  std::unique_ptr<Pusher> Start(MadeUpServer& server, size_t queue_bytes = 1 << 20) {
    PushOptions options;
    options.queue_bytes = queue_bytes;
    options.first_wait = std::chrono::milliseconds(1);
    options.longest_wait = std::chrono::milliseconds(5);
    PushObserver observer;
    observer.sent = [this](PushResult result, const PushMessage&) {
      const std::lock_guard lock(mutex_);
      ++results_[result];
    };
    observer.lost = [this](PushLoss loss, uint64_t) {
      const std::lock_guard lock(mutex_);
      ++losses_[loss];
    };
    observer.said = [this](const std::string& sentence) {
      const std::lock_guard lock(mutex_);
      said_.push_back(sentence);
    };
    PyroscopeOptions pyroscope;
    pyroscope.url = "http://server";
    return Pusher::Start(options, MakePyroscopeProtocol(pyroscope), std::make_unique<MadeUpPoster>(server), windows_,
                         observer);
  }
  RecentWindows windows_{8};
  std::mutex mutex_;
  std::map<PushResult, int> results_;
  std::map<PushLoss, int> losses_;
  std::vector<std::string> said_;
};

TEST_F(PusherTest, SendsEachServiceOfEachWindow) {
  MadeUpServer server({200});
  auto pusher = Start(server);
  for (uint64_t i = 1; i <= 3; ++i) windows_.Add(ShopWindow(i));
  const std::vector<std::string> urls = server.Await(12);
  ASSERT_EQ(urls.size(), 12u) << "of two services the CPU time, and of one the allocations and the waits";
  EXPECT_EQ(urls[0],
            "http://server/ingest?name=envoy%7B%7D&from=1790000000&until=1790000010&format=pprof&spyName=clrsampler");
  pusher.reset();
  EXPECT_EQ(results_[PushResult::kSent], 12);
  EXPECT_TRUE(losses_.empty() && said_.empty());
}

TEST_F(PusherTest, TriesAgainWhileTheServerIsDown) {
  MadeUpServer server({0, 503, 429, 200});
  auto pusher = Start(server);
  windows_.Add(ShopWindow(1));
  const std::vector<std::string> urls = server.Await(7);
  ASSERT_EQ(urls.size(), 7u) << "three that failed, and the four of the window";
  EXPECT_EQ(urls[0], urls[3]) << "in order: the first one comes first";
  EXPECT_NE(urls[3], urls[4]);
  pusher.reset();
  EXPECT_EQ(results_[PushResult::kFailed], 3);
  EXPECT_EQ(results_[PushResult::kSent], 4);
  EXPECT_THAT(said_, ElementsAre("profiles can't be sent to http://server: nobody there",
                                 "profiles arrive at http://server again"));
}

TEST_F(PusherTest, WhatIsRefusedIsNotSentAgain) {
  MadeUpServer server({400, 302, 200});
  auto pusher = Start(server);
  windows_.Add(ShopWindow(1));
  windows_.Add(ShopWindow(2));
  server.Await(8);
  pusher.reset();
  EXPECT_EQ(losses_[PushLoss::kRefused], 2);
  EXPECT_EQ(results_[PushResult::kSent], 6);
  EXPECT_THAT(said_, ElementsAre("http://server refuses profiles: HTTP status 400 (no   thanks)",
                                 "http://server refuses profiles: HTTP status 302 (no   thanks)"));
}

TEST_F(PusherTest, AnEndCancelsTheRequestThatIsUnderWay) {
  MadeUpServer server({kNoAnswer});
  auto pusher = Start(server);
  windows_.Add(ShopWindow(1));
  ASSERT_EQ(server.Await(1).size(), 1u);
  pusher.reset();
  EXPECT_EQ(losses_[PushLoss::kEnding], 4);
  EXPECT_TRUE(results_.empty() && said_.empty()) << "nobody has failed";
}

TEST_F(PusherTest, AQueueThatIsFullLosesTheOldest) {
  MadeUpServer server({0});
  const PushRequest first = (*PushRequestsOf(*ShopWindow(1), PushBy::kService, 50, {}))[0];
  auto pusher = Start(server, 3 * MakePushBody(first.profile, first.view).bytes.size());
  for (uint64_t i = 1; i <= 40; ++i) {
    windows_.Add(ShopWindow(i));
    server.Await(i * 4);  // time goes on
  }
  pusher.reset();
  EXPECT_GT(losses_[PushLoss::kQueueFull] + losses_[PushLoss::kWindow] * 4, 130);
  EXPECT_LE(losses_[PushLoss::kEnding], 4);
  EXPECT_EQ(losses_[PushLoss::kQueueFull] + losses_[PushLoss::kEnding] + 4 * losses_[PushLoss::kWindow], 160)
      << "each one is counted";
}

}  // namespace
}  // namespace clrsampler
