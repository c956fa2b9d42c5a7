// Where the server listens: "127.0.0.1:9404", "[::1]:9404", "unix:/run/clrsampler/http.sock".
#ifndef CLRSAMPLER_EXPORT_LISTEN_ADDRESS_H_
#define CLRSAMPLER_EXPORT_LISTEN_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "os/unique_fd.h"

namespace clrsampler {

inline constexpr absl::string_view kDefaultListenAddress = "127.0.0.1:9404";

struct ListenAddress {
  std::string path;     // of a Unix socket; empty: none
  std::string address;  // of IPv4 or IPv6, without []
  uint16_t port = 0;    // 0: any that is free

  bool is_unix() const { return !path.empty(); }
  bool is_ipv6() const { return address.find(':') != std::string::npos; }
  bool is_loopback() const;     // or a Unix socket: nobody from elsewhere can connect
  bool is_any_address() const;  // 0.0.0.0 or [::]
  std::string host() const;     // as in a Host header: IPv6 in []
};

// Addresses only: names may resolve to anything. InvalidArgument.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// A socket that listens, not blocking. A Unix socket gets mode 0660 and, made by root, the group clrsampler where there
// is one. Its folder is made. A file of that name is replaced only if it is a socket on which nobody listens.
// `address.port` becomes the real one.
absl::StatusOr<UniqueFd> OpenListenSocket(ListenAddress& address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_LISTEN_ADDRESS_H_
