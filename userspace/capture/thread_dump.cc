#include "capture/thread_dump.h"

#include <dirent.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "capture/stack_copy.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

// 20 us lie between two looks whether a thread of our own is gone.
constexpr int kMaxEndLooks = 10'000;

// Detaches when it is destroyed. The thread runs on, or stays stopped if it was, and gets the signal that stopped it.
// One that has not stopped stays seized.
class Seized {
 public:
  explicit Seized(pid_t tid) : tid_(tid) {}
  ~Seized() {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the system call takes a number in the place of a pointer
    ptrace(PTRACE_DETACH, tid_, nullptr, reinterpret_cast<void*>(signal_));
  }
  Seized(const Seized&) = delete;
  Seized& operator=(const Seized&) = delete;

  absl::Status Stop(uint64_t patience_ns) {
    if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return absl::ErrnoToStatus(errno, "it can't be stopped");
    const SystemClock clock;
    const uint64_t deadline = clock.Now().ns + patience_ns;
    for (uint64_t pause_ns = 20'000; clock.Now().ns < deadline;
         pause_ns = std::min<uint64_t>(2 * pause_ns, 2'000'000)) {
      int status = 0;
      const pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
      if (got == tid_) {
        if (!WIFSTOPPED(status)) return absl::NotFoundError("it has ended");
        // It may have stopped for a signal that was on its way. It gets that signal when we let go.
        if (status >> 16 != PTRACE_EVENT_STOP) signal_ = WSTOPSIG(status);
        return absl::OkStatus();
      }
      if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "it can't be waited for");
      const timespec pause{0, static_cast<long>(pause_ns)};
      nanosleep(&pause, nullptr);
    }
    return absl::DeadlineExceededError("it does not stop: it waits for a device or a file system");
  }

  // A sample with nothing but registers.
  absl::StatusOr<wire_cpu_sample> Read() const {
    wire_cpu_sample sample{};
#if defined(__x86_64__)
    user_regs_struct user{};
    iovec into{&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid_, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0 ||
        into.iov_len < sizeof user) {
      return absl::ErrnoToStatus(errno, "its registers can't be read");
    }
    sample.ip = user.rip;
    sample.sp = user.rsp;
    sample.fp = user.rbp;
    const uint64_t general[] = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp,
                                user.r8,  user.r9,  user.r10, user.r11, user.r12, user.r13, user.r14, user.r15};
    std::copy(std::begin(general), std::end(general), sample.general);
#elif defined(__aarch64__)
    user_regs_struct user{};
    iovec into{&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid_, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0 ||
        into.iov_len < sizeof user) {
      return absl::ErrnoToStatus(errno, "its registers can't be read");
    }
    sample.ip = user.pc;
    sample.sp = user.sp;
    sample.fp = user.regs[29];
    sample.lr = user.regs[30];
#endif
    return sample;
  }

 private:
  pid_t tid_;
  intptr_t signal_ = 0;
};

