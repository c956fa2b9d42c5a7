#include "symbol_server/fetch_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test_paths.h"
#include "unit/formats/pdb/pdb_fixture.h"
#include "unit/symbol_server/temporary_folder.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

// Answers by address; what is not listed is missing.
class FakeFetcher : public SymbolFetcher {
 public:
  struct Answer {
    FetchOutcome outcome;
    std::string content;
  };
  FakeFetcher(std::map<std::string, Answer>& answers, std::vector<std::string>& asked)
      : answers_(answers), asked_(asked) {}

  FetchOutcome Fetch(const std::string& url, const std::string& header, int file) override {
    asked_.push_back(header.empty() ? url : absl::StrCat(url, " ", header));
    EXPECT_EQ(lseek(file, 0, SEEK_END), 0) << "what came before is gone";
    const Answer answer = answers_[url];
    EXPECT_TRUE(WriteAll(file, answer.content).ok());
    return answer.outcome;
  }

 private:
  std::map<std::string, Answer>& answers_;
  std::vector<std::string>& asked_;
};

// The questions to a server, in this order.
std::vector<std::string> Urls(const std::string& server, const SymbolFileKey& key) {
  std::vector<std::string> urls;
  for (const std::string& path : DebuginfodPaths(key)) urls.push_back(server + "/" + path);
  for (const std::string& path : SsqpPaths(key)) urls.push_back(server + "/" + path);
  return urls;
}

class FetchWorkerTest : public testing::Test {
 protected:
  FetchWorker Worker() {
    return FetchWorker({{"a", true, true}, {"b", true, true}}, std::make_unique<FakeFetcher>(answers_, asked_));
  }
  OrderReply Do(const SymbolFileKey& key) {
    FetchWorker worker = Worker();
    return worker.Do(7, key, file_.get());
  }
  std::string Received() {
    lseek(file_.get(), 0, SEEK_SET);
    return *ReadWholeFile(file_.get(), 1 << 20);
  }
  const std::string a0_ = Urls("a", FixtureKey())[0], a1_ = Urls("a", FixtureKey())[1],
                    b0_ = Urls("b", FixtureKey())[0], b1_ = Urls("b", FixtureKey())[1];
  void Found(const std::string& question, const std::string& content) {
    answers_[question] = {{FetchResult::kFound, ""}, content};
  }
  void Fails(const std::string& question, FetchResult result) {
    answers_[question] = {{result, "it is a pity"}, "half"};
  }

  const UniqueFd file_{memfd_create("received", MFD_CLOEXEC)};
  std::map<std::string, FakeFetcher::Answer> answers_;
  std::vector<std::string> asked_;
};

TEST_F(FetchWorkerTest, TakesTheFirstFileThatIsTheRightOne) {
  Found(b0_, FixtureBytes("libstripped.so.dbg"));
  const OrderReply reply = Do(FixtureKey());
  EXPECT_EQ(reply.number, 7u);
  EXPECT_EQ(reply.result, OrderResult::kReceived);
  EXPECT_EQ(reply.bytes, FixtureBytes("libstripped.so.dbg").size());
  std::vector<std::string> expected = Urls("a", FixtureKey());
  expected.push_back(b0_);
  EXPECT_EQ(asked_, expected);
  EXPECT_EQ(Received(), FixtureBytes("libstripped.so.dbg"));
}

TEST_F(FetchWorkerTest, AServerIsAskedInItsProtocolsOnly) {
  FetchWorker worker({{"a", true, false}, {"b", false, true}}, std::make_unique<FakeFetcher>(answers_, asked_));
  EXPECT_EQ(worker.Do(1, FixtureKey(), file_.get()).result, OrderResult::kMissing);
  std::vector<std::string> expected = Urls("b", FixtureKey());
  expected.front() = a0_;
  EXPECT_EQ(asked_, expected);
}

TEST_F(FetchWorkerTest, AWrongFileIsRejectedAndTheSearchGoesOn) {
  std::string other = FixtureBytes("libstripped.so.dbg");
  const auto image = ElfImage::Parse(AsBytes(other));
  other[static_cast<size_t>(image->build_id().data() - AsBytes(other).data())] ^= 1;
  Found(a0_, other);
  Found(a1_, "<html>not found</html>");
  OrderReply reply = Do(FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kRejected);
  EXPECT_EQ(reply.rejected, 2u);
  EXPECT_THAT(reply.detail, HasSubstr("a: "));
  Found(b1_, FixtureBytes("libwhole.so"));  // the image before it was stripped serves as well
  reply = Do(FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kReceived);
  EXPECT_EQ(reply.rejected, 2u);
  EXPECT_EQ(Received(), FixtureBytes("libwhole.so"));
}

