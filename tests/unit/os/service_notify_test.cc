#include "os/service_notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "os/unique_fd.h"

namespace clrsampler {
namespace {

class ServiceNotifyTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
};

TEST_F(ServiceNotifyTest, WithoutAManagerNothingHappens) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyServiceManager("READY=1").ok());
  EXPECT_FALSE(WatchdogNs());
}

TEST_F(ServiceNotifyTest, SendsToASocketInTheAbstractNamespace) {
  const UniqueFd manager(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The kernel chooses a name that nobody has.
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address.sun_family), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(manager.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string name(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  ASSERT_TRUE(NotifyServiceManager("READY=1\nSTATUS=well").ok());
  char text[100];
  const ssize_t got = recv(manager.get(), text, sizeof text, MSG_DONTWAIT);
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(text, static_cast<size_t>(got)), "READY=1\nSTATUS=well");
}

TEST_F(ServiceNotifyTest, SaysWhatIsWrong) {
  setenv("NOTIFY_SOCKET", "not a path", 1);
  EXPECT_EQ(NotifyServiceManager("READY=1").code(), absl::StatusCode::kInvalidArgument);
  setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_EQ(NotifyServiceManager("READY=1").code(), absl::StatusCode::kInvalidArgument);
  setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
  EXPECT_FALSE(NotifyServiceManager("READY=1").ok());
}

TEST_F(ServiceNotifyTest, TheWatchdogIsOursOrNot) {
  setenv("WATCHDOG_USEC", "2500000", 1);
  EXPECT_EQ(WatchdogNs(), 2'500'000'000u);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(WatchdogNs(), 2'500'000'000u);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_FALSE(WatchdogNs());
  setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_FALSE(WatchdogNs());
}

}  // namespace
}  // namespace clrsampler
