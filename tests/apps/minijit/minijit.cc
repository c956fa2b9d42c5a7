// A miniature JIT: emits three functions, outer -> middle -> leaf, as machine code for x86-64 or arm64, writes a
// jitdump like a runtime does, and runs them. Half-way it compiles `leaf` again at the same address under a new name.
// So a profiler's jitdump path can be tested, and shown, on a machine without .NET.
//
//   minijit [--seconds S] [--dump-dir DIR] [--perf-map]
//
// Prints `ready PID`, then `truth {"leaf_tier0":CPU_NS,"leaf_tier1":CPU_NS}`; exits with 0. The jitdump layout is the
// one of the Linux kernel's tools/perf/Documentation/jitdump-specification.txt.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

uint64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// One function's machine code, in bytes ready to copy. Each keeps a frame pointer.
class Code {
 public:
#if defined(__x86_64__)
  static constexpr uint32_t kElfMachine = EM_X86_64;
  void Enter() { Bytes({0x55, 0x48, 0x89, 0xe5}); }  // push rbp; mov rbp, rsp
  void Leave() { Bytes({0x5d, 0xc3}); }              // pop rbp; ret
  void Call(uint64_t target) {                       // mov rax, target; call rax
    Bytes({0x48, 0xb8});
    Little(target, 8);
    Bytes({0xff, 0xd0});
  }
  void Spin(uint32_t rounds) {  // mov ecx, rounds; L: dec ecx; jnz L
    Bytes({0xb9});
    Little(rounds, 4);
    Bytes({0xff, 0xc9, 0x75, 0xfc});
  }
#elif defined(__aarch64__)
  static constexpr uint32_t kElfMachine = EM_AARCH64;
  void Enter() { Words({0xa9bf7bfd, 0x910003fd}); }  // stp x29, x30, [sp, #-16]!; mov x29, sp
  void Leave() { Words({0xa8c17bfd, 0xd65f03c0}); }  // ldp x29, x30, [sp], #16; ret
  void Call(uint64_t target) {                       // movz/movk x9, target; blr x9
    for (uint32_t i = 0; i < 4; ++i)
      MoveWide(i == 0 ? 0xd2800000 : 0xf2800000, i, static_cast<uint32_t>(target >> (16 * i)));
    Words({0xd63f0120});
  }
  void Spin(uint32_t rounds) {  // movz/movk x9, rounds; L: subs x9, x9, #1; b.ne L
    MoveWide(0xd2800000, 0, rounds);
    MoveWide(0xf2800000, 1, rounds >> 16);
    Words({0xf1000529, 0x54ffffe1});
  }
#else
#error "the mini-JIT emits x86-64 and arm64 code"
#endif
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  void Bytes(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  void Little(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void Words(std::initializer_list<uint32_t> words) {
    for (uint32_t word : words) Little(word, 4);
  }
  void MoveWide(uint32_t opcode, uint32_t shift, uint32_t value) {
    Words({opcode | shift << 21 | (value & 0xffff) << 5 | 9});
  }

  std::vector<uint8_t> bytes_;
};

class JitdumpFile {
 public:
  explicit JitdumpFile(const std::string& path)
      : fd_(open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600)) {
    if (fd_ < 0) {
      perror(path.c_str());
      exit(1);
    }
    const struct {
      uint32_t magic = 0x4A695444, version = 1, total_size = 40, elf_machine = Code::kElfMachine, padding = 0;
      uint32_t pid = static_cast<uint32_t>(getpid());
      uint64_t time_ns = Nanoseconds(CLOCK_MONOTONIC), flags = 0;
    } header;
    static_assert(sizeof header == 40);
    Write(&header, sizeof header);
    // Not to read the file: an executable mapping of it is how profilers find it.
    mmap(nullptr, 40, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd_, 0);
  }
  ~JitdumpFile() { close(fd_); }

  void Load(const char* name, uint64_t address, const std::vector<uint8_t>& code) {
    const size_t name_bytes = strlen(name) + 1;
    const struct {
      uint32_t id, total_size;
      uint64_t time_ns;
      uint32_t pid, tid;
      uint64_t vma, code_address, code_size, code_index;
    } record = {0,
                static_cast<uint32_t>(56 + name_bytes + code.size()),
                Nanoseconds(CLOCK_MONOTONIC),
                static_cast<uint32_t>(getpid()),
                static_cast<uint32_t>(syscall(SYS_gettid)),
                address,
                address,
                code.size(),
                ++index_};
    static_assert(sizeof record == 56);
    std::string bytes(reinterpret_cast<const char*>(&record), sizeof record);
    bytes.append(name, name_bytes).append(reinterpret_cast<const char*>(code.data()), code.size());
    Write(bytes.data(), bytes.size());
  }

 private:
  void Write(const void* bytes, size_t count) {
    if (write(fd_, bytes, count) != static_cast<ssize_t>(count)) {
      perror("jitdump");
      exit(1);
    }
  }

  int fd_;
  uint64_t index_ = 0;
};

struct Arguments {
  double seconds = 10;
  std::string dump_dir = "/tmp";
  bool perf_map = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--perf-map") {
      arguments.perf_map = true;
    } else if (option == "--seconds" && i + 1 < argc) {
      arguments.seconds = atof(argv[++i]);
    } else if (option == "--dump-dir" && i + 1 < argc) {
      arguments.dump_dir = argv[++i];
    } else {
      fprintf(stderr, "usage: minijit [--seconds S] [--dump-dir DIR] [--perf-map]\n");
      exit(2);
    }
  }
  return arguments;
}

