#include "inspect/process_list.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/elf/elf_image.h"
#include "os/file_io.h"
#include "status/status.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

namespace fs = std::filesystem;

// Processes in a fake /proc. A .NET process has a root directory of its own, with a copy of the fixture in it.
class ProcessListTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "process_list_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    proc_ = pattern;
  }
  void TearDown() override { fs::remove_all(proc_); }

  fs::path MakeProcess(int pid, const std::string& comm) {
    const fs::path directory = proc_ / std::to_string(pid);
    fs::create_directories(directory / "root" / "tmp");
    fs::create_directories(directory / "fd");
    fs::create_directories(directory / "task" / std::to_string(pid));
    std::ofstream(directory / "task" / std::to_string(pid) / "comm") << comm << "\n";
    std::ofstream(directory / "stat") << pid << " (" << comm << ") S 1 1 1 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 777"
                                      << " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    std::ofstream(directory / "status") << "Name:\t" << comm << "\nTgid:\t" << pid << "\nPid:\t" << pid
                                        << "\nPPid:\t1\nTracerPid:\t5\nUid:\t0\t0\t0\t0\nNStgid:\t" << pid << "\t7\n";
    std::ofstream(directory / "cgroup") << "0::/system.slice/shop.service\n";
    std::ofstream(directory / "maps") << "00400000-00401000 r-xp 00000000 08:01 77 /bin/gone\n";
    return directory;
  }

  fs::path MakeDotnet(int pid, const std::string& fixture) {
    const fs::path directory = MakeProcess(pid, "app");
    const fs::path image = directory / "root" / "app" / "any.name";
    fs::create_directories(image.parent_path());
    fs::copy_file(RuntimeFixture(fixture + "/image"), image);
    fs::create_symlink("/app/app", directory / "exe");
    struct stat status {};
    stat(image.c_str(), &status);
    const auto bytes = ReadWholeFile(image.string(), 16 << 20);
    const auto elf = ElfImage::Parse(AsBytes(*bytes));
    std::ofstream maps(directory / "maps");
    for (const LoadSegment& segment : elf->segments()) {
      if (!segment.executable) continue;
      maps << absl::StrFormat("7f0000001000-7f0000002000 r-xp %08x %02x:%02x %d /app/any.name\n",
                              segment.offset.value & ~uint64_t{0xfff}, major(status.st_dev), minor(status.st_dev),
                              status.st_ino);
    }
    return directory;
  }

  ProcessInspector Inspector() const { return ProcessInspector(proc_.string()); }

  fs::path proc_;
};

TEST_F(ProcessListTest, SortsDotnetFromOthersFromKernelThreads) {
  MakeDotnet(30, "CORECLR");
  MakeProcess(20, "bash");
  std::ofstream(MakeProcess(2, "kthreadd") / "maps");
  const auto list = Inspector().All();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->dotnet.size(), 1u);
  EXPECT_EQ(list->dotnet[0].pid, 30u);
  EXPECT_EQ(list->others, 1u);
  EXPECT_EQ(list->unreadable, 0u);
}

TEST_F(ProcessListTest, ReadsWhatSurroundsARuntime) {
  const fs::path directory = MakeDotnet(30, "CORECLR");
  fs::create_directories(directory / "task" / "31");
  std::ofstream(directory / "task" / "31" / "comm") << ".NET Server GC\n";
  std::ofstream(directory / "environ") << "DOTNET_PerfMapEnabled=3" << '\0' << "TMPDIR=/var/tmp/" << '\0'
                                       << "DOTNET_EnableDiagnostics=0" << '\0';
  std::ofstream(directory / "root" / "tmp" / "perf-7.map") << "1 2 x\n";
  fs::create_symlink(directory / "root" / "tmp" / "perf-7.map", directory / "fd" / "9");
  std::ofstream(directory / "root" / "tmp" / "jit-7.dump") << "left by another";
  const auto facts = Inspector().One(30);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->runtime->version.Text(), "10.0.14");
  EXPECT_EQ(facts->runtime->form, DeploymentForm::kSelfContained);
  EXPECT_EQ(facts->gc, GcFlavour::kServer);
  EXPECT_EQ(facts->tracer_pid, 5u);
  EXPECT_EQ(facts->container.Label(), "shop.service");
  EXPECT_EQ(facts->environment.perf_map_enabled, 3u);
  EXPECT_EQ(facts->environment.enable_diagnostics, 0u);
  EXPECT_TRUE(facts->perf_map.live);
  EXPECT_TRUE(facts->jitdump.exists);
  EXPECT_FALSE(facts->jitdump.live);
  EXPECT_EQ(facts->socket_path, "/var/tmp/dotnet-diagnostic-7-777-socket");
  EXPECT_FALSE(facts->socket.ok());
  EXPECT_GT(facts->perf_map_directory.free_bytes, 0u);
}

