#include "cli/exit_status.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "status/status.h"

namespace clrsampler {
namespace {

using testing::HasSubstr;

std::string Said(const absl::Status& status) {
  testing::internal::CaptureStderr();
  ReportStatus(status);
  return testing::internal::GetCapturedStderr();
}

TEST(ReportStatusTest, EachLineOfALogIsALineOfItsOwn) {
  const absl::Status error = absl::InternalError("loading the sampler: Bad address\nR1 invalid mem access\nend");
  EXPECT_EQ(Said(WithHint(error, "clrsampler doctor says more")),
            "error: loading the sampler: Bad address\n  R1 invalid mem access\n  end\n"
            "hint: clrsampler doctor says more\n");
}

TEST(ReportStatusTest, ATerminalGetsNoControlCharacters) {
  EXPECT_EQ(Said(absl::NotFoundError("no file a\x1b[2Jb\nhint: \rc")), "error: no file a?[2Jb\n  hint: ?c\n");
}

TEST(StandardOutputErrorTest, EachHasAHint) {
  for (const int error : {0, EPIPE, EBADF, ENOSPC}) EXPECT_NE(HintOf(StandardOutputError(error)), "") << error;
  EXPECT_THAT(std::string(StandardOutputError(ENOSPC).message()), HasSubstr("No space left on device"));
}

TEST(FinishOutputTest, TextThatADiskDoesNotTakeIsAnError) {
  for (const size_t size : {size_t{10}, size_t{100'000}}) {
    std::FILE* const full = std::fopen("/dev/full", "w");
    ASSERT_NE(full, nullptr);
    std::fputs(std::string(size, 'x').c_str(), full);
    const absl::Status finished = FinishOutput(full);
    EXPECT_FALSE(finished.ok()) << size;
    EXPECT_THAT(std::string(finished.message()), HasSubstr("cannot write standard output"));
    EXPECT_EQ(HintOf(finished), "is the disk full?");
    std::fclose(full);
  }
}

TEST(FinishOutputTest, TheReaderOfAPipeThatLeftIsSaid) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  for (const size_t size : {size_t{10}, size_t{100'000}}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    std::FILE* const pipe_end = fdopen(ends[1], "w");
    std::fputs(std::string(size, 'x').c_str(), pipe_end);
    EXPECT_THAT(std::string(FinishOutput(pipe_end).message()), HasSubstr("the reader of standard output left")) << size;
    std::fclose(pipe_end);
  }
  signal(SIGPIPE, before);
}

TEST(FinishOutputTest, WrittenTextAndNoTextAreNoError) {
  std::FILE* const null = std::fopen("/dev/null", "w");
  EXPECT_TRUE(FinishOutput(null).ok());
  std::fputs("text", null);
  EXPECT_TRUE(FinishOutput(null).ok());
  std::fclose(null);
}

}  // namespace
}  // namespace clrsampler