// Places functions in one page of executable memory and tells the dump, the perf map or both.
class MiniJit {
 public:
  explicit MiniJit(const Arguments& arguments)
      : dump_(arguments.dump_dir + "/jit-" + std::to_string(getpid()) + ".dump"),
        memory_(static_cast<uint8_t*>(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (memory_ == MAP_FAILED) {
      perror("mmap");
      exit(1);
    }
    if (arguments.perf_map) {
      const std::string path = arguments.dump_dir + "/perf-" + std::to_string(getpid()) + ".map";
      map_ = fopen(path.c_str(), "we");
    }
  }
  ~MiniJit() {
    if (map_ != nullptr) fclose(map_);
  }

  uint64_t Compile(size_t slot, const char* name, const Code& code) {
    uint8_t* place = memory_ + slot * 256;
    mprotect(memory_, kBytes, PROT_READ | PROT_WRITE);
    memcpy(place, code.bytes().data(), code.bytes().size());
    mprotect(memory_, kBytes, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(reinterpret_cast<char*>(place), reinterpret_cast<char*>(place + code.bytes().size()));
    const auto address = reinterpret_cast<uint64_t>(place);
    dump_.Load(name, address, code.bytes());
    if (map_ != nullptr) {
      fprintf(map_, "%llx %zx %s\n", static_cast<unsigned long long>(address), code.bytes().size(), name);
      fflush(map_);
    }
    return address;
  }

 private:
  static constexpr size_t kBytes = 4096;
  JitdumpFile dump_;
  FILE* map_ = nullptr;
  uint8_t* memory_;
};

Code Caller(uint64_t callee) {
  Code code;
  code.Enter();
  code.Call(callee);
  code.Call(callee);
  code.Leave();
  return code;
}

Code Burner(uint32_t rounds) {
  Code code;
  code.Enter();
  code.Spin(rounds);
  code.Leave();
  return code;
}

// Calls `function` for a time; returns the CPU time used.
uint64_t RunFor(double seconds, void (*function)()) {
  const uint64_t end = Nanoseconds(CLOCK_MONOTONIC) + static_cast<uint64_t>(seconds * 1e9);
  const uint64_t cpu = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  while (Nanoseconds(CLOCK_MONOTONIC) < end) function();
  return Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  MiniJit jit(arguments);
  const uint64_t leaf = jit.Compile(2, "leaf_tier0", Burner(500'000));
  const uint64_t middle = jit.Compile(1, "middle", Caller(leaf));
  const auto outer = reinterpret_cast<void (*)()>(jit.Compile(0, "outer", Caller(middle)));
  printf("ready %d\n", getpid());
  fflush(stdout);
  // Unequal parts, so that a name from the wrong time shows in the shares.
  const uint64_t tier0 = RunFor(arguments.seconds * 0.7, outer);
  jit.Compile(2, "leaf_tier1", Burner(600'000));
  const uint64_t tier1 = RunFor(arguments.seconds * 0.3, outer);
  printf("truth {\"leaf_tier0\":%llu,\"leaf_tier1\":%llu}\n", static_cast<unsigned long long>(tier0),
         static_cast<unsigned long long>(tier1));
  return 0;
}
