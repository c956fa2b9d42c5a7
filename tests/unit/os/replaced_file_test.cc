#include "os/replaced_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace clrsampler {
namespace {

class ReplacedFileTest : public ::testing::Test {
 protected:
  ReplacedFileTest() {
    std::string folder = ::testing::TempDir() + "replaced.XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~ReplacedFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const char* name) const { return folder_ + "/" + name; }
  void Put(const char* name, const char* text) { std::ofstream(Path(name)) << text; }
  std::string Content(const char* name) const {
    std::stringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }
  long Files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }

  std::string folder_;
};

TEST_F(ReplacedFileTest, TheOldFileStaysUntilTheNewOneIsCommitted) {
  Put("a", "old");
  absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(Path("a"), std::nullopt);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write("ne").ok());
  ASSERT_TRUE(file->Write("w").ok());
  EXPECT_EQ(Content("a"), "old");
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content("a"), "new");
  EXPECT_EQ(Files(), 1);
}

TEST_F(ReplacedFileTest, WhatIsNotCommittedLeavesNothing) {
  Put("a", "old");
  {
    absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(Path("a"), std::nullopt);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("half").ok());
    const ReplacedFile moved = *std::move(file);
  }
  EXPECT_EQ(Content("a"), "old");
  EXPECT_EQ(Files(), 1);
}

TEST_F(ReplacedFileTest, TheModeOfTheOldFileIsKeptAndANewOneFollowsTheUmask) {
  Put("a", "old");
  chmod(Path("a").c_str(), 0640);
  const mode_t before = umask(027);
  for (const char* name : {"a", "new"}) {
    absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(Path(name), std::nullopt);
    ASSERT_TRUE(file.ok() && file->Commit().ok());
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(Path(name)).permissions()), 0640u) << name;
  }
  umask(before);
}

TEST_F(ReplacedFileTest, ALinkStaysALinkAndItsTargetIsReplaced) {
  Put("target", "old");
  std::filesystem::create_symlink("target", Path("link"));
  absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(Path("link"), std::nullopt);
  ASSERT_TRUE(file.ok() && file->Write("new").ok() && file->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(Content("target"), "new");
}

// A user could choose there where the result of root goes, and who it belongs to.
TEST_F(ReplacedFileTest, InAFolderOfEverybodyNoLinkIsFollowedAndNoFileOfOthersReplaced) {
  const auto refused = [&](const char* name) {
    return absl::IsFailedPrecondition(ReplacedFile::Open(Path(name), std::nullopt).status());
  };
  std::filesystem::create_directory(Path("own"));
  Put("own/target", "kept");
  Put("mine", "old");
  std::filesystem::create_symlink("own/target", Path("link"));
  std::filesystem::create_symlink("nowhere", Path("broken"));
  std::filesystem::create_hard_link(Path("own/target"), Path("hard"));
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  for (const char* name : {"link", "broken", "hard"}) EXPECT_TRUE(refused(name)) << name;
  absl::StatusOr<ReplacedFile> file = ReplacedFile::Open(Path("mine"), std::nullopt);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new").ok() && file->Commit().ok());
  EXPECT_EQ(Content("mine"), "new");
  EXPECT_EQ(Content("own/target"), "kept");
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown(Path("mine").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(refused("mine"));
  EXPECT_TRUE(ReplacedFile::Open(Path("mine"), FileOwner{12345, 12345}).ok()) << "the file of the person behind sudo";
}

TEST_F(ReplacedFileTest, DevicesAndFoldersAreRefusedAndSoIsAFolderThatIsNotThere) {
  EXPECT_EQ(ReplacedFile::Open("/dev/null", std::nullopt).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReplacedFile::Open(folder_, std::nullopt).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReplacedFile::Open(Path("none/a"), std::nullopt).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Files(), 0);
}

}  // namespace
}  // namespace clrsampler
