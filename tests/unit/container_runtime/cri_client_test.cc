#include "container_runtime/cri_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/grpc/grpc_message.h"
#include "formats/labels/cri_messages.h"
#include "status/status.h"

namespace clrsampler {
namespace {

using ::testing::HasSubstr;

const std::string kId(64, 'a'), kInner(64, 'b');

std::string Field(int number, const std::string& bytes) {
  std::string tag(1, static_cast<char>((number << 3 | 2) & 0x7f));
  if (number > 15) tag = {static_cast<char>((number << 3 | 2) | 0x80), static_cast<char>(number >> 4)};
  return absl::StrCat(tag, std::string(1, static_cast<char>(bytes.size())), bytes);
}

std::string ContainerAnswer(const std::string& id) {
  std::string item = Field(1, id);
  item += Field(2, "sandbox-of-" + id.substr(0, 4));
  item += Field(3, Field(1, "web"));
  item += Field(4, Field(1, "sha256:" + std::string(64, 'c')) + Field(18, "r/shop:1.2"));
  const std::string length = {static_cast<char>((item.size() & 0x7f) | 0x80), static_cast<char>(item.size() >> 7)};
  return "\x0a" + length + item;
}

std::string PodAnswer(const std::string& id) {
  return Field(1, Field(1, id) + Field(2, Field(1, "shop-1") + Field(3, "prod")));
}

PostOutcome Good(const std::string& message) {
  PostOutcome outcome;
  outcome.status = 200;
  outcome.answer = GrpcFrame(message, /*compressed=*/false);
  outcome.fields = {{"grpc-status", "0"}};
  return outcome;
}

class FakePoster : public HttpPoster {
 public:
  explicit FakePoster(std::vector<PostOutcome> outcomes) : outcomes_(std::move(outcomes)) {}
  PostOutcome Post(const std::string& url, const std::vector<std::string>&, absl::string_view body) override {
    asked.push_back({url, std::string(body)});
    if (outcomes_.empty()) return {};
    PostOutcome outcome = std::move(outcomes_.front());
    outcomes_.erase(outcomes_.begin());
    return outcome;
  }
  void Cancel() override {}

  std::vector<std::pair<std::string, std::string>> asked;

