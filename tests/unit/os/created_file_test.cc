#include "os/created_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

class CreatedFileTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  void Share() { ASSERT_EQ(chmod(folder_.c_str(), 01777), 0); }
  static struct stat StateOf(const std::string& path) {
    struct stat state {};
    EXPECT_EQ(lstat(path.c_str(), &state), 0) << path;
    return state;
  }

  std::string folder_ = testing::TempDir() + "/created_file_XXXXXX";
};

TEST_F(CreatedFileTest, ANewFileOfRootIsClosedAndAnotherUsersFollowsTheUmask) {
  const mode_t before = umask(022);
  ASSERT_TRUE(OpenCreated(In("a"), std::nullopt).ok());
  ASSERT_TRUE(OpenCreated(In("b"), std::nullopt, /*secret=*/true).ok());
  umask(before);
  EXPECT_EQ(StateOf(In("a")).st_mode & 0777, geteuid() == 0 ? 0600 : 0644);
  EXPECT_EQ(StateOf(In("b")).st_mode & 0777, 0600);
}

TEST_F(CreatedFileTest, AFileOfSudoBelongsToThePerson) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_TRUE(OpenCreated(In("a"), FileOwner{12345, 54321}).ok());
  EXPECT_EQ(StateOf(In("a")).st_uid, 12345u);
  EXPECT_EQ(StateOf(In("a")).st_gid, 54321u);
  Share();
  EXPECT_TRUE(OpenCreated(In("a"), FileOwner{12345, 54321}).ok()) << "the next run of the same person";
  EXPECT_FALSE(OpenCreated(In("a"), FileOwner{12346, 54321}).ok());
}

TEST_F(CreatedFileTest, LinksAreFollowedInAFolderOfOnesOwnOnly) {
  std::ofstream(In("target")) << "kept";
  fs::create_symlink(In("target"), In("link"));
  EXPECT_TRUE(OpenCreated(In("link"), std::nullopt).ok());
  Share();
  const absl::Status refused = OpenCreated(In("link"), std::nullopt).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(OpenCreated(In("target"), std::nullopt).ok());
  fs::create_hard_link(In("target"), In("other"));
  EXPECT_FALSE(OpenCreated(In("target"), std::nullopt).ok());
  EXPECT_EQ(fs::file_size(In("target")), 4u) << "nothing is cut by opening";
}

// /var/log of some distributions.
TEST_F(CreatedFileTest, MembersOfAFoldersGroupAreOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives folders to groups";
  std::ofstream(In("target")) << "kept";
  fs::create_symlink(In("target"), In("link"));
  ASSERT_EQ(chown(folder_.c_str(), 0, 12345), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0775), 0);
  const absl::Status refused = OpenCreated(In("link"), std::nullopt).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_TRUE(OpenCreated(In("link"), std::nullopt).ok()) << "the group may not write";
  ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0775), 0);
  EXPECT_TRUE(OpenCreated(In("link"), std::nullopt).ok()) << "the group is root's";
}

TEST_F(CreatedFileTest, NoPipeIsOpenedWhereOthersMayPutOne) {
  Share();
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(OpenCreated(In("pipe"), std::nullopt).ok());
}

TEST_F(CreatedFileTest, WhatCanNotBeOpenedIsNamed) {
  const absl::Status missing = OpenCreated(In("no/file"), std::nullopt).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
}

}  // namespace
}  // namespace clrsampler
