// Names the client that asks, as far as the connection says it: a client's budget is kept under this name.
#ifndef CLRSAMPLER_EXPORT_CLIENT_NAME_H_
#define CLRSAMPLER_EXPORT_CLIENT_NAME_H_

#include <sys/socket.h>

#include <string>

namespace clrsampler {

struct ClientName {
  std::string name;
  bool counted = true;  // its connections have a limit of their own; not on the loopback address, which all users share
};

// The client of a connected Unix socket: the user at its other end when it connected.
ClientName LocalClient(int fd);
// An address of IPv6 counts by its first 64 bits: a client has all addresses behind them. nullptr: all such clients are
// one.
ClientName NetworkClient(const sockaddr* address);

}  // namespace clrsampler

#endif  // CLRSAMPLER_EXPORT_CLIENT_NAME_H_
