#include "export/live_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>

#include "export/endpoints.h"
#include "unit/export/made_up_windows.h"

namespace clrsampler {
namespace {

using test_support::kMadeUpSample;
using test_support::kMadeUpSecond;
using test_support::kMadeUpStart;
using test_support::ShopWindow;
using ::testing::HasSubstr;

// Asks for the first seconds of the made-up windows.
class LiveProfilesTest : public ::testing::Test {
 protected:
  std::future<absl::StatusOr<ProfileModel>> Begin(LiveProfiles& live, uint64_t seconds) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<ProfileModel>>>();
    const absl::Status begun = live.Begin(
        {.from_unix_ns = kMadeUpStart, .to_unix_ns = kMadeUpStart + seconds * kMadeUpSecond}, ProfileView::kCpu,
        kMadeUpStart,
        [this](absl::FunctionRef<void()> work) {
          ++paid_;
          work();
        },
        [promise](absl::StatusOr<ProfileModel> model) { promise->set_value(std::move(model)); });
    EXPECT_TRUE(begun.ok()) << begun;
    return promise->get_future();
  }

  std::atomic<int> paid_ = 0;
  RecentWindows windows_{10};
};

TEST_F(LiveProfilesTest, EachWindowAndTheEndArePaidFor) {
  LiveProfiles live(windows_, nullptr);
  auto profile = Begin(live, 20);
  windows_.Add(ShopWindow(1));
  windows_.Add(ShopWindow(2));
  const absl::StatusOr<ProfileModel> model = profile.get();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->total_weight, 2 * 140 * kMadeUpSample);
  EXPECT_GE(paid_, 2);
}

TEST_F(LiveProfilesTest, TooManyStacksEndItAtOnce) {
  LiveProfiles live(windows_, nullptr, {.rows = 3});
  auto profile = Begin(live, 300);
  windows_.Add(ShopWindow(1));
  EXPECT_TRUE(absl::IsResourceExhausted(profile.get().status()));
}

// The profile of the client that asked second is complete with a window that the first one has in it by then.
TEST(LiveProfileBudgetTest, AClientPaysForWindowsBeforeItsProfileEnds) {
  RecentWindows windows(10);
  EndpointParts parts;
  parts.access.anonymous = true;
  parts.windows = &windows;
  parts.queries.client = {.share = 1e-6, .burst_ns = 1};
  parts.now_unix_ns = [] { return kMadeUpStart; };
  Endpoints endpoints(std::move(parts));
  const auto ask = [&](const std::string& client, const std::string& target) {
    HttpRequest request;
    request.method = "GET";
    request.host = "127.0.0.1:9404";
    request.client = client;
    request.target = target;
    auto promise = std::make_shared<std::promise<HttpAnswer>>();
    endpoints.Handle(request, [promise](HttpAnswer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  };
  std::future<HttpAnswer> first = ask("uid 1", "/debug/pprof/profile?seconds=300");
  std::future<HttpAnswer> second = ask("uid 2", "/debug/pprof/profile?seconds=10");
  windows.Add(ShopWindow(1));
  EXPECT_EQ(second.get().status, 200u);
  const HttpAnswer refused = ask("uid 1", "/api/status").get();
  EXPECT_EQ(refused.status, 429u) << *refused.body;
  windows.Close();
  EXPECT_EQ(first.get().status, 503u);
}

}  // namespace
}  // namespace clrsampler
