#include "symbol_server/fetch_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/symbol_server/temporary_folder.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Answers by "server place"; what is not listed is missing.
class FakeFetcher : public SymbolFetcher {
 public:
  struct Answer {
    FetchOutcome outcome;
    std::string content;
  };
  FakeFetcher(std::map<std::string, Answer>& answers, std::vector<std::string>& asked)
      : answers_(answers), asked_(asked) {}

  size_t Places(const SymbolServerUrl&, const SymbolFileKey&) const override { return 2; }
  FetchOutcome Fetch(const SymbolServerUrl& server, const SymbolFileKey&, size_t place,
                     const std::string& path) override {
    const std::string question = server.base + " " + std::to_string(place);
    asked_.push_back(question);
    EXPECT_FALSE(std::filesystem::exists(path)) << "what came before is gone";
    const Answer answer = answers_[question];
    if (!answer.content.empty()) std::ofstream(path, std::ios::binary) << answer.content;
    return answer.outcome;
  }

 private:
  std::map<std::string, Answer>& answers_;
  std::vector<std::string>& asked_;
};

class FetchWorkerTest : public testing::Test {
 protected:
  FetchWorker Worker() {
    std::vector<std::unique_ptr<SymbolFetcher>> fetchers;
    fetchers.push_back(std::make_unique<FakeFetcher>(answers_, asked_));
    auto cache = SymbolCache::Open(cache_folder_.path(), {});
    return FetchWorker({{"a", true, true}, {"b", true, true}}, std::move(fetchers), *std::move(cache),
                       work_folder_.path());
  }
  void Found(const std::string& question, const std::string& content) {
    answers_[question] = {{FetchResult::kFound, ""}, content};
  }
  void Fails(const std::string& question, FetchResult result) {
    answers_[question] = {{result, "it is a pity"}, "half"};
  }

  TemporaryFolder cache_folder_, work_folder_;
  std::map<std::string, FakeFetcher::Answer> answers_;
  std::vector<std::string> asked_;
};

TEST_F(FetchWorkerTest, StoresTheFirstFileThatIsTheRightOne) {
  Found("b 0", FixtureBytes("libstripped.so.dbg"));
  const OrderReply reply = Worker().Do(7, FixtureKey());
  EXPECT_EQ(reply.number, 7u);
  EXPECT_EQ(reply.result, OrderResult::kStored);
  EXPECT_EQ(reply.bytes, FixtureBytes("libstripped.so.dbg").size());
  EXPECT_THAT(asked_, ElementsAre("a 0", "a 1", "b 0"));
  EXPECT_THAT(cache_folder_.Names(), ElementsAre(CacheFileName(FixtureKey())));
  EXPECT_THAT(work_folder_.Names(), testing::IsEmpty());
}

TEST_F(FetchWorkerTest, AWrongFileIsRejectedAndTheSearchGoesOn) {
  std::string other = FixtureBytes("libstripped.so.dbg");
  const auto image = ElfImage::Parse(AsBytes(other));
  other[static_cast<size_t>(image->build_id().data() - AsBytes(other).data())] ^= 1;
  Found("a 0", other);
  Found("a 1", "<html>not found</html>");
  FetchWorker worker = Worker();
  OrderReply reply = worker.Do(1, FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kRejected);
  EXPECT_EQ(reply.rejected, 2u);
  EXPECT_THAT(reply.detail, HasSubstr("a: "));
  EXPECT_THAT(cache_folder_.Names(), testing::Not(testing::Contains(CacheFileName(FixtureKey()))));
  Found("b 1", FixtureBytes("libwhole.so"));  // the image before it was stripped serves as well
  reply = worker.Do(2, FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kStored);
  EXPECT_EQ(reply.rejected, 2u);
}

TEST_F(FetchWorkerTest, TheStrippedImageItselfIsNoAnswerAndNoFault) {
  Found("a 1", FixtureBytes("libstripped.so"));
  const OrderReply reply = Worker().Do(1, FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kMissing);
  EXPECT_EQ(reply.rejected, 0u);
}

