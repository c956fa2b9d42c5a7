#include "clr/inprocess/library_session.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "clrsampler/inprocess_ring.h"
#include "inprocess/ring_writer.h"
#include "os/fd_message.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

constexpr MonotonicTime kSoon{1000};

// This process is the program that is started with the library.
class LibrarySocketTest : public testing::Test {
 protected:
  LibrarySocketTest() {
    std::string pattern = (fs::temp_directory_path() / "library_session_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/agent";
  }
  ~LibrarySocketTest() override { fs::remove_all(folder_); }

  void Await() {
    auto socket = LibrarySocket::Listen(path_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    auto ring = SharedRing::Create(kMinInprocessCapacity);
    ASSERT_TRUE(ring.ok()) << ring.status();
    auto session = LibrarySession::Await(*std::move(socket), 1, *std::move(ring));
    ASSERT_TRUE(session.ok()) << session.status();
    session_.emplace(*std::move(session));
  }
  // 0, or the error.
  int Connect(UniqueFd& client) const {
    client = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    return connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  }
  // As the library does that has got its ring. False: nothing came.
  static bool Run(const UniqueFd& program) {
    char buffer[256];
    const std::optional<FdMessage> config = ReceiveFdMessage(program.get(), buffer);
    if (!config.has_value() || config->bytes.size() != sizeof(InprocessConfig) || !config->fd.valid()) return false;
    const size_t bytes = kInprocessHeaderBytes + kMinInprocessCapacity;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, config->fd.get(), 0);
    if (memory == MAP_FAILED) return false;
    InprocessRingWriter writer;
    const bool opened = writer.Open(memory, bytes);
    writer.SayThatItRuns();
    munmap(memory, bytes);
    return opened;
  }
  bool Step() {
    return session_->Step(kSoon, [](LibraryRecord) {});
  }

  std::string folder_, path_;
  std::optional<LibrarySession> session_;
};

TEST_F(LibrarySocketTest, TheFirstProgramGetsTheRingAndOthersDoNotWait) {
  Await();
  EXPECT_FALSE(Step());
  EXPECT_FALSE(session_->began());
  UniqueFd program, early_child, late_child;
  ASSERT_EQ(Connect(program), 0);
  ASSERT_EQ(Connect(early_child), 0);
  EXPECT_FALSE(Step());
  EXPECT_EQ(session_->tgid(), static_cast<uint32_t>(getpid()));
  EXPECT_FALSE(session_->began());
  ASSERT_TRUE(Run(program));
  EXPECT_FALSE(Step());
  EXPECT_TRUE(session_->began());

  EXPECT_EQ(Connect(late_child), ENOENT);
  char buffer[256];
  const ssize_t got = recv(early_child.get(), buffer, sizeof buffer, 0);
  EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "it hears at once that nothing comes: " << strerror(errno);
  program.reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
}

TEST_F(LibrarySocketTest, AnotherAgentMayListenThereThen) {
  Await();
  UniqueFd program;
  ASSERT_EQ(Connect(program), 0);
  EXPECT_FALSE(Step());
  auto another = LibrarySocket::Listen(path_);
  ASSERT_TRUE(another.ok()) << another.status();
  session_.reset();
  EXPECT_TRUE(fs::exists(path_)) << "the end of the first one leaves it alone";
}

TEST_F(LibrarySocketTest, ALibraryThatRefusesIsAnError) {
  Await();
  UniqueFd program;
  ASSERT_EQ(Connect(program), 0);
  EXPECT_FALSE(Step());
  program.reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(absl::IsFailedPrecondition(session_->status())) << session_->status();
}

TEST_F(LibrarySocketTest, ALibraryThatRanAndLeftBetweenTwoStepsIsNone) {
  Await();
  UniqueFd program;
  ASSERT_EQ(Connect(program), 0);
  EXPECT_FALSE(Step());
  ASSERT_TRUE(Run(program));
  program.reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
}

TEST_F(LibrarySocketTest, AStopWhileTheLibraryBeginsWaitsForIt) {
  Await();
  UniqueFd program;
  ASSERT_EQ(Connect(program), 0);
  EXPECT_FALSE(Step());
  session_->Stop(kSoon);
  EXPECT_FALSE(session_->over());
  ASSERT_TRUE(Run(program));
  EXPECT_FALSE(Step());
  program.reset();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
  EXPECT_FALSE(session_->stayed());
}

TEST_F(LibrarySocketTest, TheEndOfTheProcessIsTheEndThoughAChildHasTheConnection) {
  Await();
  UniqueFd program;
  ASSERT_EQ(Connect(program), 0);
  EXPECT_FALSE(Step());
  ASSERT_TRUE(Run(program));
  const UniqueFd of_child(dup(program.get()));
  program.reset();
  EXPECT_FALSE(Step());
  session_->ProcessEnded();
  EXPECT_TRUE(Step());
  EXPECT_TRUE(session_->status().ok()) << session_->status();
}

TEST_F(LibrarySocketTest, NothingIsLeftWhereNoProgramCame) {
  Await();
  session_->Stop(kSoon);
  EXPECT_TRUE(session_->over());
  session_.reset();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(LibrarySocketTest, EveryUserReachesRootsAgent) {
  const mode_t before = umask(027);
  Await();
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, geteuid() == 0 ? 0777u : 0750u);
}

TEST_F(LibrarySocketTest, WhatIsThereIsNotReplaced) {
  Await();
  EXPECT_FALSE(LibrarySocket::Listen(path_).ok());
  EXPECT_TRUE(fs::exists(path_));
  path_ = folder_ + std::string(sizeof(sockaddr_un), 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(LibrarySocket::Listen(path_).status()));
}

}  // namespace
}  // namespace clrsampler
