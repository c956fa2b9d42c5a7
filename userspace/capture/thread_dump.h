// The threads of one process as they stand now: registers and stack of each, in the form of a sample, so that all that
// is made of samples can be made of them.
//
// Each thread is stopped by ptrace for the time that its registers and its stack are copied (50 us for a shallow one)
// and looked at, one after the other. A thread that was stopped already stays so. Linux 3.4, ptrace(2) PTRACE_SEIZE.
#ifndef CLRSAMPLER_CAPTURE_THREAD_DUMP_H_
#define CLRSAMPLER_CAPTURE_THREAD_DUMP_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace clrsampler {

struct DumpedThread {
  uint32_t tid = 0;
  std::string comm;
  std::vector<uint64_t> record;  // a wire_cpu_sample with what follows it
  std::string trouble;           // why there is no record
};

struct ThreadDumpOptions {
  std::string proc_root = "/proc";
  uint64_t max_stack_bytes = 1 << 20;  // of each thread, from its stack pointer on
  uint32_t max_threads = 4096;
  uint64_t patience_ns = 1'000'000'000;  // how long one thread may take to stop: in an uninterruptible wait it can't
  // Called for each thread that has a record, on the caller's thread, while it stands still: what its frames need is
  // there until this returns.
  std::function<void(DumpedThread&)> look;
};

// Errors: NotFound (no such process), PermissionDenied. Threads that end meanwhile are left out; one that can't be
// stopped has a trouble. The process goes on whatever happens to us, and none of its threads is traced any more when
// this returns.
absl::StatusOr<std::vector<DumpedThread>> DumpThreads(uint32_t pid, const ThreadDumpOptions& options = {});

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_THREAD_DUMP_H_