TEST_F(FetchWorkerTest, OnlyCertainAbsenceIsRemembered) {
  const std::vector<SymbolServerUrl> servers = {{"a", true, true}, {"b", true, true}};
  const uint64_t number = SymbolCache::NumberOf(servers);
  Fails("b 0", FetchResult::kFailed);
  EXPECT_EQ(Worker().Do(1, FixtureKey()).result, OrderResult::kFailed);
  EXPECT_FALSE(SymbolCache::Open(cache_folder_.path(), {})->IsMissing(FixtureKey(), number));
  answers_.clear();
  EXPECT_EQ(Worker().Do(1, FixtureKey()).result, OrderResult::kMissing);
  EXPECT_TRUE(SymbolCache::Open(cache_folder_.path(), {})->IsMissing(FixtureKey(), number));
}

TEST_F(FetchWorkerTest, AServerThatGivesNoAnswerIsLeftAlone) {
  Fails("a 0", FetchResult::kUnreachable);
  Fails("a 1", FetchResult::kUnreachable);
  FetchWorker worker = Worker();
  for (uint64_t order = 0; order < 5; ++order) {
    EXPECT_EQ(worker.Do(order, FixtureKey()).result, OrderResult::kFailed);
  }
  EXPECT_EQ(std::count_if(asked_.begin(), asked_.end(), [](const std::string& question) { return question[0] == 'a'; }),
            FetchWorker::kMaxUnreachable);
}

TEST_F(FetchWorkerTest, AnR2rMapIsKnownByItsSignature) {
  const std::string map = *ReadWholeFile(CLRSAMPLER_TESTDATA "/r2r/10.0.14-x64/shapes.ni.r2rmap", 1 << 20);
  const std::string other = *ReadWholeFile(CLRSAMPLER_TESTDATA "/r2r/8.0.30-x64/shapes.ni.r2rmap", 1 << 20);
  const std::string signature = map.substr(map.find("FFFFFFFF 00 ") + 12, 32);
  std::array<uint8_t, 16> bytes;
  for (size_t i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(std::stoi(signature.substr(2 * i, 2), nullptr, 16));
  const SymbolFileKey key = *R2rMapKey(bytes, 1, "shapes.ni.r2rmap");
  Found("a 0", other);
  Found("b 0", map);
  const OrderReply reply = Worker().Do(1, key);
  EXPECT_EQ(reply.result, OrderResult::kStored);
  EXPECT_EQ(reply.rejected, 1u);
}

TEST(FetchMessagesTest, ComeBackAsTheyWent) {
  const SymbolFileKey key{SymbolFileKind::kR2rMap, std::string(32, 'a'), 1, "x y.r2rmap"};
  const auto order = ParseOrder(OrderText(12, key));
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->first, 12u);
  EXPECT_EQ(order->second, key);
  OrderReply reply;
  reply.number = 3;
  reply.result = OrderResult::kRejected;
  reply.bytes = 4;
  reply.rejected = 5;
  reply.failures = 6;
  reply.detail = "two\nlines";
  const auto back = ParseReply(ReplyText(reply));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->result, OrderResult::kRejected);
  EXPECT_EQ(back->number + back->bytes + back->rejected + back->failures, 18u);
  EXPECT_EQ(back->detail, "two lines");
}

TEST(FetchMessagesTest, WhatDoesNotFitIsNoMessage) {
  const std::string id(40, 'a');
  for (const std::string& bad :
       std::vector<std::string>{"", "1\n0\n" + id + "\n0", "1\n7\n" + id + "\n0\nx", "1\n0\n../x\n0\nx",
                                "-1\n0\n" + id + "\n0\nx", "1\n0\n" + id + "\n0\nx\ny"}) {
    EXPECT_FALSE(ParseOrder(bad).has_value()) << bad;
  }
  for (const char* bad : {"", "1", "1\n9\n0\n0\n0\n", "1\n0\n-5\n0\n0\n", "1\n0\n0\n0\n0\na\nb"}) {
    EXPECT_FALSE(ParseReply(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace clrsampler
