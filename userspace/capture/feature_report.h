// Finds out what this kernel can do by trying it. Version numbers say little about the kernels of distributions that
// back-port.
#ifndef CLRSAMPLER_CAPTURE_FEATURE_REPORT_H_
#define CLRSAMPLER_CAPTURE_FEATURE_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// Names of features, as --verbose shows them.
inline constexpr absl::string_view kFeatureBtf = "BTF";
inline constexpr absl::string_view kFeaturePerfEventProgram = "perf_event program";
inline constexpr absl::string_view kFeatureRingBuffer = "ring buffer";
inline constexpr absl::string_view kFeatureProbeReadKernel = "bpf_probe_read_kernel";
inline constexpr absl::string_view kFeatureTaskPtRegs = "bpf_task_pt_regs";
inline constexpr absl::string_view kFeatureSyscallProgram = "syscall program";

struct Feature {
  std::string name;
  bool present = false;
  bool required = false;
  std::string detail;  // since when, what is done without it, or why it can't be known
};

struct FeatureReport {
  std::vector<Feature> features;
  // errno of loading the smallest possible perf_event program; 0 when it loaded.
  int load_error = 0;
  std::string lockdown;  // "none", "integrity", "confidentiality"; empty when the kernel has no such thing

  bool Has(absl::string_view name) const;
  // OK, or what the first missing requirement is, with a hint.
  absl::Status Usable() const;
};

enum class ProbeDepth {
  kSampler,     // what the sampler decides by
  kEverything,  // for --verbose and diagnosis
};

// Loads a few programs of two instructions, and unloads them: 0.1 ms each. Needs the same privileges as the sampler;
// without them `load_error` says so and nothing else is known.
FeatureReport ProbeFeatures(ProbeDepth depth = ProbeDepth::kSampler);

// Whether a program can be told by its probe's cookie at which place it runs (Linux 5.15). Loads a small program at
// each call.
bool HasAttachCookie();

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_FEATURE_REPORT_H_
