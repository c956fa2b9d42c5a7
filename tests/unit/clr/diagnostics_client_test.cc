#include "clr/diagnostics_client.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include "unit/clr/fake_runtime.h"

namespace clrsampler {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

constexpr MonotonicTime kNow{1000};
constexpr MonotonicTime kDeadline{2000};

// One end is the exchange's, the other one the hostile server's.
class ExchangeTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_ = UniqueFd(ends[1]);
    exchange_.emplace(UniqueFd(ends[0]), EncodeDiagnosticsRequest(DiagnosticsCommand::kDisablePerfMap), kDeadline);
  }
  void Send(absl::string_view bytes) {
    ASSERT_EQ(send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  static std::string Ok() { return EncodeDiagnosticsReply(std::nullopt, AsBytes(absl::string_view("\0\0\0\0", 4))); }

  UniqueFd server_;
  std::optional<DiagnosticsExchange> exchange_;
};

TEST_F(ExchangeTest, SendsTheRequestAndTakesTheReply) {
  EXPECT_FALSE(exchange_->Step(kNow));
  char bytes[64];
  EXPECT_EQ(recv(server_.get(), bytes, sizeof bytes, 0), 20);
  Send(Ok());
  EXPECT_TRUE(exchange_->Step(kNow));
  EXPECT_TRUE(exchange_->status().ok()) << exchange_->status();
  EXPECT_FALSE(exchange_->error().has_value());
  EXPECT_EQ(exchange_->payload().size(), 4u);
  EXPECT_EQ(exchange_->fd(), -1);
}

TEST_F(ExchangeTest, AReplyMayComeByteByByte) {
  for (const char byte : Ok()) {
    EXPECT_FALSE(exchange_->Step(kNow));
    Send(absl::string_view(&byte, 1));
  }
  EXPECT_TRUE(exchange_->Step(kNow));
  EXPECT_TRUE(exchange_->status().ok());
}

TEST_F(ExchangeTest, NoAnswerEndsAtTheDeadline) {
  EXPECT_FALSE(exchange_->Step({kDeadline.ns - 1}));
  EXPECT_TRUE(exchange_->Step(kDeadline));
  EXPECT_TRUE(absl::IsDeadlineExceeded(exchange_->status()));
}

TEST_F(ExchangeTest, HalfAnAnswerEndsAtTheDeadlineToo) {
  Send(Ok().substr(0, 21));
  EXPECT_FALSE(exchange_->Step(kNow));
  EXPECT_TRUE(exchange_->Step(kDeadline));
  EXPECT_TRUE(absl::IsDeadlineExceeded(exchange_->status()));
}

TEST_F(ExchangeTest, AClosedConnectionIsNoAnswer) {
  Send(Ok().substr(0, 21));
  server_.reset();
  EXPECT_TRUE(exchange_->Step(kNow));
  EXPECT_TRUE(absl::IsUnavailable(exchange_->status()));
}

TEST_F(ExchangeTest, AnotherProtocolIsAnErrorAtTheFirstByte) {
  Send("H");
  EXPECT_TRUE(exchange_->Step(kNow));
  EXPECT_TRUE(absl::IsDataLoss(exchange_->status()));
}

TEST_F(ExchangeTest, AFloodIsReadNoFurtherThanOneMessage) {
  std::string flood = Ok();
  flood[14] = flood[15] = static_cast<char>(0xFF);  // says that it has 65,535 bytes
  Send(flood);
  size_t sent = flood.size();
  const std::string more(64 << 10, 'x');
  while (!exchange_->Step(kNow) && sent < (1 << 20)) {
    const ssize_t got = send(server_.get(), more.data(), more.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got > 0) sent += static_cast<size_t>(got);
  }
  EXPECT_TRUE(exchange_->status().ok());
  EXPECT_EQ(exchange_->payload().size(), 65535u - 20);
  EXPECT_LT(sent, 1u << 20);
}

TEST(DiagnosticsSocketTest, TheNameHoldsTheInnermostPidAndTheStartTime) {
  FakeRuntime runtime;
  EXPECT_THAT(DiagnosticsSocketPaths(runtime.proc_root(), runtime.identity(), runtime.files()),
              ElementsAre("/tmp" + runtime.SocketName(runtime.ticks())));
}

TEST(DiagnosticsSocketTest, TmpdirComesFirstAndTmpIsTriedAsWell) {
  FakeRuntime runtime;
  runtime.SetEnvironment(absl::string_view("TMPDIR=/var/x//\0", 16));
  const std::string name = runtime.SocketName(runtime.ticks());
  EXPECT_THAT(DiagnosticsSocketPaths(runtime.proc_root(), runtime.identity(), runtime.files()),
              ElementsAre("/var/x" + name, "/tmp" + name));
  runtime.SetEnvironment(absl::string_view("TMPDIR=relative\0", 16));
  EXPECT_THAT(DiagnosticsSocketPaths(runtime.proc_root(), runtime.identity(), runtime.files()),
              ElementsAre("/tmp" + name));
}

TEST(DiagnosticsSocketTest, ATimeNamespaceMovesTheStartTime) {
  FakeRuntime runtime;
  FakeRuntime::Write(runtime.process() + "/timens_offsets", "monotonic 0 0\nboottime -100 0\n");
  const uint64_t hertz = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  EXPECT_THAT(DiagnosticsSocketPaths(runtime.proc_root(), runtime.identity(), runtime.files()),
              ElementsAre(EndsWith(runtime.SocketName(runtime.ticks() - 100 * hertz))));
  FakeRuntime::Write(runtime.process() + "/timens_offsets", "boottime 0 12345678\n");  // one tick and something
  EXPECT_THAT(DiagnosticsSocketPaths(runtime.proc_root(), runtime.identity(), runtime.files()),
              ElementsAre(EndsWith(runtime.SocketName(runtime.ticks() + 1)),
                          EndsWith(runtime.SocketName(runtime.ticks() + 2))));
}

TEST(DiagnosticsSocketTest, ConnectsToTheTargetItself) {
  FakeRuntime runtime;
  runtime.Serve();
  const auto connection = ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files());
  EXPECT_TRUE(connection.ok()) << connection.status();
}

