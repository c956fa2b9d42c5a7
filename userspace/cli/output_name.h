// Names of output files with what a recording is of in them.
#ifndef CLRSAMPLER_CLI_OUTPUT_NAME_H_
#define CLRSAMPLER_CLI_OUTPUT_NAME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace clrsampler {

struct RecordingSubject {
  std::vector<uint32_t> pids;  // empty: a command or the whole host
  std::string comm;            // name of the process, of the command, or "host"
  absl::Time start;
};

// %p: the process ids with '-' between them; %c: comm, in which '/' and spaces become '_'; %t: the time as
// 20260131-235959, in UTC; %%: a '%'. InvalidArgument: any other letter, or %p without processes.
absl::StatusOr<std::string> ExpandOutputName(absl::string_view pattern, const RecordingSubject& subject);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_OUTPUT_NAME_H_
