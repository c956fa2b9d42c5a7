#include "sandbox/syscall_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string>

namespace clrsampler {
namespace {

// All of the agent, and of the process that fetches.
constexpr SyscallGroup kAllGroups[] = {SyscallGroup::kBase,        SyscallGroup::kWriteFiles,   SyscallGroup::kProfile,
                                       SyscallGroup::kStopThreads, SyscallGroup::kLocalSockets, SyscallGroup::kNetwork};

// As the kernel decides: one rule of the call fits in all its conditions.
bool Allows(std::span<const SyscallGroup> groups, const std::string& name, std::array<uint64_t, 6> arguments = {}) {
  const pid_t self[] = {4711};
  const std::vector<SyscallRule> rules = SyscallRules(groups, self);
  return std::any_of(rules.begin(), rules.end(), [&](const SyscallRule& rule) {
    return rule.name == name && std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const auto& condition) {
             return (arguments[condition.index] & condition.mask) == condition.value;
           });
  });
}

TEST(SyscallListTest, NoGroupHasWhatTakesOverAHost) {
  for (const char* name : {"execve",
                           "execveat",
                           "fork",
                           "vfork",
                           "clone3",
                           "mount",
                           "umount2",
                           "pivot_root",
                           "setns",
                           "unshare",
                           "chroot",
                           "process_vm_writev",
                           "init_module",
                           "finit_module",
                           "kexec_load",
                           "reboot",
                           "setuid",
                           "setresuid",
                           "setfsuid",
                           "setgroups",
                           "capset",
                           "chown",
                           "fchownat",
                           "mknod",
                           "keyctl",
                           "io_uring_setup",
                           "userfaultfd",
                           "swapon",
                           "open_by_handle_at",
                           "pidfd_getfd",
                           "pidfd_send_signal",
                           "rt_sigqueueinfo",
                           "tkill",
                           "settimeofday"}) {
    EXPECT_FALSE(Allows(kAllGroups, name)) << name;
  }
}

TEST(SyscallListTest, ThreadsAndNoProcesses) {
  constexpr uint64_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  EXPECT_TRUE(Allows(kAllGroups, "clone", {kThread}));
  EXPECT_FALSE(Allows(kAllGroups, "clone", {SIGCHLD}));
  EXPECT_FALSE(Allows(kAllGroups, "clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}));
  EXPECT_FALSE(Allows(kAllGroups, "clone", {kThread | CLONE_NEWUSER}));
}

TEST(SyscallListTest, FileWorkersForkAndOpenNoNamespace) {
  constexpr SyscallGroup kWorkers[] = {SyscallGroup::kBase, SyscallGroup::kLocalSockets, SyscallGroup::kFork,
                                       SyscallGroup::kFileWorkers};
  EXPECT_TRUE(Allows(kWorkers, "clone", {CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD}));
  EXPECT_FALSE(Allows(kWorkers, "clone", {CLONE_NEWUSER | SIGCHLD}));
  EXPECT_FALSE(Allows(kWorkers, "clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}));
  for (const char* name :
       {"execve", "process_vm_readv", "process_vm_writev", "bpf", "perf_event_open", "unlink", "setresuid"}) {
    EXPECT_FALSE(Allows(kWorkers, name)) << name;
  }
  EXPECT_FALSE(Allows(kWorkers, "socket", {AF_INET, SOCK_STREAM}));
}

TEST(SyscallListTest, ReadersAnswerAndOpenNoSocket) {
  constexpr SyscallGroup kReader[] = {SyscallGroup::kBase, SyscallGroup::kTalk};
  EXPECT_TRUE(Allows(kReader, "recvmsg"));
  EXPECT_TRUE(Allows(kReader, "sendto"));
  for (const char* name : {"connect", "bind", "accept4", "process_vm_readv", "memfd_create", "seccomp", "capset"}) {
    EXPECT_FALSE(Allows(kReader, name)) << name;
  }
  EXPECT_FALSE(Allows(kReader, "socket", {AF_UNIX, SOCK_STREAM}));
  EXPECT_FALSE(Allows(kReader, "clone", {SIGCHLD}));
}

TEST(SyscallListTest, NoMemoryIsWrittenAndRun) {
  for (const char* name : {"mmap", "mprotect"}) {
    EXPECT_TRUE(Allows(kAllGroups, name, {0, 4096, PROT_READ | PROT_WRITE}));
    EXPECT_TRUE(Allows(kAllGroups, name, {0, 4096, PROT_READ | PROT_EXEC}));
    EXPECT_FALSE(Allows(kAllGroups, name, {0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC}));
  }
}

TEST(SyscallListTest, SignalsGoToItselfOnly) {
  EXPECT_TRUE(Allows(kAllGroups, "kill", {4711, SIGINT}));
  EXPECT_FALSE(Allows(kAllGroups, "kill", {1, SIGINT}));
  EXPECT_FALSE(Allows(kAllGroups, "kill", {~uint64_t{0}, SIGINT})) << "all processes";
}

TEST(SyscallListTest, SocketsByGroup) {
  constexpr SyscallGroup kLocal[] = {SyscallGroup::kBase, SyscallGroup::kLocalSockets};
  EXPECT_TRUE(Allows(kLocal, "socket", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}));
  EXPECT_FALSE(Allows(kLocal, "socket", {AF_INET, SOCK_STREAM}));
  EXPECT_TRUE(Allows(kAllGroups, "socket", {AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK}));
  EXPECT_TRUE(Allows(kAllGroups, "socket", {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}));
  EXPECT_FALSE(Allows(kAllGroups, "socket", {AF_NETLINK, SOCK_RAW, 9})) << "audit";
  EXPECT_FALSE(Allows(kAllGroups, "socket", {AF_INET, SOCK_RAW, 1}));
  EXPECT_FALSE(Allows(kAllGroups, "socket", {AF_PACKET, SOCK_RAW}));
  constexpr SyscallGroup kNone[] = {SyscallGroup::kBase};
  EXPECT_FALSE(Allows(kNone, "connect"));
}

TEST(SyscallListTest, LimitsOfOthersStay) {
  EXPECT_TRUE(Allows(kAllGroups, "prlimit64", {0, 7}));
  EXPECT_FALSE(Allows(kAllGroups, "prlimit64", {1, 7}));
  EXPECT_FALSE(Allows(kAllGroups, "ioctl", {0, 0x5412})) << "TIOCSTI types into the terminal";
}

}  // namespace
}  // namespace clrsampler