TEST(DiagnosticsSocketTest, APathLongerThanAnAddressIsReached) {
  FakeRuntime runtime;
  const std::string directory = "/" + std::string(100, 'a') + "/" + std::string(100, 'b');
  std::filesystem::create_directories(runtime.InTarget(directory));
  runtime.SetEnvironment(absl::StrCat("TMPDIR=", directory) + '\0');
  runtime.Serve(nullptr, directory);
  EXPECT_TRUE(ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files()).ok());
}

TEST(DiagnosticsSocketTest, AnEnvironmentThatDoesNotAnswerHoldsNobody) {
  FakeRuntime runtime;
  runtime.LetEnvironmentHang();
  const auto broker = FileBroker::Start([] { return absl::OkStatus(); }, kPatientBroker);
  ASSERT_TRUE(broker.ok()) << broker.status();
  runtime.Serve();
  const TargetFiles files(runtime.proc_root(), runtime.pid(), nullptr, broker->get());
  EXPECT_TRUE(HasDiagnosticsSocket(runtime.proc_root(), runtime.identity(), files)) << "it is looked for in /tmp";
  EXPECT_EQ((*broker)->counters().hung, 1u);
  EXPECT_TRUE(ConnectToRuntime(runtime.proc_root(), runtime.identity(), files).ok());
}

TEST(DiagnosticsSocketTest, TheSocketOfAnEarlierProcessIsIgnored) {
  FakeRuntime runtime;
  runtime.Serve();
  TargetIdentity later = runtime.identity();
  later.start_ticks += 5;
  EXPECT_TRUE(absl::IsNotFound(ConnectToRuntime(runtime.proc_root(), later, runtime.files()).status()));
  EXPECT_FALSE(HasDiagnosticsSocket(runtime.proc_root(), later, runtime.files()));
  EXPECT_TRUE(HasDiagnosticsSocket(runtime.proc_root(), runtime.identity(), runtime.files()));
}

TEST(DiagnosticsSocketTest, ASocketThatNobodyServesIsAsGoodAsNone) {
  FakeRuntime runtime;
  runtime.Serve();
  runtime.StopServer();
  EXPECT_TRUE(absl::IsNotFound(ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files()).status()));
}

TEST(DiagnosticsSocketTest, LinksAndFilesInItsPlaceAreRefused) {
  FakeRuntime runtime;
  runtime.Serve();
  const std::string real = runtime.InTarget("/tmp") + runtime.SocketName(runtime.ticks());
  std::filesystem::rename(real, runtime.InTarget("/tmp/real"));
  std::filesystem::create_symlink("real", real);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files()).status()));
  std::filesystem::remove(real);
  FakeRuntime::Write(real, "x");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files()).status()));
}

TEST(DiagnosticsSocketTest, ASocketOfAnotherUserIsNotConnectedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  FakeRuntime runtime;
  runtime.Serve();
  ASSERT_EQ(chown((runtime.InTarget("/tmp") + runtime.SocketName(runtime.ticks())).c_str(), 65534, 65534), 0);
  const auto connection = ConnectToRuntime(runtime.proc_root(), runtime.identity(), runtime.files());
  EXPECT_TRUE(absl::IsPermissionDenied(connection.status())) << connection.status();
}

TEST(DiagnosticsSocketTest, NothingIsSentToAnotherProcess) {
  FakeRuntime runtime;
  runtime.Serve();
  // The target is a child of ours, and we listen at its socket's place.
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::filesystem::rename(runtime.process(), absl::StrCat(runtime.proc_root(), "/", child));
  TargetIdentity target = runtime.identity();
  target.tgid = static_cast<uint32_t>(child);
  const auto connection = ConnectToRuntime(runtime.proc_root(), target, TargetFiles(runtime.proc_root(), target.tgid));
  EXPECT_TRUE(absl::IsPermissionDenied(connection.status())) << connection.status();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(runtime.commands(), ElementsAre());
}

}  // namespace
}  // namespace clrsampler
