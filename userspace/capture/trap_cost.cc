#include "capture/trap_cost.h"

#include <bpf/bpf.h>
#include <elf.h>
#include <link.h>
#include <linux/bpf.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include "capture/uprobe.h"
#include "os/unique_fd.h"
#include "status/status.h"

// The first instruction is what decides how the kernel goes on after a trap.
#if defined(__x86_64__)
__asm__(
    ".pushsection .text\n"
    ".globl clrsampler_probed_function\n"
    ".hidden clrsampler_probed_function\n"
    ".type clrsampler_probed_function, @function\n"
    "clrsampler_probed_function:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size clrsampler_probed_function, . - clrsampler_probed_function\n"
    ".popsection\n");
#elif defined(__aarch64__)
__asm__(
    ".pushsection .text\n"
    ".globl clrsampler_probed_function\n"
    ".hidden clrsampler_probed_function\n"
    ".type clrsampler_probed_function, %function\n"
    "clrsampler_probed_function:\n"
    "  stp x29, x30, [sp, -16]!\n"
    "  mov x29, sp\n"
    "  ldp x29, x30, [sp], 16\n"
    "  ret\n"
    ".size clrsampler_probed_function, . - clrsampler_probed_function\n"
    ".popsection\n");
#endif

extern "C" void clrsampler_probed_function();

namespace clrsampler {
namespace {

constexpr int kRounds = 10;
constexpr int kCallsOfARound = 100;

// Where the address lies in the file of the program itself.
std::optional<uint64_t> OffsetInProgram(uint64_t address) {
  struct Search {
    uint64_t address;
    std::optional<uint64_t> offset;
  } search{address, std::nullopt};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = object->dlpi_phdr[i];
      const uint64_t begin = object->dlpi_addr + header.p_vaddr;
      if (header.p_type != PT_LOAD || wanted.address < begin || wanted.address - begin >= header.p_filesz) continue;
      wanted.offset = wanted.address - begin + header.p_offset;
    }
    return 1;  // the first object is the program
  };
  dl_iterate_phdr(look, &search);
  return search.offset;
}

// By the thread's clock: what getrusage says is brought up to date with the tick, and all of this takes less than one.
uint64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t CallNs() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t begin = ThreadCpuNs();
    for (int i = 0; i < kCallsOfARound; ++i) clrsampler_probed_function();
    least = std::min(least, (ThreadCpuNs() - begin) / kCallsOfARound);
  }
  return least;
}

}  // namespace

absl::StatusOr<uint64_t> MeasureTrapNs() {
  const std::optional<uint64_t> offset = OffsetInProgram(reinterpret_cast<uint64_t>(&clrsampler_probed_function));
  if (!offset) return absl::InternalError("the program's own code is in none of its segments");
  const std::array<bpf_insn, 2> nothing = {bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K},
                                           bpf_insn{.code = BPF_JMP | BPF_EXIT}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = static_cast<bpf_attach_type>(UprobeAttachType()));
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_KPROBE, nullptr, "GPL", nothing.data(), nothing.size(), &options));
  if (!program.valid()) return ErrnoError(errno, "measuring what a probe costs");
  const uint64_t bare = CallNs();
  const absl::StatusOr<UniqueFd> probe = OpenUprobe("/proc/self/exe", *offset, UprobeAt::kEntry, program.get());
  if (!probe.ok()) return probe.status();
  const uint64_t trapped = CallNs();
  return trapped - std::min(trapped, bare);
}

}  // namespace clrsampler
