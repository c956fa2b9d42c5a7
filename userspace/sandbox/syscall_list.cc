#include "sandbox/syscall_list.h"

#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <initializer_list>
#include <utility>

namespace clrsampler {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};
// Kernels read `int` arguments from the lower half of a register; the upper one is the caller's rubbish.
constexpr uint64_t kInt = 0xffffffff;
constexpr uint64_t kSocketType = 0xf;  // without SOCK_CLOEXEC and SOCK_NONBLOCK

constexpr const char* kBaseCalls[] = {
    // memory
    "brk", "madvise", "mremap", "msync", "mincore", "munmap", "mlock", "munlock", "membarrier", "get_mempolicy",
    // clocks and waiting
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "times", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe", "pipe2", "alarm", "setitimer",
    // threads, and signals to itself
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "arch_prctl", "gettid",
    "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getcpu", "exit", "exit_group", "pause",
    "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "sigaltstack", "signalfd4", "wait4", "waitid",
    // reading
    "access", "faccessat", "faccessat2", "stat", "lstat", "fstat", "newfstatat", "statx", "statfs", "fstatfs", "open",
    "openat", "openat2", "close", "close_range", "read", "readv", "pread64", "preadv", "preadv2", "readahead",
    "readlink", "readlinkat", "getdents", "getdents64", "getcwd", "lseek", "fadvise64", "dup", "dup2", "dup3", "fcntl",
    "flock", "ftruncate", "write", "writev", "pwrite64", "pwritev", "sendfile", "copy_file_range", "splice",
    "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
    // who it is, and what it may take
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups", "getpgrp",
    "getpgid", "getsid", "getpriority", "getrlimit", "getrusage", "capget", "getrandom", "uname", "sysinfo", "umask",
    "setrlimit"};

constexpr const char* kWriteCalls[] = {"chmod",    "fchmod",    "fchmodat",  "fallocate", "fdatasync",       "fsync",
                                       "truncate", "futimesat", "link",      "linkat",    "mkdir",           "mkdirat",
                                       "rename",   "renameat",  "renameat2", "rmdir",     "sync_file_range", "syncfs",
                                       "unlink",   "unlinkat",  "utime",     "utimensat", "utimes"};

constexpr const char* kProfileCalls[] = {"bpf", "perf_event_open", "pidfd_open", "kcmp"};

constexpr const char* kTalkCalls[] = {"recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown"};

constexpr const char* kSocketCalls[] = {"accept",      "accept4",    "bind",   "connect",    "getpeername",
                                        "getsockname", "getsockopt", "listen", "setsockopt", "socketpair"};

constexpr uint64_t kThread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
constexpr uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

class Rules {
 public:
  void Add(const char* name, std::vector<ArgumentCondition> conditions = {}) {
    rules_.push_back({name, std::move(conditions)});
  }
  template <size_t kSize>
  void AddAll(const char* const (&names)[kSize]) {
    for (const char* name : names) Add(name);
  }
  void AddIfOneOf(const char* name, unsigned index, std::initializer_list<uint64_t> values, uint64_t mask = kInt) {
    for (const uint64_t value : values) Add(name, {{index, mask, value}});
  }
  std::vector<SyscallRule> Take() && { return std::move(rules_); }

 private:
  std::vector<SyscallRule> rules_;
};

void AddBase(Rules& rules, std::span<const pid_t> pids) {
  rules.AddAll(kBaseCalls);
  // Code comes from files, and never from memory that can be written.
  for (const char* name : {"mmap", "mprotect"}) {
    for (const uint64_t protection : {0, PROT_WRITE, PROT_EXEC}) {
      rules.Add(name, {{2, PROT_WRITE | PROT_EXEC, protection}});
    }
  }
  // Threads, not processes: no fork, no namespaces. clone3 hides its flags; glibc then uses clone.
  rules.Add("clone", {{0, kThread | kNamespaces, kThread}});
  rules.AddIfOneOf("prctl", 0, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE, PR_CAPBSET_READ, PR_SET_TIMERSLACK});
  for (const pid_t pid : pids) {
    rules.Add("kill", {{0, kInt, static_cast<uint64_t>(pid)}});
    rules.Add("tgkill", {{0, kInt, static_cast<uint64_t>(pid)}});
  }
  rules.Add("prlimit64", {{0, kInt, 0}});
  rules.Add("setpriority", {{1, kInt, 0}});
  rules.AddIfOneOf(
      "ioctl", 1,
      {TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TCFLSH, TCXONC});
}

void AddProfile(Rules& rules) {
  rules.AddAll(kProfileCalls);
  rules.AddIfOneOf("ioctl", 1,
                   {PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_PERIOD, PERF_EVENT_IOC_SET_OUTPUT,
                    PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ID, PERF_EVENT_IOC_RESET, PERF_EVENT_IOC_REFRESH});
}

void AddFork(Rules& rules) {
  rules.Add("clone", {{0, kThread | kNamespaces, 0}});  // fork(3)
  rules.Add("prctl", {{0, kInt, PR_SET_PDEATHSIG}});
}

void AddFileWorkers(Rules& rules) {
  rules.Add("memfd_create");
  rules.Add("ioctl", {{1, kInt, NS_GET_USERNS}});
}

void AddNetwork(Rules& rules) {
  for (const uint64_t family : {AF_INET, AF_INET6}) {
    for (const uint64_t type : {SOCK_STREAM, SOCK_DGRAM}) {
      rules.Add("socket", {{0, kInt, family}, {1, kSocketType, type}});
    }
  }
  // glibc asks which addresses this host has, before it sorts those of a server.
  rules.Add("socket", {{0, kInt, AF_NETLINK}, {2, kInt, NETLINK_ROUTE}});
}

}  // namespace

std::vector<SyscallRule> SyscallRules(std::span<const SyscallGroup> groups, std::span<const pid_t> pids) {
  Rules rules;
  bool sockets = false, talk = false;
  for (const SyscallGroup group : groups) {
    switch (group) {
      case SyscallGroup::kBase:
        AddBase(rules, pids);
        break;
      case SyscallGroup::kWriteFiles:
        rules.AddAll(kWriteCalls);
        break;
      case SyscallGroup::kProfile:
        AddProfile(rules);
        break;
      case SyscallGroup::kStopThreads:
        rules.AddIfOneOf("ptrace", 0, {PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GETREGSET, PTRACE_DETACH}, kAll);
        break;
      case SyscallGroup::kFork:
        AddFork(rules);
        break;
      case SyscallGroup::kFileWorkers:
        AddFileWorkers(rules);
        break;
      case SyscallGroup::kGiveUp:
        rules.Add("capset", {});
        rules.Add("seccomp", {{0, kInt, SECCOMP_SET_MODE_FILTER}});
        rules.Add("prctl", {{0, kInt, PR_SET_NO_NEW_PRIVS}});
        break;
      case SyscallGroup::kNetwork:
        AddNetwork(rules);
        sockets = true;
        break;
      case SyscallGroup::kTalk:
        talk = true;
        break;
      case SyscallGroup::kLocalSockets:
        rules.Add("socket", {{0, kInt, AF_UNIX}});
        sockets = true;
        break;
    }
  }
  if (sockets) rules.AddAll(kSocketCalls);
  if (sockets || talk) rules.AddAll(kTalkCalls);
  return std::move(rules).Take();
}

}  // namespace clrsampler