TEST_F(ProcessListTest, OneProcessIsLookedAtForUnwindData) {
  const fs::path directory = MakeDotnet(30, "CORECLR");
  const fs::path stripped = directory / "root" / "app" / "stripped.so";
  // An image with a file header only: nothing in it to unwind by.
  const auto bytes = ReadWholeFile((directory / "root" / "app" / "any.name").string(), 16 << 20);
  std::string header = bytes->substr(0, 64);
  std::memset(header.data() + 40, 0, 8);  // no section headers
  std::memset(header.data() + 56, 0, 8);  // no segments, no sections
  std::ofstream(stripped, std::ios::binary) << header;
  struct stat status {};
  ASSERT_EQ(stat(stripped.c_str(), &status), 0);
  std::ofstream(directory / "maps", std::ios::app)
      << absl::StrFormat("7f0000005000-7f0000006000 r-xp 00000000 %02x:%02x %d /app/stripped.so\n",
                         major(status.st_dev), minor(status.st_dev), status.st_ino);
  const auto facts = Inspector().One(30);
  ASSERT_TRUE(facts.ok()) << facts.status();
  ASSERT_TRUE(facts->unwind.has_value());
  EXPECT_EQ(facts->unwind->images, 2u);
  bool listed = false;
  for (const auto& image : facts->unwind->unusable) {
    listed |= image.path == "/app/stripped.so";
    EXPECT_NE(image.reason, "");
  }
  EXPECT_TRUE(listed);
  const auto all = Inspector().All();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->dotnet.size(), 1u);
  EXPECT_FALSE(all->dotnet[0].unwind.has_value()) << "a list of all must not open dozens of files for each";
}

TEST_F(ProcessListTest, ASocketOfAnotherStartTimeIsNotIts) {
  const fs::path directory = MakeDotnet(30, "CORECLR");
  const auto make_socket = [&](const std::string& name) {
    // A path of a socket is short: it is made from inside its folder.
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const fs::path before = fs::current_path();
    fs::current_path(directory / "root" / "tmp");
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    fs::current_path(before);
    close(fd);
  };
  make_socket("dotnet-diagnostic-7-776-socket");
  EXPECT_TRUE(absl::IsNotFound(Inspector().One(30)->socket));
  make_socket("dotnet-diagnostic-7-777-socket");
  EXPECT_TRUE(Inspector().One(30)->socket.ok());
}

TEST_F(ProcessListTest, AProcessThatCantBeReadIsListedWhenItsThreadsLookLikeDotnet) {
  for (const int pid : {40, 41}) {
    const fs::path directory = MakeProcess(pid, pid == 40 ? ".NET Finalizer" : "bash");
    fs::remove(directory / "maps");
    fs::create_symlink("maps", directory / "maps");  // cannot be opened, root or not
  }
  const auto list = Inspector().All();
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->dotnet.size(), 1u);
  EXPECT_EQ(list->dotnet[0].pid, 40u);
  EXPECT_FALSE(list->dotnet[0].readable.ok());
  EXPECT_EQ(list->unreadable, 1u);
  EXPECT_EQ(list->how_to_read, HintOf(list->dotnet[0].readable));
  EXPECT_FALSE(list->how_to_read.empty());
}

TEST(HowToReadTest, AnAgentThatMayReadAllIsNotToldToRunAsRoot) {
  EXPECT_EQ(HowToRead(0), "run as root, or with cap_sys_ptrace");
  EXPECT_EQ(HowToRead(~uint64_t{0} & ~(uint64_t{1} << CAP_SYS_PTRACE)), HowToRead(0));
  EXPECT_EQ(HowToRead(uint64_t{1} << CAP_SYS_PTRACE), "the kernel or a security module closes it to root as well");
}

TEST_F(ProcessListTest, ADirectoryLinkOutOfTheRootIsFollowedInsideItOnly) {
  const fs::path directory = MakeDotnet(30, "CORECLR");
  fs::remove(directory / "root" / "tmp");
  fs::create_symlink("/usr", directory / "root" / "tmp");  // the host has one, the target's root does not
  const auto facts = Inspector().One(30);
  EXPECT_TRUE(absl::IsNotFound(facts->perf_map_directory.status)) << facts->perf_map_directory.status;
}

TEST_F(ProcessListTest, NoSuchProcessSaysSo) {
  const auto facts = Inspector().One(99);
  EXPECT_TRUE(absl::IsNotFound(facts.status()));
}

}  // namespace
}  // namespace clrsampler
