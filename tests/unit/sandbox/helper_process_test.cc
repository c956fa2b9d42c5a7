#include "sandbox/helper_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace clrsampler {
namespace {

constexpr uint64_t kLimit = 1 << 20;

HelperOptions Fetcher() { return {.name = "fetcher", .max_file_bytes = kLimit, .profile = FetcherProfile()}; }

// The tests wait for the other process as the main loop does: by asking again.
std::optional<std::string> Await(HelperProcess& process) {
  for (;;) {
    if (std::optional<std::string> datagram = process.Receive()) return datagram;
    if (process.ended()) return std::nullopt;
    usleep(1000);
  }
}

int OpenSocket(int family, int type) { return socket(family, type, 1); }

void Say(int socket, const std::string& text) { (void)!send(socket, text.data(), text.size(), 0); }

TEST(HelperProcessTest, CarriesDatagramsBothWays) {
  auto process = HelperProcess::Start(Fetcher(), [](int socket) {
    char buffer[100];
    for (ssize_t got; (got = recv(socket, buffer, sizeof buffer, 0)) > 0;) {
      Say(socket, "echo " + std::string(buffer, static_cast<size_t>(got)));
    }
  });
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(process->Send("one"));
  EXPECT_TRUE(process->Send("two"));
  EXPECT_EQ(Await(*process), "echo one");
  EXPECT_EQ(Await(*process), "echo two");
  EXPECT_FALSE(process->Receive().has_value());
  EXPECT_FALSE(process->ended());
}

TEST(HelperProcessTest, IsEndedWhateverItDoes) {
  pid_t pid = 0;
  {
    auto process = HelperProcess::Start(Fetcher(), [](int socket) {
      Say(socket, "stuck");
      for (;;) pause();
    });
    ASSERT_TRUE(process.ok());
    pid = process->pid();
    EXPECT_EQ(Await(*process), "stuck");
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH) << "gone, and no zombie";
}

TEST(HelperProcessTest, ItsOwnEndIsSeen) {
  auto process = HelperProcess::Start(Fetcher(), [](int) {});
  ASSERT_TRUE(process.ok());
  EXPECT_FALSE(Await(*process).has_value());
  EXPECT_TRUE(process->ended());
  EXPECT_FALSE(process->Send("anything"));
}

TEST(HelperProcessTest, ManyOrdersDoNotBlock) {
  auto process = HelperProcess::Start(Fetcher(), [](int) {
    for (;;) pause();
  });
  ASSERT_TRUE(process.ok());
  const std::string text(1000, 'x');
  int sent = 0;
  while (process->Send(text)) ++sent;
  EXPECT_GT(sent, 10);
  EXPECT_FALSE(process->ended());
  EXPECT_FALSE(process->Send(std::string(HelperProcess::kMaxDatagramBytes + 1, 'x')));
}

TEST(HelperProcessTest, AFileGoesAlongWithADatagram) {
  auto process = HelperProcess::Start(Fetcher(), [](int socket) {
    while (const auto message = HelperProcess::Wait(socket)) {
      const bool written = message->file.valid() && write(message->file.get(), "here", 4) == 4;
      Say(socket, message->text + (written ? " written" : " nothing"));
    }
  });
  ASSERT_TRUE(process.ok());
  const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  EXPECT_TRUE(process->Send("one", file.get()));
  EXPECT_TRUE(process->Send("two"));
  EXPECT_EQ(Await(*process), "one written");
  EXPECT_EQ(Await(*process), "two nothing");
  char text[5] = "";
  EXPECT_EQ(pread(file.get(), text, 4, 0), 4);
  EXPECT_STREQ(text, "here");
}

// The rights that an attacker who took over the process would have.
TEST(HelperProcessTest, HasNoCapabilitiesNoOpenFilesAndASmallDisk) {
  const UniqueFd opened(open("/etc/hostname", O_RDONLY | O_CLOEXEC));
  const int secret = fcntl(opened.get(), F_DUPFD, 50);  // without close-on-exec
  ASSERT_GE(secret, 0);
  auto process = HelperProcess::Start(Fetcher(), [secret](int socket) {
    std::string said = fcntl(secret, F_GETFD) < 0 ? "closed" : "open";
    FILE* status = fopen("/proc/self/status", "re");
    char line[256];
    while (status != nullptr && fgets(line, sizeof line, status) != nullptr) {
      const std::string text(line);
      if (text.rfind("CapEff:", 0) == 0 || text.rfind("CapPrm:", 0) == 0) said += " " + text.substr(8, 16);
      if (text.rfind("NoNewPrivs:", 0) == 0) said += " " + text.substr(12, 1);
    }
    const auto message = HelperProcess::Wait(socket);
    said += ftruncate(message->file.get(), kLimit + 1) == 0 ? " large" : " limited";
    said += ftruncate(message->file.get(), kLimit) == 0 ? " enough" : " nothing";
    Say(socket, said);
  });
  close(secret);
  ASSERT_TRUE(process.ok());
  char path[] = "/tmp/clrsampler_limit_XXXXXX";
  const UniqueFd file(mkstemp(path));
  unlink(path);
  EXPECT_TRUE(process->Send("a file", file.get()));
  EXPECT_EQ(Await(*process), "closed 0000000000000000 0000000000000000 1 limited enough");
}

// The same of what it may do. Each of these works where nothing is given up.
TEST(HelperProcessTest, ReachesNothingOfThisHost) {
  char path[] = "/tmp/clrsampler_reach_XXXXXX";
  const UniqueFd file(mkstemp(path));
  auto process = HelperProcess::Start(Fetcher(), [&path](int socket) {
    std::string said;
    const auto tried = [&](const char* what, bool worked) { said += worked ? std::string(what) + " " : ""; };
    tried("read", UniqueFd(open(path, O_RDONLY)).valid());
    tried("write", UniqueFd(open(path, O_WRONLY)).valid());
    tried("make", UniqueFd(open("/tmp/clrsampler_made", O_WRONLY | O_CREAT, 0600)).valid());
    tried("unlink", unlink(path) == 0);
    tried("signal", kill(getppid(), 0) == 0);
    tried("fork", fork() >= 0);
    tried("raw", UniqueFd(OpenSocket(AF_INET, SOCK_RAW)).valid());
    tried("packet", UniqueFd(OpenSocket(AF_PACKET, SOCK_RAW)).valid());
    execl("/bin/true", "true", nullptr);
    Say(socket, said + "and it is still here");
  });
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(Await(*process), "and it is still here");
  unlink(path);
}

}  // namespace
}  // namespace clrsampler
