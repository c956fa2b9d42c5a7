#include "cli/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace clrsampler {
namespace {

TEST(OutputFileTest, OneFileIsTheSameUnderAllItsNames) {
  // Links are followed in a folder of our own.
  std::string folder = ::testing::TempDir() + "/output_file_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string first = folder + "/output_file_test_a", second = folder + "/output_file_test_b";
  const std::string link = folder + "/output_file_test_link";
  unlink(link.c_str());
  const auto a = OutputFile::Open(first), b = OutputFile::Open(second);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(symlink(first.c_str(), link.c_str()), 0);
  EXPECT_TRUE(IsOneResult(a->descriptor(), OutputFile::Open(folder + "/./output_file_test_a")->descriptor()));
  EXPECT_TRUE(IsOneResult(a->descriptor(), OutputFile::Open(link)->descriptor()));
  EXPECT_FALSE(IsOneResult(a->descriptor(), b->descriptor()));
  EXPECT_FALSE(IsOneResult(a->descriptor(), OutputFile::Open("-")->descriptor()));
  EXPECT_TRUE(IsOneResult(OutputFile::Open("")->descriptor(), OutputFile::Open("-")->descriptor()));
  // Devices swallow as many results as they are given.
  EXPECT_FALSE(IsOneResult(OutputFile::Open("/dev/null")->descriptor(), OutputFile::Open("/dev/null")->descriptor()));
  for (const std::string& path : {first, second, link}) unlink(path.c_str());
  rmdir(folder.c_str());
}

TEST(OutputFileTest, AFileIsGoneAgainIfNothingWasWrittenToIt) {
  std::string folder = ::testing::TempDir() + "/output_file_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/result", other = folder + "/other";
  ASSERT_TRUE(OutputFile::Open(path).ok());
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "a run that could not start leaves nothing";
  {
    auto opened = OutputFile::Open(path);
    ASSERT_TRUE(opened.ok());
    OutputFile moved = *std::move(opened);
    ASSERT_TRUE(moved.Finish().ok()) << "an empty result";
  }
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  ASSERT_TRUE(OutputFile::Open(path).ok());
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "a file that was there before";
  unlink(path.c_str());
  {
    const auto opened = OutputFile::Open(path);
    ASSERT_TRUE(OutputFile::Open(other)->Finish().ok());
    ASSERT_EQ(rename(other.c_str(), path.c_str()), 0);
  }
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "another file that has the name now";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(OutputFile::Open(path).ok());
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "a pipe";
  close(reader);
  unlink(path.c_str());
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace clrsampler
