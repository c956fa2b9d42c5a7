// Explains the errors of bpf(2) to a person.
#ifndef CLRSAMPLER_CAPTURE_LOAD_ERROR_H_
#define CLRSAMPLER_CAPTURE_LOAD_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace clrsampler {

// How to get the rights that a recording needs.
inline constexpr absl::string_view kSetcapHint =
    "use sudo, or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore+ep on the "
    "program";

// Our own effective capabilities that matter here, as a sentence part: "CAP_BPF and CAP_PERFMON are missing", or empty
// when nothing is missing.
std::string MissingCapabilities();

// `what`: the errno text, with a hint that fits the cause. `lockdown` as in FeatureReport. Pure but for the
// capabilities.
absl::Status LoadError(int error_number, absl::string_view what, absl::string_view lockdown);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CAPTURE_LOAD_ERROR_H_
