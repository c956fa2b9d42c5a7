#include "os/file_io.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace clrsampler {
namespace {

TEST(FileIoTest, ReadsFilesOfProcWhoseSizeIsZero) {
  const auto text = ReadWholeFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("Tgid:"), std::string::npos);
}

TEST(FileIoTest, AFileOverTheLimitIsAnErrorNotACut) {
  UniqueFd fd(memfd_create("file_io_test", 0));
  ASSERT_TRUE(WriteAll(fd.get(), std::string(1000, 'x')).ok());
  lseek(fd.get(), 0, SEEK_SET);
  EXPECT_FALSE(ReadWholeFile(fd.get(), 999).ok());
  lseek(fd.get(), 0, SEEK_SET);
  EXPECT_EQ(ReadWholeFile(fd.get(), 1000)->size(), 1000u);
}

TEST(FileIoTest, AnErrorNamesThePath) {
  const auto text = ReadWholeFile("/no/such/file", 10);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(text.status().message().find("/no/such/file"), absl::string_view::npos);
}

}  // namespace
}  // namespace clrsampler
