// Uprobes without tracefs and without names that others could see or use, gone with the descriptor: by a BPF link where
// the kernel has them (Linux 6.6), else by perf_event_open.
//
// Links take CAP_BPF and CAP_PERFMON instead of CAP_SYS_ADMIN. A trap costs as much (0.51 and 0.52 us), but perf's
// events are removed one after the other, under a lock of the whole kernel (event_mutex): eight take 0.44 s, links 0.06
// s. And while perf's run a program no sample is taken on that CPU (bpf_prog_active), which nobody counts.
#ifndef CLRSAMPLER_CAPTURE_UPROBE_H_
#define CLRSAMPLER_CAPTURE_UPROBE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "os/unique_fd.h"

namespace clrsampler {

enum class UprobeAt : uint8_t { kEntry, kReturn };

// The expected_attach_type with which a program for OpenUprobe must be loaded. Tried once in a process, 0.2 ms.
uint32_t UprobeAttachType();

// Whether the kernel keeps a probe out of all processes but one. Links can; before Linux 6.10, 6.9.4 and 6.6.33 they
// missed that process's other threads ("bpf: Fix uprobe multi pid filter check"), so it is tried once, in 0.3 ms.
bool UprobesBindToProcess();

struct UprobePlace {
  std::string path;
  uint64_t file_offset = 0;
  UprobeAt at = UprobeAt::kEntry;
  int program_fd = -1;
  pid_t process = 0;    // 0: any
  uint64_t cookie = 0;  // for the program; takes HasAttachCookie (capture/feature_report.h)
};

// Has `program_fd`, a BPF program of type kprobe with the attach type above, run whenever a process executes the
// instruction at `file_offset` of the file at `path` (or returns from the function that begins there): `process`, where
// UprobesBindToProcess. The probe lives as long as the descriptor; the file is looked up once. Precondition: an
// instruction begins there; if none does, the processes that come by crash.
absl::StatusOr<UniqueFd> OpenUprobe(const UprobePlace& place);

// Removes probes, and returns when they are gone. For each the kernel waits until no CPU can be in it any more, 0.06 s;
// links wait together, in a thread each.
void CloseUprobes(std::vector<UniqueFd> probes);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_UPROBE_H_
