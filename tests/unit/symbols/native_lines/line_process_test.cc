#include "symbols/native_lines/line_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "symbols/native_lines/line_wire.h"

namespace clrsampler {
namespace {

// Addresses at which this table does what hostile debug information may make a library do.
constexpr uint64_t kCrash = 1, kHang = 2, kGrow = 3, kOpenFile = 4, kFork = 5, kPid = 6;

class HostileTable : public LineTable {
 public:
  NativeLine At(uint64_t address) override {
    if (address == kCrash) abort();
    if (address == kHang) {
      for (volatile bool stay = true; stay;) {
      }
    }
    if (address == kGrow) {
      // Like a library that ends where there is no memory.
      if (mmap(nullptr, size_t{64} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
        _exit(3);
      }
    }
    if (address == kOpenFile && UniqueFd(open("/etc/shadow", O_RDONLY)).valid()) return {"opened", 1, false};
    if (address == kFork && fork() >= 0) return {"forked", 1, false};
    if (address == kPid) return {"pid", static_cast<uint32_t>(getpid()), false};
    return {"/src/a.c", 7, true};
  }
};

absl::StatusOr<OpenLineTable> LoadHostile() {
  return OpenLineTable([](UniqueFd) -> absl::StatusOr<std::unique_ptr<LineTable>> {
    return std::unique_ptr<LineTable>(std::make_unique<HostileTable>());
  });
}

class LineProcessTest : public testing::Test {
 protected:
  void Ask(uint64_t file, uint64_t address) {
    ASSERT_TRUE(helper_->Send(LineQuestionBytes({++number_, file, {address}}), fd_.get()));
  }
  std::string Next() {
    for (;;) {
      if (std::optional<std::string> datagram = helper_->Receive()) return *datagram;
      if (helper_->ended()) return "";
      helper_->WaitMs(1000);
    }
  }
  NativeLine Line(uint64_t file, uint64_t address) {
    Ask(file, address);
    const std::optional<LineAnswer> answer = ParseLineAnswer(Next(), 1);
    return answer && answer->failure.empty() ? answer->lines[0] : NativeLine();
  }

  LineProcessLimits limits_{.question_seconds = 1, .data_bytes = uint64_t{32} << 20, .readers = 3};
  std::unique_ptr<LineHelper> helper_ = StartLineHelper(limits_, LoadHostile);
  UniqueFd fd_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  uint64_t number_ = 0;
};

TEST_F(LineProcessTest, Answers) { EXPECT_EQ(Line(1, 100), (NativeLine{"/src/a.c", 7, true})); }

TEST_F(LineProcessTest, AReaderThatEndsIsReplacedAndItsFileLeftOut) {
  for (const uint64_t end : {kCrash, kHang}) {
    Ask(end, end);
    Ask(end, 100);  // of the same file, already on its way
    Ask(9, 100);
    EXPECT_EQ(ParseReaderLost(Next()), number_ - 2) << end;
    const std::optional<LineAnswer> again = ParseLineAnswer(Next(), 1);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->failure, "it is not read again");
    EXPECT_EQ(ParseLineAnswer(Next(), 1)->lines[0].line, 7u) << "of another file";
  }
}

TEST_F(LineProcessTest, MemoryIsBounded) {
  Ask(1, kGrow);
  EXPECT_EQ(ParseReaderLost(Next()), 1u);
}

TEST_F(LineProcessTest, AReaderHasNothingToLose) {
  EXPECT_EQ(Line(1, kFork).file, "/src/a.c");
  EXPECT_EQ(Line(1, kOpenFile).file, "/src/a.c");
}

TEST_F(LineProcessTest, SomebodyMayKillAReader) {
  const auto reader = static_cast<pid_t>(Line(1, kPid).line);
  ASSERT_GT(reader, 0);
  ASSERT_EQ(kill(reader, SIGKILL), 0);
  EXPECT_EQ(ParseReaderLost(Next()), 0u) << "it was at no question";
  EXPECT_EQ(Line(1, 100).line, 7u);
}

TEST_F(LineProcessTest, ReadersAreNotMadeWithoutEnd) {
  for (int i = 1; i <= limits_.readers; ++i) {
    Ask(static_cast<uint64_t>(i), kCrash);
    EXPECT_TRUE(ParseReaderLost(Next()).has_value());
  }
  EXPECT_EQ(Next(), "");
  EXPECT_TRUE(helper_->ended());
}

TEST_F(LineProcessTest, ItsEndIsTheEndOfItsReader) {
  const auto reader = static_cast<pid_t>(Line(1, kPid).line);
  Ask(1, kHang);
  helper_->End();
  for (int i = 0; i < 500 && kill(reader, 0) == 0; ++i) {
    // It has no parent any more, and the process that inherits it may be slow to take note.
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(reader) + "/stat");
    std::getline(stat, state);
    if (state.find(") Z") != std::string::npos) break;
    usleep(1000);
  }
  std::string state;
  std::ifstream stat("/proc/" + std::to_string(reader) + "/stat");
  std::getline(stat, state);
  EXPECT_TRUE(state.empty() || state.find(") Z") != std::string::npos) << state;
}

TEST(LineProcessStartTest, ThatALibraryIsMissingIsAnAnswer) {
  const auto helper =
      StartLineHelper({}, [] { return absl::StatusOr<OpenLineTable>(absl::UnavailableError("no such library")); });
  std::optional<std::string> datagram;
  while (!(datagram = helper->Receive()) && !helper->ended()) helper->WaitMs(1000);
  ASSERT_TRUE(datagram.has_value());
  EXPECT_EQ(ParseNoAnswers(*datagram)->why, "no such library");
}

}  // namespace
}  // namespace clrsampler
