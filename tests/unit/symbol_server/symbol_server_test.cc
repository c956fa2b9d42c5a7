#include "symbol_server/symbol_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "symbol_server/symbol_check.h"
#include "unit/symbol_server/temporary_folder.h"

namespace clrsampler {
namespace {

using State = SymbolFiles::State;

// No network but our own port, on which nobody listens: what a server answers is tested with the whole program
// (symbol_server_live_test.py).
class SymbolServerTest : public testing::Test {
 protected:
  std::unique_ptr<SymbolServer> Start() {
    SymbolServerOptions options;
    url_ = ClosedPort();
    options.servers = {url_};
    options.cache_folder = folder_.path();
    auto server = SymbolServer::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  // It is bound as long as the test runs, so that nobody else gets it, but nobody listens.
  SymbolServerUrl ClosedPort() {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t bytes = sizeof address;
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    bound_ = std::move(socket);
    return *ParseSymbolServerUrl(absl::StrCat("ssqp+http://127.0.0.1:", ntohs(address.sin_port)));
  }

  UniqueFd bound_;
  SymbolServerUrl url_;
  TemporaryFolder folder_;
  Notices notices_;
};

TEST_F(SymbolServerTest, TheCacheAnswersAtOnce) {
  folder_.Write(CacheFileName(FixtureKey()), FixtureBytes("libstripped.so.dbg"));
  const auto server = Start();
  const SymbolFiles::Answer answer = server->Get(FixtureKey());
  ASSERT_EQ(answer.state, State::kHere);
  EXPECT_TRUE(CheckSymbolFile(FixtureKey(), answer.file->bytes()).ok());
  EXPECT_EQ(server->Get(FixtureKey()).file, answer.file) << "mapped once";
  EXPECT_EQ(server->counters().from_cache, 1u);
  EXPECT_EQ(server->counters().wanted, 1u);
}

TEST_F(SymbolServerTest, ADamagedFileInTheCacheIsDiscarded) {
  folder_.Write(CacheFileName(FixtureKey()), FixtureBytes("libstripped.so.dbg").substr(0, 2000));
  const auto server = Start();
  EXPECT_EQ(server->Get(FixtureKey()).state, State::kWaiting);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/" + CacheFileName(FixtureKey())));
}

TEST_F(SymbolServerTest, AServerThatIsDownIsAFailureAndSaidOnce) {
  const auto server = Start();
  const SymbolFileKey other{SymbolFileKind::kElfDebug, std::string(40, 'b'), 0, "other.so"};
  EXPECT_EQ(server->Get(FixtureKey()).state, State::kWaiting);
  EXPECT_EQ(server->Get(other).state, State::kWaiting);
  while (server->counters().failed < 2) {
    server->Poll(notices_);
    usleep(1000);
  }
  EXPECT_EQ(server->Get(FixtureKey()).state, State::kNone);
  EXPECT_EQ(server->generation(), 0u);
  ASSERT_EQ(notices_.kept().size(), 1u);
  EXPECT_THAT(notices_.kept()[0].message, testing::HasSubstr("no symbols for libstripped.so: http://127.0.0.1:"));
  server->Finish(notices_);
  EXPECT_EQ(server->counters().unfinished, 0u);
  EXPECT_THAT(folder_.Names(), testing::IsEmpty()) << "no work folder stays, and a failure is no proof of absence";
}

// A container may map an image with the id of another one under a name that no server knows.
TEST_F(SymbolServerTest, AFileThatIsMissingUnderOneNameIsAskedForUnderAnother) {
  const SymbolFileKey right{SymbolFileKind::kPortablePdb, std::string(40, 'a'), 7, "system.linq.pdb", "SHA256:01"};
  SymbolFileKey wrong_name = right, wrong_checksum = right;
  wrong_name.file_name = "x.pdb";
  wrong_checksum.checksum = "SHA256:02";
  const auto server = Start();
  {
    auto cache = SymbolCache::Open(folder_.path(), {});
    ASSERT_TRUE(cache.ok()) << cache.status();
    const std::vector<SymbolServerUrl> servers = {url_};
    for (const SymbolFileKey& key : {wrong_name, wrong_checksum}) {
      cache->NoteMissing(key, SymbolCache::NumberOf(servers));
    }
  }
  EXPECT_EQ(server->Get(wrong_name).state, State::kNone);
  EXPECT_EQ(server->Get(wrong_checksum).state, State::kNone);
  EXPECT_EQ(server->Get(right).state, State::kWaiting);
}

TEST_F(SymbolServerTest, AFileThatCameUnderAnotherNameIsNotFetchedAgain) {
  SymbolFileKey other = FixtureKey();
  other.file_name = "libother.so";
  const auto server = Start();
  EXPECT_EQ(server->Get(other).state, State::kWaiting);
  folder_.Write(CacheFileName(FixtureKey()), FixtureBytes("libstripped.so.dbg"));
  EXPECT_EQ(server->Get(FixtureKey()).state, State::kHere);
  server->Poll(notices_);
  EXPECT_EQ(server->Get(other).state, State::kHere);
  EXPECT_EQ(server->generation(), 1u);
}

TEST_F(SymbolServerTest, WhatHasNotComeAtTheEndIsCounted) {
  const auto server = Start();
  for (const char digit : {'a', 'b', 'c'}) server->Get({SymbolFileKind::kElfDebug, std::string(40, digit), 0, "x.so"});
  server->Finish(notices_);
  const SymbolServerCounters& counters = server->counters();
  EXPECT_EQ(counters.wanted, 3u);
  EXPECT_EQ(counters.failed + counters.unfinished, 3u);
  EXPECT_GE(counters.unfinished, 2u);
  EXPECT_EQ(server->Get({SymbolFileKind::kElfDebug, std::string(40, 'd'), 0, "x.so"}).state, State::kNone);
}

TEST_F(SymbolServerTest, ATargetCanNotAskForFilesWithoutEnd) {
  const auto server = Start();
  SymbolFileKey key{SymbolFileKind::kElfDebug, "", 0, "x.so"};
  for (size_t i = 0; i < SymbolServer::kMaxWanted + 5; ++i) {
    key.id = absl::StrCat(absl::Hex(i, absl::kZeroPad16));
    server->Get(key);
  }
  EXPECT_EQ(server->counters().wanted, SymbolServer::kMaxWanted);
  EXPECT_EQ(server->counters().not_asked, 5u);
}

TEST_F(SymbolServerTest, WithoutACacheNothingStarts) {
  SymbolServerOptions options;
  options.servers = {ClosedPort()};
  folder_.Write("file", "");
  options.cache_folder = folder_.path() + "/file";
  EXPECT_FALSE(SymbolServer::Start(options).ok());
}

}  // namespace
}  // namespace clrsampler
