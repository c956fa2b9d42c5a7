#include "export/client_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace clrsampler {

ClientName LocalClient(int fd) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {.name = "uid ?"};
  return {.name = absl::StrCat("uid ", peer.uid)};
}

ClientName NetworkClient(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  bool loopback = false;
  in_addr ipv4 = {};
  bool is_ipv4 = false;
  if (address != nullptr && address->sa_family == AF_INET) {
    ipv4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    is_ipv4 = true;
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    in6_addr ipv6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ipv6)) {
      std::copy_n(ipv6.s6_addr + 12, sizeof ipv4, reinterpret_cast<uint8_t*>(&ipv4));
      is_ipv4 = true;
    } else {
      loopback = IN6_IS_ADDR_LOOPBACK(&ipv6);
      if (!loopback) std::fill(ipv6.s6_addr + 8, ipv6.s6_addr + sizeof ipv6.s6_addr, uint8_t{0});
      inet_ntop(AF_INET6, &ipv6, text, sizeof text);
    }
  }
  if (is_ipv4) {
    loopback = (ntohl(ipv4.s_addr) >> 24) == IN_LOOPBACKNET;
    inet_ntop(AF_INET, &ipv4, text, sizeof text);
  }
  // Any user may take any of the 16 million addresses. All of them are one client.
  if (loopback) return {.name = "ip loopback", .counted = false};
  return {.name = absl::StrCat("ip ", text)};
}

}  // namespace clrsampler
