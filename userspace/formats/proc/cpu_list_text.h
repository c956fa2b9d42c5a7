// Lists of CPUs as in /sys/devices/system/cpu/online: "0-3,7\n" (Documentation/admin-guide/cputopology.rst;
// lib/bitmap.c, format "%*pbl").
#ifndef CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_
#define CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

inline constexpr int kCpuLimit = 8192;  // the largest NR_CPUS of any architecture

// Ascending and without repetition, below kCpuLimit. An empty list is a list ("offline" often is). Pure.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

}  // namespace clrsampler

#endif  // CLRSAMPLER_FORMATS_PROC_CPU_LIST_TEXT_H_
