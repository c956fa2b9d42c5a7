#include "export/listen_address.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr absl::string_view kAddressHint =
    "127.0.0.1:9404, [::1]:9404, 0.0.0.0:9404 (any client that can reach this host), or unix:/path";
constexpr int kBacklog = 1024;
constexpr mode_t kUnixMode = 0660;
constexpr mode_t kFolderMode = 0755;
constexpr const char* kGroup = "clrsampler";

struct SocketAddress {
  sockaddr_storage bytes = {};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

SocketAddress ToSocketAddress(const ListenAddress& address) {
  SocketAddress result;
  if (address.is_unix()) {
    auto& local = reinterpret_cast<sockaddr_un&>(result.bytes);
    local.sun_family = AF_UNIX;
    std::memcpy(local.sun_path, address.path.c_str(), address.path.size() + 1);
    result.size = sizeof local;
  } else if (address.is_ipv6()) {
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(result.bytes);
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.address.c_str(), &ipv6.sin6_addr);
    result.size = sizeof ipv6;
  } else {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(result.bytes);
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(address.port);
    inet_pton(AF_INET, address.address.c_str(), &ipv4.sin_addr);
    result.size = sizeof ipv4;
  }
  return result;
}

// Removes the socket that a killed server left behind.
absl::Status ClearPath(const ListenAddress& address) {
  struct stat info;
  if (lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) return absl::AlreadyExistsError(absl::StrCat(address.path, " is there and no socket"));
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress to = ToSocketAddress(address);
  if (connect(probe.get(), to.get(), to.size) == 0) {
    return WithHint(absl::AlreadyExistsError(absl::StrCat("another process listens on ", address.path)),
                    "end it, or choose another path with --listen");
  }
  if (errno != ECONNREFUSED) return ErrnoError(errno, address.path);
  if (unlink(address.path.c_str()) != 0) return ErrnoError(errno, address.path);
  return absl::OkStatus();
}

// Makes the folder of a socket where it is missing. systemd makes it for the service.
absl::Status MakeFolderOf(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  // The umask does not matter: the socket says who may connect.
  if (folder.empty() || (mkdir(folder.c_str(), kFolderMode) == 0 && chmod(folder.c_str(), kFolderMode) == 0) ||
      errno == EEXIST) {
    return absl::OkStatus();
  }
  return WithHint(ErrnoError(errno, folder), "make the folder of the socket, or choose another path with --listen");
}

// The owner of the socket may connect. So may the service's group, where root listens by hand and that group exists.
absl::Status SetOwners(const std::string& path) {
  const group* members = geteuid() == 0 ? getgrnam(kGroup) : nullptr;
  if (members != nullptr && lchown(path.c_str(), static_cast<uid_t>(-1), members->gr_gid) != 0) {
    return ErrnoError(errno, path);
  }
  return chmod(path.c_str(), kUnixMode) == 0 ? absl::OkStatus() : ErrnoError(errno, path);
}

}  // namespace

bool ListenAddress::is_loopback() const { return is_unix() || absl::StartsWith(address, "127.") || address == "::1"; }

bool ListenAddress::is_any_address() const { return address == "0.0.0.0" || address == "::"; }

std::string ListenAddress::host() const { return is_ipv6() ? absl::StrCat("[", address, "]") : address; }

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const auto wrong = [&](absl::string_view why) {
    return WithHint(absl::InvalidArgumentError(absl::StrCat("can't listen on ", text, ": ", why)), kAddressHint);
  };
  ListenAddress result;
  if (absl::ConsumePrefix(&text, "unix:")) {
    result.path = std::string(text);
    if (!absl::StartsWith(text, "/")) return wrong("the path of a socket must begin with /");
    if (text.size() >= sizeof(sockaddr_un::sun_path)) return wrong("the path of a socket has at most 107 bytes");
    if (text.find('\0') != absl::string_view::npos) return wrong("the path has a zero byte");
    return result;
  }
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return wrong("no port");
  }
  result.port = static_cast<uint16_t>(port);
  absl::string_view address = text.substr(0, colon);
  const bool brackets = absl::StartsWith(address, "[") && absl::EndsWith(address, "]");
  if (brackets) address = address.substr(1, address.size() - 2);
  // One form for each address, so that it can be compared.
  char normal[INET6_ADDRSTRLEN];
  unsigned char bytes[sizeof(in6_addr)];
  const int family = brackets ? AF_INET6 : AF_INET;
  if (inet_pton(family, std::string(address).c_str(), bytes) != 1 ||
      inet_ntop(family, bytes, normal, sizeof normal) == nullptr) {
    return wrong("no address before the port");
  }
  result.address = normal;
  return result;
}

absl::StatusOr<UniqueFd> OpenListenSocket(ListenAddress& address) {
  const std::string name = address.is_unix() ? address.path : absl::StrCat(address.host(), ":", address.port);
  if (address.is_unix()) {
    RETURN_IF_ERROR(MakeFolderOf(address.path));
    RETURN_IF_ERROR(ClearPath(address));
  }
  SocketAddress to = ToSocketAddress(address);
  UniqueFd fd(socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "a socket");
  const int on = 1;
  if (!address.is_unix()) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), to.get(), to.size) != 0) {
    return WithHint(ErrnoError(errno, absl::StrCat("can't listen on ", name)),
                    errno == EADDRINUSE ? "another process listens there: end it, or choose another port with --listen"
                                        : "choose another address with --listen");
  }
  // Nobody can connect before listen(), so the permissions are in place in time.
  if (address.is_unix()) RETURN_IF_ERROR(SetOwners(address.path));
  if (listen(fd.get(), kBacklog) != 0) return ErrnoError(errno, absl::StrCat("can't listen on ", name));
  if (!address.is_unix() && address.port == 0) {
    SocketAddress bound;
    bound.size = sizeof bound.bytes;
    if (getsockname(fd.get(), bound.get(), &bound.size) != 0) return ErrnoError(errno, name);
    address.port = ntohs(address.is_ipv6() ? reinterpret_cast<sockaddr_in6&>(bound.bytes).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(bound.bytes).sin_port);
  }
  return fd;
}

}  // namespace clrsampler
