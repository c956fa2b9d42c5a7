#include "process/target_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

// A fake /proc/42/root, so that the rules hold without another process and without root.
class TargetFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "target_files_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
    root_ = proc_ / "42" / "root";
    fs::create_directories(root_ / "tmp");
  }
  void TearDown() override { fs::remove_all(proc_); }
  void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  TargetFiles Files() { return TargetFiles(proc_.string(), 42); }

  fs::path proc_;
  fs::path root_;
};

TEST_F(TargetFilesTest, OpensAFileInsideTheRoot) {
  Write(root_ / "tmp/perf-1.map", "x");
  EXPECT_TRUE(Files().OpenRuntimeFile("/tmp/perf-1.map").ok());
  EXPECT_TRUE(Files().OpenImage("/tmp/perf-1.map").ok());
}

TEST_F(TargetFilesTest, ASymbolicLinkCantLeadOutOfTheRoot) {
  Write(proc_ / "secret", "secret");
  fs::create_symlink(proc_ / "secret", root_ / "tmp/absolute");
  fs::create_symlink("../../../../secret", root_ / "tmp/relative");
  EXPECT_FALSE(Files().OpenImage("/tmp/absolute").ok());
  EXPECT_FALSE(Files().OpenImage("/tmp/relative").ok());
  EXPECT_FALSE(Files().OpenImage("/../../secret").ok());
}

TEST_F(TargetFilesTest, ARuntimeFileMayNotBeALinkAtAll) {
  Write(root_ / "tmp/real", "x");
  fs::create_symlink("real", root_ / "tmp/perf-1.map");
  EXPECT_TRUE(Files().OpenImage("/tmp/perf-1.map").ok());
  EXPECT_FALSE(Files().OpenRuntimeFile("/tmp/perf-1.map").ok());
}

TEST_F(TargetFilesTest, AFifoIsRefusedWithoutWaiting) {
  ASSERT_EQ(mkfifo((root_ / "tmp/perf-1.map").c_str(), 0600), 0);
  const auto opened = Files().OpenRuntimeFile("/tmp/perf-1.map");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
}

// The effect of opening a device can't be tested everywhere; a FIFO shows it too: its writer would get through.
TEST_F(TargetFilesTest, WhatIsNoRegularFileIsNotEvenOpened) {
  const std::string fifo = (root_ / "tmp/perf-1.map").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(inotify_add_watch(watch.get(), fifo.c_str(), IN_OPEN), 0);
  const auto was_opened = [&] {
    inotify_event event;
    return read(watch.get(), &event, sizeof event) == sizeof event;
  };
  EXPECT_FALSE(Files().OpenRuntimeFile("/tmp/perf-1.map").ok());
  EXPECT_FALSE(Files().OpenImage("/tmp/perf-1.map").ok());
  EXPECT_FALSE(was_opened());
  const UniqueFd reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(was_opened()) << "it would be seen";
}

