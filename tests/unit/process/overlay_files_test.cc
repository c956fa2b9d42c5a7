// Tells files of the host's overlays from those of users, by real mounts in namespaces of a child.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "os/clock.h"
#include "os/unique_fd.h"
#include "process/file_broker.h"
#include "process/image_files.h"
#include "process/target_files.h"
#include "status/status.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

constexpr FilePatience kUnhurried = {
    .answer_ns = 60 * kSecondNs, .copy_ns = 60 * kSecondNs, .most_ns = 60 * kSecondNs, .nursery_ns = 60 * kSecondNs};

void WriteProc(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

class OverlayFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/overlay_files_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    auto broker = FileBroker::Start([] { return absl::OkStatus(); }, kUnhurried);
    ASSERT_TRUE(broker.ok()) << broker.status();
    broker_ = *std::move(broker);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  // A process that has mounted an overlay at In("merged"), with a file and a socket. -1: it may not.
  pid_t StartContainer(int namespaces, const std::string& options) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const std::string user = absl::StrCat("0 ", geteuid(), " 1"), group = absl::StrCat("0 ", getegid(), " 1");
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (unshare(namespaces) != 0) _exit(1);
      if ((namespaces & CLONE_NEWUSER) != 0) {
        WriteProc("/proc/self/setgroups", "deny");
        WriteProc("/proc/self/uid_map", user);
        WriteProc("/proc/self/gid_map", group);
      }
      if (!MountOverlay(options)) _exit(1);
      (void)!write(write_end.get(), MountHanging() ? "h" : "x", 1);
      while (true) pause();
    }
    children_.push_back(child);
    write_end.reset();
    char ready = 0;
    const bool started = read(read_end.get(), &ready, 1) == 1;
    hangs_ = ready == 'h';
    return started ? child : -1;
  }
  // A FUSE file system at In("hanging") whose server takes no request, as long as the process lives.
  bool MountHanging() const {
    const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string mode = absl::StrCat("fd=", device, ",rootmode=40000,user_id=0,group_id=0");
    fs::create_directory(In("hanging"));
    return mount("none", In("hanging").c_str(), "fuse", 0, mode.c_str()) == 0;
  }
  bool MountOverlay(const std::string& options) const {
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (mount("none", folder_.c_str(), "tmpfs", 0, nullptr) != 0) return false;
    for (const char* name : {"lower", "upper", "work", "merged"}) fs::create_directory(In(name));
    std::ofstream(In("lower/file")) << std::string(4096, 'x');
    std::ofstream(In("covered")) << "x";
    if (mount(In("lower/file").c_str(), In("covered").c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
    const std::string layers =
        absl::StrCat("lowerdir=", In("lower"), ",upperdir=", In("upper"), ",workdir=", In("work"), options);
    if (mount("overlay", In("merged").c_str(), "overlay", 0, layers.c_str()) != 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (chdir(In("merged").c_str()) != 0) return false;
    std::strncpy(address.sun_path, "socket", sizeof address.sun_path - 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    return bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  std::string In(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  TargetFiles FilesOf(pid_t pid) const { return {"/proc", static_cast<uint32_t>(pid), nullptr, broker_.get()}; }

  std::string folder_;
  std::unique_ptr<FileBroker> broker_;
  std::vector<pid_t> children_;
  bool hangs_ = false;  // the last container has In("hanging")
};

TEST_F(OverlayFilesTest, OfAUserMayWait) {
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "no overlay in a user namespace";
  const auto file = FilesOf(container).OpenImage(In("merged/file"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->may_wait);
  // To connect to a socket there is to ask the file system, too.
  const absl::Status socket = FilesOf(container).LocateSocket(In("merged/socket")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(socket)) << socket;
  EXPECT_NE(HintOf(socket), "");
}

// A user may have a hundred thousand mounts.
TEST_F(OverlayFilesTest, OfAUserIsJudgedWithoutTheListOfMounts) {
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "no overlay in a user namespace";
  const std::string real = absl::StrCat("/proc/", container), shown = In(absl::StrCat(container));
  ASSERT_TRUE(fs::create_directories(shown + "/ns"));
  fs::create_symlink(real + "/root", shown + "/root");
  fs::create_symlink(real + "/ns/mnt", shown + "/ns/mnt");
  ASSERT_TRUE(fs::copy_file(real + "/mountinfo", shown + "/mountinfo"));
  const UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(inotify_add_watch(watch.get(), (shown + "/mountinfo").c_str(), IN_OPEN), 0);
  const TargetFiles files(folder_, static_cast<uint32_t>(container), nullptr, broker_.get());
  const auto file = files.OpenImage(In("merged/file"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->may_wait);
  inotify_event event;
  EXPECT_LT(read(watch.get(), &event, sizeof event), 0) << "it was opened";
}

// Its inodes and times may be those that the server of a FUSE file system below it says.
TEST_F(OverlayFilesTest, OfAUserIsSharedByNoTwoProcesses) {
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "no overlay in a user namespace";
  ImageFiles images;
  const auto one = images.GetByPath(Process(ProcessKey{1, 1}, FilesOf(container)), In("merged/file"));
  const auto other = images.GetByPath(Process(ProcessKey{2, 2}, FilesOf(container)), In("merged/file"));
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(IdentityText(**one), IdentityText(**other));
  EXPECT_NE(*one, *other);
}

TEST_F(OverlayFilesTest, AMountIsNoFileToRemoveAndIsNotAsked) {
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "no mounts in a user namespace";
  for (const char* name : {"covered", "hanging"}) {
    if (name == std::string("hanging") && !hangs_) GTEST_SKIP() << "no FUSE in a user namespace";
    bool asked = false;
    const absl::Status refused = FilesOf(container).RemoveRuntimeFile(folder_, name, [&](const struct stat&) {
      asked = true;
      return true;
    });
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_FALSE(asked);
  }
}

TEST_F(OverlayFilesTest, AFolderThatHangsIsAskedByAWorker) {
  auto broker = FileBroker::Start([] { return absl::OkStatus(); });
  ASSERT_TRUE(broker.ok()) << broker.status();
  broker_ = *std::move(broker);
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0 || !hangs_) GTEST_SKIP() << "no FUSE in a user namespace";
  const absl::Status hung = FilesOf(container).OpenUnlinkedDirectory(In("hanging")).status();
  EXPECT_TRUE(absl::IsUnavailable(hung)) << hung;
}

// A process of the host's own mounts that was given the file.
TEST_F(OverlayFilesTest, OfAUserMayWaitAlsoWhereAnotherProcessMapsIt) {
  const pid_t container = StartContainer(CLONE_NEWUSER | CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "no overlay in a user namespace";
  const UniqueFd file(
      open(absl::StrCat("/proc/", container, "/root", In("merged/file")).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  void* const mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_TRUE(broker_->MemoryMayWait("/proc", static_cast<uint32_t>(getpid())));
  struct stat status {};
  ASSERT_EQ(fstat(file.get(), &status), 0);
  Mapping mapping;
  mapping.start = reinterpret_cast<uint64_t>(mapped);
  mapping.end = mapping.start + 4096;
  mapping.inode = status.st_ino;
  mapping.path = In("merged/file");
  const auto opened = FilesOf(getpid()).OpenMapping(mapping);
  EXPECT_TRUE(!opened.ok() || opened->may_wait) << opened.status();
  munmap(mapped, 4096);
}

TEST_F(OverlayFilesTest, OfTheHostDoesNotWait) {
  const pid_t container = StartContainer(CLONE_NEWNS, "");
  if (container < 0) GTEST_SKIP() << "only root mounts for the host";
  const auto file = FilesOf(container).OpenImage(In("merged/file"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->on_overlay());
  EXPECT_NE(file->status.st_ctim.tv_sec, 0);
  EXPECT_TRUE(FilesOf(container).LocateSocket(In("merged/socket")).ok() || file->may_wait);
  struct stat own {};
  if (stat("/proc/self/ns/user", &own) != 0 || own.st_ino != 0xEFFFFFFD) GTEST_SKIP() << "not the host";
  EXPECT_FALSE(file->may_wait);
}

TEST_F(OverlayFilesTest, SaysWhetherCopiesMayLackData) {
  for (const auto& [option, metacopy] : {std::pair(",metacopy=on", true), std::pair(",metacopy=off", false)}) {
    const pid_t container = StartContainer(CLONE_NEWNS, option);
    if (container < 0) GTEST_SKIP() << "only root mounts for the host";
    const auto file = FilesOf(container).OpenImage(In("merged/file"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->metacopy, metacopy);
  }
}

}  // namespace
}  // namespace clrsampler
