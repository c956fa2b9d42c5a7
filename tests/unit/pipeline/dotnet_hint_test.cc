#include "pipeline/dotnet_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace clrsampler {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

class DotNetHintTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(root_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Process(const std::string& pid, const std::string& maps) {
    std::filesystem::create_directories(root_ + "/" + pid);
    std::ofstream(root_ + "/" + pid + "/maps") << maps;
  }

  std::string root_ = testing::TempDir() + "/dotnet_hint_XXXXXX";
};

TEST_F(DotNetHintTest, GoesByTheRuntimesLibraryAndItsHeaps) {
  Process("10", "7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /usr/share/dotnet/shared/libcoreclr.so\n");
  Process("11", "7f0000000000-7f0000001000 rwxs 00000000 00:01 7 /memfd:doublemapper (deleted)\n");
  Process("12", "7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /usr/lib/libc.so.6\n");
  Process("sys", "7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /x/libcoreclr.so\n");
  std::filesystem::create_directories(root_ + "/13");  // ended meanwhile
  EXPECT_THAT(ProcessesLikeDotNet(root_, nullptr), UnorderedElementsAre(10, 11));
}

TEST_F(DotNetHintTest, WithoutAProcFileSystemThereIsNone) {
  EXPECT_THAT(ProcessesLikeDotNet(root_ + "/none", nullptr), IsEmpty());
}

}  // namespace
}  // namespace clrsampler
