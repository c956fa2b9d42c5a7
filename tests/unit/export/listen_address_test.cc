#include "export/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

TEST(ListenAddressTest, TakesAddressesAndPaths) {
  const ListenAddress usual = *ParseListenAddress(kDefaultListenAddress);
  EXPECT_EQ(usual.address, "127.0.0.1");
  EXPECT_EQ(usual.port, 9404);
  EXPECT_TRUE(usual.is_loopback());
  const ListenAddress six = *ParseListenAddress("[0:0:0:0:0:0:0:1]:80");
  EXPECT_EQ(six.host(), "[::1]");
  EXPECT_TRUE(six.is_loopback());
  EXPECT_TRUE(ParseListenAddress("0.0.0.0:9404")->is_any_address());
  EXPECT_FALSE(ParseListenAddress("10.1.2.3:9404")->is_loopback());
  EXPECT_EQ(ParseListenAddress("unix:/run/x.sock")->path, "/run/x.sock");
}

TEST(ListenAddressTest, RefusesTheRest) {
  for (const std::string text :
       {"", "9404", ":9404", "localhost:9404", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:9404",
        "[127.0.0.1]:9404", "[::1]", "unix:", "unix:run/x.sock", "127.1:80", "example.com:80"}) {
    EXPECT_FALSE(ParseListenAddress(text).ok()) << text;
  }
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(200, 'x')).ok());
}

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    char folder[] = "/tmp/clrsampler_listen.XXXXXX";
    folder_ = mkdtemp(folder);
    address_.path = folder_ + "/socket";
  }
  ~UnixSocketTest() override {
    unlink(address_.path.c_str());
    rmdir(folder_.c_str());
  }
  std::string folder_;
  ListenAddress address_;
};

TEST_F(UnixSocketTest, IsForOwnerAndGroup) {
  const absl::StatusOr<UniqueFd> fd = OpenListenSocket(address_);
  ASSERT_TRUE(fd.ok()) << fd.status();
  struct stat info;
  ASSERT_EQ(stat(address_.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
}

TEST_F(UnixSocketTest, OneThatNobodyListensOnIsReplaced) {
  { ASSERT_TRUE(OpenListenSocket(address_).ok()); }
  EXPECT_TRUE(OpenListenSocket(address_).ok());
}

TEST_F(UnixSocketTest, OneInUseIsLeftAlone) {
  const absl::StatusOr<UniqueFd> first = OpenListenSocket(address_);
  ASSERT_TRUE(first.ok());
  const absl::Status second = OpenListenSocket(address_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << second;
}

TEST_F(UnixSocketTest, AFileIsNeverRemoved) {
  std::ofstream(address_.path) << "precious";
  EXPECT_EQ(OpenListenSocket(address_).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(access(address_.path.c_str(), F_OK), 0);
}

TEST(ListenSocketTest, TellsTheRealPort) {
  ListenAddress address = *ParseListenAddress("127.0.0.1:0");
  const absl::StatusOr<UniqueFd> fd = OpenListenSocket(address);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_NE(address.port, 0);
  ListenAddress same = *ParseListenAddress(absl::StrCat("127.0.0.1:", address.port));
  EXPECT_FALSE(OpenListenSocket(same).ok()) << "two servers on one port";
}

}  // namespace
}  // namespace clrsampler
