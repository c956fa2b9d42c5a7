#include "sandbox/file_user.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace clrsampler {
namespace {

// Its own user stands for the agent's, so that it runs without root; what takes root is skipped without it.
class FileUserTest : public testing::Test {
 protected:
  FileUserTest() {
    char path[] = "/tmp/clrsampler_file_user_XXXXXX";
    path_ = mkdtemp(path);
  }
  ~FileUserTest() override { std::filesystem::remove_all(path_); }
  static uid_t OwnerOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_uid;
  }
  std::string path_;
};

TEST_F(FileUserTest, IsNeverRoot) { EXPECT_NE(AgentFileUser().uid, 0u); }

TEST_F(FileUserTest, MakesAFolderThatIsMissing) {
  ASSERT_TRUE(HandOver(path_ + "/new", {getuid(), getgid()}).ok());
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/new"));
  EXPECT_TRUE(HandOver(path_ + "/new", {getuid(), getgid()}).ok()) << "it is the user's already";
  EXPECT_FALSE(HandOver(path_ + "/none/new", {getuid(), getgid()}).ok());
}

TEST_F(FileUserTest, GivesAwayWhatItMadeAndNothingElse) {
  if (geteuid() != 0) GTEST_SKIP() << "gives files to another user: needs root";
  const FileUser other{65533, 65533};
  EXPECT_TRUE(absl::IsFailedPrecondition(HandOver(path_, other)));
  EXPECT_EQ(OwnerOf(path_), 0u);
  ASSERT_TRUE(HandOver(path_ + "/new", other).ok());
  EXPECT_EQ(OwnerOf(path_ + "/new"), other.uid);

  // In the user's folder root's own files are given too, but none that has a second name elsewhere.
  std::ofstream(path_ + "/new/history.db") << "x";
  std::ofstream(path_ + "/secret") << "x";
  std::filesystem::create_hard_link(path_ + "/secret", path_ + "/new/hard");
  std::filesystem::create_symlink(path_ + "/secret", path_ + "/new/soft");
  ASSERT_TRUE(HandOver(path_ + "/new", other).ok());
  EXPECT_EQ(OwnerOf(path_ + "/new/history.db"), other.uid);
  EXPECT_EQ(OwnerOf(path_ + "/secret"), 0u);

  std::filesystem::create_symlink(path_ + "/new", path_ + "/link");
  EXPECT_FALSE(HandOver(path_ + "/link", {65532, 65532}).ok());
}

}  // namespace
}  // namespace clrsampler
