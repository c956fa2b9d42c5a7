// The process that is asked by its diagnostics socket: which one it is, and what people can do where that fails.
#ifndef CLRSAMPLER_PIPELINE_DIAGNOSED_TARGET_H_
#define CLRSAMPLER_PIPELINE_DIAGNOSED_TARGET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "clr/diagnostics_client.h"
#include "process/target_files.h"

namespace clrsampler {

// An error is a sentence with a hint.
absl::StatusOr<TargetIdentity> IdentityOfTarget(uint32_t pid, const TargetFiles& files);

// An error of what was asked, with the process and a hint.
absl::Status ExplainDiagnostics(const absl::Status& status, uint32_t pid);

}  // namespace clrsampler

#endif  // CLRSAMPLER_PIPELINE_DIAGNOSED_TARGET_H_
