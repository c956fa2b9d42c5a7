// Lists of CPUs as in /sys/devices/system/cpu/online: "0-3,7\n" (lib/bitmap.c, format "%*pbl").
#ifndef CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Kernels go up to NR_CPUS = 8192 on x86-64 and arm64; more is refused instead of allocated.
constexpr uint32_t kMaxCpus = 65536;

// Ascending. An empty list is a list ("offline" often is).
absl::StatusOr<std::vector<uint32_t>> ParseCpuList(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_
