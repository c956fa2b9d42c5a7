#include "capture/trap_cost.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include "capture/probed_function.h"
#include "capture/uprobe.h"
#include "os/unique_fd.h"
#include "status/status.h"

namespace clrsampler {
namespace {

constexpr int kRounds = 10;
constexpr int kCallsOfARound = 100;

// The time is by the thread's clock. getrusage is brought up to date with the tick, and all of this takes less than
// one.
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
  const std::optional<uint64_t> offset = ProbedFunctionOffset();
  if (!offset) return absl::InternalError("the program's own code is in none of its segments");
  const std::array<bpf_insn, 2> nothing = {bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K},
                                           bpf_insn{.code = BPF_JMP | BPF_EXIT}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = static_cast<bpf_attach_type>(UprobeAttachType()));
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_KPROBE, nullptr, "GPL", nothing.data(), nothing.size(), &options));
  if (!program.valid()) return ErrnoError(errno, "measuring what a probe costs");
  const uint64_t bare = CallNs();
  const absl::StatusOr<UniqueFd> probe =
      OpenUprobe({.path = "/proc/self/exe", .file_offset = *offset, .program_fd = program.get()});
  if (!probe.ok()) return probe.status();
  const uint64_t trapped = CallNs();
  return trapped - std::min(trapped, bare);
}

}  // namespace clrsampler
