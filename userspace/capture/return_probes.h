// Whether return probes are harmless to the processes that they are planted in.
#ifndef CLRSAMPLER_CAPTURE_RETURN_PROBES_H_
#define CLRSAMPLER_CAPTURE_RETURN_PROBES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// The fate of a call of the system call by which x86-64 kernels from 6.11 on leave a return probe's trampoline. From
// anywhere else it ends in SIGILL.
enum class TrampolineCall : uint8_t {
  kKilled,   // the kernel has it, and has run it
  kRefused,  // with an error: there is no such call, or a filter does not let it through
};

// A seccomp filter that refuses the call leaves a process in the trampoline without its return address: it crashes.
// Kernels that have the call run it whatever filters say from 6.12.14, 6.13.3 and 6.14 on ("seccomp: passthrough
// uretprobe systemcall without filtering", cf6cb56ef244). `bare`, `filtered`: as it went without a filter of ours and
// with one. Where even the former is refused we may be under a filter ourselves, and `release` (uname -r) decides.
bool ReturnProbesAreHarmless(TrampolineCall bare, TrampolineCall filtered, absl::string_view release);

// Before Linux 6.14 tries it, once in the life of the agent, in processes of its own: 1 ms. OK on other architectures.
absl::Status CheckReturnProbes();

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_RETURN_PROBES_H_
