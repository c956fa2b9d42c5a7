#include "profile/window.h"

#include <numeric>

namespace clrsampler {

absl::string_view CpuShareText(CpuShare share) {
  switch (share) {
    case CpuShare::kManaged:
      return "managed";
    case CpuShare::kNative:
      return "native";
    case CpuShare::kKernel:
      return "kernel";
    case CpuShare::kGc:
      return "gc";
    case CpuShare::kJit:
      return "jit";
  }
  return "";
}

uint64_t WindowProcess::total_cpu_ns() const { return std::accumulate(cpu_ns.begin(), cpu_ns.end(), uint64_t{0}); }

}  // namespace clrsampler
