#include "clr/jit_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/clr/jit_target_tree.h"

namespace clrsampler {
namespace {

Mapping FileMapping(absl::string_view path) {
  Mapping mapping;
  mapping.kind = MappingKind::kFile;
  mapping.path = std::string(path);
  return mapping;
}

TEST(JitFilesTest, KnowsTheMarkerOfAJitdump) {
  EXPECT_EQ(JitdumpMarkerDirectory(FileMapping("/tmp/jit-7.dump"), 7), "/tmp");
  EXPECT_EQ(JitdumpMarkerDirectory(FileMapping("/a b/c/jit-7.dump"), 7), "/a b/c");
  EXPECT_EQ(JitdumpMarkerDirectory(FileMapping("/jit-7.dump"), 7), "/");
  for (const char* path : {"/tmp/jit-77.dump", "/tmp/jit-7.dump (deleted)", "jit-7.dump", "/tmp/xjit-7.dump", ""}) {
    EXPECT_EQ(JitdumpMarkerDirectory(FileMapping(path), 7), std::nullopt) << path;
  }
}

TEST(JitFilesTest, ReadsTheDirectoryFromTheEnvironment) {
  JitTargetTree tree;
  const auto with = [&](absl::string_view environment) {
    tree.Write(tree.process() + "/environ", environment);
    return PerfMapDirectoryOfEnvironment(TargetFiles(tree.proc_root(), JitTargetTree::kPid));
  };
  static constexpr char kVariables[] = "A=b\0DOTNET_PerfMapJitDumpPath=/maps/\0C=d";
  EXPECT_EQ(with(absl::string_view(kVariables, sizeof kVariables)), "/maps");
  EXPECT_EQ(with("COMPlus_PerfMapJitDumpPath=/maps"), "/maps");
  EXPECT_EQ(with("DOTNET_PerfMapJitDumpPath=relative"), std::nullopt);
  EXPECT_EQ(with("XDOTNET_PerfMapJitDumpPath=/maps"), std::nullopt);
  EXPECT_EQ(PerfMapDirectoryOfEnvironment(TargetFiles(tree.proc_root(), 1)), std::nullopt);
}

TEST(JitFilesTest, ReadsTheOffsetOfATimeNamespace) {
  JitTargetTree tree;
  tree.Write(tree.process() + "/timens_offsets",
             "monotonic           -3         5\nboottime            10         0\n");
  EXPECT_EQ(MonotonicOffsetOf(TargetFiles(tree.proc_root(), JitTargetTree::kPid)), -2'999'999'995);
  EXPECT_EQ(MonotonicOffsetOf(TargetFiles(tree.proc_root(), 1)), 0);
}

TEST(JitFilesTest, OwnStartLiesInThePast) {
  const Process self({static_cast<uint32_t>(getpid()), 1}, TargetFiles("/proc", static_cast<uint32_t>(getpid())));
  const MonotonicTime now = SystemClock().Now();
  const ProcessStart start = StartOf(self, now);
  EXPECT_LE(start.monotonic, now);
  EXPECT_GT(start.monotonic.ns + 600'000'000'000, now.ns) << "this test has not been running for ten minutes";
  struct stat status {};
  ASSERT_EQ(stat("/proc/self", &status), 0);
  EXPECT_LE(start.realtime_ns / 1'000'000'000, static_cast<uint64_t>(status.st_mtim.tv_sec) + 1);
}

TEST(JitFilesTest, SeesWhoHasAFileOpen) {
  JitTargetTree tree;
  tree.Write(tree.perf_map(), "x");
  struct stat status {};
  ASSERT_EQ(stat(tree.perf_map().c_str(), &status), 0);
  EXPECT_FALSE(TargetFiles(tree.proc_root(), JitTargetTree::kPid).HasOpenFile(status.st_dev, status.st_ino));
  tree.HoldOpen(tree.perf_map());
  EXPECT_TRUE(TargetFiles(tree.proc_root(), JitTargetTree::kPid).HasOpenFile(status.st_dev, status.st_ino));
  int descriptor = 7;
  EXPECT_EQ(TargetFiles(tree.proc_root(), JitTargetTree::kPid).StateOfFile(status.st_dev, status.st_ino, descriptor),
            OpenFileState::kOpen);
  EXPECT_EQ(descriptor, 3);
  EXPECT_EQ(
      TargetFiles(tree.proc_root(), JitTargetTree::kPid).StateOfFile(status.st_dev, status.st_ino + 1, descriptor),
      OpenFileState::kNotOpen);
  EXPECT_EQ(descriptor, -1);
  tree.LetGo();
  EXPECT_EQ(TargetFiles(tree.proc_root(), JitTargetTree::kPid).StateOfFile(status.st_dev, status.st_ino, descriptor),
            OpenFileState::kUnknown)
      << "without a descriptor the process is about to exit";
}

}  // namespace
}  // namespace clrsampler
