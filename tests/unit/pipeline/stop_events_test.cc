#include "pipeline/stop_events.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/tape_answer.h"

namespace clrsampler {
namespace {

constexpr int kLongMs = 30'000;

// A process that lives until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Sleeper() { End(); }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

TEST(StopEventsTest, ASignalEndsTheWaitAndIsNotOfTheTerminal) {
  absl::StatusOr<StopEvents> events = StopEvents::Create();
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_FALSE(events->signalled());
  kill(getpid(), SIGTERM);
  events->Wait(kLongMs);
  EXPECT_TRUE(events->signalled());
  EXPECT_EQ(events->signal_number(), SIGTERM);
  EXPECT_FALSE(events->signal_of_terminal());
}

TEST(StopEventsTest, TargetsAreGoneWhenTheLastOneIs) {
  absl::StatusOr<StopEvents> events = StopEvents::Create();
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_FALSE(events->targets_gone()) << "none is watched";
  Sleeper first, second;
  ASSERT_TRUE(events->WatchProcess(first.pid()).ok());
  ASSERT_TRUE(events->WatchProcess(second.pid()).ok());
  first.End();
  events->Wait(kLongMs);
  EXPECT_FALSE(events->targets_gone());
  second.End();
  events->Wait(kLongMs);
  EXPECT_TRUE(events->targets_gone());
}

TEST(StopEventsTest, AProcessThatIsGoneCanNotBeWatched) {
  absl::StatusOr<StopEvents> events = StopEvents::Create();
  ASSERT_TRUE(events.ok()) << events.status();
  Sleeper gone;
  const uint32_t pid = gone.pid();
  gone.End();
  EXPECT_FALSE(events->WatchProcess(pid).ok());
  EXPECT_FALSE(events->targets_gone());
}

TEST(StopEventsTest, WhatIsReadableWakesWithoutMeaning) {
  absl::StatusOr<StopEvents> events = StopEvents::Create();
  ASSERT_TRUE(events.ok()) << events.status();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd read_end(ends[0]), write_end(ends[1]);
  ASSERT_TRUE(events->WatchReadable(read_end.get()).ok());
  ASSERT_EQ(write(write_end.get(), "x", 1), 1);
  events->Wait(kLongMs);
  EXPECT_FALSE(events->signalled());
  EXPECT_FALSE(events->targets_gone());
}

TEST(StopEventsTest, SignalsAreAsBeforeOnceItIsGone) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  {
    absl::StatusOr<StopEvents> events = StopEvents::Create();
    ASSERT_TRUE(events.ok()) << events.status();
  }
  sigprocmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
}

// As under nohup: the terminal goes, and the program does not.
TEST(StopEventsTest, AHangupThatIsIgnoredEndsNothing) {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGHUP, &ignored, &before), 0);
  {
    absl::StatusOr<StopEvents> events = StopEvents::Create();
    ASSERT_TRUE(events.ok()) << events.status();
    kill(getpid(), SIGHUP);
    events->Wait(0);
    EXPECT_FALSE(events->signalled());
    kill(getpid(), SIGTERM);
    events->Wait(kLongMs);
    EXPECT_EQ(events->signal_number(), SIGTERM);
  }
  sigaction(SIGHUP, &before, nullptr);
}

// Answers `wait` and `watch`, and keeps what it is asked for.
class OneAnswerTape : public Tape {
 public:
  explicit OneAnswerTape(std::string wait) : wait_(std::move(wait)) {}
  std::string Answer(absl::string_view question, absl::FunctionRef<std::string()>) override {
    if (question == "wait") return wait_;
    TapeWriter out;
    TapeCodec<absl::Status>::Write(absl::OkStatus(), out);
    return out.Take();
  }
  absl::StatusOr<MappedFile> Map(const FileOnTape&, int, uint64_t) override {
    return absl::UnimplementedError("no files here");
  }
  void NextIteration() override {}
  bool plays() const override { return true; }
  bool ended() const override { return false; }

 private:
  std::string wait_;
};

TEST(StopEventsTest, ATapeSaysWhatWasLivingAndWhichSignalCame) {
  TapeWriter out;
  TapeCodec<std::vector<uint32_t>>::Write({0, SIGINT, 1}, out);
  OneAnswerTape tape(out.Take());
  absl::StatusOr<StopEvents> events = StopEvents::Create(&tape);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_TRUE(events->WatchProcess(1).ok());
  EXPECT_FALSE(events->targets_gone());
  events->Wait(0);
  EXPECT_TRUE(events->targets_gone());
  EXPECT_EQ(events->signal_number(), SIGINT);
  EXPECT_TRUE(events->signal_of_terminal());
}

TEST(StopEventsTest, ADamagedAnswerOfATapeChangesNothing) {
  TapeWriter out;
  TapeCodec<std::vector<uint32_t>>::Write({0}, out);
  OneAnswerTape tape(out.Take());
  absl::StatusOr<StopEvents> events = StopEvents::Create(&tape);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_TRUE(events->WatchProcess(1).ok());
  events->Wait(0);
  EXPECT_FALSE(events->targets_gone());
  EXPECT_FALSE(events->signalled());
}

}  // namespace
}  // namespace clrsampler
