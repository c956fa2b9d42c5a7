#include "capture/thread_dump.h"

#include <dirent.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clrsampler/wire.h"
#include "os/clock.h"
#include "os/file_io.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMaxGapWords = WIRE_GAP_MASK;

struct Registers {
  uint64_t ip = 0, sp = 0, fp = 0, lr = 0;
  std::array<uint64_t, WIRE_GENERAL_REGISTERS> general{};
};

// Detaches when it goes: the thread runs on, or stays stopped if it was, and gets the signal that stopped it.
class Seized {
 public:
  explicit Seized(pid_t tid) : tid_(tid) {}
  ~Seized() { ptrace(PTRACE_DETACH, tid_, nullptr, reinterpret_cast<void*>(signal_)); }
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
        // It may have stopped for a signal that was on its way: this is the one that it gets when we let go.
        if (status >> 16 != PTRACE_EVENT_STOP) signal_ = WSTOPSIG(status);
        return absl::OkStatus();
      }
      if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "it can't be waited for");
      const timespec pause{0, static_cast<long>(pause_ns)};
      nanosleep(&pause, nullptr);
    }
    return absl::DeadlineExceededError("it does not stop: it waits for a device or a file system");
  }

  absl::StatusOr<Registers> Read() const {
    Registers registers;
#if defined(__x86_64__)
    user_regs_struct user{};
    iovec into{&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid_, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0 ||
        into.iov_len < sizeof user) {
      return absl::ErrnoToStatus(errno, "its registers can't be read");
    }
    registers = {user.rip,
                 user.rsp,
                 user.rbp,
                 0,
                 {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp, user.r8, user.r9,
                  user.r10, user.r11, user.r12, user.r13, user.r14, user.r15}};
#elif defined(__aarch64__)
    user_regs_struct user{};
    iovec into{&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid_, reinterpret_cast<void*>(NT_PRSTATUS), &into) != 0 ||
        into.iov_len < sizeof user) {
      return absl::ErrnoToStatus(errno, "its registers can't be read");
    }
    registers = {user.pc, user.sp, user.regs[29], user.regs[30], {}};
#endif
    return registers;
  }

 private:
  pid_t tid_;
  intptr_t signal_ = 0;
};

// From sp upwards, as far as memory goes.
std::vector<uint64_t> ReadStack(int memory, uint64_t sp, uint64_t max_bytes) {
  std::vector<uint64_t> words;
  uint64_t at = sp;
  while (at - sp < max_bytes) {
    const uint64_t bytes = std::min(kPage - at % kPage, max_bytes - (at - sp)) / sizeof(uint64_t) * sizeof(uint64_t);
    if (bytes == 0) break;
    const size_t before = words.size();
    words.resize(before + bytes / sizeof(uint64_t));
    const absl::StatusOr<size_t> got = ReadAt(memory, at, std::as_writable_bytes(std::span(words).subspan(before)));
    if (!got.ok() || *got != bytes) {
      words.resize(before);
      break;
    }
    at += bytes;
  }
  return words;
}

