// Tells a service manager how the service does: sd_notify(3)'s protocol, a datagram to the socket in $NOTIFY_SOCKET.
#ifndef CLRSAMPLER_OS_SERVICE_NOTIFY_H_
#define CLRSAMPLER_OS_SERVICE_NOTIFY_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// `state` is lines like "READY=1", "STATUS=...", "WATCHDOG=1", "STOPPING=1". Without a service manager nothing happens.
absl::Status NotifyServiceManager(absl::string_view state);

// How often it wants to hear WATCHDOG=1 at least (half of that time is a good interval); nullopt: not at all.
std::optional<uint64_t> WatchdogNs();

}  // namespace clrsampler

#endif  // CLRSAMPLER_OS_SERVICE_NOTIFY_H_
