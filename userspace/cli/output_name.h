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

// Stands in a pattern for an image, of which it makes a file each; ExpandOutputName leaves it where it is.
inline constexpr absl::string_view kModuleInName = "%m";

// %p: the process ids with '-' between them; %c: comm, in which '/' and spaces become '_'; %t: the time as
// 20260131-235959, in UTC; %%: a '%'; %m stays. InvalidArgument: any other letter, or %p without processes.
absl::StatusOr<std::string> ExpandOutputName(absl::string_view pattern, const RecordingSubject& subject);

// `pattern` with each %m as the module, in which '/' and spaces become '_' and brackets go: "[jit]" is "jit".
std::string NameOfModule(absl::string_view pattern, absl::string_view module);

}  // namespace clrsampler

#endif  // CLRSAMPLER_CLI_OUTPUT_NAME_H_
