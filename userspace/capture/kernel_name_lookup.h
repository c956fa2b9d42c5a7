// Names of kernel addresses from the kernel itself, without reading all of /proc/kallsyms.
#ifndef CLRSAMPLER_CAPTURE_KERNEL_NAME_LOOKUP_H_
#define CLRSAMPLER_CAPTURE_KERNEL_NAME_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "status/thread_checker.h"

struct kernel_names_bpf;  // the skeleton

namespace clrsampler {

// Needs the sampler's privileges. Main loop only.
class KernelNameLookup {
 public:
  // UNIMPLEMENTED where the kernel has no syscall programs (before 5.14): read /proc/kallsyms instead.
  static absl::StatusOr<std::unique_ptr<KernelNameLookup>> Create();
  ~KernelNameLookup();

  // One text per address: "ksys_read", "nf_hook_slow [nf_conntrack]", "bpf_prog_6deef7357e7b4530_cpu_sample [bpf]";
  // empty where the kernel knows none. The symbol is the one at or below the address: for a return address pass the one
  // before it. At most 255 bytes of a name.
  absl::StatusOr<std::vector<std::string>> LookUp(std::span<const uint64_t> addresses);

 private:
  struct SkeletonDeleter {
    void operator()(kernel_names_bpf* skeleton) const;
  };
  KernelNameLookup() = default;

  std::unique_ptr<kernel_names_bpf, SkeletonDeleter> skeleton_;
  [[no_unique_address]] ThreadChecker main_loop_;
};

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_KERNEL_NAME_LOOKUP_H_
