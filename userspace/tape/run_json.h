// The options of a run as they stand in a saved stream: those that decide what is asked of the machine.
#ifndef CLRSAMPLER_TAPE_RUN_JSON_H_
#define CLRSAMPLER_TAPE_RUN_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/record_options.h"

namespace clrsampler {

// With `origin`, which is of this run.
std::string RunJson(const RecordOptions& options, const RunOrigin& origin);

// With an origin. DataLoss: no such JSON. Numbers out of range are those of RecordOptions' own defaults.
absl::StatusOr<RecordOptions> ParseRunJson(absl::string_view json);

}  // namespace clrsampler

#endif  // CLRSAMPLER_TAPE_RUN_JSON_H_
