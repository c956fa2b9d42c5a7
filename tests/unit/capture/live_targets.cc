#include "unit/capture/live_targets.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "process/cpu_time.h"

namespace clrsampler::test_support {
namespace {

constexpr int kRecursionDepth = 700;
volatile uint64_t sink;

struct Start {
  Behaviour behaviour;
  TargetFacts* facts;
  int go_fd;
  pid_t parent;
};

[[gnu::noinline]] void Compute(int rounds) {
  uint64_t value = sink;
  for (int i = 0; i < rounds; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  sink = value;
}

// Native code without frame pointers, as the walk meets it: the caller's is somewhere in its frame, 8 KB up or more.
[[gnu::noinline]] void BurnWithDataInFp(TargetFacts* facts) {
  const void* running = &facts->ready;
#if defined(__x86_64__)
  asm volatile(
      "sub $128, %%rsp\n"  // the red zone is this function's
      "push %%rbp\n"
      "sub $9216, %%rsp\n"
      "mov $0x1235, %%ebp\n"
      "1: cmpl $1, (%0)\n"
      "je 1b\n"
      "add $9216, %%rsp\n"
      "pop %%rbp\n"
      "add $128, %%rsp\n"
      :
      : "r"(running)
      : "memory", "cc");
#elif defined(__aarch64__)
  asm volatile(
      "stp x29, x30, [sp, #-16]!\n"
      "sub sp, sp, #8192\n"
      "sub sp, sp, #1024\n"
      "mov x29, #0x1235\n"
      "1: ldr w9, [%0]\n"
      "cmp w9, #1\n"
      "b.eq 1b\n"
      "add sp, sp, #8192\n"
      "add sp, sp, #1024\n"
      "ldp x29, x30, [sp], #16\n"
      :
      : "r"(running)
      : "memory", "cc", "x9");
#endif
}

[[gnu::noinline]] void Leaf(TargetFacts* facts, Behaviour behaviour) {
  volatile uint64_t pattern[4];
  std::fill(std::begin(pattern), std::end(pattern), kGapPattern);
  facts->leaf_returns_to = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  facts->ready = 1;
  if (behaviour == Behaviour::kSystemCalls) {
    static char buffer[1 << 20];
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    while (read(zero, buffer, sizeof buffer) > 0) sink = sink + pattern[0];
  }
  if (behaviour == Behaviour::kDataInFp) BurnWithDataInFp(facts);
  uint64_t value = pattern[1];
  while (facts->ready == 1) {
    for (int i = 0; i < 1000; ++i) value = value * 6364136223846793005u + pattern[2];
    sink = value;
  }
}

[[gnu::noinline]] void Middle(TargetFacts* facts, Behaviour behaviour) {
  facts->middle_returns_to = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  Leaf(facts, behaviour);
  sink = 1;  // no tail call
}

[[gnu::noinline]] void Outer(TargetFacts* facts, Behaviour behaviour) {
  Middle(facts, behaviour);
  sink = 2;
}

[[gnu::noinline]] void Recurse(TargetFacts* facts, int depth) {
  if (depth == 2) facts->recursion_returns_to = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  if (depth > 0) {
    Recurse(facts, depth - 1);
    sink = sink + 1;
    return;
  }
  facts->ready = 1;
  while (facts->ready == 1) Compute(1000);
}

int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void KeepABeat(TargetFacts* facts) {
  facts->ready = 1;
  for (int64_t beat = MonotonicNs(); true; beat += 10'000'000) {
    const timespec until = {beat / 1'000'000'000, beat % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    while (MonotonicNs() < beat + 3'000'000) Compute(100);
  }
}

void FreeMaps(TargetFacts* facts) {
  facts->ready = 1;
  while (true) {
    const int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "kthread_work", 8, 8, 300'000, nullptr);
    if (fd < 0) _exit(1);
    close(fd);  // freed later, by a worker thread of the kernel
  }
}

int Run(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "burn");
  start.facts->waiting = 1;
  char byte;
  if (read(start.go_fd, &byte, 1) != 1) _exit(1);
  if (start.behaviour == Behaviour::kForkThenBurn) {
    const pid_t child = fork();
    if (child != 0) {
      start.facts->grandchild = child;
      while (true) pause();
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  if (start.behaviour == Behaviour::kRecurse) Recurse(start.facts, kRecursionDepth);
  if (start.behaviour == Behaviour::kBeat) KeepABeat(start.facts);
  if (start.behaviour == Behaviour::kFreeMaps) FreeMaps(start.facts);
  Outer(start.facts, start.behaviour);
  return 0;
}

}  // namespace

Target::Target(Behaviour behaviour, int clone_flags) : stack_(1 << 20) {
  facts_ = static_cast<TargetFacts*>(
      mmap(nullptr, sizeof(TargetFacts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (pipe2(go_, O_CLOEXEC) != 0) abort();
  Start start{behaviour, facts_, go_[0], getpid()};
  const auto top = reinterpret_cast<uintptr_t>(stack_.data() + stack_.size()) & ~uintptr_t{63};
  pid_ = clone(Run, reinterpret_cast<void*>(top), SIGCHLD | clone_flags, &start);
  // Nobody's behaviour is what it does before that.
  for (int i = 0; i < 60'000 && pid_ > 0 && facts_->waiting == 0; ++i) usleep(1000);
}

Target::~Target() {
  Stop();
  close(go_[0]);
  close(go_[1]);
  munmap(facts_, sizeof(TargetFacts));
}

void Target::Go() {
  if (pid_ < 0 || write(go_[1], "g", 1) != 1) return;
  for (int i = 0; i < 60'000 && facts_->ready == 0; ++i) usleep(1000);
}

double Target::UsedSeconds() const {
  uint64_t used_ns = 0;
  for (const pid_t pid : {pid_, static_cast<pid_t>(facts_->grandchild)}) {
    if (pid > 0) used_ns += ProcessCpuNs(static_cast<uint32_t>(pid)).value_or(0);
  }
  return static_cast<double>(used_ns) / 1e9;
}

double Target::Stop() {
  if (pid_ <= 0) return used_seconds_;
  if (facts_->grandchild > 0) kill(facts_->grandchild, SIGKILL);
  kill(pid_, SIGKILL);
  rusage used{};
  int status = 0;
  wait4(pid_, &status, 0, &used);
  pid_ = -1;
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  used_seconds_ = seconds(used.ru_utime) + seconds(used.ru_stime);
  return used_seconds_;
}

DecodedSample Decode(std::span<const std::byte> record) {
  DecodedSample sample{};
  if (record.size() < sizeof sample.head) return sample;
  std::memcpy(&sample.head, record.data(), sizeof sample.head);
  std::vector<uint64_t> words((record.size() - sizeof sample.head) / 8);
  std::memcpy(words.data(), record.data() + sizeof sample.head, words.size() * 8);
  if (sample.head.header.size != record.size() ||
      words.size() != size_t{sample.head.kernel_frames} + sample.head.user_words) {
    return sample;
  }
  size_t words_only = 0;
  size_t at = sample.head.kernel_frames;
  sample.kernel.assign(words.begin(), words.begin() + static_cast<ptrdiff_t>(at));
  sample.user_words.assign(words.begin() + static_cast<ptrdiff_t>(at), words.end());
  while (at < words.size()) {
    const uint64_t address = words[at] & 0xffffffffffff;
    const size_t gap = words[at] >> WIRE_GAP_SHIFT & WIRE_GAP_MASK;
    const size_t needed = gap + (address == 0 ? 1 : 3);
    if (needed > words.size() - at) return sample;
    const auto begin = words.begin() + static_cast<ptrdiff_t>(at + 1);
    if ((words[at] & WIRE_FRAME_WORDS_ONLY) != 0) {
      ++words_only;
      at += needed;
      continue;
    }
    std::vector<uint64_t> gap_words(begin, begin + static_cast<ptrdiff_t>(gap));
    if (address == 0) {
      sample.tail = std::move(gap_words);
      sample.well_formed = at + needed == words.size();
      break;
    }
    sample.frames.push_back({address, words[at + 1 + gap], words[at + 2 + gap], std::move(gap_words)});
    at += needed;
  }
  if (sample.head.user_words == 0) sample.well_formed = true;
  if (sample.frames.size() + words_only != sample.head.user_frames) sample.well_formed = false;
  return sample;
}

bool HasReturnAddress(const DecodedSample& sample, uint64_t address) {
  return std::any_of(sample.frames.begin(), sample.frames.end(),
                     [&](const DecodedFrame& frame) { return frame.return_address == address; });
}

}  // namespace clrsampler::test_support