absl::StatusOr<std::vector<uint32_t>> ThreadsOf(const std::string& folder, uint32_t max_threads) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), closedir);
  if (directory == nullptr) return absl::ErrnoToStatus(errno, folder);
  std::vector<uint32_t> threads;
  while (const dirent* entry = readdir(directory.get())) {
    uint32_t tid = 0;
    if (absl::SimpleAtoi(entry->d_name, &tid) && threads.size() < max_threads) threads.push_back(tid);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

// The threads of one process, one after the other. A thread of our own seizes them: the tracer. The kernel lets go of
// one that does not stop in time when its tracer ends, and not before (ptrace(2), PTRACE_DETACH).
class Dump {
 public:
  Dump(uint32_t pid, std::string folder, int memory, const ThreadDumpOptions& options)
      : pid_(pid), folder_(std::move(folder)), memory_(memory), options_(options) {}

  std::vector<DumpedThread> Of(const std::vector<uint32_t>& threads) && {
    for (auto next = threads.begin(); next != threads.end();) {
      pid_t tracer_tid = 0;
      std::thread tracer([&] {
        tracer_tid = gettid();
        while (next != threads.end() && Take(*next++)) {
        }
        shown_ = nullptr;
        show_.release();
      });
      for (show_.acquire(); shown_ != nullptr; show_.acquire()) {
        options_.look(*shown_);
        looked_.release();
      }
      tracer.join();
      AwaitEnd(tracer_tid);
    }
    return std::move(dumped_);
  }

 private:
  // A thread may be joined a moment before the kernel lets go of what it traces.
  static void AwaitEnd(pid_t tid) {
    const std::string folder = absl::StrCat("/proc/self/task/", tid);
    const timespec pause{0, 20'000};
    for (int i = 0; i < kMaxEndLooks && access(folder.c_str(), F_OK) == 0; ++i) nanosleep(&pause, nullptr);
  }

  // On the tracer. False: the thread is seized and did not stop.
  bool Take(uint32_t tid) {
    DumpedThread thread;
    thread.tid = tid;
    const absl::StatusOr<std::string> comm = ReadWholeFile(absl::StrCat(folder_, "/task/", tid, "/comm"), 64);
    if (comm.ok()) thread.comm = comm->substr(0, comm->find('\n'));
    if (ptrace(PTRACE_SEIZE, static_cast<pid_t>(tid), nullptr, nullptr) != 0) {
      if (errno == ESRCH) return true;
      thread.trouble = errno == EPERM ? "another program traces it, a debugger perhaps" : strerror(errno);
      dumped_.push_back(std::move(thread));
      return true;
    }
    Seized seized(static_cast<pid_t>(tid));
    const absl::Status stopped = seized.Stop(options_.patience_ns);
    if (absl::IsNotFound(stopped)) return true;
    const absl::StatusOr<wire_cpu_sample> registers = stopped.ok() ? seized.Read() : stopped;
    if (registers.ok()) {
      Copy(*registers, thread);
    } else {
      thread.trouble = std::string(registers.status().message());
    }
    dumped_.push_back(std::move(thread));
    return stopped.ok();
  }

  void Copy(wire_cpu_sample sample, DumpedThread& thread) {
    sample.header.kind = WIRE_CPU_SAMPLE;
    sample.header.time_ns = SystemClock().Now().ns;
    sample.tgid = pid_;
    sample.tid = thread.tid;
    thread.comm.copy(sample.comm, sizeof sample.comm - 1);
    thread.record = RecordWithStack(sample, {}, memory_, options_.max_stack_bytes);
    if (!options_.look) return;
    shown_ = &thread;
    show_.release();
    looked_.acquire();
  }

  const uint32_t pid_;
  const std::string folder_;
  const int memory_;
  const ThreadDumpOptions& options_;
  std::vector<DumpedThread> dumped_;
  // The tracer hands a thread over to be looked at, and waits until that is done. nullptr: there are no more.
  DumpedThread* shown_ = nullptr;
  std::binary_semaphore show_{0}, looked_{0};
};

}  // namespace

absl::StatusOr<std::vector<DumpedThread>> DumpThreads(uint32_t pid, const ThreadDumpOptions& options) {
  const std::string folder = absl::StrCat(options.proc_root, "/", pid);
  const absl::StatusOr<std::vector<uint32_t>> threads = ThreadsOf(absl::StrCat(folder, "/task"), options.max_threads);
  if (!threads.ok()) {
    return WithHint(absl::NotFoundError(absl::StrCat("no process ", pid)), "clrsampler ps lists .NET processes");
  }
  const absl::StatusOr<UniqueFd> memory = OpenForReading(absl::StrCat(folder, "/mem"));
  if (!memory.ok()) {
    return WithHint(absl::PermissionDeniedError(absl::StrCat("the stacks of process ", pid, " can't be read")),
                    "run it as root, or with the capability SYS_PTRACE");
  }
  return Dump(pid, folder, memory->get(), options).Of(*threads);
}

}  // namespace clrsampler