TEST_F(FetchWorkerTest, TheStrippedImageItselfIsNoAnswerAndNoFault) {
  Found(a1_, FixtureBytes("libstripped.so"));
  const OrderReply reply = Do(FixtureKey());
  EXPECT_EQ(reply.result, OrderResult::kMissing);
  EXPECT_EQ(reply.rejected, 0u);
}

TEST_F(FetchWorkerTest, AFailureIsNoProofOfAbsence) {
  Fails(b0_, FetchResult::kFailed);
  EXPECT_EQ(Do(FixtureKey()).result, OrderResult::kFailed);
  answers_.clear();
  EXPECT_EQ(Do(FixtureKey()).result, OrderResult::kMissing);
}

TEST_F(FetchWorkerTest, AServerThatGivesNoAnswerIsLeftAlone) {
  for (const std::string& url : Urls("a", FixtureKey())) Fails(url, FetchResult::kUnreachable);
  FetchWorker worker = Worker();
  for (uint64_t order = 0; order < 5; ++order) {
    EXPECT_EQ(worker.Do(order, FixtureKey(), file_.get()).result, OrderResult::kFailed);
  }
  EXPECT_EQ(std::count_if(asked_.begin(), asked_.end(), [](const std::string& question) { return question[0] == 'a'; }),
            FetchWorker::kMaxUnreachable);
}

TEST_F(FetchWorkerTest, AnR2rMapIsKnownByItsSignature) {
  const std::string map = *ReadWholeFile(TestData("r2r/10.0.14-x64/shapes.ni.r2rmap"), 1 << 20);
  const std::string other = *ReadWholeFile(TestData("r2r/8.0.30-x64/shapes.ni.r2rmap"), 1 << 20);
  const std::string signature = map.substr(map.find("FFFFFFFF 00 ") + 12, 32);
  std::array<uint8_t, 16> bytes;
  for (size_t i = 0; i < 16; ++i) bytes[i] = static_cast<uint8_t>(std::stoi(signature.substr(2 * i, 2), nullptr, 16));
  const SymbolFileKey key = *R2rMapKey(bytes, 1, "shapes.ni.r2rmap");
  Found(Urls("a", key)[0], other);
  Found(Urls("b", key)[0], map);
  const OrderReply reply = Do(key);
  EXPECT_EQ(reply.result, OrderResult::kReceived);
  EXPECT_EQ(reply.rejected, 1u);
}

TEST_F(FetchWorkerTest, APdbIsTheOneOfTheAssemblyOrNone) {
  const SymbolFileKey key{SymbolFileKind::kPortablePdb, "4bc0b10f04764a029162cb4f7377d4c6ffffffff", 0xe8520945,
                          "linked.pdb", "SHA256:0fb1"};
  const std::string path = "/linked.pdb/4bc0b10f04764a029162cb4f7377d4c6ffffffff/linked.pdb";
  const std::string good = ReadPdbFixture("linked.pdb");
  std::string other_stamp = good;
  const std::string stamp("\x45\x09\x52\xe8", 4);
  ASSERT_NE(other_stamp.find(stamp), std::string::npos);
  other_stamp[other_stamp.find(stamp)] ^= 1;
  Found("a" + path, other_stamp);
  Found("b" + path, good);
  OrderReply reply = Do(key);
  EXPECT_EQ(reply.result, OrderResult::kReceived);
  EXPECT_EQ(reply.bytes, good.size());
  EXPECT_EQ(reply.rejected, 1u);
  EXPECT_THAT(asked_, testing::ElementsAre("a" + path + " SymbolChecksum: SHA256:0fb1",
                                           "b" + path + " SymbolChecksum: SHA256:0fb1"));
  Found("b" + path, good.substr(0, 300));
  reply = Do(key);
  EXPECT_EQ(reply.result, OrderResult::kRejected);
  EXPECT_EQ(reply.rejected, 2u);
}

TEST(FetchMessagesTest, ComeBackAsTheyWent) {
  const SymbolFileKey key{SymbolFileKind::kPortablePdb, std::string(32, 'a'), 1, "x y.pdb", "SHA256:00"};
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
       std::vector<std::string>{"", "1\n0\n" + id + "\n0\n", "1\n7\n" + id + "\n0\n\nx", "1\n0\n../x\n0\n\nx",
                                "-1\n0\n" + id + "\n0\n\nx", "1\n0\n" + id + "\n0\n\nx\ny"}) {
    EXPECT_FALSE(ParseOrder(bad).has_value()) << bad;
  }
  for (const char* bad : {"", "1", "1\n9\n0\n0\n0\n", "1\n0\n-5\n0\n0\n", "1\n0\n0\n0\n0\na\nb"}) {
    EXPECT_FALSE(ParseReply(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace clrsampler