 private:
  std::vector<PostOutcome> outcomes_;
};

CriAnswer Ask(std::vector<PostOutcome> outcomes, std::vector<std::string> ids = {kId},
              const absl::Status& socket = absl::OkStatus()) {
  CriClient client(std::make_unique<FakePoster>(std::move(outcomes)), [&] { return socket; });
  return client.Ask({5, std::move(ids)});
}

TEST(CriClientTest, TwoCallsNameAContainer) {
  auto poster = std::make_unique<FakePoster>(
      std::vector<PostOutcome>{Good(ContainerAnswer(kId)), Good(PodAnswer("sandbox-of-aaaa"))});
  const FakePoster& fake = *poster;
  CriClient client(std::move(poster), [] { return absl::OkStatus(); });
  const CriAnswer answer = client.Ask({5, {kId}});
  EXPECT_EQ(answer.number, 5u);
  ASSERT_EQ(answer.result, CriResult::kKnown) << answer.failure;
  ProcessLabels expected;
  expected.Set(LabelKey::kKubernetesNamespace, "prod");
  expected.Set(LabelKey::kKubernetesPod, "shop-1");
  expected.Set(LabelKey::kKubernetesContainer, "web");
  expected.Set(LabelKey::kImageName, "r/shop");
  expected.Set(LabelKey::kImageTag, "1.2");
  EXPECT_EQ(answer.labels, expected);
  ASSERT_EQ(fake.asked.size(), 2u);
  EXPECT_EQ(fake.asked[0].first, "http://localhost/runtime.v1.RuntimeService/ListContainers");
  EXPECT_THAT(fake.asked[0].second, HasSubstr(kId));
  EXPECT_EQ(fake.asked[1].first, "http://localhost/runtime.v1.RuntimeService/ListPodSandbox");
  EXPECT_THAT(fake.asked[1].second, HasSubstr("sandbox-of-aaaa"));
}

TEST(CriClientTest, AnImageWithoutANameIsAskedForAndMayStayUnknown) {
  const std::string by_id = Field(1, Field(1, kId) + Field(2, "s"));
  const std::string status = Field(1, Field(1, kId) + Field(8, Field(1, "shop:1.2")));
  const CriAnswer named = Ask({Good(by_id), Good(PodAnswer("s")), Good(status)});
  EXPECT_EQ(named.labels.Get(LabelKey::kImageName), "shop");
  EXPECT_EQ(named.labels.Get(LabelKey::kImageTag), "1.2");
  const CriAnswer unnamed = Ask({Good(by_id), Good(PodAnswer("s")), PostOutcome()});
  EXPECT_EQ(unnamed.result, CriResult::kKnown);
  EXPECT_EQ(unnamed.labels.Get(LabelKey::kKubernetesPod), "shop-1");
}

TEST(CriClientTest, AContainerThatIsNotThereIsUnknown) {
  EXPECT_EQ(Ask({Good("")}).result, CriResult::kUnknown);
  EXPECT_EQ(Ask({Good(ContainerAnswer(kId)), Good("")}).result, CriResult::kUnknown) << "its pod has ended";
}

TEST(CriClientTest, OfContainersWithinEachOtherTheOutermostThatIsKnownCounts) {
  const CriAnswer answer = Ask({Good(ContainerAnswer(kId)), Good(PodAnswer("sandbox-of-aaaa"))}, {kId, kInner});
  EXPECT_EQ(answer.labels.Get(LabelKey::kKubernetesPod), "shop-1");
  EXPECT_EQ(answer.labels.Get(LabelKey::kImageName), "") << "the inner one has an image of its own";
  const CriAnswer nested =
      Ask({Good(""), Good(ContainerAnswer(kInner)), Good(PodAnswer("sandbox-of-bbbb"))}, {kId, kInner});
  EXPECT_EQ(nested.labels.Get(LabelKey::kImageName), "r/shop");
}

TEST(CriClientTest, AnAnswerAboutAnotherContainerIsNotTaken) {
  const CriAnswer answer = Ask({Good(ContainerAnswer(kInner))});
  EXPECT_EQ(answer.result, CriResult::kBad);
  EXPECT_TRUE(answer.labels.empty());
  const CriAnswer pod = Ask({Good(ContainerAnswer(kId)), Good(PodAnswer("another"))});
  EXPECT_EQ(pod.result, CriResult::kBad);
  EXPECT_TRUE(pod.labels.empty());
}

TEST(CriClientTest, BadAnswersSayWhatIsWrong) {
  PostOutcome endless = Good("x");
  endless.cut = true;
  EXPECT_THAT(Ask({endless}).failure, HasSubstr("does not end"));
  PostOutcome unframed = Good("");
  unframed.answer = "abc";
  EXPECT_THAT(Ask({unframed}).failure, HasSubstr("can't be read"));
  PostOutcome old;
  old.status = 200;
  old.fields = {{"grpc-status", "12"}, {"grpc-message", "unknown service runtime.v1.RuntimeService"}};
  const CriAnswer answer = Ask({old});
  EXPECT_EQ(answer.result, CriResult::kBad);
  EXPECT_EQ(answer.failure, "it answers with the gRPC status UNIMPLEMENTED: unknown service runtime.v1.RuntimeService");
  EXPECT_THAT(answer.hint, HasSubstr("version v1"));
  PostOutcome page;
  page.status = 404;
  EXPECT_EQ(Ask({page}).result, CriResult::kBad);
}

TEST(CriClientTest, WithoutAnAnswerTheSocketSaysWhy) {
  PostOutcome none;
  none.error = "Timeout was reached";
  const CriAnswer hanging = Ask({none});
  EXPECT_EQ(hanging.result, CriResult::kUnreachable);
  EXPECT_EQ(hanging.failure, "it gives no answer: Timeout was reached");
  const CriAnswer closed = Ask({none}, {kId}, WithHint(absl::PermissionDeniedError("closed"), "be root"));
  EXPECT_EQ(closed.result, CriResult::kUnreachable);
  EXPECT_EQ(closed.failure, "closed");
  EXPECT_EQ(closed.hint, "be root");
}

TEST(CriClientTest, ASocketThatIsNotThereHasAHint) {
  const absl::Status status = CheckCriSocket("/nonexistent/cri.sock");
  EXPECT_THAT(status.message(), HasSubstr("/nonexistent/cri.sock"));
  EXPECT_THAT(HintOf(status), HasSubstr("/run/containerd/containerd.sock"));
  EXPECT_FALSE(CheckCriSocket(std::string(200, '/')).ok());
}

}  // namespace
}  // namespace clrsampler