// The frame-pointer chain through the stack, with all words between its frames: what the sampler sends, uncut.
void AppendChain(uint64_t sp, uint64_t fp, std::span<const uint64_t> stack, wire_cpu_sample& sample,
                 std::vector<uint64_t>& out) {
  uint64_t last = 0;  // index of the first word that is not taken yet
  sample.stop = WIRE_STOP_BAD_FP;
  for (uint64_t frame = fp;;) {
    if (frame == 0) {
      sample.stop = WIRE_STOP_END;
      break;
    }
    if (frame < sp || frame % sizeof(uint64_t) != 0) break;
    const uint64_t index = (frame - sp) / sizeof(uint64_t);
    if (index < last || stack.size() < 2 || index > stack.size() - 2) break;
    if (sample.user_frames == UINT16_MAX) {
      sample.stop = WIRE_STOP_MAX_FRAMES;
      break;
    }
    if (index - last > kMaxGapWords) {
      // As the sampler does: the first and the last words of a long gap.
      constexpr uint64_t kHalf = kMaxGapWords / 2;
      out.push_back((sp + (last + kHalf - 2) * sizeof(uint64_t)) | (kHalf - 2) << WIRE_GAP_SHIFT |
                    WIRE_FRAME_WORDS_ONLY);
      out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
                 stack.begin() + static_cast<ptrdiff_t>(last + kHalf));
      ++sample.user_frames;
      last = index - kHalf;
    }
    const uint64_t gap = index - last;
    out.push_back(frame | gap << WIRE_GAP_SHIFT);
    out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
               stack.begin() + static_cast<ptrdiff_t>(last + gap));
    out.push_back(stack[index]);
    out.push_back(stack[index + 1]);
    ++sample.user_frames;
    last = index + 2;
    frame = stack[index];
    if (stack[index + 1] == 0) {
      sample.stop = WIRE_STOP_END;
      break;
    }
  }
  const uint64_t tail = std::min<uint64_t>(stack.size() - last, kMaxGapWords);
  out.push_back(tail << WIRE_GAP_SHIFT);
  out.insert(out.end(), stack.begin() + static_cast<ptrdiff_t>(last),
             stack.begin() + static_cast<ptrdiff_t>(last + tail));
}

std::vector<uint64_t> RecordOf(uint32_t pid, uint32_t tid, absl::string_view comm, const Registers& registers,
                               std::span<const uint64_t> stack) {
  wire_cpu_sample sample{};
  sample.header.kind = WIRE_CPU_SAMPLE;
  sample.header.time_ns = SystemClock().Now().ns;
  sample.tgid = pid;
  sample.tid = tid;
  sample.ip = registers.ip;
  sample.sp = registers.sp;
  sample.fp = registers.fp;
  sample.lr = registers.lr;
  std::copy(registers.general.begin(), registers.general.end(), sample.general);
  comm.copy(sample.comm, sizeof sample.comm - 1);
  std::vector<uint64_t> user;
  AppendChain(registers.sp, registers.fp, stack, sample, user);
  sample.user_words = static_cast<uint32_t>(user.size());
  sample.header.size = static_cast<uint32_t>(sizeof sample + user.size() * sizeof(uint64_t));
  std::vector<uint64_t> record(sizeof sample / sizeof(uint64_t));
  std::memcpy(record.data(), &sample, sizeof sample);
  record.insert(record.end(), user.begin(), user.end());
  return record;
}

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
  std::vector<DumpedThread> dumped;
  for (const uint32_t tid : *threads) {
    DumpedThread thread;
    thread.tid = tid;
    if (absl::StatusOr<std::string> comm = ReadWholeFile(absl::StrCat(folder, "/task/", tid, "/comm"), 64); comm.ok()) {
      thread.comm = comm->substr(0, comm->find('\n'));
    }
    if (ptrace(PTRACE_SEIZE, static_cast<pid_t>(tid), nullptr, nullptr) != 0) {
      if (errno == ESRCH) continue;
      thread.trouble = errno == EPERM ? "another program traces it, a debugger perhaps" : strerror(errno);
      dumped.push_back(std::move(thread));
      continue;
    }
    Seized seized(static_cast<pid_t>(tid));
    const absl::Status stopped = seized.Stop(options.patience_ns);
    if (absl::IsNotFound(stopped)) continue;
    absl::StatusOr<Registers> registers = stopped.ok() ? seized.Read() : stopped;
    if (registers.ok()) {
      const std::vector<uint64_t> stack = ReadStack(memory->get(), registers->sp, options.max_stack_bytes);
      thread.record = RecordOf(pid, tid, thread.comm, *registers, stack);
      if (options.look) options.look(thread);
    } else {
      thread.trouble = std::string(registers.status().message());
    }
    dumped.push_back(std::move(thread));
  }
  return dumped;
}

}  // namespace clrsampler
