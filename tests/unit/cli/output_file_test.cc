#include "cli/output_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

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
  EXPECT_TRUE(a->SameAs(*OutputFile::Open(folder + "/./output_file_test_a")));
  EXPECT_TRUE(a->SameAs(*OutputFile::Open(link)));
  EXPECT_FALSE(a->SameAs(*b));
  EXPECT_FALSE(a->SameAs(*OutputFile::Open("-")));
  EXPECT_TRUE(OutputFile::Open("")->SameAs(*OutputFile::Open("-")));
  // Devices swallow as many results as they are given.
  EXPECT_FALSE(OutputFile::Open("/dev/null")->SameAs(*OutputFile::Open("/dev/null")));
  for (const std::string& path : {first, second, link}) unlink(path.c_str());
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace clrsampler