TEST_F(TargetFilesTest, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Write(root_ / "tmp/perf-1.map", "x");
  ASSERT_EQ(chown((root_ / "tmp/perf-1.map").c_str(), 12345, 12345), 0);
  EXPECT_EQ(Files().OpenRuntimeFile("/tmp/perf-1.map").status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TargetFilesTest, AFileOfRootThatAUserGaveANameIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give processes away";
  Write(root_ / "tmp/perf-1.map", "x");
  ASSERT_EQ(chown((proc_ / "42").c_str(), 12345, 12345), 0);
  EXPECT_TRUE(Files().OpenRuntimeFile("/tmp/perf-1.map").ok());
  fs::create_hard_link(root_ / "tmp/perf-1.map", root_ / "tmp/perf-2.map");
  EXPECT_EQ(Files().OpenRuntimeFile("/tmp/perf-2.map").status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_EQ(chown((proc_ / "42").c_str(), 0, 0), 0);
  EXPECT_TRUE(Files().OpenRuntimeFile("/tmp/perf-2.map").ok()) << "root may name its files as it likes";
}

// A user can mount one over a file of its own. To map resource0 of a PCI device is to read registers.
TEST_F(TargetFilesTest, FilesOfTheKernelAreNotOpened) {
  const absl::Status refused = Files().OpenOnHost("/proc/version").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
}

TEST_F(TargetFilesTest, AnUnlinkedDirectoryHasNoLinkInItsPath) {
  fs::create_directories(root_ / "a/b");
  fs::create_directory_symlink("a", root_ / "link");
  Write(root_ / "a/file", "x");
  EXPECT_TRUE(Files().OpenUnlinkedDirectory("/a/b").ok());
  EXPECT_TRUE(Files().OpenDirectory("/link/b").ok());
  for (const char* path : {"/link", "/link/b", "/a/file"}) {
    const absl::Status refused = Files().OpenUnlinkedDirectory(path).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  }
  EXPECT_EQ(Files().OpenUnlinkedDirectory("/a/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TargetFilesTest, TheRootStaysReadableAfterTheProcessIsGone) {
  Write(root_ / "tmp/perf-1.map", "x");
  const TargetFiles files = Files();
  const TargetFiles child(files, 43);
  fs::rename(proc_ / "42", proc_ / "gone");
  EXPECT_TRUE(files.OpenRuntimeFile("/tmp/perf-1.map").ok());
  EXPECT_TRUE(child.OpenRuntimeFile("/tmp/perf-1.map").ok());
  EXPECT_FALSE(Files().OpenRuntimeFile("/tmp/perf-1.map").ok());
}

TEST_F(TargetFilesTest, OnlyAFileThatIsRecognisedIsRemoved) {
  Write(root_ / "tmp/perf-1.map", "x");
  const auto yes = [](const struct stat&) { return true; };
  const auto no = [](const struct stat&) { return false; };
  EXPECT_EQ(Files().RemoveRuntimeFile("/tmp", "perf-1.map", no).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::exists(root_ / "tmp/perf-1.map"));
  EXPECT_TRUE(Files().RemoveRuntimeFile("/tmp", "perf-1.map", yes).ok());
  EXPECT_FALSE(fs::exists(root_ / "tmp/perf-1.map"));
  EXPECT_EQ(Files().RemoveRuntimeFile("/tmp", "perf-1.map", yes).code(), absl::StatusCode::kNotFound);
}

TEST_F(TargetFilesTest, NothingOutsideTheRootIsRemovedAndNoLink) {
  const auto yes = [](const struct stat&) { return true; };
  fs::create_directories(proc_ / "host");
  Write(proc_ / "host/perf-1.map", "x");
  fs::create_directory_symlink(proc_ / "host", root_ / "absolute");
  fs::create_directory_symlink("../../host", root_ / "relative");
  for (const char* directory : {"/absolute", "/relative", "/../../host"}) {
    EXPECT_FALSE(Files().RemoveRuntimeFile(directory, "perf-1.map", yes).ok()) << directory;
  }
  EXPECT_TRUE(fs::exists(proc_ / "host/perf-1.map"));
  fs::create_symlink("elsewhere", root_ / "tmp/perf-1.map");
  EXPECT_EQ(Files().RemoveRuntimeFile("/tmp", "perf-1.map", yes).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(fs::is_symlink(root_ / "tmp/perf-1.map"));
}

// A folder that a service has of its own, a /tmp for instance, hides the host's; its first process shows it.
TEST_F(TargetFilesTest, FilesOfTheHostAreThoseThatItsFirstProcessSees) {
  fs::create_directories(proc_ / "1/root/only/there");
  Write(proc_ / "1/root/only/there/lib.so", "x");
  fs::create_symlink("/only/there/lib.so", proc_ / "1/root/only/there/link.so");
  struct stat status {};
  ASSERT_EQ(stat((proc_ / "1/root/only/there/lib.so").c_str(), &status), 0);
  const auto opened = Files().OpenOnHost("/only/there/lib.so");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->status.st_ino, status.st_ino);
  EXPECT_TRUE(Files().OpenOnHost("/only/there/link.so").ok()) << "links are the host's, too";
  // The mapping of a process that is gone says which file it was.
  Mapping mapping;
  mapping.path = "/only/there/lib.so";
  mapping.inode = status.st_ino;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  const TargetFiles gone(proc_.string(), 43);
  EXPECT_TRUE(gone.OpenMapping(mapping).ok());
  mapping.device_minor ^= 1;
  EXPECT_FALSE(gone.OpenMapping(mapping).ok()) << "another device";
  // A file that it does not have may be seen by our own mounts.
  Write(proc_ / "ours", "x");
  EXPECT_TRUE(Files().OpenOnHost((proc_ / "ours").string()).ok());
}

TEST_F(TargetFilesTest, AReplacedFileIsNotTakenForTheMappedOne) {
  Write(root_ / "tmp/lib.so", "old");
  struct stat status {};
  ASSERT_EQ(stat((root_ / "tmp/lib.so").c_str(), &status), 0);
  Mapping mapping;
  mapping.path = "/tmp/lib.so";
  mapping.inode = status.st_ino;
  EXPECT_TRUE(Files().OpenMapping(mapping).ok());
  Write(root_ / "tmp/new.so", "new");
  fs::rename(root_ / "tmp/new.so", root_ / "tmp/lib.so");
  EXPECT_FALSE(Files().OpenMapping(mapping).ok());
}

}  // namespace
}  // namespace clrsampler
