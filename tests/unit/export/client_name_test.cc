#include "export/client_name.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace clrsampler {
namespace {

ClientName Of(const char* text) {
  sockaddr_storage bytes = {};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(bytes);
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(bytes);
  if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    bytes.ss_family = AF_INET;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &ipv6.sin6_addr), 1) << text;
    bytes.ss_family = AF_INET6;
  }
  return NetworkClient(reinterpret_cast<const sockaddr*>(&bytes));
}

TEST(ClientNameTest, AddressesOfTheNetwork) {
  EXPECT_EQ(Of("10.0.0.7").name, "ip 10.0.0.7");
  EXPECT_EQ(Of("::ffff:10.0.0.7").name, "ip 10.0.0.7");
  EXPECT_TRUE(Of("10.0.0.7").counted);
  EXPECT_EQ(Of("2001:db8:1:2:3:4:5:6").name, Of("2001:db8:1:2:ffff::").name) << "one client has them all";
  EXPECT_NE(Of("2001:db8:1:2::1").name, Of("2001:db8:1:3::1").name);
  EXPECT_EQ(NetworkClient(nullptr).name, "ip ?");
}

TEST(ClientNameTest, AllLoopbackAddressesAreOneClient) {
  for (const char* text : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.9"}) {
    EXPECT_EQ(Of(text).name, "ip loopback") << text;
    EXPECT_FALSE(Of(text).counted) << text;
  }
}

TEST(ClientNameTest, AUserOnAUnixSocket) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(LocalClient(pair[0]).name, absl::StrCat("uid ", getuid()));
  EXPECT_TRUE(LocalClient(pair[0]).counted);
  EXPECT_EQ(LocalClient(-1).name, "uid ?");
  close(pair[0]);
  close(pair[1]);
}

}  // namespace
}  // namespace clrsampler
