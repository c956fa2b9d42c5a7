#include "symbols/debug_file.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "process/file_broker.h"
#include "test_paths.h"

namespace clrsampler {
namespace {

// For this process, and not for those that it has started.
bool ForbidQuestionsAboutFileSystems() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstatfs, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statfs, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = std::size(steps), .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void FindOnHostWithAWorker() {
  auto broker = FileBroker::Start([] { return absl::OkStatus(); });
  if (!broker.ok() || !ForbidQuestionsAboutFileSystems()) _exit(1);
  ImageFiles images;
  const auto pid = static_cast<uint32_t>(getpid());
  const Process process(ProcessKey{pid, 1}, TargetFiles("/proc", pid, nullptr, broker->get()));
  const std::string path = ElfFixture("libstripped.so");
  const auto file = images.GetByPath(process, path);
  if (!file.ok()) _exit(2);
  DebugFileFinder finder(images, "/nowhere");
  _exit(finder.FindOnHost(process, path, **file, *ElfImage::Parse((*file)->bytes())).has_value() ? 0 : 3);
}

// The server of a FUSE file system may answer the worker's questions, and not ours.
TEST(DebugFileFinderTest, AFileSystemIsAskedByAWorkerOnly) {
  EXPECT_EXIT(FindOnHostWithAWorker(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace clrsampler
